"""Messages as other encoders may write them: fields in any order, unknown or repeated fields, unpacked
lists, numbers in more bytes than needed. Also bytes that are not a message."""

from cases import UNKNOWN, Recording, operator, serialized, tensor
from computed import one_of_each, top_k
from recording import AWAIT_AN_END
from values import data

from api import op, ts  # pylint: disable=wrong-import-order

ELEMENTS = data("f32", 6)


def varint(value, bytes_=0):
    """A varint of at least `bytes_` bytes."""
    encoded = bytearray()
    while value >= 0x80 or len(encoded) + 1 < bytes_:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(encoded) + bytes([value])


def number(field, value, bytes_=0):
    return varint(field << 3) + varint(value, bytes_)


def field(number_, content, bytes_=0):
    return varint(number_ << 3 | 2) + varint(len(content), bytes_) + content


def packed(number_, *values):
    return field(number_, b"".join(map(varint, values)))


def unpacked(number_, *values):
    return b"".join(number(number_, value) for value in values)


F32 = ts.DATA_TYPE_FLOAT32
TENSOR = number(1, F32) + packed(2, 2, 3)
REDUCE = number(1, op.REDUCE_FUNCTION_SUM) + field(2, TENSOR) + packed(4, 1)
OPERATOR = field(3, REDUCE)
INPUT = field(100, ELEMENTS)


def _tensors():
    yield "reversed", packed(2, 2, 3) + number(1, F32)
    yield "unpacked", number(1, F32) + unpacked(2, 2, 3)
    yield "half_packed", number(1, F32) + packed(2, 2) + unpacked(2, 3)
    yield "packed_in_two", packed(2, 2) + number(1, F32) + packed(2, 3)
    yield "unpacked_strides", unpacked(3, 1) + TENSOR + unpacked(3, 2)
    yield "empty_lists", packed(2) + TENSOR + packed(3)
    yield "type_twice", number(1, ts.DATA_TYPE_INT8) + TENSOR
    yield "type_last_unspecified", TENSOR + number(1, 0)
    yield "long_numbers", number(1, F32, 10) + packed(2, 2) + number(2, 3, 5)
    yield "size_beyond_32_bits", number(1, F32) + unpacked(2, 2, 3 + (1 << 32))
    yield "type_beyond_32_bits", number(1, F32 + (1 << 32)) + packed(2, 2, 3)
    yield "unknown", UNKNOWN + number(1, F32) + UNKNOWN + packed(2, 2, 3) + UNKNOWN
    yield "another_wire_type", b"\x0d1234" + TENSOR  # field 1 as fixed32
    yield "cut", TENSOR[:-1]
    yield "empty", b""


def _reduces():
    function, input_, axes = number(1, 11), field(2, TENSOR), packed(4, 1)
    yield "reversed", axes + input_ + function
    yield "unpacked_axes", function + input_ + unpacked(4, 1, 0)
    yield "axes_apart", unpacked(4, 1) + function + input_ + packed(4, 0)
    yield "input_in_two", field(2, number(1, F32)) + axes + function + field(2, packed(2, 2, 3))
    yield "input_in_two_sizes", field(2, number(1, F32) + packed(2, 2)) + axes + function + (
        field(2, packed(2, 3)))
    yield "function_twice", number(1, 8) + input_ + axes + function
    yield "function_unspecified_given", number(1, 0) + input_ + axes
    yield "output_empty", function + input_ + field(3, b"") + axes
    yield "unknown", UNKNOWN + function + UNKNOWN + input_ + axes + UNKNOWN
    yield "unknown_only", UNKNOWN
    yield "function_of_64_bits", number(1, 2 ** 64 - 1) + input_ + axes


def _operators():
    min_ = field(1, field(1, TENSOR) + packed(3, 0) + number(4, 1))
    yield "last_of_two", min_ + OPERATOR
    yield "last_of_two_reversed", OPERATOR + min_
    yield "same_twice", field(3, field(2, TENSOR)) + field(3, number(1, 11) + packed(4, 1))
    yield "same_after_another", field(3, REDUCE) + min_ + field(3, packed(4, 0))
    yield "unknown_operator", field(77, REDUCE)
    yield "unknown_beside", field(77, REDUCE) + OPERATOR + UNKNOWN
    yield "long_length", varint(3 << 3 | 2) + varint(len(REDUCE), 4) + REDUCE
    yield "empty_member", field(5, b"")


def _all_operators():
    for name, encoded in _tensors():
        yield f"tensor/{name}", field(3, number(1, 11) + field(2, encoded) + packed(4, 1))
    for name, encoded in _reduces():
        yield f"reduce/{name}", field(3, encoded)
    for name, encoded in _operators():
        yield f"operator/{name}", encoded


def _execute():
    level = number(2, op.FEATURE_LEVEL_5_0)
    whole = field(1, OPERATOR)
    yield "input_first", INPUT + whole
    yield "level_first", level + INPUT + whole
    yield "level_last", INPUT + whole + level
    yield "level_twice", number(2, 1) + whole + INPUT + level
    yield "level_zero_given", whole + number(2, 0) + INPUT
    yield "operator_in_two", field(1, field(3, number(1, 11) + field(2, TENSOR))) + INPUT + (
        field(1, field(3, packed(4, 1))))
    yield "unknown", UNKNOWN + whole + UNKNOWN + INPUT + UNKNOWN
    yield "unknown_before_101", whole + field(101, b"later") + INPUT
    yield "inputs_as_number", whole + number(100, 5) + INPUT
    yield "two_inputs", INPUT + whole + INPUT
    yield "long_lengths", field(1, OPERATOR, 5) + field(100, ELEMENTS, 5)
    yield "length_of_6_bytes", whole + field(100, ELEMENTS, 6)
    yield "empty", b""
    yield "no_message", b"\xff\xff\xff"
    yield "field_0", b"\x02\x00" + whole + INPUT
    yield "wire_type_7", whole + b"\x0f" + INPUT
    yield "end_without_group", whole + b"\xc4\x3e" + INPUT
    yield "group_without_end", whole + INPUT + b"\xc3\x3e\x0d1234"
    yield "cut_input", whole + INPUT[:-1]
    yield "cut_operator", INPUT + whole[:-1]
    yield "deep_groups", b"\xc3\x3e" * 33 + b"\xc4\x3e" * 33 + whole + INPUT


def _streams():
    id_, rest = number(1, 7), field(2, field(1, OPERATOR))
    chunk = field(100, ELEMENTS)
    whole = id_ + rest + field(100, chunk)
    yield "reversed", [field(100, chunk) + rest + id_]
    yield "end_first", [number(4, 1) + field(100, chunk) + rest + id_]
    yield "end_false_given", [number(4, 0) + id_ + rest, id_ + field(100, chunk)]
    yield "id_twice", [number(1, 3) + whole]
    yield "begin_in_two", [id_ + field(2, field(1, field(3, REDUCE[:2]))) + field(100, chunk) + (
        field(2, field(1, field(3, REDUCE[2:]))))]
    yield "begin_then_cancel_of_one", [whole + field(3, b"")]
    yield "cancel_then_begin_of_one", [field(3, b"") + whole]
    yield "unknown", [UNKNOWN + id_ + UNKNOWN + rest + field(100, UNKNOWN + chunk + UNKNOWN)]
    yield "unknown_event", [id_ + field(77, b"later") + rest + field(100, chunk)]
    yield "chunk_reversed", [id_ + rest, id_ + field(100, field(100, ELEMENTS[:4])),
                             id_ + field(100, field(100, ELEMENTS[4:]) + number(2, 4))]
    yield "chunk_zeros_given", [id_ + rest + field(
        100, number(1, 0) + number(2, 0, 10) + chunk)]
    yield "chunk_offset_twice", [id_ + rest + field(100, number(2, 9) + chunk + number(2, 0))]
    yield "chunk_data_twice", [id_ + rest + field(100, field(100, b"12345678") + chunk)]
    yield "chunk_index_of_64_bits", [id_ + rest + field(100, number(1, 1 << 32) + chunk)]
    yield "no_message", [b"\xff\xff\xff"]
    yield "no_message_later", [whole, AWAIT_AN_END, b"\x0a\x05ab"]
    yield "no_message_while_open", [id_ + rest, b"\xff"]
    yield "cut_chunk", [id_ + rest + field(100, chunk[:-1])]
    yield "empty_message", [b""]
    yield "empty_begin", [id_ + field(2, b"")]


def cases():
    for name, encoded in _all_operators():
        yield Recording(f"encoded/execute/{name}", "Execute", [field(1, encoded) + INPUT])
    for name, message in _execute():
        yield Recording(f"encoded/execute/{name}", "Execute", [message])
    for name, send in _streams():
        yield Recording(f"encoded/stream/{name}", "ExecuteStream", send)
    for name in ("reversed", "unpacked", "packed_in_two", "unknown"):
        encoded = field(3, number(1, 11) + field(2, dict(_tensors())[name]) + packed(4, 1))
        yield Recording(f"encoded/compile/{name}", "CompileOperator",
                        [number(2, op.FEATURE_LEVEL_6_4) + field(1, encoded)])
    # Unknown fields in each operator and each of its tensors.
    for name, text in one_of_each(tensor("f32", [2, 3]), 1).items():
        yield Recording(f"encoded/execute/unknown_in/{name}", "Execute",
                        [field(1, _with_unknown(operator(text))) + INPUT])
    outputs = f"output_values {tensor('f32', [2, 2])} output_indices {tensor('u64', [2, 2])}"
    with_outputs = operator(top_k(tensor("f32", [2, 3]), 1, 2, "up", outputs))
    yield Recording("encoded/execute/unknown_in/top_k_outputs", "Execute",
                    [field(1, _with_unknown(with_outputs)) + INPUT])


def _with_unknown(message):
    """Serializes the message, with unknown fields around it and around each message in it."""
    plain = type(message)()
    plain.CopyFrom(message)
    nested = b""
    for descriptor, value in message.ListFields():
        if descriptor.message_type is not None:
            plain.ClearField(descriptor.name)
            nested += field(descriptor.number, _with_unknown(value))
    return UNKNOWN + serialized(plain) + nested + UNKNOWN

"""Builders for the cases of computed.py, refused.py, streamed.py and encoded.py."""

from google.protobuf import text_format

from recording import Recording

from api import op, sv, ts  # pylint: disable=wrong-import-order

UNKNOWN = (b"\xc0\x3e\x05" b"\xc1\x3e12345678" b"\xc2\x3e\x03abc"
           b"\xc3\x3e\x0d1234\xc4\x3e" b"\xc5\x3e1234" b"\x9a\x06\x02zz")
"""Field 1000 as varint, fixed64, bytes, group around a fixed32, fixed32; and field 99 as bytes."""

TYPES = {"f32": 4, "f16": 2, "u32": 4, "u16": 2, "u8": 1, "i32": 4, "i16": 2, "i8": 1, "u64": 8,
         "i64": 8}
"""The data types that operators take, by short names, with the bytes of an element."""
FLOATS = ("f32", "f16")
NUMBERS = (*FLOATS, "u32", "i32", "u64", "i64")
FUNCTION_TYPES = {
    "ARGMAX": TYPES, "ARGMIN": TYPES, "MAX": TYPES, "MIN": TYPES,
    "AVERAGE": FLOATS, "L2": FLOATS, "LOG_SUM": FLOATS, "LOG_SUM_EXP": FLOATS,
    "L1": NUMBERS, "SUM_SQUARE": NUMBERS, "MULTIPLY": NUMBERS, "SUM": NUMBERS,
}
DIRECTIONS = {"up": "AXIS_DIRECTION_INCREASING", "down": "AXIS_DIRECTION_DECREASING"}
LEVELS = tuple(op.FeatureLevel.keys())[1:]
_NAMES = {"f": "FLOAT", "u": "UINT", "i": "INT"}


def type_name(short):
    return f"DATA_TYPE_{_NAMES[short[0]]}{short[1:]}"


def tensor(dtype, sizes, strides=()):
    """The text of a TensorDesc. `dtype` is a short name or a number."""
    number = dtype if isinstance(dtype, int) else type_name(dtype)
    text = f"data_type: {number} sizes: {list(sizes)}"
    return "{ " + text + (f" strides: {list(strides)}" if strides else "") + " }"


def operator(text):
    return text_format.Parse(text, op.OperatorDesc())


def serialized(message):
    return message.SerializeToString(deterministic=True)


def execute(name, text, *inputs, **fields):
    request = sv.ExecuteRequest(operator=operator(text), inputs=inputs, **fields)
    return Recording("execute/" + name, "Execute", [serialized(request)])


def compile_(name, text, **fields):
    request = sv.CompileOperatorRequest(operator=operator(text), **fields)
    return Recording("compile/" + name, "CompileOperator", [serialized(request)])


def begin(execution_id, text, *chunks, end_of_inputs=False, **fields):
    """A message that begins an execution. Chunks are (offset, bytes[, tensor index])."""
    return serialized(sv.ExecuteStreamRequest(
        execution_id=execution_id, begin=sv.BeginExecution(operator=operator(text), **fields),
        end_of_inputs=end_of_inputs, chunks=[chunk(*each) for each in chunks]))


def more(execution_id, *chunks, **fields):
    """A later message of an execution."""
    return serialized(sv.ExecuteStreamRequest(
        execution_id=execution_id, chunks=[chunk(*each) for each in chunks], **fields))


def chunk(offset, data, tensor_index=0):
    return ts.TensorChunk(tensor_index=tensor_index, offset=offset, data=data)


def stream(name, *send):
    return Recording("stream/" + name, "ExecuteStream", list(send))

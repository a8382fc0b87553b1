"""ExecuteStream: chunks with the begin and after it, several executions, and every kind of misuse."""

from google.protobuf import duration_pb2

from cases import begin, more, stream, tensor
from computed import arg, hardmax, one_of_each, reduce, top_k
from recording import AWAIT_AN_END
from values import data

from api import sv  # pylint: disable=wrong-import-order

ELEMENTS = data("f32", 6)
SUM = reduce("SUM", tensor("f32", [2, 3]), [0, 1])
CANCEL = {"cancel": sv.CancelExecution()}


def _computed():
    for name, text in one_of_each(tensor("f32", [2, 3]), 1).items():
        yield stream(f"{name}/whole", begin(1, text, (0, ELEMENTS)))
        yield stream(f"{name}/apart", begin(1, text), more(1, (0, ELEMENTS)))
        yield stream(f"{name}/pieces", begin(1, text, (0, ELEMENTS[:5])),
                     more(1, (5, ELEMENTS[5:6]), (6, ELEMENTS[6:20])), more(1, (20, ELEMENTS[20:])))
    for size in (1, 7, 23):
        yield stream(f"chunks_of/{size}", begin(9, SUM), *(
            more(9, (start, ELEMENTS[start:start + size])) for start in range(0, 24, size)))
    yield stream("nothing")
    yield stream("id_0", begin(0, SUM, (0, ELEMENTS)))
    yield stream("id_largest", begin(2 ** 64 - 1, SUM, (0, ELEMENTS)))
    yield stream("empty_chunks", begin(1, SUM, (0, b"")), more(1, (0, b""), (0, ELEMENTS)))
    yield stream("end_of_inputs/with_begin", begin(1, SUM, (0, ELEMENTS), end_of_inputs=True))
    yield stream("end_of_inputs/last", begin(1, SUM), more(1, (0, ELEMENTS), end_of_inputs=True))
    yield stream("end_of_inputs/alone", begin(1, SUM, (0, ELEMENTS)), more(1, end_of_inputs=True))
    yield stream("rounded_up/with", begin(
        1, reduce("MAX", tensor("u8", [3]), [0]), (0, b"\1\5\2\0")))
    yield stream("rounded_up/without", begin(
        1, reduce("MAX", tensor("u8", [3]), [0]), (0, b"\1\5\2")))
    yield stream("timeout/long", begin(1, SUM, (0, ELEMENTS),
                                       timeout=duration_pb2.Duration(seconds=600)))
    yield stream("two", begin(1, SUM, (0, ELEMENTS[:8])),
                 begin(2, top_k(tensor("f32", [6]), 0, 2), (0, ELEMENTS)), AWAIT_AN_END,
                 more(1, (8, ELEMENTS[8:])))
    yield stream("interleaved", begin(1, SUM), begin(2, hardmax(tensor("f32", [6]), [0])),
                 more(2, (0, ELEMENTS[:9])), more(1, (0, ELEMENTS[:3])), more(2, (9, ELEMENTS[9:])),
                 more(1, (3, ELEMENTS[3:])))
    yield stream("id_again", begin(5, SUM, (0, ELEMENTS)), AWAIT_AN_END,
                 begin(5, arg("min", tensor("f32", [6]), [0]), (0, ELEMENTS)), AWAIT_AN_END,
                 begin(5, SUM, (0, ELEMENTS)))


def _misused():
    part = begin(7, SUM, (0, ELEMENTS[:10]))
    yield stream("leaves_out", part, more(7, (12, ELEMENTS[12:])))
    yield stream("leaves_out/same_message", begin(7, SUM, (0, ELEMENTS[:8]), (16, ELEMENTS[16:])))
    yield stream("leaves_out/first", begin(7, SUM, (1, ELEMENTS[1:])))
    yield stream("leaves_out/far", part, more(7, (2 ** 64 - 1, b"1")))
    yield stream("overlaps", part, more(7, (4, ELEMENTS[4:])))
    yield stream("overlaps/start", part, more(7, (0, ELEMENTS)))
    yield stream("past_the_end", part, more(7, (10, bytes(15))))
    yield stream("past_the_end/begin", begin(7, SUM, (0, bytes(28))))
    yield stream("past_the_end/second", begin(7, SUM, (0, bytes(23)), (23, bytes(2))))
    for index in (1, 3, 2 ** 32 - 1):
        yield stream(f"tensor_index/{index}", begin(7, SUM, (0, ELEMENTS, index)))
    yield stream("missing/end_of_inputs", begin(7, SUM, (0, ELEMENTS[:10]), end_of_inputs=True))
    yield stream("missing/end_of_inputs_apart", part, more(7, end_of_inputs=True))
    yield stream("missing/all", begin(7, SUM, end_of_inputs=True))
    yield stream("missing/half_close", part)
    yield stream("missing/half_close_all", begin(7, SUM))
    yield stream("unknown_id", more(7, (0, ELEMENTS)))
    yield stream("unknown_id/among_others", begin(1, SUM, (0, ELEMENTS[:8])),
                 more(2, (8, ELEMENTS[8:])), AWAIT_AN_END, more(1, (8, ELEMENTS[8:])))
    yield stream("unknown_id/no_bytes", more(7), more(8, end_of_inputs=True), more(9, (0, b"")))
    yield stream("open_id", part, begin(7, SUM, (0, ELEMENTS)))
    yield stream("open_id/then_again", part, begin(7, SUM, (0, ELEMENTS)), AWAIT_AN_END,
                 begin(7, SUM, (0, ELEMENTS)))
    yield stream("ended_id", begin(7, SUM, (0, ELEMENTS)), AWAIT_AN_END, more(7, (24, b"1234")))
    yield stream("refused_then_chunks", begin(7, reduce("SUM", tensor("f32", [2, 3]), [2])),
                 more(7, (0, ELEMENTS[:9])), AWAIT_AN_END, more(7, (9, ELEMENTS[9:])))
    yield stream("refused_among_others", begin(1, SUM, (0, ELEMENTS[:8])),
                 begin(7, reduce("SUM", tensor("f32", [2, 3]), [2]), (0, ELEMENTS)),
                 AWAIT_AN_END, more(1, (8, ELEMENTS[8:])), begin(7, SUM, (0, ELEMENTS)))
    for name, timeout in (("zero", {}), ("negative", {"nanos": -1}), ("past", {"seconds": -600})):
        yield stream(f"timeout/{name}", begin(7, SUM, timeout=duration_pb2.Duration(**timeout)))
    yield stream("timeout/passes", begin(7, SUM, (0, ELEMENTS[:8]),
                                         timeout=duration_pb2.Duration(nanos=20_000_000)),
                 AWAIT_AN_END)
    yield stream("too_many", begin(1, SUM), begin(2, SUM), begin(3, SUM, (0, ELEMENTS)),
                 AWAIT_AN_END, more(1, (0, ELEMENTS)), more(2, (0, ELEMENTS)))


def _cancelled():
    part = begin(7, SUM, (0, ELEMENTS[:10]))
    yield stream("cancel", part, more(7, **CANCEL))
    yield stream("cancel/at_once", begin(7, SUM), more(7, **CANCEL))
    yield stream("cancel/then_chunks", part, more(7, **CANCEL), AWAIT_AN_END,
                 more(7, (10, ELEMENTS[10:])))
    yield stream("cancel/twice", part, more(7, **CANCEL), AWAIT_AN_END, more(7, **CANCEL))
    yield stream("cancel/with_a_chunk", part, more(7, (10, ELEMENTS[10:12]), **CANCEL))
    yield stream("cancel/ended", begin(7, SUM, (0, ELEMENTS)), AWAIT_AN_END, more(7, **CANCEL))
    yield stream("cancel/unknown", more(7, **CANCEL))
    yield stream("cancel/unknown_with_bytes", more(7, (0, ELEMENTS), **CANCEL))
    yield stream("cancel/another", begin(1, SUM, (0, ELEMENTS[:8])), part, more(7, **CANCEL),
                 AWAIT_AN_END, more(1, (8, ELEMENTS[8:])))
    yield stream("cancel/begin_again", part, more(7, **CANCEL), AWAIT_AN_END,
                 begin(7, SUM, (0, ELEMENTS)))


def cases():
    for group in (_computed, _misused, _cancelled):
        yield from group()

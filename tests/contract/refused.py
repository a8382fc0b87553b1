"""Requests that the server refuses: every error of decoder, validation and limits, for each operator that
has the field, and the feature levels."""

from cases import (FUNCTION_TYPES, LEVELS, Recording, TYPES, begin, compile_, execute, stream,
                   tensor)
from computed import add, arg, attribute, hardmax, named, one_of_each, reduce, top_k

from api import op, sv  # pylint: disable=wrong-import-order

INPUT = tensor("f32", [2, 3, 4])
HUGE = 0xFFFF_FFFF
# reduce gets all of them. For other operators these suffice to show the path and the check.
SHORT_LIST = ("rank_0", "size_0", "type_unspecified", "other_rank", "larger", "strides_0",
              "other_type", "int32")


def _tensors():
    yield "rank_0", tensor("f32", [])
    yield "rank_9", tensor("f32", [1] * 9)
    yield "size_0", tensor("f32", [2, 0])
    yield "too_many_elements", tensor("f32", [65536, 65536])
    yield "far_too_many_elements", tensor("f32", [HUGE, HUGE, HUGE])
    yield "few_strides", tensor("f32", [2, 3], [1])
    yield "many_strides", tensor("f32", [2, 3], [1, 2, 3])
    yield "far_strides", tensor("f32", [HUGE, 1], [HUGE, 1])
    yield "type_unspecified", tensor(0, [2, 3])
    yield "type_unknown", tensor(12, [2, 3])
    yield "type_negative", tensor(-1, [2, 3])
    yield "type_float64", tensor(9, [2, 3])
    yield "empty", "{ }"


def _inputs():
    for kind, input_ in _tensors():
        for name, text in one_of_each(input_, 0).items():
            if name == "reduce" or kind in SHORT_LIST:
                yield f"{name}/input/{kind}", text
    for field in ("arg_min", "arg_max", "reduce", "top_k", "hardmax"):
        yield f"{field}/input/missing", f"{field} {{ }}"
    for kind, b in (("rank", tensor("f32", [2, 3])), ("size", tensor("f32", [2, 3, 5])),
                    ("type", tensor("i8", [2, 3, 4]))):
        yield f"element_wise_add/b/{kind}", add(INPUT, b)
    yield "element_wise_add/b/missing", f"element_wise_add {{ a {INPUT} }}"
    yield "no_operator", ""


def _outputs():
    outputs = dict(_tensors()) | {
        "other_rank": tensor("f32", [2, 4]), "not_reduced": INPUT,
        "other_size": tensor("f32", [1, 1, 4]), "larger": tensor("f32", [2, 3, 5]),
        "strides_0": tensor("f32", [2, 1, 4], [0, 0, 1]),
        "other_type": tensor("u16", [2, 1, 4]), "int32": tensor("i32", [2, 1, 4])}
    for kind, output in outputs.items():
        yield f"reduce/output/{kind}", reduce("SUM", INPUT, [1], f"output {output}")
    for kind in SHORT_LIST:
        output = outputs[kind]
        yield f"arg_min/output/{kind}", arg("min", INPUT, [1], "up", f"output {output}")
        yield f"hardmax/output/{kind}", hardmax(INPUT, [1], f"output {output}")
        for name in ("output_values", "output_indices"):
            yield f"top_k/{name}/{kind}", top_k(INPUT, 1, 1, "up", f"{name} {output}")
    for strides in ([3, 1, 1], [1, 1, 0], [2, 5, 1]):
        text = f"output {tensor('f32', [2, 3, 4], strides)}"
        yield f"hardmax/output/overlap_{strides[0]}{strides[1]}{strides[2]}", hardmax(
            INPUT, [1], text)
    cubed = [1600] * 3
    yield "hardmax/output/tangled", hardmax(
        tensor("f32", cubed), [0],
        f"output {tensor('f32', cubed, [4294967291, 3637190087, 2718281801])}")
    yield "hardmax/output/float16", hardmax(INPUT, [1], f"output {tensor('f16', [2, 3, 4])}")
    for name, dtype in (("output_values", "u32"), ("output_indices", "f32"),
                        ("output_indices", "i64")):
        yield f"top_k/{name}/{dtype}", top_k(
            INPUT, 1, 3, "up", f"{name} {tensor(dtype, [2, 3, 4])}")


def _named():
    for kind, text in {
            "no_name": named("", [INPUT]), "unknown": named("clop", [INPUT]),
            "few_inputs": named("multiply", [INPUT]), "no_inputs": named("abs", []),
            "many_inputs": named("abs", [INPUT, INPUT]),
            "many_outputs": named("abs", [INPUT], "", f"outputs {INPUT} outputs {INPUT}"),
            "rank": named("multiply", [INPUT, tensor("f32", [2, 3])]),
            "size": named("multiply", [INPUT, tensor("f32", [2, 3, 5])]),
            "type": named("multiply", [INPUT, tensor("i8", [2, 3, 4])]),
            "condition": named("if", [INPUT, INPUT, INPUT]),
            "integers": named("exp", [tensor("i8", [2, 3, 4])]),
            "output": named("abs", [INPUT], "", f"outputs {tensor('i8', [2, 3, 4])}"),
            "no_output": named("cast", [INPUT]),
            "output_type": named("is_nan", [INPUT], "", f"outputs {INPUT}"),
            "no_attribute": named("clip", [INPUT]),
            "unknown_attribute": named("abs", [INPUT], attribute("k", "number: 1")),
            "kind": named("elu", [INPUT], attribute("alpha", "flag: true")),
            "choice": named("round", [INPUT], attribute("rounding_mode", 'choice: "DOWN"')),
            "range": named("clip", [tensor("i8", [4])], attribute("min", "signed_number: -129") +
                           attribute("max", "number: 1"))}.items():
        yield f"named/{kind}", text


def _axes():
    for kind, axes in {"too_large": [3], "huge": [0, HUGE], "all_and_more": [0, 1, 2, 3]}.items():
        yield f"arg_min/axes/{kind}", arg("min", INPUT, axes)
        yield f"arg_max/axes/{kind}", arg("max", INPUT, axes)
        yield f"reduce/axes/{kind}", reduce("SUM", INPUT, axes)
        yield f"hardmax/axes/{kind}", hardmax(INPUT, axes)
    yield "top_k/axis/too_large", top_k(INPUT, 3, 1)
    yield "top_k/axis/huge", top_k(INPUT, HUGE, 1)
    yield "top_k/k/0", top_k(INPUT, 2, 0)
    yield "top_k/k/too_large", top_k(INPUT, 2, 5)
    yield "top_k/k/huge", top_k(INPUT, 1, HUGE)


def _enums():
    for value in (0, 3, -1, 77):
        for extreme in ("min", "max"):
            yield f"arg_{extreme}/direction/{value}", (
                f"arg_{extreme} {{ input {INPUT} axes: 0 axis_direction: {value} }}")
        yield f"top_k/direction/{value}", (
            f"top_k {{ input {INPUT} axis: 0 k: 1 axis_direction: {value} }}")
    for value in (0, 13, -1, 77):
        yield f"reduce/function/{value}", f"reduce {{ input {INPUT} axes: 0 function: {value} }}"


def _types():
    for function, types in FUNCTION_TYPES.items():
        for dtype in TYPES:
            if dtype not in types and dtype in ("i8", "i64"):
                yield f"reduce/{function}/{dtype}", reduce(function, tensor(dtype, [2]), [0])
    for dtype in ("u8", "i64"):
        yield f"hardmax/type/{dtype}", hardmax(tensor(dtype, [2]), [0])


def _order():
    """Requests with several mistakes, which show the one that is reported."""
    wrong = tensor("f32", [2, 0])
    yield "several/input_and_axes", reduce("SUM", wrong, [7])
    yield "several/axes_and_output", reduce("SUM", INPUT, [7], f"output {wrong}")
    yield "several/output_and_type", reduce("SUM", tensor("i8", [2]), [0], f"output {wrong}")
    yield "several/direction_and_input", (
        f"arg_min {{ input {wrong} axes: 0 }}")
    yield "several/function_and_input", f"reduce {{ input {wrong} axes: 0 }}"
    yield "several/no_function_and_no_input", "reduce { }"
    yield "several/values_and_indices", top_k(
        INPUT, 1, 1, "up", f"output_values {wrong} output_indices {wrong}")
    yield "several/k_and_axis", top_k(INPUT, 3, 0)


def _levels():
    """Each operator at the levels at which its row of the tables changes, and at the level before."""
    batch, pair, cube = (tensor("f32", sizes) for sizes in ([1, 1, 2, 3], [2, 3], [2, 3, 4]))
    int8, int64 = (tensor(dtype, [1, 1, 2, 3]) for dtype in ("i8", "i64"))
    types = {"f32": batch, "i8": int8, "i64": int64}
    groups = {
        ("2_1", "3_0", "4_0", "4_1"): {
            f"arg_min/{name}": arg("min", input_, [3]) for name, input_ in types.items()},
        ("2_0", "2_1", "3_0", "4_0", "4_1"): {
            "reduce_ARGMAX/i8": reduce("ARGMAX", int8, [3]),
            "reduce_ARGMAX/i64": reduce("ARGMAX", int64, [3]),
            "reduce_ARGMAX/i64_indices": reduce(
                "ARGMAX", batch, [3], f"output {tensor('i64', [1, 1, 2, 1])}")},
        ("2_0", "2_1", "3_0", "4_1", "5_0"): {
            f"reduce_{function}/{name}": reduce(function, types[name], [3])
            for function, names in (("MAX", ("f32", "i8", "i64")), ("SUM", ("f32", "i64")),
                                    ("SUM_SQUARE", ("i64",)))
            for name in names},
        ("2_1", "3_0"): {
            f"reduce_{function}/rank_2": reduce(function, pair, [1])
            for function in ("ARGMAX", "AVERAGE", "SUM_SQUARE", "MAX", "SUM")},
        ("1_0", "2_0", "2_1", "3_0", "3_1", "4_1", "5_0"): {
            f"top_k/{name}/down": top_k(input_, 3, 1, "down") for name, input_ in types.items()} | {
                "top_k/f32/up": top_k(batch, 3, 1),
                "top_k/rank_2": top_k(pair, 1, 1, "down"),
                "top_k/u64_indices": top_k(batch, 3, 1, "down",
                                           f"output_indices {tensor('u64', [1, 1, 2, 1])}")},
        ("1_0", "2_0", "2_1", "3_0", "5_0", "5_1"): {
            "hardmax/rank_4": hardmax(batch, [3]),
            "hardmax/rank_2": hardmax(pair, [1]),
            "hardmax/rank_5": hardmax(tensor("f32", [1, 1, 1, 2, 3]), [4]),
            "hardmax/cube": hardmax(cube, [2]),
            "hardmax/two_axes": hardmax(batch, [0, 3])},
        ("1_0",): {"invalid_and_unsupported": top_k(pair, 1, 99)}}
    for levels, texts in groups.items():
        for name, text in texts.items():
            for level in levels:
                yield compile_(f"level/{name}/{level}", text, feature_level=op.FeatureLevel.Value(
                    "FEATURE_LEVEL_" + level))


def _each_level():
    pair = hardmax(tensor("f32", [2, 3]), [0])
    for level in LEVELS:
        yield compile_(f"each_level/{level[14:]}", pair,
                       feature_level=op.FeatureLevel.Value(level))
    for number in (0, -1, 4097, 21248):
        yield compile_(f"level_unknown/{number}", pair, feature_level=number)
    yield execute("refused/level_unknown/1", pair, bytes(24), feature_level=1)
    yield execute("level/3_0/refused", pair, bytes(24), feature_level=op.FEATURE_LEVEL_3_0)
    yield execute("level/5_1/computed", pair, bytes(24), feature_level=op.FEATURE_LEVEL_5_1)
    for number in (0, op.FEATURE_LEVEL_3_0, op.FEATURE_LEVEL_5_1):
        yield stream(f"level/{number}", begin(1, pair, (0, bytes(24)), feature_level=number))


def _inputs_of_execute():
    for operator, text in one_of_each(tensor("f32", [2, 3]), 1).items():
        lengths = [[], [24, 24], [23]]
        if operator == "reduce":
            lengths += [[0], [25], [28]]
        for inputs in lengths:
            name = "_".join(map(str, inputs)) or "none"
            yield execute(f"refused/{operator}/bytes/{name}", text, *map(bytes, inputs))
    for sizes, strides, count in (([3], (), 2), ([3], (), 5), ([2, 2], (3, 2), 8)):
        yield execute(f"refused/reduce/bytes/{sizes}{list(strides)}/{count}", reduce(
            "MAX", tensor("u8", sizes, strides), [0]), bytes(count))


def _limits():
    for name, text, size in (
            ("tensor", reduce("SUM", tensor("f32", [1 << 19]), [0]), None),
            ("output", hardmax(tensor("f32", [1 << 19], [0]), [0]), 4),
            ("output_strides", hardmax(tensor("f32", [2]), [0],
                                       f"output {tensor('f32', [2], [1 << 28])}"), 8),
            ("bytes_in_flight", hardmax(tensor("f32", [204800]), [0]), None)):
        if size is not None:
            yield execute(f"refused/limit/{name}", text, bytes(size))
        yield stream(f"refused/limit/{name}", begin(1, text))


def cases():
    for group in (_inputs, _outputs, _named, _axes, _enums, _types, _order):
        for name, text in group():
            # The descriptor is checked before the length of the input.
            yield execute(f"refused/{name}", text, b"1234")
    # The same errors with the paths of the other messages.
    for group in (_axes, _enums):
        for name, text in group():
            if name.startswith("top_k"):
                yield compile_(f"refused/{name}", text)
            elif name.startswith("reduce"):
                yield stream(f"refused/{name}", begin(3, text, (0, b"1234")))
    for group in (_levels, _each_level, _inputs_of_execute, _limits):
        yield from group()
    yield Recording("info", "GetServerInfo", [sv.GetServerInfoRequest().SerializeToString()])

"""Requests that the server computes: every operator, function, data type, direction, index type and
kind of strides, with explicit and with inferred outputs."""

from cases import (DIRECTIONS, FLOATS, FUNCTION_TYPES, TYPES, compile_, execute, tensor)
from values import SPECIALS, data


def arg(extreme, input_, axes, direction="up", output=""):
    return (f"arg_{extreme} {{ input {input_} axes: {list(axes)} "
            f"axis_direction: {DIRECTIONS[direction]} {output} }}")


def reduce(function, input_, axes, output=""):
    return (f"reduce {{ function: REDUCE_FUNCTION_{function} input {input_} axes: {list(axes)} "
            f"{output} }}")


def top_k(input_, axis, k, direction="up", outputs=""):
    return (f"top_k {{ input {input_} axis: {axis} k: {k} "
            f"axis_direction: {DIRECTIONS[direction]} {outputs} }}")


def hardmax(input_, axes, output=""):
    return f"hardmax {{ input {input_} axes: {list(axes)} {output} }}"


def add(a, b, output=""):
    return f"element_wise_add {{ a {a} b {b} {output} }}"


def cumulative_sum(input_, axis, direction="up", exclusive=False):
    return (f"cumulative_summation {{ input {input_} axis: {axis} "
            f"axis_direction: {DIRECTIONS[direction]} "
            f"has_exclusive_sum: {'true' if exclusive else 'false'} }}")


def named(name, inputs, attributes="", outputs=""):
    return (f'named {{ name: "{name}" ' + " ".join(f"inputs {each}" for each in inputs) +
            f" {attributes} {outputs} }}")


def attribute(name, value):
    return f'attributes {{ key: "{name}" value {{ {value} }} }}'


def one_of_each(input_, axis):
    """Each operator over one axis, by name."""
    return {"arg_min": arg("min", input_, [axis]), "arg_max": arg("max", input_, [axis], "down"),
            "reduce": reduce("SUM", input_, [axis]), "top_k": top_k(input_, axis, 2, "down"),
            "hardmax": hardmax(input_, [axis])}


def _types():
    for dtype in TYPES:
        input_, elements = tensor(dtype, [2, 7]), data(dtype, 14)
        for direction in DIRECTIONS:
            for extreme in ("min", "max"):
                yield execute(f"arg_{extreme}/{dtype}/{direction}",
                              arg(extreme, input_, [1], direction), elements)
            yield execute(f"top_k/{dtype}/{direction}", top_k(input_, 1, 4, direction), elements)
    for dtype in FLOATS:
        yield execute(f"hardmax/{dtype}", hardmax(tensor(dtype, [2, 7]), [1]), data(dtype, 14))
    for function, types in FUNCTION_TYPES.items():
        for dtype in types:
            yield execute(f"reduce/{function}/{dtype}",
                          reduce(function, tensor(dtype, [2, 7]), [1]), data(dtype, 14))


def _index_types():
    input_, elements = tensor("f32", [2, 3]), data("f32", 6)
    for dtype in ("i64", "i32", "u64", "u32"):
        output = f"output {tensor(dtype, [2, 1])}"
        for extreme in ("min", "max"):
            yield execute(f"arg_{extreme}/indices/{dtype}",
                          arg(extreme, input_, [1], "down", output), elements)
            yield execute(f"reduce/ARG{extreme.upper()}/indices/{dtype}",
                          reduce("ARG" + extreme.upper(), input_, [1], output), elements)
    for dtype in ("u64", "u32"):
        indices = f"output_indices {tensor(dtype, [2, 2])}"
        yield execute(f"top_k/indices/{dtype}", top_k(input_, 1, 2, "up", indices), elements)
        values = f"output_values {tensor('f32', [2, 2])}"
        yield execute(f"top_k/values_and_indices/{dtype}",
                      top_k(input_, 1, 2, "up", values + indices), elements)


def _shapes():
    for rank in range(1, 9):
        sizes = [1 + axis % 2 for axis in range(rank - 1)] + [3]
        elements = data("i32", 48)
        count = 3 * 2 ** ((rank - 1) // 2)
        yield execute(f"reduce/rank/{rank}", reduce("SUM", tensor("i32", sizes), [rank - 1]),
                      elements[:4 * count])
        if rank in (1, 4, 8):
            yield execute(f"top_k/rank/{rank}", top_k(tensor("i32", sizes), rank - 1, 3),
                          elements[:4 * count])
    for axes in ([0], [1], [2], [0, 1], [2, 0], [1, 2], [2, 1, 0], [], [2, 1, 2]):
        name = "".join(map(str, axes)) or "none"
        input_, elements = tensor("f32", [2, 3, 4]), data("f32", 24)
        yield execute(f"reduce/axes/{name}", reduce("MAX", input_, axes), elements)
        yield execute(f"arg_max/axes/{name}", arg("max", input_, axes), elements)
        yield execute(f"hardmax/axes/{name}", hardmax(input_, axes), elements)
    for k in (1, 5):
        yield execute(f"top_k/k/{k}", top_k(tensor("u8", [5, 2]), 0, k), data("u8", 10))
    for name, text in one_of_each(tensor("f32", [1, 2]), 1).items():
        yield execute(f"{name}/small", text, data("f32", 2))
    # An input may include its padding to a multiple of 4 bytes.
    yield execute("reduce/rounded_up", reduce("MAX", tensor("i8", [3]), [0]), b"\1\2\3\0")
    yield execute("arg_min/rounded_up", arg("min", tensor("f16", [3]), [0]), data("f16", 4))


def _specials():
    for dtype in FLOATS:
        elements = data(dtype, 11, SPECIALS)
        for name, text in one_of_each(tensor(dtype, [11]), 0).items():
            yield execute(f"{name}/specials/{dtype}", text, elements)
    for function in FUNCTION_TYPES:
        yield execute(f"reduce/{function}/infinity", reduce(function, tensor("f32", [3]), [0]),
                      data("f32", 3, (2.0, float("inf"), -0.0)))


def _strides():
    kinds = {"transposed": ([1, 3], 6), "repeated": ([0, 1], 2), "constant": ([0, 0], 1),
             "gaps": ([5, 2], 13), "overlapping": ([1, 1], 4)}
    for kind, (strides, count) in kinds.items():
        for name, text in one_of_each(tensor("f32", [3, 2], strides), 1).items():
            yield execute(f"{name}/strides/{kind}", text, data("f32", count))
    input_, elements = tensor("f16", [2, 3]), data("f16", 6)
    yield execute("arg_min/output_strides", arg(
        "min", input_, [1], "up", f"output {tensor('u64', [2, 1], [3, 7])}"), elements)
    yield execute("arg_max/output_strides", arg(
        "max", input_, [0], "up", f"output {tensor('i32', [1, 3], [0, 2])}"), elements)
    yield execute("reduce/output_strides", reduce(
        "AVERAGE", input_, [1], f"output {tensor('f16', [2, 1], [3, 0])}"), elements)
    yield execute("hardmax/output_strides", hardmax(
        input_, [1], f"output {tensor('f16', [2, 3], [1, 2])}"), elements)
    yield execute("top_k/output_strides", top_k(
        input_, 1, 2, "down", f"output_values {tensor('f16', [2, 2], [1, 2])} "
        f"output_indices {tensor('u64', [2, 2], [4, 1])}"), elements)
    yield execute("top_k/output_strides_of_values", top_k(
        input_, 1, 2, "down", f"output_values {tensor('f16', [2, 2], [3, 1])}"), elements)


def _compiled():
    """Operator keys, with different ways to write outputs, strides and axes."""
    for dtype in ("f32", "i64"):
        for name, text in one_of_each(tensor(dtype, [3, 2]), 1).items():
            if (name, dtype) != ("hardmax", "i64"):
                yield compile_(f"{name}/{dtype}", text)
    given = [("plain", "f32", ()), ("packed", "f32", (1, 1)), ("strided", "f32", (3, 1))]
    for name, dtype, strides in given:
        yield compile_(f"reduce/output/{name}", reduce(
            "SUM", tensor("f32", [3, 2]), [1], f"output {tensor(dtype, [3, 1], strides)}"))
    for axes in ([0, 1], [1, 0]):
        yield compile_(f"reduce/axes/{axes[0]}{axes[1]}", reduce("L2", tensor("f32", [3, 2]), axes))
    yield compile_("reduce/input_strides/packed", reduce("SUM", tensor("f32", [3, 2], [2, 1]), [1]))
    yield compile_("reduce/input_strides/size_1", reduce("SUM", tensor("f32", [1, 2], [9, 1]), [1]))
    yield compile_("hardmax/large", hardmax(tensor("f32", [300, 70]), [0]))
    yield compile_("arg_max/int32_reaches", arg(
        "max", tensor("u8", [2, 1 << 30], [0, 0]), [0, 1], "up",
        f"output {tensor('i32', [1, 1])}"))


def _additions():
    for dtype in TYPES:
        elements = data(dtype, 6)
        yield execute(f"element_wise_add/{dtype}",
                      add(tensor(dtype, [2, 3]), tensor(dtype, [2, 3])), elements, elements)
    row = add(tensor("f32", [2, 3]), tensor("f32", [2, 3], [0, 1]))
    yield execute("element_wise_add/broadcast", row, data("f32", 6), data("f32", 3))
    yield execute("element_wise_add/one_input", row, data("f32", 6))
    yield execute("element_wise_add/short", row, data("f32", 6), data("f32", 2))
    yield compile_("element_wise_add/broadcast", row)


def _cumulative_sums():
    for dtype in ("f32", "f16", "i64", "i32", "u64", "u32"):
        for direction in DIRECTIONS:
            for exclusive in (False, True):
                yield execute(f"cumulative_summation/{dtype}/{direction}/{exclusive}",
                              cumulative_sum(tensor(dtype, [2, 7]), 1, direction, exclusive),
                              data(dtype, 14))
    yield compile_("cumulative_summation", cumulative_sum(tensor("f32", [3, 2]), 0))


def _named():
    for dtype in TYPES:
        input_, elements = tensor(dtype, [2, 3]), data(dtype, 6)
        yield execute(f"named/multiply/{dtype}", named("multiply", [input_, input_]), elements,
                      elements)
        yield execute(f"named/clip/{dtype}",
                      named("clip", [input_], attribute("min", "unsigned_number: 1") +
                            attribute("max", "unsigned_number: 5")), elements)
        for to in TYPES:
            yield execute(f"named/cast/{dtype}/{to}",
                          named("cast", [input_], "", f"outputs {tensor(to, [2, 3])}"), elements)
    floats = tensor("f32", [11])
    for value in ("number: -1.5", "signed_number: -1"):
        yield execute(f"named/clip/f32/{value[0]}",
                      named("clip", [floats], attribute("min", value) +
                            attribute("max", "number: 2.5")), data("f32", 11, SPECIALS))
    for mode in ("HALVES_TO_NEAREST_EVEN", "TOWARD_ZERO", "TOWARD_INFINITY"):
        yield execute(f"named/round/{mode}",
                      named("round", [floats], attribute("rounding_mode", f'choice: "{mode}"')),
                      data("f32", 11, (0.5, 1.5, -2.5, 2.25, -0.75)))
    yield execute("named/if", named("if", [tensor("u8", [2, 3]), tensor("f16", [2, 3]),
                                           tensor("f16", [2, 3], [0, 1])]),
                  data("u8", 6), data("f16", 6), data("f16", 3))
    row = [tensor("f32", [11]), tensor("f32", [11], [0])]
    for name in ("logical_less_than", "logical_equals", "logical_greater_than_or_equal"):
        yield execute(f"named/{name}", named(name, row), data("f32", 11, SPECIALS), data("f32", 1))
    yield compile_("named/cast", named("cast", [floats], "", f"outputs {tensor('i8', [11])}"))
    yield compile_("named/leaky_relu", named("leaky_relu", [floats]))


def cases():
    for group in (_additions, _cumulative_sums, _named, _types, _index_types, _shapes, _specials, _strides,
                  _compiled):
        yield from group()

"""The source of _operators.py.

By default, an operator becomes a method of the same name, whose parameters are the fields of its
message: inputs, then attributes. The tables below list the exceptions.
"""

import dataclasses
import pathlib
import runpy
import textwrap

from contract_reader import ENUM, MESSAGE, PACKAGE, REPEATED, Contract

# Python's names of operators, if they are not the contract's without "element_wise_".
NAMES = {"arg_min": "argmin", "arg_max": "argmax", "cumulative_summation": "cumulative_sum"}
# Operators whose axes have size 1 in the output, so that keepdims=False removes them.
REDUCES = ("arg_min", "arg_max", "reduce")
# The output of indices, whose type the caller may choose; uint32 by default.
INDEX_OUTPUT = {"arg_min": 0, "arg_max": 0, "reduce": 0, "top_k": 1}
# Defaults of attributes, as source text, if they are not those of _parameter.
DEFAULTS = {"hardmax.axes": "-1"}
# Parameters that replace an attribute: name, type, default, and the expression of the attribute.
REPLACED = {"top_k.axis_direction": ("largest", "bool", "True",
                                     '"decreasing" if largest else "increasing"')}
# Of functions of reduce: the tables of the package.
_TABLES = runpy.run_path(str(pathlib.Path(__file__).parent / "src" / "opmill" / "_names.py"))
SHORT_FORMS = _TABLES["SHORT_FORMS"]
FUNCTION_ALIASES = _TABLES["FUNCTION_ALIASES"]
# Added to the comments of the contract.
REMARKS = {"cumulative_summation": "Unlike NumPy's cumsum, it takes the last axis by default."}

_HEAD = '''"""A method for each operator. Written by generate.py from the contract."""

from __future__ import annotations

from collections.abc import COLLECTIONS
from typing import Generic, Literal, NamedTuple, TypeVar, Unpack

from numpy.typing import ArrayLike, DTypeLike

from ._arguments import Options, checked
from ._call import Array, Axes, Call
from ._named_operators import NAMED_METHODS, ArrayT, NamedOperators
'''
_CLASS = '''

class Operators(NamedOperators[ArrayT], Generic[PARAMETERS]):
    """What a method returns is a parameter: an array, or what can be awaited for one."""
'''


@dataclasses.dataclass
class Parameter:
    name: str
    type: str
    default: str = ""   # none: required
    attribute: str = ""  # of the operator
    value: str = ""     # of the attribute, as an expression

    def declare(self):
        return f"{self.name}: {self.type}" + (f" = {self.default}" if self.default else "")


def _parameter(operator, field):
    key = f"{operator}.{field.name}"
    if key in REPLACED:
        name, kind, default, value = REPLACED[key]
        return Parameter(name, kind, default, field.name, value)
    if field.name == "axes":
        return Parameter("axis", "Axes", DEFAULTS.get(key, "None"), "axes", "axis")
    kind = {13: "int", 8: "bool", 2: "float"}.get(field.type)
    default = {"axis": "-1"}.get(field.name, "False" if kind == "bool" else "")
    if field.type == ENUM:
        kind = field.type_name.removeprefix(f".{PACKAGE}.")
        default = '"increasing"' if kind == "AxisDirection" else ""
    if kind is None:
        raise SystemExit(f"{key}: a type of attribute that generate_operators.py does not know")
    if field.label == REPEATED:
        kind = f"Sequence[{kind}]"
    return Parameter(field.name, kind, DEFAULTS.get(key, default), field.name, field.name)


class Operator:
    def __init__(self, contract, field):
        message_name = field.type_name.removeprefix(f".{PACKAGE}.")
        fields = contract.message(message_name).field
        tensors = [f for f in fields if f.type == MESSAGE and f.type_name.endswith(".TensorDesc")]
        self.field = field.name
        self.name = NAMES.get(field.name, field.name.removeprefix("element_wise_"))
        self.comment = contract.comment(message_name)
        inputs = [f.name for f in tensors if not f.name.startswith("output")]
        self.outputs = [f.name.removeprefix("output_") for f in tensors
                        if f.name.startswith("output")]
        self.result = message_name.removesuffix("Desc") if len(self.outputs) > 1 else "Array"
        self.inputs = ["x"] if len(inputs) == 1 else inputs
        self.attributes = [_parameter(field.name, f) for f in fields if f not in tensors]

    def parameters(self):
        """Required parameters and axes are positional, the others are keywords."""
        by_position = [Parameter(name, "ArrayLike") for name in self.inputs]
        by_position += [p for p in self.attributes if not p.default]
        by_position += [p for p in self.attributes if p.default and p.name == "axis"]
        by_name = [p for p in self.attributes if p.default and p.name != "axis"]
        if self.field in REDUCES:
            by_name.append(Parameter("keepdims", "bool", "False"))
        if self.field in INDEX_OUTPUT:
            by_name.append(Parameter("index_dtype", "DTypeLike | None", "None"))
        return by_position, by_name

    def call(self):
        inputs = ", ".join(self.inputs) + ("," if len(self.inputs) == 1 else "")
        attributes = "".join(f'                "{p.attribute}": {p.value},\n'
                             for p in self.attributes)
        attributes = f"{{\n{attributes}            }}" if attributes else "{}"
        extras = ""
        if self.field in REDUCES:
            extras += ", keepdims=keepdims"
        if self.field in INDEX_OUTPUT:
            extras += f", index_dtype=index_dtype, index_output={INDEX_OUTPUT[self.field]}"
        if self.result != "Array":
            extras += f", result={self.result}"
        return (f'            "{self.field}",\n            ({inputs}),\n'
                f"            {attributes}{extras.replace(', ', f',{chr(10)}            ')},\n")


def _signature(name, by_position, by_name, result):
    lines = ["self", *(p.declare() for p in by_position)]
    if by_name:
        lines += ["*", *(p.declare() for p in by_name)]
    lines.append("**options: Unpack[Options]")
    separator = ",\n        "
    return (f"\n    @checked\n    def {name}(\n        {separator.join(lines)},\n"
            f"    ) -> {_variable(result)}:\n")


def _variable(result):
    """The parameter of Operators for a type of result."""
    return f"{result}T"


def _docstring(text):
    return text and textwrap.fill(f'"""{text}"""', 92, initial_indent=" " * 8,
                         subsequent_indent=" " * 8) + "\n"


def _methods(operators, functions):
    text = ""
    for operator in operators:
        text += _signature(operator.name, *operator.parameters(), operator.result)
        text += _docstring(f"{operator.comment} {REMARKS.get(operator.field, '')}".strip())
        text += f"        call = Call(\n{operator.call()}        )\n"
        text += "        return self._run(call, options)\n"
    axis = [Parameter("x", "ArrayLike"), Parameter("axis", "Axes", "None")]
    for function in functions:
        name = SHORT_FORMS.get(function, function)
        text += _signature(name, axis, [Parameter("keepdims", "bool", "False")], "Array")
        text += _docstring(f"`reduce` with {function.upper()}.")
        text += f'        return self.reduce(x, "{function}", axis, keepdims=keepdims, **options)\n'
    return text


def source(descriptors):
    """The text of _operators.py."""
    contract = Contract(descriptors)
    operators = [Operator(contract, field) for field in contract.message("OperatorDesc").field
                 if field.name != "named"]
    names = {operator.name for operator in operators}
    functions = [function for function in contract.choices(f"{PACKAGE}.ReduceFunction")
                 if function not in names]
    text = ""
    for enum, aliases in (("AxisDirection", ()), ("ReduceFunction", FUNCTION_ALIASES)):
        values = [f'    "{value}",\n' for value in (*contract.choices(f"{PACKAGE}.{enum}"),
                                                    *aliases)]
        text += f"\n{enum} = Literal[\n{''.join(values)}]\n"
    results = {operator.result: operator.outputs for operator in operators}
    for result, outputs in results.items():
        if result != "Array":
            text += f"\n\nclass {result}(NamedTuple):\n"
            text += "".join(f"    {output}: Array\n" for output in outputs)
    text += "\n\n"
    for result in results:
        if result != "Array":
            text += f'{_variable(result)} = TypeVar("{_variable(result)}")\n'
    text += "\n# The method of each operator, by the field of OperatorDesc or the name.\nMETHODS: Mapping[str, str] = {\n"
    text += "".join(f'    "{operator.field}": "{operator.name}",\n' for operator in operators)
    text += "    **NAMED_METHODS,\n}\n" + _CLASS.replace("PARAMETERS", ", ".join(map(_variable, results)))
    text += _methods(operators, functions)
    lists = "Sequence[" in text
    return _HEAD.replace("COLLECTIONS", "Mapping, Sequence" if lists else "Mapping") + text

"""The source of _named_operators.py, from named_operators.json, which operator_tables_test writes from the
schemas of the operators that have no message of their own."""

import json
import keyword
import pathlib

TABLE = pathlib.Path(__file__).resolve().parent / "named_operators.json"

_HEAD = '''"""A method for each operator that has no message of its own. Written by generate.py from named_operators.json."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Generic, Literal, TypeVar, Unpack

from numpy.typing import ArrayLike, DTypeLike

from ._arguments import Options, checked
from ._call import Axes, Call, pair, truth
'''
# Python's names of choices, beside the contract's.
CHOICE_ALIASES = {"metric": {"ip": "inner_product"}}
_CLASS = '''
ArrayT = TypeVar("ArrayT")


def named_call(operator: str, inputs: Sequence[ArrayLike],
               attributes: Mapping[str, Any] | None) -> Call:
    return Call(operator, inputs, attributes or {}, broadcasts=operator not in KEEP_SHAPES,
                mask=MASKS.get(operator))


class NamedOperators(Generic[ArrayT]):
    """Inputs of element-wise operators are broadcast by NumPy's rules. Comparisons and other
    questions return bool."""

    def _run(self, call: Call, options: Options) -> Any:
        raise NotImplementedError
'''


def _method_name(operator):
    name = operator["alias"] or operator["name"]
    if keyword.iskeyword(name) or keyword.issoftkeyword(name):
        raise SystemExit(f"{name}: a keyword of Python; give the row an alias")
    return name


def _choice_type(attribute):
    return "".join(word.capitalize() for word in attribute["name"].split("_"))


# Python's types of attributes, and how their defaults are written.
_TYPES = {"float": ("float", float), "scalar": ("float", float), "axis": ("int", int),
          "integer": ("int", int), "integers": ("Sequence[int]", lambda text: (int(text),)),
          "floats": ("Sequence[float]", None), "flag": ("bool", None), "axes": ("Axes", None)}


def _default(attribute):
    """As source text; empty if it must be given. The default axis is the last one."""
    if attribute["kind"] == "axis":
        return "-1"
    if attribute["kind"] == "flag":
        return repr(attribute["default"] == "true")
    if not attribute["default"]:
        return ""
    if attribute["kind"] == "choice":
        return f'"{attribute["default"].lower()}"'
    if attribute["default"] == "[]":
        return "()"
    return repr(_TYPES[attribute["kind"]][1](attribute["default"]))


def _parameter(attribute):
    kind, _ = _TYPES.get(attribute["kind"], (_choice_type(attribute), None))
    if attribute["kind"] not in (*_TYPES, "choice"):
        raise SystemExit(f"{attribute}: a kind that generate_named_operators.py does not know")
    default = _default(attribute)
    return f"{attribute['name']}: {kind}" + (f" = {default}" if default else "")


def _value(attribute):
    """Of an attribute, from the parameter."""
    if attribute["name"] in CHOICE_ALIASES:
        return f"{attribute['name'].upper()}_ALIASES.get({attribute['name']}, {attribute['name']})"
    return attribute["name"]


def _wrapped(parts, indent):
    """The parts, separated by commas, in lines of at most 100 columns."""
    lines = [""]
    for part in parts:
        if lines[-1] and indent + len(lines[-1]) + len(part) + 2 > 100:
            lines.append("")
        lines[-1] += (" " if lines[-1] else "") + part + ","
    return "\n".join(" " * indent + line for line in lines)


def _method(operator):
    inputs = ["x"] if len(operator["inputs"]) == 1 else operator["inputs"]
    positional = [f"{name}: ArrayLike" for name in inputs]
    tuple_of_inputs = f"({', '.join(inputs)}{',' if len(inputs) == 1 else ''})"
    if operator.get("is_variadic"):
        positional = ["inputs: Sequence[ArrayLike]"]
        tuple_of_inputs = "tuple(inputs)"
    attributes = operator["attributes"]
    required = [_parameter(each) for each in attributes if not _default(each)]
    named = [_parameter(each) for each in attributes if _default(each) and each["kind"] != "axis"]
    if operator.get("last_is_optional"):
        optional = f"{positional.pop()} | None = None"
        # Behind required attributes it has no place.
        (named if required else positional).append(optional)
        without = f"({', '.join(inputs[:-1])})"
        tuple_of_inputs = f"{without} if {inputs[-1]} is None else {tuple_of_inputs}"
    positional += required
    positional += [_parameter(each) for each in attributes if each["kind"] == "axis"]
    extras = ""
    if operator["result"] == "cast":
        positional.append("dtype: DTypeLike")
        extras = ", output_dtype=dtype"
    elif operator["result"] == "truth":
        extras = ", result=truth"
    elif operator["result"] != "value":
        extras = ", broadcasts=False" + (", result=pair" if "pair" in operator["result"] else "")
    if operator.get("last_is_mask"):
        extras += f", mask={len(inputs) - 1}"
    lines = ["self", *positional, *(["*", *named] if named else []), "**options: Unpack[Options]"]
    signature = f"    def {_method_name(operator)}({', '.join(lines)}) -> ArrayT:\n"
    if len(signature) > 101:
        signature = (f"    def {_method_name(operator)}(\n{_wrapped(lines, 8)}\n"
                     "    ) -> ArrayT:\n")
    values = ", ".join(f'"{each["name"]}": {_value(each)}' for each in attributes)
    call = f'Call("{operator["name"]}", {tuple_of_inputs}, {{{values}}}{extras})'
    body = f"        return self._run({call}, options)\n"
    if len(body) > 101:
        body = f"        call = {call}\n        return self._run(call, options)\n"
    if len(call) > 85:
        lines = call.replace(", {", ",\n            {", 1)
        body = f"        call = {lines}\n        return self._run(call, options)\n"
    return f'\n    @checked\n{signature}        """{operator["summary"]}"""\n{body}'


def source():
    """The text of _named_operators.py."""
    operators = json.loads(TABLE.read_text())
    own_message = "element_wise_add"  # its method is in _operators.py
    operators = [operator for operator in operators if operator["name"] != own_message]
    text = _HEAD
    choices = {_choice_type(each): each["choices"] for operator in operators
               for each in operator["attributes"] if each["choices"]}
    aliases = {name.capitalize(): names for name, names in CHOICE_ALIASES.items()}
    for name, values in choices.items():
        words = [f'"{value}"' for value in (*map(str.lower, values), *aliases.get(name, ()))]
        text += f"\n{name} = Literal[\n{_wrapped(words, 4)}\n]\n"
    for name, names in aliases.items():
        text += f"{name.upper()}_ALIASES: Mapping[str, {name}] = {json.dumps(names)}\n"
    methods = [f'"{operator["name"]}": "{_method_name(operator)}"' for operator in operators]
    text += "\n# The method of each operator.\nNAMED_METHODS: Mapping[str, str] = {\n"
    text += f"{_wrapped(methods, 4)}\n}}\n"
    keep = [f'"{operator["name"]}"' for operator in operators
            if operator["result"] not in ("value", "truth", "cast")]
    masks = [f'"{operator["name"]}": {len(operator["inputs"]) - 1}' for operator in operators
             if operator.get("last_is_mask")]
    text += f"\n# The input that has truth values, whatever the types of the others.\nMASKS: Mapping[str, int] = {{\n{_wrapped(masks, 4)}\n}}\n"
    text += f"\n# Of these, inputs keep their shapes.\nKEEP_SHAPES = frozenset((\n{_wrapped(keep, 4)}\n))\n"
    return text + _CLASS + "".join(map(_method, operators))

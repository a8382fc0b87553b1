"""The source of _element_wise.py, from element_wise.json, which operator_tables_test writes from the
rows of kernels/operators/elementwise/element_wise_rows.inc."""

import json
import keyword
import pathlib

TABLE = pathlib.Path(__file__).resolve().parent / "element_wise.json"

_HEAD = '''"""A method for each element-wise operator. Written by generate.py from element_wise.json."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, Literal, TypeVar, Unpack

from numpy.typing import ArrayLike, DTypeLike

from ._arguments import Options, checked
from ._call import Call, truth
'''
_CLASS = '''
ArrayT = TypeVar("ArrayT")


class ElementWise(Generic[ArrayT]):
    """Inputs are broadcast by NumPy's rules. Comparisons and other questions return bool."""

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


def _parameter(attribute):
    types = {"float": "float", "scalar": "float", "choice": _choice_type(attribute)}
    kind = types.get(attribute["kind"])
    if kind is None:
        raise SystemExit(f"{attribute}: a kind that generate_element_wise.py does not know")
    default = attribute["default"]
    if default:
        default = f'"{default.lower()}"' if attribute["kind"] == "choice" else repr(float(default))
        return f"{attribute['name']}: {kind} = {default}"
    return f"{attribute['name']}: {kind}"


def _method(operator):
    inputs = ["x"] if len(operator["inputs"]) == 1 else operator["inputs"]
    positional = [f"{name}: ArrayLike" for name in inputs]
    attributes = operator["attributes"]
    positional += [_parameter(each) for each in attributes if not each["default"]]
    named = [_parameter(each) for each in attributes if each["default"]]
    extras = ""
    if operator["result"] == "cast":
        positional.append("dtype: DTypeLike")
        extras = ", output_dtype=dtype"
    elif operator["result"] == "truth":
        extras = ", result=truth"
    lines = ["self", *positional, *(["*", *named] if named else []), "**options: Unpack[Options]"]
    signature = f"    def {_method_name(operator)}({', '.join(lines)}) -> ArrayT:\n"
    if len(signature) > 101:
        separator = ",\n        "
        signature = (f"    def {_method_name(operator)}(\n        {separator.join(lines)},\n"
                     "    ) -> ArrayT:\n")
    values = ", ".join(f'"{each["name"]}": {each["name"]}' for each in attributes)
    tuple_of_inputs = ", ".join(inputs) + ("," if len(inputs) == 1 else "")
    call = f'Call("{operator["name"]}", ({tuple_of_inputs}), {{{values}}}{extras})'
    body = f"        return self._run({call}, options)\n"
    if len(body) > 101:
        body = f"        call = {call}\n        return self._run(call, options)\n"
    return f'\n    @checked\n{signature}        """{operator["summary"]}"""\n{body}'


def source():
    """The text of _element_wise.py."""
    operators = json.loads(TABLE.read_text())
    own_message = "element_wise_add"  # its method is in _operators.py
    operators = [operator for operator in operators if operator["name"] != own_message]
    text = _HEAD
    choices = {_choice_type(each): each["choices"] for operator in operators
               for each in operator["attributes"] if each["choices"]}
    for name, values in choices.items():
        lines = "".join(f'    "{value.lower()}",\n' for value in values)
        text += f"\n{name} = Literal[\n{lines}]\n"
    text += "\n# The method of each operator.\nNAMED_METHODS: Mapping[str, str] = {\n"
    text += "".join(f'    "{operator["name"]}": "{_method_name(operator)}",\n'
                    for operator in operators)
    return text + "}\n" + _CLASS + "".join(map(_method, operators))

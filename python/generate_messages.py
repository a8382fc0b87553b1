"""The source of _messages.py."""

import textwrap

import contract_reader
from contract_reader import ENUM, MESSAGE, PACKAGE, REPEATED, Contract

# The messages that callers get, and their names in Python. Nested messages keep their names.
ANSWERS = {
    "GetServerInfoResponse": "ServerInfo",
    "GetStatisticsResponse": "Statistics",
    "CompileOperatorResponse": "CompiledOperator",
    "ExecutionStatistics": "ExecutionStatistics",
    "ExplainModelResponse": "Explanation",
}
_SCALARS = {1: "float", 3: "int", 4: "int", 5: "int", 8: "bool", 9: "str", 13: "int"}
_DURATION = ".google.protobuf.Duration"

_HEAD = '''"""What servers answer. Written by generate.py from the contract.

Enumerations are their names in lower case, such as "float32" or "log_sum_exp". A duration that is
absent is zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
'''


def _python_type(field):
    if field.type == ENUM:
        kind = "str"
    elif field.type_name == _DURATION:
        kind = "timedelta"
    elif field.type == MESSAGE:
        name = field.type_name.removeprefix(f".{PACKAGE}.")
        kind = ANSWERS.get(name, name)
    else:
        kind = _SCALARS[field.type]
    return f"tuple[{kind}, ...]" if field.label == REPEATED else kind


def source(descriptors):
    contract = Contract(descriptors)
    order = []

    def visit(name):
        """Nested messages first."""
        for field in contract.message(name).field:
            if field.type == MESSAGE and field.type_name != _DURATION:
                visit(field.type_name.removeprefix(f".{PACKAGE}."))
        if name not in order:
            order.append(name)

    for answer in ANSWERS:
        visit(answer)
    text = _HEAD
    for name in order:
        text += f"\n\n@dataclass(frozen=True)\nclass {ANSWERS.get(name, name)}:\n"
        comment = contract.comment(name) or f"The contract's {name}."
        text += textwrap.fill(f'"""{comment}"""', 96, initial_indent="    ",
                              subsequent_indent="    ") + "\n\n"
        for field in contract.message(name).field:
            line = f"    {field.name}: {_python_type(field)}"
            remark = contract.comment(f"{name}.{field.name}")
            for part in textwrap.wrap(remark, 92):
                text += f"    # {part}\n"
            text += line + "\n"
    names = [ANSWERS.get(name, name) for name in order]
    text += "\n\nMESSAGES = {\n"
    for name, python in zip(order, names):
        text += f'    "{contract_reader.PACKAGE}.{name}": {python},\n'
    return text + "}\n"

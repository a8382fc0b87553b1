"""Converts messages to the dataclasses of _messages.py."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, TypeVar

from . import _messages
from ._contract import Choices, Message

_T = TypeVar("_T")


def to_dataclass(message: Message, kind: type[_T]) -> _T:
    """Converts the message to `kind`, its dataclass."""
    return kind(**{field.name: _value(message, field) for field in message.DESCRIPTOR.fields})


def _value(message: Message, field: Any) -> Any:
    value = getattr(message, field.name)
    if isinstance(value, (bool, int, float, str, bytes)):
        return _element(value, field)
    if field.message_type is not None and hasattr(value, "DESCRIPTOR"):
        return _element(value, field)
    return tuple(_element(element, field) for element in value)


def _element(value: Any, field: Any) -> Any:
    if field.enum_type is not None:
        return Choices(field.enum_type).name(value)
    if field.message_type is None:
        return value
    name = field.message_type.full_name
    if name == "google.protobuf.Duration":
        return timedelta(seconds=value.seconds, microseconds=value.nanos / 1000)
    return to_dataclass(value, _messages.MESSAGES[name])

"""Errors of calls. Each has the server's sentence and, if one field of the request is the cause,
the field's path."""

from __future__ import annotations

from typing import Any

import grpc

from ._contract import BadRequest, ErrorInfo, Message, RetryInfo, Status


class OpMillError(Exception):
    """`code` is gRPC's ("INVALID_ARGUMENT"), `field` a path such as "operator.top_k.k" or None,
    `reason` OpMill's ("LIMIT_REACHED"), and `retry_after` seconds where a retry may succeed."""

    code = "UNKNOWN"

    def __init__(self, sentence: str, *, field: str | None = None, reason: str | None = None,
                 retry_after: float | None = None, code: str | None = None) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.field = field
        self.reason = reason
        self.retry_after = retry_after
        self.code = code or type(self).code

    def __str__(self) -> str:
        return f"{self.sentence} [{self.field}]" if self.field else self.sentence

    def __reduce__(self) -> Any:
        return _rebuild, (type(self), self.sentence, self.__dict__)


class InvalidArgument(OpMillError, ValueError):
    code = "INVALID_ARGUMENT"


class FailedPrecondition(OpMillError):
    """Valid, but not at the requested feature level."""

    code = "FAILED_PRECONDITION"


class ResourceExhausted(OpMillError):
    """Too large, or with `retry_after` too much at once."""

    code = "RESOURCE_EXHAUSTED"


class NotFound(OpMillError, LookupError):
    code = "NOT_FOUND"


class Unauthenticated(OpMillError, PermissionError):
    code = "UNAUTHENTICATED"


class PermissionDenied(OpMillError, PermissionError):
    code = "PERMISSION_DENIED"


class Unavailable(OpMillError, ConnectionError):
    """No server at that address, or one that is draining or has lost its device."""

    code = "UNAVAILABLE"


class DeadlineExceeded(OpMillError, TimeoutError):
    code = "DEADLINE_EXCEEDED"


class Cancelled(OpMillError):
    code = "CANCELLED"


class Unimplemented(OpMillError, NotImplementedError):
    code = "UNIMPLEMENTED"


class Internal(OpMillError):
    """A fault of the server's, or an answer that is not of the contract."""

    code = "INTERNAL"


_KINDS: dict[str, type[OpMillError]] = {kind.code: kind for kind in (
    InvalidArgument, FailedPrecondition, ResourceExhausted, NotFound, Unauthenticated,
    PermissionDenied, Unavailable, DeadlineExceeded, Cancelled, Unimplemented, Internal)}
_CODES = {code.value[0]: code.name for code in grpc.StatusCode}
_DETAILS = "grpc-status-details-bin"


def _rebuild(kind: type[OpMillError], sentence: str, state: dict[str, Any]) -> OpMillError:
    error = kind(sentence)
    error.__dict__.update(state)
    return error


def from_status(status: Message) -> OpMillError:
    """Of a google.rpc.Status."""
    field = reason = retry_after = None
    for detail in status.details:
        name = detail.type_url.rpartition("/")[2]
        if name == "google.rpc.BadRequest":
            violations = BadRequest.FromString(detail.value).field_violations
            # The same request has the same paths, in whichever way it was sent.
            field = violations[0].field.removeprefix("begin.") if violations else None
        elif name == "google.rpc.ErrorInfo":
            reason = ErrorInfo.FromString(detail.value).reason
        elif name == "google.rpc.RetryInfo":
            delay = RetryInfo.FromString(detail.value).retry_delay
            retry_after = delay.seconds + delay.nanos / 1e9
    code = _CODES.get(status.code, "UNKNOWN")
    return _KINDS.get(code, OpMillError)(status.message, field=field, reason=reason,
                                         retry_after=retry_after, code=code)


def from_rpc_error(error: Any) -> OpMillError:
    """Of a grpc.RpcError of a call, blocking or asynchronous."""
    for key, value in error.trailing_metadata() or ():
        if key == _DETAILS:
            return from_status(Status.FromString(value))
    code = error.code().name
    return _KINDS.get(code, OpMillError)(error.details() or code, code=code)

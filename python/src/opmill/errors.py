"""Errors of calls. Each has the server's message and, if one field of the request is the cause, the
path of that field."""

from __future__ import annotations

from typing import Any

import grpc

from ._contract import BadRequest, ErrorInfo, Message, RetryInfo, Status


class OpMillError(Exception):
    """`code` is gRPC's ("INVALID_ARGUMENT"), `field` is a path such as "operator.top_k.k" or None,
    `reason` is OpMill's ("LIMIT_REACHED"). `retry_after` is the number of seconds after which a
    retry may succeed, or None."""

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
    """Valid, but not at the requested feature level, or of a client that is closed."""

    code = "FAILED_PRECONDITION"


class ResourceExhausted(OpMillError):
    """The request is too large; with `retry_after`, the server has no room at the moment."""

    code = "RESOURCE_EXHAUSTED"


class NotFound(OpMillError, LookupError):
    code = "NOT_FOUND"


class Unauthenticated(OpMillError, PermissionError):
    code = "UNAUTHENTICATED"


class PermissionDenied(OpMillError, PermissionError):
    code = "PERMISSION_DENIED"


class Unavailable(OpMillError, ConnectionError):
    """There is no server at that address, or it is draining or has lost its device."""

    code = "UNAVAILABLE"


class DeadlineExceeded(OpMillError, TimeoutError):
    code = "DEADLINE_EXCEEDED"


class Cancelled(OpMillError):
    code = "CANCELLED"


class Unimplemented(OpMillError, NotImplementedError):
    code = "UNIMPLEMENTED"


class Internal(OpMillError):
    """A bug of the server, or a response that violates the contract."""

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
    """The error of a google.rpc.Status."""
    field = reason = retry_after = None
    for detail in status.details:
        name = detail.type_url.rpartition("/")[2]
        if name == "google.rpc.BadRequest":
            violations = BadRequest.FromString(detail.value).field_violations
            # Paths do not depend on whether the request was sent in one message or in chunks.
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
    """The error of a grpc.RpcError, blocking or asynchronous."""
    for key, value in error.trailing_metadata() or ():
        if key == _DETAILS:
            return from_status(Status.FromString(value))
    code = error.code().name
    sentence = error.details() or code
    if code == "UNAVAILABLE":
        sentence = f"The connection to the server failed: {sentence.removesuffix('.')}."
    elif code == "DEADLINE_EXCEEDED":
        sentence = "The deadline passed before the server answered."
    return _KINDS.get(code, OpMillError)(sentence, code=code)

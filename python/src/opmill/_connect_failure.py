"""Sentences for failed connections: those of the command line (client/connect_failure.cc)."""

from __future__ import annotations

import re

from ._channel import ConnectOptions
from .errors import DeadlineExceeded, OpMillError, Unavailable

_ONLY_TLS = "closes clear-text connections at once: it probably accepts only TLS"
_HTTP1 = "speaks HTTP/1, not gRPC"
_NO_CERTIFICATE = ("closes the connection after the handshake: it probably requires a client "
                   "certificate that is valid and signed by an authority that it trusts")

# By whether the client uses TLS: words of gRPC and OpenSSL, and what they mean.
_MEANINGS = {
    False: {
        "socket closed": _ONLY_TLS,
        "connection reset": _ONLY_TLS,
        "http1.x server": _HTTP1,
    },
    True: {
        "http1.x server": _HTTP1,
        "wrong version number": "uses clear text, not TLS",
        "certificate verify failed": "has a certificate that was not accepted: it has expired, or "
                                     "no trusted authority has signed it",
        "is not in peer certificate": "has a certificate for another name",
        "socket closed": _NO_CERTIFICATE,
        "connection reset": _NO_CERTIFICATE,
        "empty address list": "was not contacted: the certificates of this client cannot be used",
    },
}


def connect_failure(error: OpMillError, options: ConnectOptions) -> OpMillError:
    """The error of `connect` for that of its first call."""
    target = options.target
    if error.reason is not None:  # a server has answered
        return error
    if isinstance(error, DeadlineExceeded):
        return Unavailable(f"No server answered at {target} within "
                           f"{options.connect_timeout:g} s.")
    if isinstance(error, Unavailable):
        words = _after(error.sentence, "last error: ")
        return Unavailable(_sentence(target, options.tls is not None, words))
    return error


def _sentence(target: str, uses_tls: bool, words: str) -> str:
    if "DNS resolution failed" in words or "errors resolving" in words:
        host = _after(target, "/").rpartition(":")[0]
        return f"The name {host} cannot be resolved: {_after(words, ': ').replace(']', '')}"
    plain = words.lower().replace("_", " ")
    for mark, meaning in _MEANINGS[uses_tls].items():
        if mark in plain:
            return f"The server at {target} {meaning} ({words.removesuffix('.')})."
    # "UNKNOWN: unix:/socket: No such file or directory", or, of some versions,
    # "Failed to connect to remote host: connect: Connection refused (111)" or
    # "connect failed: addr: unix:/socket error: No such file or directory"
    reason = _after(_after(words, f"{target}: "), "Failed to connect to remote host: ")
    reason = re.sub(r"^connect: (.*) \(\d+\)", r"\1", reason)
    reason = _after(reason, f"connect failed: addr: {target} error: ")
    return f"No server answers at {target}: {reason}"


def _after(text: str, mark: str) -> str:
    """The text after the last mark, or all of it."""
    return text.rpartition(mark)[2]

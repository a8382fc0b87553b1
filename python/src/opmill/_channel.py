"""How a client connects to its servers: addresses, TLS, tokens."""

from __future__ import annotations

import ipaddress
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Union

import grpc
from numpy.typing import DTypeLike

from ._element_types import type_name
from .errors import InvalidArgument

Pem = Union[str, "os.PathLike[str]", bytes, None]
Token = Union[str, Callable[[], str], None]
SharedMemory = Literal["auto", "off"]

_MAX_RECEIVED_MESSAGE_BYTES = 64 << 20


@dataclass(frozen=True)
class Tls:
    """Paths of PEM files, or their contents as bytes. Without `ca`, gRPC's default authorities are
    used. `cert` and `key` identify the caller, if the server requires that. `server_name` is the
    name that the server's certificate must have; the default is the host of the target."""

    ca: Pem = None
    cert: Pem = None
    key: Pem = None
    server_name: str | None = None


@dataclass(frozen=True)
class ConnectOptions:
    """The arguments of `connect`. A pickled client connects again with them."""

    target: str
    tls: Tls | None = None
    token: Token = None
    insecure: bool = False
    connect_timeout: float = 10
    timeout: float | None = None
    max_attempts: int = 5
    shared_memory: SharedMemory = "auto"
    cast: str | None = None

    @property
    def may_share_memory(self) -> bool:
        return self.shared_memory == "auto" and stays_here(self.target)

    def metadata(self) -> tuple[tuple[str, str], ...]:
        return (*self._authorization(), *_trace())

    def _authorization(self) -> tuple[tuple[str, str], ...]:
        token = self.token() if callable(self.token) else self.token
        if not token:
            return ()
        if not isinstance(token, str):
            raise TypeError(f"The token is of type {type(token).__name__}; it must be a string.")
        if not all("!" <= character <= "~" for character in token):
            raise InvalidArgument("The token has characters other than visible ASCII, such as a "
                                  "space or a line break.")
        return (("authorization", f"Bearer {token}"),)


def _trace() -> tuple[tuple[str, str], ...]:
    """Names the active span of OpenTelemetry, if the program uses that."""
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return ()
    span = trace.get_current_span().get_span_context()
    if not span.is_valid:
        return ()
    ids = f"{span.trace_id:032x}-{span.span_id:016x}"
    return (("traceparent", f"00-{ids}-{span.trace_flags:02x}"),)


def options_of(target: str | Sequence[str], tls: Tls | bool | None, cast: DTypeLike | None,
               **others: Any) -> ConnectOptions:
    try:
        text = target if isinstance(target, str) else ",".join(target)
    except TypeError:
        raise TypeError(f"The server address is {target!r}; it must be a string such as "
                        '"127.0.0.1:50051", or a list of them.') from None
    _check_addresses(text)
    if not isinstance(tls, (Tls, bool, type(None))):
        raise TypeError(f"tls is {tls!r}; it must be True, or opmill.Tls with paths of PEM files.")
    options = ConnectOptions(text, Tls() if tls is True else tls or None, **others,
                             cast=None if cast is None else type_name(cast, "cast"))
    if options.shared_memory not in ("auto", "off"):
        raise InvalidArgument(f'shared_memory is {options.shared_memory!r}; it must be "auto" or '
                              '"off".')
    if options.token and not options.tls and not options.insecure and not stays_here(text):
        raise InvalidArgument(f"A token would go to {text} in clear text. Use tls=, or allow it "
                              "with insecure=True.")
    return options


def uri_and_arguments(options: ConnectOptions) -> tuple[str, list[tuple[str, Any]]]:
    """The target and the arguments of a gRPC channel. gRPC alternates between the servers that
    report SERVING. With a single server, health checks would hide its errors while it drains."""
    uri, is_group = _uri(options.target)
    config: dict[str, Any] = {"loadBalancingConfig": [{"round_robin": {}}]}
    if is_group:
        config["healthCheckConfig"] = {"serviceName": "opmill.v1.OperatorService"}
    arguments: list[tuple[str, Any]] = [
        ("grpc.service_config", json.dumps(config)),
        ("grpc.max_send_message_length", -1),  # only the server's limit applies
        ("grpc.max_receive_message_length", _MAX_RECEIVED_MESSAGE_BYTES),
        # A shared connection could wait for its next attempt after a failure of another client, although the
        # server is back.
        ("grpc.use_local_subchannel_pool", 1),
        ("SingleThreadedUnaryStream", 1),  # no thread for each Execute
        # A server that comes back is connected to before the attempts of a call are used up.
        ("grpc.initial_reconnect_backoff_ms", 200),
        ("grpc.max_reconnect_backoff_ms", 2000),
    ]
    if options.tls and options.tls.server_name:
        arguments.append(("grpc.ssl_target_name_override", options.tls.server_name))
    return uri, arguments


def credentials(tls: Tls) -> grpc.ChannelCredentials:
    return grpc.ssl_channel_credentials(_pem(tls.ca), _pem(tls.key), _pem(tls.cert))


def _pem(pem: Pem) -> bytes | None:
    if pem is None or isinstance(pem, bytes):
        return pem
    with open(pem, "rb") as file:
        return file.read()


def _uri(target: str) -> tuple[str, bool]:
    """The target for gRPC, and whether it names several servers: literal addresses of one family,
    or a name that resolves to several."""
    addresses = target.split(",")
    if len(addresses) == 1:
        return target, target.startswith("dns:")
    if all(set(address) <= set("0123456789.:") for address in addresses):
        return "ipv4:" + target, True
    if all(address.startswith("[") for address in addresses):
        return "ipv6:" + target, True
    raise InvalidArgument(f'"{target}" lists several servers, which are given as '
                          "10.0.0.1:50051,10.0.0.2:50051 or [::1]:50051,[::1]:50052; for one name "
                          "of several addresses write dns:///name:port.")


def _check_addresses(target: str) -> None:
    """gRPC would take port 443 for a missing one."""
    if target.startswith("unix:"):
        return
    for address in target.split(","):
        host, _, port = address.rpartition(":")
        is_ipv6 = ":" in host and set(host.lower()) <= set("0123456789abcdef:")  # without brackets
        is_valid = host and not is_ipv6 and not host.startswith(("http://", "https://"))
        if not (is_valid and port.isdecimal() and 0 < int(port) < 1 << 16):
            raise InvalidArgument(f'The server address is "{address}"; it must be host:port, for '
                                  "example 127.0.0.1:50051.")


def stays_here(target: str) -> bool:
    """Whether all addresses are on this machine."""
    return all(_is_loopback(address) for address in target.split(","))


def _is_loopback(address: str) -> bool:
    if address.startswith("unix:"):
        return True
    host = address.rpartition(":")[0].strip("[]")
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False

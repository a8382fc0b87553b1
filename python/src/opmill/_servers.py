"""Which of a client's servers has a tensor. Calls that name tensors go there; all others go to any
server. What both clients share are generators, which yield the calls of a client and get their results."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from ._channel import ConnectOptions
from ._resident import ResidentTensor
from .errors import InvalidArgument, NotFound, OpMillError

T = TypeVar("T")
Steps = Generator[Any, Any, T]

_MOST_PLACES = 10_000  # beyond them, servers are asked again


def run(steps: Steps[T]) -> T:
    """For the blocking client, whose calls have ended when the generator yields their results."""
    result = None
    while True:
        try:
            result = steps.send(result)
        except StopIteration as end:
            value: T = end.value
            return value


class Servers:
    """Of a client with several addresses. `connect` makes the client of one of them. Thread-safe."""

    def __init__(self, options: ConnectOptions, connect: Callable[[ConnectOptions], Any]) -> None:
        self._options = options
        self._connect = connect
        self._addresses = tuple(dict.fromkeys(options.target.split(",")))
        self._lock = threading.Lock()
        self._clients: dict[str, Any] = {}
        self._places: dict[str, str] = {}  # of tensors, by name
        self._turn = itertools.cycle(self._addresses)

    def opened(self) -> list[Any]:
        with self._lock:
            return list(self._clients.values())

    def at(self, address: str) -> Any:
        """The client of this server."""
        with self._lock:
            if address not in self._clients:
                self._clients[address] = self._connect(replace(self._options, target=address))
            return self._clients[address]

    def home(self, tensor: Any) -> Any:
        """The client of the server that has this tensor, or of one that is to get an array."""
        address = tensor.server if isinstance(tensor, ResidentTensor) else ""
        return self.at(address or next(self._turn))

    def execute(self, call: Any, options: Mapping[str, Any],
                anywhere: Callable[[Any, Any], Any]) -> Steps[Any]:
        inputs = call.inputs.values() if isinstance(call.inputs, Mapping) else call.inputs
        reads = [tensor for tensor in inputs if isinstance(tensor, ResidentTensor)]
        writes = call.writes(options.get("keep")).values()
        if not reads and not writes:
            return (yield anywhere(call, options))
        timeout = options.get("timeout")
        places: dict[str, str] = {}
        for tensor in reads:
            places[tensor.name] = tensor.server or (yield from self._find(tensor.name, timeout)).server
        for write in writes:
            try:
                places[write.name] = (yield from self._find(write.name, timeout)).server
            except NotFound:
                if write.kind != "put":
                    raise
        if len(set(places.values())) > 1:
            each = ", ".join(f'"{name}" on {address}' for name, address in places.items())
            raise InvalidArgument(f"A call computes on one server, but names tensors of several: {each}.")
        address = next(iter(places.values()), None) or next(self._turn)
        names = [tensor.name for tensor in reads] + [write.name for write in writes]
        execution = yield from self._on(address, names, lambda client: client._execute(call, options))
        self._remember((write.name for write in writes), address)
        outputs = tuple(replace(output, server=address) if isinstance(output, ResidentTensor) else output
                        for output in execution.outputs)
        return replace(execution, outputs=outputs)

    def ask(self, method: str, request: Any, timeout: float | None,
            convert: Callable[[Any], Any]) -> Steps[Any]:
        """A request about tensors."""
        name = request.name
        if method == "DeleteTensor":
            found = yield from self._find(name, timeout)
            answer = yield from self._on(found.server, [name],
                                         lambda client: client._ask(method, request, timeout, convert))
            self._forget([name])
            return answer
        if name:
            return (yield from self._find(name, timeout, is_known_enough=False))
        tensors = []
        for address in self._addresses:
            answer = yield self.at(address)._ask(method, request, timeout, convert)
            tensors += [replace(tensor, server=address) for tensor in answer]
        return tuple(sorted(tensors, key=lambda tensor: tensor.name))

    def _find(self, name: str, timeout: float | None,
              is_known_enough: bool = True) -> Steps[ResidentTensor]:
        """The tensor as its server describes it; or only its name and server, if that is known enough."""
        with self._lock:
            known = self._places.get(name)
        if known is not None and is_known_enough:
            return ResidentTensor.at(name, known)
        asked = self._addresses if known is None else (known, *self._addresses)
        failure: OpMillError | None = None
        for address in dict.fromkeys(asked):
            try:
                found = yield self.at(address).tensors.find(name, timeout=timeout)
            except NotFound:
                continue
            except OpMillError as error:  # another server may have it
                failure = failure or error
                continue
            self._remember([name], address)
            tensor: ResidentTensor = replace(found, server=address)
            return tensor
        self._forget([name])
        if failure is not None:
            raise failure
        raise NotFound(f'No server has a tensor "{name}"; these were asked: '
                       f'{", ".join(self._addresses)}.', field="name")

    def _on(self, address: str, names: Iterable[str], call: Callable[[Any], Any]) -> Steps[Any]:
        """The call on this server, which the error names if one of the tensors is not there."""
        try:
            return (yield call(self.at(address)))
        except NotFound as error:
            self._forget(names)
            raise NotFound(f"{address}: {error.sentence}", field=error.field,
                           reason=error.reason) from None

    def _remember(self, names: Iterable[str], address: str) -> None:
        with self._lock:
            if len(self._places) >= _MOST_PLACES:
                self._places.clear()
            self._places.update((name, address) for name in names)

    def _forget(self, names: Iterable[str]) -> None:
        with self._lock:
            for name in names:
                self._places.pop(name, None)


def servers_of(options: ConnectOptions, connect: Callable[[ConnectOptions], Any]) -> Servers | None:
    """None for one server, and for a name of several, whose addresses only gRPC knows."""
    return Servers(options, connect) if "," in options.target else None

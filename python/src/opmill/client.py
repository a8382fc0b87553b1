"""The blocking client."""

from __future__ import annotations

import contextlib
import functools
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, Unpack

import grpc
from numpy.typing import ArrayLike, DTypeLike

from . import _messages
from ._arguments import Options, Progress, checked
from ._call import Array, Call
from ._channel import (ConnectOptions, SharedMemory, Tls, Token, credentials, options_of,
                       uri_and_arguments)
from ._connect_failure import connect_failure
from ._contract import HEALTH_CHECK, SERVICE, ListModelsRequest, Message, message
from ._convert import to_dataclass
from ._element_types import ElementTypes
from ._execution import Execution, Receiver, Request
from ._model_files import ModelFile, ModelSource
from ._models import ModelCall, ModelInfo, ServedModel, info_of_file, infos_of
from ._models import find as find_model
from ._named_operators import named_call
from ._operators import Operators, TopK
from ._progress import reporting
from ._resident import ResidentTensor
from ._retry import Attempts
from ._servers import run, servers_of
from ._shared_memory import (LEAST_BYTES, Segment, Segments, Unusable, find_shared,
                             is_possible, unusable)
from ._tensor_methods import Tensors
from .errors import FailedPrecondition, NotFound, OpMillError, from_rpc_error

_T = TypeVar("_T")

_MAX_KNOWN_OPERATORS = 1024


@checked
def connect(target: str | Sequence[str], *, tls: Tls | bool | None = None, token: Token = None,
            insecure: bool = False, connect_timeout: float = 10, timeout: float | None = None,
            max_attempts: int = 5, shared_memory: SharedMemory = "auto",
            cast: DTypeLike | None = None) -> Client:
    """`target` is "host:port", or several servers: "10.0.0.1:50051,10.0.0.2:50051", or one name
    that resolves to several, "dns:///name:port". Calls alternate between several servers. Those that
    name tensors go to the server that has them, if the addresses are listed.

    `token` is sent with every call: a string, or a function that returns the current one. Without
    TLS it is sent to this machine only, unless `insecure`. `timeout` (seconds) is the default of
    all calls. A call that fails because the server is unavailable or has no room at the moment is
    tried up to `max_attempts` times. Large arrays go to a server on this machine through shared
    memory if it accepts that, unless `shared_memory` is "off". `cast` is a type, such as "float32",
    to which inputs are converted if the operator does not take theirs; by default they are refused.

    Raises Unavailable if no server answers within `connect_timeout`."""
    return _connect(options_of(target, tls, cast, token=token, insecure=insecure, timeout=timeout,
                               connect_timeout=connect_timeout, max_attempts=max_attempts,
                               shared_memory=shared_memory))


class Client(Operators[Array, TopK]):
    """Thread-safe. A client can be pickled: its copy in another process opens a new connection,
    which all copies there share."""

    def __init__(self, options: ConnectOptions) -> None:
        self._options = options
        uri, arguments = uri_and_arguments(options)
        self._channel = (grpc.secure_channel(uri, credentials(options.tls), arguments)
                         if options.tls else grpc.insecure_channel(uri, arguments))
        self._execute_call = self._channel.unary_stream(f"/{SERVICE}/Execute")
        self._stream_call = self._channel.stream_stream(f"/{SERVICE}/ExecuteStream")
        self._max_message_bytes = 0
        self._max_bytes_in_flight = 0
        self._device = "not connected"
        self._types = ElementTypes(cast=options.cast)
        self._shares_memory = False
        self._segments = Segments()
        # At the exit of Python at the latest: later, gRPC would wait for its threads, which have
        # ended by then. A forked process has no part in the connection.
        self._owner = os.getpid()
        self._finalize = weakref.finalize(self, _close, self._owner, self._channel, self._segments)
        self._output_sizes: dict[bytes, list[int]] = {}  # of operators whose inputs were shared
        self._servers = servers_of(options, self._of_one_server)

    def _of_one_server(self, options: ConnectOptions) -> Client:
        client = Client(options)
        client._take_limits_of(self)
        return client

    def close(self) -> None:
        for client in self._servers.opened() if self._servers else ():
            client.close()
        self._finalize()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<opmill.Client {self._description()}>"

    def _description(self) -> str:
        state = self._device if self._finalize.alive else "closed"
        return f"{self._options.target}, {state}"

    def __reduce__(self) -> Any:
        return _shared, (self._options,)

    @checked
    def server_info(self, *, timeout: float | None = None) -> _messages.ServerInfo:
        """The device, the operators with their types and ranks, and every limit."""
        return to_dataclass(self._unary("GetServerInfo", None, timeout), _messages.ServerInfo)

    @checked
    def statistics(self, *, timeout: float | None = None) -> _messages.Statistics:
        """What the server has done since its start."""
        return to_dataclass(self._unary("GetStatistics", None, timeout), _messages.Statistics)

    @checked
    def models(self, *, timeout: float | None = None) -> tuple[ModelInfo, ...]:
        """The models of the server's repository."""
        return self._list("", timeout)

    @checked
    def model(self, name: str, version: str = "", *,
              timeout: float | None = None) -> ServedModel[dict[str, Array]]:
        """The model of this name, to be called with arrays. An empty version is the highest that
        is served, at each call. Raises NotFound."""
        try:
            infos = self._list(name, timeout)
        except NotFound:
            infos = self.models(timeout=timeout)  # of which find_model names one
        info = find_model(infos, name, str(version))
        return ServedModel(info, str(version), self._run, self._explain)

    @checked
    def compile(self, operator: str, inputs: Sequence[ArrayLike],
                attributes: Mapping[str, Any] | None = None,
                **options: Unpack[Options]) -> _messages.CompiledOperator:
        """Validates and compiles an operator, so that its first execution does not wait for that.
        The arguments are those of `execute`; the elements of the inputs do not matter."""
        request = self._request(named_call(operator, inputs, attributes), options)
        answer = self._unary("CompileOperator", request.compile_message(), options.get("timeout"))
        return to_dataclass(answer, _messages.CompiledOperator)

    @checked
    def execute(self, operator: str, inputs: Sequence[ArrayLike],
                attributes: Mapping[str, Any] | None = None,
                **options: Unpack[Options]) -> Execution:
        """Executes any operator, with the names of its message in OperatorDesc:
        execute("top_k", [x], {"k": 5, "axis": -1, "axis_direction": "decreasing"})."""
        return self._execute(named_call(operator, inputs, attributes), options)

    def _list(self, name: str, timeout: float | None) -> tuple[ModelInfo, ...]:
        """Of this name; all models if it is empty."""
        return infos_of(self._unary("ListModels", ListModelsRequest(name=name), timeout).models)

    @property
    def tensors(self) -> Tensors[ResidentTensor]:
        """Tensors that stay on the server between calls."""
        return Tensors(self._run, self._ask, self._get)

    def _get(self, tensor: str | ResidentTensor, timeout: float | None) -> Array:
        if isinstance(tensor, str):
            tensor = self.tensors.find(tensor, timeout=timeout)
        result: Array = self._run(named_call("identity", [tensor], {}), {"timeout": timeout})
        return result

    def _ask(self, method: str, request: Any, timeout: float | None,
             convert: Callable[[Any], _T]) -> _T:
        """About tensors."""
        if self._servers is not None:
            answer: _T = run(self._servers.ask(method, request, timeout, convert))
            return answer
        return convert(self._unary(method, request, timeout))

    def _run(self, call: Call | ModelCall, options: Options) -> Any:
        return call.result_of(self._execute(call, options))

    def _request(self, call: Call | ModelCall, options: Options) -> Request:
        prepared = call.prepare(self._types, options.get("cast"))
        return Request(prepared, options.get("feature_level"), self._max_message_bytes,
                       options.get("priority", 0), call.writes(options.get("keep")))

    def _execute(self, call: Call | ModelCall, options: Options) -> Execution:
        if self._servers is not None:
            execution: Execution = run(self._servers.execute(call, options, self._execute_anywhere))
            return execution
        return self._execute_anywhere(call, options)

    def _execute_anywhere(self, call: Call | ModelCall, options: Options) -> Execution:
        return self._perform(self._request(call, options), options.get("timeout"),
                             options.get("progress"))

    def _perform(self, request: Request, timeout: float | None, progress: Progress | bool | None,
                 started: Callable[[Any], None] = lambda call: None) -> Execution:
        """`started` is called with the call of each attempt, which it may cancel."""
        with reporting(progress, request.total_bytes) as sent:

            def attempt(left: float | None) -> Execution:
                clock = Attempts(1, left)
                if (self._shares_memory and request.may_share_memory
                        and request.total_bytes >= LEAST_BYTES):
                    try:
                        return self._perform_shared(request, clock, sent, started)
                    except Unusable as problem:
                        self._shares_memory = not problem.for_good
                left = clock.remaining()
                receiver = Receiver(is_stream=not request.is_small)
                metadata = self._options.metadata()
                if request.is_small:
                    responses = self._execute_call(request.message(), left, metadata)
                else:
                    responses = self._stream_call(request.messages(sent), left, metadata)
                started(responses)
                try:
                    _receive(responses, receiver)
                finally:
                    request.raise_failure()
                return request.finish(receiver)

            result = self._retry(attempt, timeout, request.max_attempts,
                                 request.sends_file_after)
            if request.is_small:
                sent(request.total_bytes)
            return result

    def _perform_shared(self, request: Request, clock: Attempts, sent: Callable[[int], None],
                        started: Callable[[Any], None]) -> Execution:
        """Through shared memory. Raises Unusable where that does not work: the server copies whole
        inputs from there, and computes some operators on a stream of larger ones."""
        sizes = self._sizes_of_outputs(request, clock.remaining())
        if request.total_bytes + sum(sizes) > self._max_bytes_in_flight:
            raise Unusable(for_good=False)
        with contextlib.ExitStack() as segments:
            ranges = [find_shared(data) for data in request.inputs]
            others = [data for data, known in zip(request.inputs, ranges) if known is None]
            if others:
                source = segments.enter_context(self._segments.borrow(list(map(len, others))))
                source.write(others, sent)
                written = iter(source.ranges)
                ranges = [known or next(written) for known in ranges]
            target = None
            if sum(sizes) >= LEAST_BYTES:
                target = segments.enter_context(Segment(sizes))
            receiver = Receiver(is_stream=False, segment=target)
            responses = self._execute_call(request.shared_message(ranges, target),
                                           clock.remaining(), self._options.metadata())
            started(responses)
            try:
                _receive(responses, receiver)
            except grpc.RpcError as error:
                failure = from_rpc_error(error)
                raise unusable(failure) or failure from None
            sent(request.total_bytes)
            return request.finish(receiver)

    def _sizes_of_outputs(self, request: Request, timeout: float | None) -> list[int]:
        key = request.key()
        sizes = self._output_sizes.get(key)  # another thread may clear them at any time
        if sizes is None:
            answer = self._unary("CompileOperator", request.compile_message(), timeout, max_attempts=1)
            request.file_has_arrived()
            sizes = list(answer.output_bytes)
            if len(self._output_sizes) >= _MAX_KNOWN_OPERATORS:
                self._output_sizes.clear()
            self._output_sizes[key] = sizes
        return sizes

    def _describe(self, file: ModelFile, timeout: float | None) -> ModelInfo:
        answer = self._unary("DescribeModel", file.describe_message(), timeout, file=file)
        return info_of_file(answer, file)

    def _explain(self, request: Message, file: ModelFile | None,
                 timeout: float | None) -> _messages.Explanation:
        answer = self._unary("ExplainModel", request, timeout, file=file)
        return to_dataclass(answer, _messages.Explanation)

    def _ask_limits(self) -> None:
        info = self._unary("GetServerInfo", None, self._options.connect_timeout, max_attempts=1)
        self._take_limits(info)

    def _take_limits(self, info: Any) -> None:
        self._max_message_bytes = info.limits.max_message_bytes
        self._max_bytes_in_flight = info.limits.max_bytes_in_flight
        device = to_dataclass(info, _messages.ServerInfo).device
        self._device = f"{device.kind} device: {device.adapter}"
        self._types = ElementTypes(info.operators, self._options.cast)
        self._shares_memory = (info.shared_memory and self._options.may_share_memory
                               and is_possible())

    def _take_limits_of(self, other: Client) -> None:
        """Servers of one client have the same."""
        self._max_message_bytes = other._max_message_bytes
        self._max_bytes_in_flight = other._max_bytes_in_flight
        self._device = other._device
        self._types = other._types
        self._shares_memory = other._shares_memory

    def _unary(self, method: str, request: Any, timeout: float | None,
               max_attempts: int | None = None, file: ModelFile | None = None) -> Any:
        """`file` is added to the request if the server needs it."""
        call = self._channel.unary_unary(
            f"/{SERVICE}/{method}",
            request_serializer=lambda r: b"" if r is None else r.SerializeToString(),
            response_deserializer=message(f"opmill.v1.{method}Response").FromString)
        return self._retry(lambda left: call(request, left, self._options.metadata()), timeout,
                           max_attempts, self._adds_file_after(request, file))

    def _adds_file_after(self, request: Any,
                         file: ModelFile | None) -> Callable[[OpMillError], bool]:
        def adds_file(error: OpMillError) -> bool:
            if (file is None or request.model_file
                    or not file.is_needed(error, self._max_message_bytes)):
                return False
            request.model_file = file.read()
            return True

        return adds_file

    def _retry(self, attempt: Callable[[float | None], _T], timeout: float | None,
               max_attempts: int | None = None,
               sends_file_after: Callable[[OpMillError], bool] = lambda error: False) -> _T:
        attempts = Attempts(max_attempts or self._options.max_attempts,
                            self._options.timeout if timeout is None else timeout)
        while True:
            try:
                with self._opmill_errors():
                    return attempt(attempts.remaining())
            except OpMillError as error:
                if sends_file_after(error):
                    continue
                delay = attempts.delay_after(error)
            self._wait(delay)

    @contextlib.contextmanager
    def _opmill_errors(self) -> Iterator[None]:
        """Around an attempt. Another thread may close the client at any time; gRPC then raises
        ValueError, or cancels the call."""
        self._require_open()
        try:
            yield
        except (grpc.RpcError, OpMillError, ValueError) as error:
            self._require_open()
            if isinstance(error, grpc.RpcError):
                raise from_rpc_error(error) from None
            raise

    def _require_open(self) -> None:
        if not self._finalize.alive:
            raise FailedPrecondition(f"The client of {self._options.target} is closed.")
        if os.getpid() != self._owner:
            raise FailedPrecondition("A forked process cannot use the client of its parent.")

    def _wait(self, seconds: float) -> None:
        """A call that waits for a server, meanwhile: without a call gRPC would take up to 5 s to
        connect. (Its `subscribe` leaves a thread behind, which must not outlive the program.)"""
        until = time.monotonic() + seconds
        with contextlib.suppress(grpc.RpcError, ValueError):  # as in _opmill_errors
            self._channel.unary_unary(HEALTH_CHECK)(b"", seconds, wait_for_ready=True)
        if self._finalize.alive:
            time.sleep(max(until - time.monotonic(), 0))


class Model(ServedModel[dict[str, Array]]):
    """An ONNX file, given by its path or as bytes, that the server computes:

        m = opmill.Model(c, "model.onnx")
        y = m(x)["y"]

    The server gets the file only if it does not have it. It keeps files that callers have sent as
    long as it has room, and gets them again if necessary."""

    @checked
    def __init__(self, client: Client, file: ModelSource, *, timeout: float | None = None) -> None:
        source = ModelFile(file)
        super().__init__(client._describe(source, timeout), "", client._run, client._explain,
                         source)


def _close(owner: int, channel: grpc.Channel, segments: Segments) -> None:
    if os.getpid() == owner:
        channel.close()
        segments.close()


def _receive(responses: Any, receiver: Receiver) -> None:
    """Reads all responses. Cancels the call if that fails."""
    try:
        for response in responses:
            receiver.add(response)
    finally:
        responses.cancel()


def _connect(options: ConnectOptions) -> Client:
    client = Client(options)
    try:
        client._ask_limits()
    except OpMillError as error:
        client.close()
        raise connect_failure(error, options) from None
    except BaseException:
        client.close()
        raise
    return client


class _Copies:
    """All copies of a client in a process: one client, until it is closed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._client: Client | None = None

    def get(self, options: ConnectOptions) -> Client:
        with self._lock:
            if self._client is None or not self._client._finalize.alive:
                self._client = _connect(options)
            return self._client


@functools.lru_cache(maxsize=16)
def _copies_of(options: ConnectOptions, process: int) -> _Copies:
    return _Copies()


def _shared(options: ConnectOptions) -> Client:
    return _copies_of(options, os.getpid()).get(options)

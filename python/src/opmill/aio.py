"""The client for asyncio."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar, Unpack

import grpc
import grpc.aio
import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from . import _messages, client
from ._arguments import Options, Progress, checked
from ._call import Array, Call
from ._channel import (ConnectOptions, SharedMemory, Tls, Token, credentials, options_of,
                       uri_and_arguments)
from ._connect_failure import connect_failure
from ._contract import HEALTH_CHECK, SERVICE, ListModelsRequest, Message, message
from ._convert import to_dataclass
from ._execution import Execution, Receiver, Request
from ._index import RECOVERIES, Found, IndexSteps, Path
from ._model_files import ModelFile, ModelSource
from ._models import ModelCall, ModelInfo, ServedModel, info_of_file, infos_of
from ._models import find as find_model
from ._named_operators import Metric, named_call
from ._operators import Operators, TopK
from ._progress import reporting
from ._resident import ResidentTensor
from ._retry import Attempts
from ._servers import Steps, servers_of
from ._tensor_methods import Tensors
from .errors import NotFound, OpMillError

_T = TypeVar("_T")

_MAX_UPLOADS = 8  # uploads of large inputs at a time; others wait


@checked
async def connect(target: str | Sequence[str], *, tls: Tls | bool | None = None,
                  token: Token = None, insecure: bool = False, connect_timeout: float = 10,
                  timeout: float | None = None, max_attempts: int = 5,
                  shared_memory: SharedMemory = "auto",
                  cast: DTypeLike | None = None) -> Client:
    """Like opmill.connect."""
    options = options_of(target, tls, cast, token=token, insecure=insecure, timeout=timeout,
                         connect_timeout=connect_timeout, max_attempts=max_attempts,
                         shared_memory=shared_memory)
    connected = Client(options)
    try:
        await connected._ask_limits()
    except OpMillError as error:
        await connected.close()
        raise connect_failure(error, options) from None
    except BaseException:
        await connected.close()
        raise
    return connected


class Client(Operators[Coroutine[Any, Any, Array], Coroutine[Any, Any, TopK]]):
    """Like opmill.Client, for one event loop. Cancelling a task cancels its call."""

    def __init__(self, options: ConnectOptions) -> None:
        self._options = options
        uri, arguments = uri_and_arguments(options)
        self._channel = (grpc.aio.secure_channel(uri, credentials(options.tls), arguments)
                         if options.tls else grpc.aio.insecure_channel(uri, arguments))
        self._execute_call = self._channel.unary_stream(f"/{SERVICE}/Execute")
        self._blocking = client.Client(options)  # for large inputs; connects lazily
        self._servers = servers_of(options, self._of_one_server)
        self._threads = ThreadPoolExecutor(_MAX_UPLOADS, "opmill")

    def _of_one_server(self, options: ConnectOptions) -> Client:
        one = Client(options)
        one._blocking._take_limits_of(self._blocking)
        return one

    async def close(self) -> None:
        for one in self._servers.opened() if self._servers else ():
            await one.close()
        self._blocking.close()
        await self._channel.close()
        self._threads.shutdown(wait=False)

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<opmill.aio.Client {self._blocking._description()}>"

    @checked
    async def server_info(self, *, timeout: float | None = None) -> _messages.ServerInfo:
        answer = await self._unary("GetServerInfo", None, timeout)
        return to_dataclass(answer, _messages.ServerInfo)

    @checked
    async def statistics(self, *, timeout: float | None = None) -> _messages.Statistics:
        answer = await self._unary("GetStatistics", None, timeout)
        return to_dataclass(answer, _messages.Statistics)

    @checked
    async def models(self, *, timeout: float | None = None) -> tuple[ModelInfo, ...]:
        return await self._list("", timeout)

    @checked
    async def model(self, name: str, version: str = "", *, timeout: float | None = None
                    ) -> ServedModel[Coroutine[Any, Any, dict[str, Array]]]:
        try:
            infos = await self._list(name, timeout)
        except NotFound:
            infos = await self.models(timeout=timeout)  # of which find_model names one
        info = find_model(infos, name, str(version))
        return ServedModel(info, str(version), self._run, self._explain)

    @checked
    async def compile(self, operator: str, inputs: Sequence[ArrayLike],
                      attributes: Mapping[str, Any] | None = None,
                      **options: Unpack[Options]) -> _messages.CompiledOperator:
        request = self._blocking._request(named_call(operator, inputs, attributes), options)
        answer = await self._unary("CompileOperator", request.compile_message(),
                                   options.get("timeout"))
        return to_dataclass(answer, _messages.CompiledOperator)

    @checked
    async def execute(self, operator: str, inputs: Sequence[ArrayLike],
                      attributes: Mapping[str, Any] | None = None,
                      **options: Unpack[Options]) -> Execution:
        return await self._execute(named_call(operator, inputs, attributes), options)

    async def _list(self, name: str, timeout: float | None) -> tuple[ModelInfo, ...]:
        return infos_of((await self._unary("ListModels", ListModelsRequest(name=name), timeout)).models)

    @property
    def tensors(self) -> Tensors[Coroutine[Any, Any, ResidentTensor]]:
        return Tensors(self._run, self._ask, self._get)

    async def _get(self, tensor: str | ResidentTensor, timeout: float | None) -> Any:
        if isinstance(tensor, str):
            tensor = await self.tensors.find(tensor, timeout=timeout)
        return await self._run(named_call("identity", [tensor], {}), {"timeout": timeout})

    async def _ask(self, method: str, request: Any, timeout: float | None,
                   convert: Callable[[Any], _T]) -> _T:
        if self._servers is not None:
            answer: _T = await _drive(self._servers.ask(method, request, timeout, convert))
            return answer
        return convert(await self._unary(method, request, timeout))

    async def _run(self, call: Call | ModelCall, options: Options) -> Any:
        return call.result_of(await self._execute(call, options))

    async def _describe(self, file: ModelFile, timeout: float | None) -> ModelInfo:
        answer = await self._unary("DescribeModel", file.describe_message(), timeout, file=file)
        return info_of_file(answer, file)

    async def _explain(self, request: Message, file: ModelFile | None,
                       timeout: float | None) -> _messages.Explanation:
        answer = await self._unary("ExplainModel", request, timeout, file=file)
        return to_dataclass(answer, _messages.Explanation)

    async def _ask_limits(self) -> None:
        info = await self._unary("GetServerInfo", None, self._options.connect_timeout,
                                 max_attempts=1)
        self._blocking._take_limits(info)

    async def _execute(self, call: Call | ModelCall, options: Options) -> Execution:
        if self._servers is not None:
            execution: Execution = await _drive(
                self._servers.execute(call, options, self._execute_anywhere))
            return execution
        return await self._execute_anywhere(call, options)

    async def _execute_anywhere(self, call: Call | ModelCall, options: Options) -> Execution:
        request = self._blocking._request(call, options)
        timeout = self._timeout(options.get("timeout"))
        if not request.is_small:
            return await self._execute_in_thread(request, timeout, options.get("progress"))

        async def attempt(left: float | None) -> Execution:
            receiver = Receiver(is_stream=False)
            responses = self._execute_call(request.message(), timeout=left,
                                           metadata=self._options.metadata())
            async for response in responses:
                receiver.add(response)
            return request.finish(receiver)

        with reporting(options.get("progress"), request.total_bytes) as sent:
            result = await self._retry(attempt, timeout, request.max_attempts,
                                       request.sends_file_after)
            sent(request.total_bytes)
        return result

    async def _execute_in_thread(self, request: Request, timeout: float | None,
                                 progress: Progress | bool | None) -> Execution:
        """A thread copies the bytes, so that the loop is not blocked. Besides, grpc.aio reports a
        failed write instead of the status of the call if the call ends during a write."""
        self._blocking._require_open()
        attempts = Attempts(1, timeout)
        cancellation = _Cancellation()

        def run() -> Execution:
            return self._blocking._perform(request, attempts.remaining(), progress,
                                           cancellation.started)

        context = contextvars.copy_context()  # which has the active span of OpenTelemetry
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, context.run,
                                                                    run)
        except asyncio.CancelledError:
            cancellation.cancel()
            raise

    async def _unary(self, method: str, request: Any, timeout: float | None,
                     max_attempts: int | None = None, file: ModelFile | None = None) -> Any:
        call = self._channel.unary_unary(
            f"/{SERVICE}/{method}",
            request_serializer=lambda r: b"" if r is None else r.SerializeToString(),
            response_deserializer=message(f"opmill.v1.{method}Response").FromString)

        async def attempt(left: float | None) -> Any:
            return await call(request, timeout=left, metadata=self._options.metadata())

        return await self._retry(attempt, self._timeout(timeout), max_attempts,
                                 self._blocking._adds_file_after(request, file))

    def _timeout(self, timeout: float | None) -> float | None:
        return self._options.timeout if timeout is None else timeout

    async def _retry(self, attempt: Callable[[float | None], Awaitable[_T]],
                     timeout: float | None, max_attempts: int | None = None,
                     sends_file_after: Callable[[OpMillError], bool] = lambda error: False) -> _T:
        attempts = Attempts(max_attempts or self._options.max_attempts, timeout)
        while True:
            try:
                with self._opmill_errors():
                    return await attempt(attempts.remaining())
            except OpMillError as error:
                if sends_file_after(error):
                    continue
                delay = attempts.delay_after(error)
            with self._opmill_errors():
                await self._wait(delay)

    @contextlib.contextmanager
    def _opmill_errors(self) -> Iterator[None]:
        """Like that of opmill.Client. When another task closes the channel, grpc.aio cancels the
        calls as if their tasks were cancelled."""
        with self._blocking._opmill_errors():
            try:
                yield
            except (asyncio.CancelledError, grpc.aio.UsageError):
                task = asyncio.current_task()
                if task is None or not task.cancelling():
                    self._blocking._require_open()
                raise

    async def _wait(self, seconds: float) -> None:
        """Like that of opmill.Client."""
        until = time.monotonic() + seconds
        with contextlib.suppress(grpc.RpcError):
            await self._channel.unary_unary(HEALTH_CHECK)(b"", timeout=seconds, wait_for_ready=True)
        await asyncio.sleep(max(until - time.monotonic(), 0))


class Model(ServedModel[Coroutine[Any, Any, dict[str, Array]]]):
    """Like opmill.Model: m = await opmill.aio.Model(c, "model.onnx")."""

    @checked
    def __init__(self, client: Client, file: ModelSource, *, timeout: float | None = None) -> None:
        self._client = client
        self._source = ModelFile(file)
        self._timeout = timeout

    def __await__(self) -> Generator[Any, None, Model]:
        return self._open().__await__()

    async def _open(self) -> Model:
        info = await self._client._describe(self._source, self._timeout)
        super().__init__(info, "", self._client._run, self._client._explain, self._source)
        return self


async def _drive(steps: Steps[_T]) -> _T:
    """The calls that the generator yields, one after the other."""
    try:
        call = steps.send(None)
        while True:
            try:
                result = await call
            except BaseException as error:
                call = steps.throw(error)
            else:
                call = steps.send(result)
    except StopIteration as end:
        value: _T = end.value
        return value


class Index(IndexSteps):
    """Like opmill.Index: index = await opmill.aio.Index(c, vectors)."""

    @checked
    def __init__(self, client: Client, vectors: ArrayLike | ResidentTensor, metric: Metric = "ip",
                 dtype: DTypeLike | None = None, name: str | None = None,
                 capacity: int | None = None, lease: float | None = None,
                 keep_copy: bool = False) -> None:
        super().__init__(client, vectors, metric, dtype, name, capacity, lease, keep_copy)
        self._writers = asyncio.Lock()

    def __await__(self) -> Generator[Any, None, Index]:
        return self._opened().__await__()

    async def _opened(self) -> Index:
        await _drive(self._open())
        return self

    async def __aenter__(self) -> Index:
        return await self._opened()

    async def __aexit__(self, *exception: object) -> None:
        await self.delete()

    async def _write(self, steps: Callable[[], Steps[_T]]) -> _T:
        async with self._writers:
            for _ in range(RECOVERIES):
                state = self._state
                try:
                    return await _drive(steps())
                except OpMillError as error:
                    await _drive(self._recover(state, error))
            return await _drive(steps())

    async def _read(self, steps: Callable[[Any], Steps[_T]]) -> _T:
        for _ in range(RECOVERIES):
            state = self._state
            try:
                return await _drive(steps(state))
            except OpMillError as error:
                async with self._writers:
                    await _drive(self._recover(state, error))
        return await _drive(steps(self._state))

    @checked
    async def add(self, rows: ArrayLike) -> Array:
        return await self._write(lambda: self._add(rows))

    @checked
    async def remove(self, ids: ArrayLike) -> int:
        return await self._write(lambda: self._remove(ids))

    @checked
    async def compact(self, *, capacity: int | None = None) -> int:
        return await self._write(lambda: self._compact(capacity))

    @checked
    async def search(self, queries: ArrayLike, k: int, mask: ArrayLike | None = None, *,
                     timeout: float | None = None) -> Found:
        return await self._read(lambda state: self._search(state, queries, k, mask, timeout))

    @checked
    async def save(self, path: Path) -> Array:
        return await self._read(lambda state: self._save(state, path))

    @classmethod
    def load(cls, client: Client, path: Path, metric: Metric = "ip",
             dtype: DTypeLike | None = None, name: str | None = None,
             capacity: int | None = None, lease: float | None = None,
             keep_copy: bool = False) -> Index:
        """index = await opmill.aio.Index.load(c, "vectors.npy")."""
        return cls(client, np.load(path, mmap_mode="r", allow_pickle=False), metric, dtype, name,
                   capacity, lease, keep_copy)

    async def delete(self) -> None:
        async with self._writers:
            await _drive(self._delete())


class _Cancellation:
    """Cancels a call that another thread makes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._call: Any = None
        self._cancelled = False

    def started(self, call: Any) -> None:
        with self._lock:
            self._call = call
            cancelled = self._cancelled
        if cancelled:
            call.cancel()

    def cancel(self) -> None:
        with self._lock:
            self._cancelled = True
            call = self._call
        if call is not None:
            call.cancel()

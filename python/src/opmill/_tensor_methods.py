"""The calls that put, read and list tensors that stay on the server, of both clients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from numpy.typing import ArrayLike

from ._arguments import Options, checked
from ._contract import Message, message
from ._named_operators import named_call
from ._resident import ResidentTensor, Write, tensor_of_message

ResultT = TypeVar("ResultT")

_ListTensorsRequest = message("opmill.v1.ListTensorsRequest")
_DeleteTensorRequest = message("opmill.v1.DeleteTensorRequest")


class Tensors(Generic[ResultT]):
    """The caller's tensors on the server: c.tensors.put("weights", w), then c.multiply(x, w) with what
    that returns."""

    def __init__(self, run: Callable[[Any, Options], Any],
                 ask: Callable[[str, Message, float | None, Callable[[Message], Any]], Any],
                 read: Callable[[str | ResidentTensor, float | None], Any]) -> None:
        self._run = run
        self._ask = ask
        self._read = read

    def _write(self, array: ArrayLike, write: Write, options: Options) -> Any:
        return self._run(named_call("identity", [array], {}), {**options, "keep": write})

    @checked
    def put(self, name: str, array: ArrayLike, *, capacity: int | None = None,
            lease: float | None = None, if_generation: int | None = None,
            timeout: float | None = None) -> ResultT:
        """Puts a tensor, in place of one of this name. `capacity` is the number of rows to which
        `append` may extend it. After `lease` seconds without a call that names it, it is deleted;
        otherwise it stays. With `if_generation`, only if the tensor still has that generation; 0: only
        if there is none. Returns the ResidentTensor."""
        written: ResultT = self._write(
            array, Write(name, "put", 0, capacity, lease, if_generation), {"timeout": timeout})
        return written

    @checked
    def append(self, name: str, rows: ArrayLike, *, if_generation: int | None = None,
               timeout: float | None = None) -> ResultT:
        """Appends rows of the first dimension. Calls that have begun do not see them. Returns the
        ResidentTensor with all of its rows."""
        written: ResultT = self._write(
            rows, Write(name, "append", if_generation=if_generation), {"timeout": timeout})
        return written

    @checked
    def write(self, name: str, first_row: int, rows: ArrayLike, *,
              if_generation: int | None = None, timeout: float | None = None) -> ResultT:
        """Replaces rows of the first dimension. Returns the ResidentTensor."""
        written: ResultT = self._write(
            rows, Write(name, "write", first_row, if_generation=if_generation), {"timeout": timeout})
        return written

    @checked
    def get(self, tensor: str | ResidentTensor, *, timeout: float | None = None) -> Any:
        """Its elements, as an array."""
        return self._read(tensor, timeout)

    @checked
    def find(self, name: str, *, timeout: float | None = None) -> ResultT:
        """The tensor of this name, as it is now. Raises NotFound."""
        found: ResultT = self._ask("ListTensors", _ListTensorsRequest(name=name), timeout,
                                   lambda answer: tensor_of_message(answer.tensors[0]))
        return found

    @checked
    def list(self, *, timeout: float | None = None) -> Any:
        """A tuple of all, by name."""
        return self._ask("ListTensors", _ListTensorsRequest(), timeout,
                         lambda answer: tuple(map(tensor_of_message, answer.tensors)))

    @checked
    def delete(self, name: str, *, if_generation: int | None = None,
               timeout: float | None = None) -> Any:
        """Calls that read it go on. Raises NotFound."""
        given = {} if if_generation is None else {"if_generation": if_generation}
        return self._ask("DeleteTensor", _DeleteTensorRequest(name=name, **given), timeout,
                         lambda answer: None)

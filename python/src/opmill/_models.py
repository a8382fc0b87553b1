"""Models of a server's repository: what they take and give, and calls of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ._arguments import Options, check_options, nearest
from ._call import Prepared
from ._contract import DATA_TYPES, Message, ModelDesc
from ._element_types import ElementTypes, convert, may_cast
from ._execution import Execution
from ._model_files import ModelFile
from ._resident import Keep, ResidentTensor, Write, writes_of
from ._tensors import Tensor, array_of, resident_tensor_of, tensor_of
from .errors import InvalidArgument, NotFound

Array = NDArray[Any]
ResultT = TypeVar("ResultT")

_OPTIONS = ("timeout", "priority", "progress", "keep")


@dataclass(frozen=True)
class ModelTensor:
    """An input or output of a model. Sizes of -1 are any."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    # An input on whose elements sizes or branches depend; its bytes are at most 4096.
    needs_value: bool = False

    def __str__(self) -> str:
        return f"{self.name} {self.dtype}[{','.join(map(str, self.shape))}]"


@dataclass(frozen=True)
class ModelInfo:
    """A model of the server's repository. `reason` says why it is not ready, or why its last change
    is not in effect."""

    name: str
    version: str
    ready: bool
    reason: str
    inputs: tuple[ModelTensor, ...]
    outputs: tuple[ModelTensor, ...]


def infos_of(messages: Iterable[Message]) -> tuple[ModelInfo, ...]:
    return tuple(ModelInfo(info.name, info.version, info.ready, info.reason,
                           tuple(map(_tensor_of, info.inputs)), tuple(map(_tensor_of, info.outputs)))
                 for info in messages)


def info_of_file(answer: Message, file: ModelFile) -> ModelInfo:
    [info] = infos_of([answer.model])
    return replace(info, name=file.name.removesuffix(".onnx"))


def _tensor_of(message: Message) -> ModelTensor:
    dtype = np.dtype(np.bool_ if message.is_bool else DATA_TYPES.name(message.data_type))
    return ModelTensor(message.name, dtype, tuple(message.sizes), message.needs_value)


def check_input(info: ModelInfo, expected: ModelTensor, dtype: np.dtype[Any],
                shape: tuple[int, ...], path: str) -> None:
    """Raises InvalidArgument if the model does not take such an array."""
    subject = f"The input {expected.name} of {info.name}"
    if dtype.name != expected.dtype.name:
        raise InvalidArgument(f"{subject} is {expected.dtype}, not {dtype.name}. Convert the array "
                              "with astype.", field=f"{path}.data_type")
    if len(shape) != len(expected.shape) or any(
            takes not in (-1, size) for takes, size in zip(expected.shape, shape)):
        raise InvalidArgument(f"{subject} has the shape {expected.shape}, not {shape}.",
                              field=f"{path}.sizes")


def find(infos: Iterable[ModelInfo], name: str, version: str) -> ModelInfo:
    """The model of this name, and of this version; of the newest that is served if it is empty.
    Raises NotFound."""
    infos = list(infos)
    versions = [info for info in infos if info.name == name]
    if not versions:
        names = list(dict.fromkeys(info.name for info in infos))
        ending = nearest(name, names, synonyms={}, takes="the server has") if names else "it has none."
        raise NotFound(f'There is no model "{name}"; {ending}', field="model.name")
    served = [info for info in versions if info.ready]
    if not served:
        raise NotFound(f"The model {name} is not served: {versions[-1].reason}", field="model.name")
    if not version:
        return served[-1]
    for info in served:
        if info.version == version:
            return info
    has = ", ".join(info.version for info in served)
    raise NotFound(f"The model {name} has the version{'s' if len(served) > 1 else ''} {has}, "
                   f'not "{version}".', field="model.version")


class ServedModel(Generic[ResultT]):
    """A model of the server. A call takes its inputs by position or by name, and returns its
    outputs by name:

        m = c.model("made")
        y = m(x, offset=o)["y"]

    `timeout`, `priority`, `progress` and `keep` are those of all calls. `keep` may give names by those
    of the outputs: m(x, keep={"y": "hidden"})."""

    def __init__(self, info: ModelInfo, version: str, run: Callable[[Any, Options], ResultT],
                 file: ModelFile | None = None) -> None:
        self._info = info
        self._version = version
        self._run = run
        self._file = file

    @property
    def name(self) -> str:
        return self._info.name

    @property
    def version(self) -> str:
        """The version that the server had when `model` was called."""
        return self._info.version

    @property
    def inputs(self) -> tuple[ModelTensor, ...]:
        return self._info.inputs

    @property
    def outputs(self) -> tuple[ModelTensor, ...]:
        return self._info.outputs

    def __repr__(self) -> str:
        takes, gives = (", ".join(map(str, each)) for each in (self.inputs, self.outputs))
        version = f" version {self.version}" if self.version else ""
        return f"<opmill.Model {self.name}{version}: {takes} -> {gives}>"

    def __call__(self, /, *inputs: ArrayLike, **named: Any) -> ResultT:
        bound, options = self._bind(inputs, named)
        return self._run(ModelCall(self._info, self._version, bound, self._file), options)

    def _bind(self, inputs: Sequence[Any],
              named: Mapping[str, Any]) -> tuple[dict[str, Any], Options]:
        """The inputs by name, and the options. An input that is named like an option is the input."""
        names = [tensor.name for tensor in self.inputs]
        options = {name: value for name, value in named.items() if name in _OPTIONS and name not in names}
        check_options(options)
        takes = f"it takes {', '.join(names)}" if names else "it takes no inputs"
        if len(inputs) > len(names):
            raise TypeError(f"{self.name} got {len(inputs)} inputs; {takes}.")
        bound = dict(zip(names, inputs))
        for name, value in named.items():
            if name in options:
                continue
            if name in bound:
                raise TypeError(f"{self.name} got the input '{name}' twice.")
            if name not in names:
                known = [*names, *_OPTIONS]
                raise TypeError(f"{self.name} has no input '{name}'; {nearest(name, known, synonyms={})}")
            bound[name] = value
        for name in names:
            if name not in bound:
                raise TypeError(f"{self.name} got no input '{name}'; {takes}.")
        return bound, cast(Options, options)


@dataclass(frozen=True)
class ModelCall:
    info: ModelInfo
    version: str
    inputs: Mapping[str, ArrayLike]
    file: ModelFile | None = None

    def prepare(self, types: ElementTypes, cast: DTypeLike | None) -> Prepared:
        """Inputs with a value come last, so that the positions of the others are those of what is
        sent."""
        desc = (ModelDesc(sha256=self.file.sha256) if self.file
                else ModelDesc(name=self.info.name, version=self.version))
        tensors = []
        for expected in sorted(self.info.inputs, key=lambda tensor: tensor.needs_value):
            path = f"model.inputs[{len(desc.inputs)}].tensor"
            tensor = self._tensor(expected, self.inputs[expected.name], path)
            entry = desc.inputs.add(name=expected.name, tensor=tensor.desc)
            if expected.needs_value:
                if tensor.resident:
                    raise InvalidArgument(f"The elements of the input {expected.name} decide what is "
                                          "computed; it has to be an array.", field=path)
                entry.value = bytes(tensor.data)
            else:
                tensors.append(tensor)
        return Prepared(desc, tensors, (), field="model",
                        values=len(desc.inputs) - len(tensors), file=self.file)

    def writes(self, keep: Keep | Write | None) -> dict[int, Write]:
        return writes_of(keep, [output.name for output in self.info.outputs])

    def result_of(self, execution: Execution) -> dict[str, Array]:
        return dict(zip(execution.names, execution.outputs))

    def _tensor(self, expected: ModelTensor, value: ArrayLike, path: str) -> Tensor:
        """Numbers and lists take the type of the input; arrays must have it."""
        array = array_of(value, path)
        is_array = (isinstance(value, (np.ndarray, np.generic, ResidentTensor))
                    or hasattr(value, "__array__"))
        if not is_array and may_cast(array.dtype, expected.dtype.name):
            array = convert(array, expected.dtype, path)
        is_truth = isinstance(value, ResidentTensor) and expected.dtype == np.bool_
        dtype = np.dtype(np.bool_) if is_truth and array.dtype == np.uint8 else array.dtype
        check_input(self.info, expected, dtype, array.shape, path)
        if 0 in array.shape:
            raise InvalidArgument(f"The input {expected.name} of {self.info.name} has no elements: "
                                  f"its shape is {array.shape}.",
                                  field=f"{path}.sizes[{array.shape.index(0)}]")
        if isinstance(value, ResidentTensor):
            return resident_tensor_of(value, value.shape, path)
        if not array.flags.c_contiguous:
            array = array.copy(order="C")
        return tensor_of(array.view(np.uint8) if array.dtype == np.bool_ else array)

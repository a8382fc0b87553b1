"""ONNX files that go to the server with requests: only if it does not have them yet."""

from __future__ import annotations

import hashlib
import os
import pathlib
from typing import Any, Union

from ._contract import DescribeModelRequest, Message, ModelDesc
from .errors import FailedPrecondition, OpMillError, ResourceExhausted

# A path, or the bytes of a file.
ModelSource = Union[str, os.PathLike[str], bytes, bytearray, memoryview]

# The rest of a message besides the file.
_MAX_HEADER_BYTES = 4096


class ModelFile:
    """A copy in another process has the path, and reads the file there, but only if a server needs
    it. Copies of a file without a path have its bytes."""

    def __init__(self, source: ModelSource) -> None:
        self._path: pathlib.Path | None = None
        self._bytes: bytes | None
        if isinstance(source, (str, os.PathLike)):
            self._path = pathlib.Path(source).absolute()
            self._bytes = self._path.read_bytes()
        elif isinstance(source, (bytes, bytearray, memoryview)):
            self._bytes = bytes(source)
        else:
            raise TypeError(f"file is {source!r}; it must be a path, or the bytes of an ONNX file.")
        self.name = self._path.name if self._path else "the model"
        self.size = len(self._bytes)
        self.sha256 = hashlib.sha256(self._bytes).hexdigest()

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | ({"_bytes": None} if self._path else {})

    def read(self) -> bytes:
        if self._bytes is None:
            assert self._path is not None
            read = self._path.read_bytes()
            if hashlib.sha256(read).hexdigest() != self.sha256:
                raise FailedPrecondition(f"{self._path} has changed since the model was made of it.",
                                         field="model_file")
            self._bytes = read
        return self._bytes

    def describe_message(self, *, sends_file: bool) -> Message:
        return DescribeModelRequest(model=ModelDesc(sha256=self.sha256),
                                    model_file=self.read() if sends_file else None)

    def is_needed(self, error: OpMillError, max_message_bytes: int) -> bool:
        """Whether the server must get the file. Raises ResourceExhausted if it is too large."""
        if error.reason != "MODEL_FILE_NEEDED":
            return False
        if self.size > max_message_bytes - _MAX_HEADER_BYTES:
            raise ResourceExhausted(
                f"{self.name} has {self.size} bytes; messages to the server may have "
                f"{max_message_bytes} (max_message_bytes). Put it into the server's model "
                "repository, or raise that limit.", field="model_file")
        return True

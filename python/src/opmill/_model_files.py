"""ONNX files that go to the server with requests: only if it does not have them yet."""

from __future__ import annotations

import hashlib
import os
import pathlib
from typing import Union

from ._contract import DescribeModelRequest, Message, ModelDesc
from .errors import OpMillError, ResourceExhausted

# A path, or the bytes of a file.
ModelSource = Union[str, os.PathLike[str], bytes, bytearray, memoryview]

# The rest of a message besides the file.
_MAX_HEADER_BYTES = 4096


class ModelFile:
    def __init__(self, source: ModelSource) -> None:
        self.name = "the model"
        if isinstance(source, (str, os.PathLike)):
            path = pathlib.Path(source)
            self.name = path.name
            self.bytes = path.read_bytes()
        elif isinstance(source, (bytes, bytearray, memoryview)):
            self.bytes = bytes(source)
        else:
            raise TypeError(f"file is {source!r}; it must be a path, or the bytes of an ONNX file.")
        self.sha256 = hashlib.sha256(self.bytes).hexdigest()

    def describe_message(self) -> Message:
        return DescribeModelRequest(model=ModelDesc(sha256=self.sha256))

    def is_needed(self, error: OpMillError, max_message_bytes: int) -> bool:
        """Whether the server must get the file. Raises ResourceExhausted if it is too large."""
        if error.reason != "MODEL_FILE_NEEDED":
            return False
        if len(self.bytes) > max_message_bytes - _MAX_HEADER_BYTES:
            raise ResourceExhausted(
                f"{self.name} has {len(self.bytes)} bytes; messages to the server may have "
                f"{max_message_bytes} (max_message_bytes). Put it into the server's model "
                "repository, or raise that limit.", field="model_file")
        return True

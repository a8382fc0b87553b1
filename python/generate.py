"""Generates the files of the package that follow from the contract, proto/opmill/v1, and from
named_operators.json:

    build/venv/bin/python python/generate.py [--check]

contract.binpb    the descriptors, from which the message classes are created at import
_operators.py     a method for each operator that has a message of its own
_named_operators.py  a method for each of the other operators, from named_operators.json
_messages.py      a dataclass for each message that callers get from a server

With --check it writes nothing, and fails if a file is not up to date.
"""

import pathlib
import sys
import tempfile

import generate_named_operators
import generate_messages
import generate_operators
import grpc_tools
from google.protobuf import descriptor_pb2
from grpc_tools import protoc

HERE = pathlib.Path(__file__).resolve().parent
PROTO = HERE.parent / "proto"
TARGET = HERE / "src" / "opmill"
SOURCES = ("google/rpc/error_details.proto", "opmill/v1/service.proto")


def read_contract():
    """The contract as a FileDescriptorSet, with comments."""
    well_known = pathlib.Path(grpc_tools.__file__).parent / "_proto"
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "contract.binpb"
        status = protoc.main(["protoc", f"-I{PROTO}", f"-I{well_known}", "--include_imports",
                              "--include_source_info", f"--descriptor_set_out={file}", *SOURCES])
        if status != 0:
            raise SystemExit("protoc could not read the contract")
        return descriptor_pb2.FileDescriptorSet.FromString(file.read_bytes())


def without_comments(contract):
    """Without comments and options. Options are for other languages, and depend on protoc."""
    stripped = descriptor_pb2.FileDescriptorSet()
    stripped.CopyFrom(contract)
    for file in stripped.file:
        file.ClearField("source_code_info")
        file.ClearField("options")
    return stripped.SerializeToString(deterministic=True)


def main():
    contract = read_contract()
    files = {
        "contract.binpb": without_comments(contract),
        "_named_operators.py": generate_named_operators.source().encode(),
        "_operators.py": generate_operators.source(contract).encode(),
        "_messages.py": generate_messages.source(contract).encode(),
    }
    stale = [name for name, text in files.items()
             if not (TARGET / name).is_file() or (TARGET / name).read_bytes() != text]
    if "--check" in sys.argv[1:]:
        if stale:
            raise SystemExit(f"{', '.join(stale)}: outdated; run python/generate.py")
        return
    for name in stale:
        (TARGET / name).write_bytes(files[name])
        print(f"wrote {TARGET / name}")


if __name__ == "__main__":
    main()

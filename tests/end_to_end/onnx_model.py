"""An ONNX model for tests, without the package onnx: its file is made from text, with the messages of
proto/onnx/model.proto."""

import numpy as np
from google.protobuf import text_format

import api

# Not as onnx/model.proto: the package would be that of ONNX.
api.generate_stubs("model.proto", api.ROOT / "proto" / "onnx")

# pylint: disable=wrong-import-position,import-error
import model_pb2  # noqa: E402

FLOAT, INT64, BOOL = 1, 7, 9


def _tensor(kind, name, element, *sizes):
    dims = " ".join(f'dim {{ dim_param: "{size}" }}' if isinstance(size, str) else
                    f"dim {{ dim_value: {size} }}" for size in sizes)
    return (f'{kind} {{ name: "{name}" type {{ tensor_type {{ elem_type: {element} '
            f"shape {{ {dims} }} }} }} }}")


def _node(operator, inputs, output, more=""):
    names = " ".join(f'input: "{name}"' for name in inputs.split())
    return f'node {{ op_type: "{operator}" {names} output: "{output}" {more} }}'


def made_model(scale=2.0):
    """Of x [n,6], offset [6] and shape [2]: y is relu(scale * x + offset) with these sizes, `positive`
    says where x is positive, and `total` is the sum of y, without dimensions."""
    keepdims = 'attribute { name: "keepdims" type: 2 i: 0 }'
    graph = " ".join([
        f'initializer {{ name: "scale" data_type: {FLOAT} float_data: {scale} }}',
        f'initializer {{ name: "zero" data_type: {FLOAT} float_data: 0 }}',
        _tensor("input", "x", FLOAT, "n", 6),
        _tensor("input", "offset", FLOAT, 6),
        _tensor("input", "shape", INT64, 2),
        _node("Mul", "x scale", "scaled"),
        _node("Add", "scaled offset", "sum"),
        _node("Relu", "sum", "result"),
        _node("Reshape", "result shape", "y"),
        _node("Greater", "x zero", "positive"),
        _node("ReduceSum", "result", "total", keepdims),
        _tensor("output", "y", FLOAT, "rows", "columns"),
        _tensor("output", "positive", BOOL, "n", 6),
        _tensor("output", "total", FLOAT),
    ])
    text = f"ir_version: 8 opset_import {{ version: 18 }} graph {{ {graph} }}"
    return text_format.Parse(text, model_pb2.ModelProto()).SerializeToString()


def expected(x, offset, shape, scale=2.0):
    result = np.maximum(np.float32(scale) * x + offset, 0)
    return {"y": result.reshape(shape), "positive": x > 0, "total": result.sum()}


def write_model(repository, name="made", version=1, model=None):
    folder = repository / name / str(version)
    folder.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(made_model() if model is None else model)


# A model with fixed attributes.
BEST = """
backend: "opmill"
parameters { key: "operator" value { string_value: "top_k" } }
parameters { key: "axes" value { string_value: "1" } }
parameters { key: "k" value { string_value: "2" } }
input { name: "scores" data_type: TYPE_FP32 dims: [ -1, -1 ] }
output { name: "values" }
output { name: "places" }
"""


def write_config(repository, name="best", text=BEST):
    (repository / name).mkdir()
    (repository / name / "config.pbtxt").write_text(text)

"""An ONNX model for tests, without the package onnx, and a model with fixed attributes."""

import struct

import numpy as np

FLOAT, INT64, BOOL = 1, 7, 9


def _varint(number):
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*encoded, number))


def _message(*fields):
    """A message of proto/onnx/model.proto: pairs of the number of a field and its value."""
    encoded = b""
    for number, value in fields:
        if isinstance(value, int):
            encoded += _varint(number << 3) + _varint(value)
        else:
            data = value.encode() if isinstance(value, str) else value
            encoded += _varint(number << 3 | 2) + _varint(len(data)) + data
    return encoded


def _tensor(name, element, *sizes):
    dims = [(1, _message((2 if isinstance(size, str) else 1, size))) for size in sizes]
    kind = _message((1, element), (2, _message(*dims)))
    return _message((1, name), (2, _message((1, kind))))


def _node(operator, inputs, output, *fields):
    return _message(*((1, name) for name in inputs.split()), (2, output), (4, operator), *fields)


def _number(name, value):
    return _message((2, FLOAT), (4, struct.pack("<f", value)), (8, name))


def made_model(scale=2.0):
    """Of x [n,6], offset [6] and shape [2]: y is relu(scale * x + offset) with these sizes, `positive`
    says where x is positive, and `total` is the sum of y, without dimensions."""
    nodes = [_node("Mul", "x scale", "scaled"),
             _node("Add", "scaled offset", "sum"),
             _node("Relu", "sum", "result"),
             _node("Reshape", "result shape", "y"),
             _node("Greater", "x zero", "positive"),
             _node("ReduceSum", "result", "total", (5, _message((1, "keepdims"), (3, 0), (20, 2))))]
    inputs = [_tensor("x", FLOAT, "n", 6), _tensor("offset", FLOAT, 6), _tensor("shape", INT64, 2)]
    outputs = [_tensor("y", FLOAT, "rows", "columns"), _tensor("positive", BOOL, "n", 6),
               _tensor("total", FLOAT)]
    graph = _message(*((1, node) for node in nodes), (2, "made"),
                     *((5, number) for number in (_number("scale", scale), _number("zero", 0))),
                     *((11, tensor) for tensor in inputs), *((12, tensor) for tensor in outputs))
    return _message((1, 8), (7, graph), (8, _message((2, 18))))


def scaled_model(scale, rows="n", columns=6):
    """y = scale * x, of x [rows,columns]."""
    graph = _message((1, _node("Mul", "x scale", "y")), (2, "scaled"), (5, _number("scale", scale)),
                     (11, _tensor("x", FLOAT, rows, columns)), (12, _tensor("y", FLOAT, rows, columns)))
    return _message((1, 8), (7, graph), (8, _message((2, 18))))


def weighted_model(mebibytes, scale=1.0):
    """y = x * weights, of x [n,1]; the weights are all `scale`."""
    columns = mebibytes << 18
    weights = _message((1, columns), (2, FLOAT), (8, "w"), (9, struct.pack("<f", scale) * columns))
    graph = _message((1, _node("Mul", "x w", "y")), (2, "weighted"), (5, weights),
                     (11, _tensor("x", FLOAT, "n", 1)), (12, _tensor("y", FLOAT, "n", columns)))
    return _message((1, 8), (7, graph), (8, _message((2, 18))))


def sum_model():
    """y = a + b, of rows of 3 numbers."""
    graph = _message((1, _node("Add", "a b", "y")), (2, "sum"), (11, _tensor("a", FLOAT, "n", 3)),
                     (11, _tensor("b", FLOAT, "n", 3)), (12, _tensor("y", FLOAT, "n", 3)))
    return _message((1, 8), (7, graph), (8, _message((2, 18))))


def constant_model():
    """y = |-3|, of no inputs."""
    graph = _message((1, _node("Abs", "number", "y")), (2, "constant"), (5, _number("number", -3)),
                     (12, _tensor("y", FLOAT)))
    return _message((1, 8), (7, graph), (8, _message((2, 18))))


def mask_model():
    """Of flag, which is a BOOL, and x, which has no dimensions: y is x where flag is true, otherwise 0."""
    graph = _message((1, _node("Where", "flag x zero", "y")), (2, "mask"), (5, _number("zero", 0)),
                     (11, _tensor("flag", BOOL, 2)), (11, _tensor("x", FLOAT)), (12, _tensor("y", FLOAT, 2)))
    return _message((1, 8), (7, graph), (8, _message((2, 18))))


def filled_model():
    """Of shape [2]: y has this shape and zeros. A program of it has no inputs."""
    graph = _message((1, _node("ConstantOfShape", "shape", "y")), (2, "filled"),
                     (11, _tensor("shape", INT64, 2)), (12, _tensor("y", FLOAT, "rows", "columns")))
    return _message((1, 8), (7, graph), (8, _message((2, 18))))


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
    (repository / name).mkdir(exist_ok=True)
    (repository / name / "config.pbtxt").write_text(text)

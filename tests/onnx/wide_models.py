"""Five models that read more weights than they compute with, for measurements of batches: one row of a product reads
every weight, and so do eight."""

import dataclasses
import pathlib

import numpy as np
import onnx
from onnx import helper, numpy_helper

FLOAT = onnx.TensorProto.FLOAT


@dataclasses.dataclass(frozen=True)
class Wide:
    path: pathlib.Path
    row: list  # its sizes
    values: dict = dataclasses.field(default_factory=dict)

    @property
    def sizes(self):
        return {"x": [1, *self.row]}


class Builder:
    def __init__(self):
        self.rng, self.nodes, self.constants = np.random.default_rng(1), [], []

    def constant(self, array):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def weights(self, *sizes):
        """Such that products keep the magnitude of what they multiply."""
        return self.constant(self.rng.standard_normal(sizes, np.float32) / np.float32(np.sqrt(sizes[-1])))

    def add(self, kind, *inputs, outputs=1, **attributes):
        names = [f"t{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, inputs, names, **attributes))
        return names[-1]

    def dense(self, x, width, units, activation="Relu"):
        product = self.add("Gemm", x, self.weights(units, width), self.weights(units), transB=1)
        return self.add(activation, product)

    def stack(self, widths):
        x = "x"
        for width, units in zip(widths, widths[1:]):
            x = self.dense(x, width, units)
        return x

    def recurrent(self, kind, gates, width, hidden):
        """Over the second axis of x; its last state."""
        steps_first = self.add("Transpose", "x", perm=[1, 0, 2])
        weights = [self.weights(1, gates * hidden, width), self.weights(1, gates * hidden, hidden)]
        last = self.add(kind, steps_first, *weights, outputs=2, hidden_size=hidden)
        return self.add("Squeeze", last, self.constant(np.array([0], np.int64)))

    def write(self, path, row, result):
        graph = helper.make_graph(
            self.nodes, path.stem, [helper.make_tensor_value_info("x", FLOAT, ["rows", *row])],
            [helper.make_tensor_value_info(result, FLOAT, ["rows", "units"])], self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        path.write_bytes(model.SerializeToString())
        return Wide(path, row)


def write(folder):
    """By name."""
    kinds = {
        "perceptron": ([1024], lambda b: b.stack([1024, 4096, 4096, 1000])),
        "autoencoder": ([4096], lambda b: b.stack([4096, 2048, 256, 2048, 4096])),
        "ranking": ([768], lambda b: b.stack([768, 2048, 2048, 2048, 512, 1])),
        "LSTM": ([8, 512], lambda b: b.recurrent("LSTM", 4, 512, 1024)),
        "GRU": ([8, 512], lambda b: b.recurrent("GRU", 3, 512, 1024)),
    }
    wide = {}
    for name, (row, build) in kinds.items():
        builder = Builder()
        wide[name] = builder.write(pathlib.Path(folder) / f"{name}.onnx", row, build(builder))
    return wide

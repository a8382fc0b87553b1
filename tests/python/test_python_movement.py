"""Every operator that moves elements through the package, against NumPy, in every type."""

import json
import pathlib
import unittest

import numpy as np
import oracle
from server_process import ServerProcess

import opmill

TABLE = json.loads((pathlib.Path(opmill.__file__).parents[2] / "named_operators.json").read_text())
NAMES = {row["name"] for row in TABLE if row["result"] == "moved"} - {"gemm", "convolution"}
SHAPE = (3, 4, 5)
MODES = {"constant": "constant", "edge": "edge", "reflection": "reflect",
         "symmetric": "symmetric", "wrap": "wrap"}


def diagonal_matrix1(c, x):
    row, column = np.indices(SHAPE[1:])
    for begin, end in ((0, 1), (-2, 2), (-(2**31), 1), (2, -1)):
        top = column - row
        inside = ((top >= begin) & (top < end) if end >= begin
                  else (top >= begin) | (top < end))
        yield (c.diagonal_matrix1(x, value=3, diagonal_fill_begin=begin, diagonal_fill_end=end),
               np.where(inside, x.dtype.type(3), x))


def join(c, x):
    for axis in range(-3, 3):
        parts = [x, x[:, :, :1] if axis % 3 == 2 else x, x[:1] if axis % 3 == 0 else x]
        yield c.join(parts, axis), np.concatenate(parts, axis)
    yield c.join([x]), x


def slice1(c, x):
    yield (c.slice1(x, [1, 0, 0], [2, 4, 5], [1, -1, 2]), x[1:3, ::-1, ::2])
    yield (c.slice1(x.transpose(2, 0, 1), [0, 1, 2], [5, 2, 2], [-2, 1, -1]),
           x.transpose(2, 0, 1)[::-2, 1:3, 3:1:-1])


def padding1(c, x):
    value = {"constant_values": 7}
    for mode, name in MODES.items():
        for start, end in (([0, 1, 2], [2, 0, 1]), ([5, 0, 0], [0, 0, 11])):
            yield (c.padding1(x, start, end, padding_mode=mode, padding_value=7),
                   np.pad(x, list(zip(start, end)), name, **(value if name == "constant" else {})))


def tile(c, x):
    yield c.tile(x, [2, 1, 3]), np.tile(x, [2, 1, 3])
    yield c.tile(x[:1], [4, 1, 1]), np.tile(x[:1], [4, 1, 1])


def gather(c, x):
    padded = x[None]
    for dtype in (np.int64, np.int32, np.uint64, np.uint32):
        index = np.array([[2, 0], [1, 2]]).astype(dtype)
        if np.dtype(dtype).kind == "i":
            index[0, 0] = -1
        yield c.gather(padded, index[None, None], 2, axis=1), np.take(x, index.astype(int), 0)


def gather_elements(c, x):
    for axis in range(3):
        index = np.random.default_rng(axis).integers(-3, 3, SHAPE)
        yield (c.take_along_axis(x, index, axis), np.take_along_axis(x, index, axis))


def gather_nd1(c, x):
    index = np.random.default_rng(1).integers(-3, 3, (1, 5, 2))
    yield (c.gather_nd1(x, index, 3, 2), x[index[0, :, 0], index[0, :, 1]][None])
    batched = np.random.default_rng(2).integers(0, 4, (3, 2, 1))
    expected = np.take_along_axis(x, batched, 1)
    yield c.gather_nd1(x, batched, 3, 3, batch_dimension_count=1), expected


def scatter(c, x):
    for axis in range(3):
        shape = tuple(2 if d == axis else size for d, size in enumerate(SHAPE))
        random = np.random.default_rng(axis)
        index = random.permuted(np.indices(SHAPE)[axis], axis=axis).take((0, 1), axis)
        updates = random.integers(0, 100, shape).astype(x.dtype)
        expected = x.copy()
        np.put_along_axis(expected, index, updates, axis)
        yield c.scatter(x, index, updates, axis), expected


def reverse_subsequences(c, x):
    lengths = np.random.default_rng(1).integers(0, 7, (3, 4, 1))
    expected = x.copy()
    for place in np.ndindex(3, 4):
        n = min(lengths[place][0], 5)
        expected[place][:n] = x[place][:n][::-1]
    for dtype in (np.uint32, np.uint64):
        yield c.reverse_subsequences(x, lengths.astype(dtype), 2), expected


def space_to_depth1(c, x):
    space = x[None, :, :4, :4]
    blocks = space.reshape(1, 3, 2, 2, 2, 2)
    yield (c.space_to_depth1(space, 2),
           blocks.transpose(0, 3, 5, 1, 2, 4).reshape(1, 12, 2, 2))
    yield (c.space_to_depth1(space, 2, order="column_row_depth"),
           blocks.transpose(0, 1, 3, 5, 2, 4).reshape(1, 12, 2, 2))


def depth_to_space1(c, x):
    depth = x.transpose(1, 2, 0)[None]
    blocks = depth.reshape(1, 2, 2, 1, 5, 3)
    yield (c.depth_to_space1(depth, 2),
           blocks.transpose(0, 3, 4, 1, 5, 2).reshape(1, 1, 10, 6))


def resample2(c, x):
    zeros = [0.0] * 3
    yield c.resample2(x, [1.0, 2.0, 3.0], zeros, zeros), x.repeat(2, 1).repeat(3, 2)
    position = np.clip(np.floor((np.arange(7) + 0.5) / 1.5 - 0.5), 0, 4).astype(int)
    yield (c.resample2(x, [1.0, 1.0, 1.5], [0.5] * 3, [-0.5] * 3), x[:, :, position])


# Each yields pairs of results: the package's and NumPy's.
CASES = {"diagonal_matrix1": diagonal_matrix1, "join": join, "slice1": slice1, "padding1": padding1, "tile": tile,
         "gather": gather, "gather_elements": gather_elements, "gather_nd1": gather_nd1,
         "scatter": scatter, "reverse_subsequences": reverse_subsequences,
         "space_to_depth1": space_to_depth1, "depth_to_space1": depth_to_space1,
         "resample2": resample2}


class Movement(unittest.TestCase):
    device = "cpu"

    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(ServerProcess(device=cls.device))
        cls.c = cls.enterClassContext(opmill.connect(cls.server.address))
        cls.types = {}
        for row in cls.c.server_info().operators:
            cls.types.setdefault(row.operator, row.data_types)

    def test_every_operator_in_every_type(self):
        self.assertEqual(CASES.keys(), NAMES)
        for name, cases in CASES.items():
            for dtype in self.types[name]:
                x = oracle.awkward(dtype, SHAPE)
                for i, (actual, expected) in enumerate(cases(self.c, x)):
                    with self.subTest(name, dtype=dtype, case=i):
                        self.assertEqual(actual.dtype, expected.dtype)
                        np.testing.assert_array_equal(actual, expected)

    def test_indices_out_of_range_give_zero(self):
        x = np.arange(1, 4, dtype=np.float32)
        index = np.array([-3, -4, 3, 2**40], np.int64)
        np.testing.assert_array_equal(self.c.gather(x, index, 1), [1, 0, 0, 0])

    def test_execute_does_not_broadcast(self):
        x = np.arange(6, dtype=np.int16).reshape(2, 3)
        execution = self.c.execute("join", [x, x[:1]], {"axis": 0})
        np.testing.assert_array_equal(execution.outputs[0], np.concatenate([x, x[:1]]))
        execution = self.c.execute("slice1", [x], {
            "input_window_offsets": [0, 0], "input_window_sizes": [2, 3],
            "input_window_strides": [1, -1]})
        np.testing.assert_array_equal(execution.outputs[0], x[:, ::-1])

    def test_mistakes(self):
        x = np.ones((2, 3), np.float32)
        with self.assertRaises(opmill.InvalidArgument) as raised:
            self.c.join([x, x[:, :2]], 0)
        self.assertEqual(raised.exception.field, "operator.named.inputs[1].sizes[1]")
        with self.assertRaises(opmill.InvalidArgument) as raised:
            self.c.padding1(x, [1], [0, 0])
        self.assertEqual(raised.exception.field, "operator.named.attributes[start_padding]")
        with self.assertRaisesRegex(opmill.InvalidArgument, "from 0 to 4294967295"):
            self.c.tile(x, [1, -1])


if __name__ == "__main__":
    unittest.main()

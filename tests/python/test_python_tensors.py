"""The conversion of arrays to bytes: which arrays are sent unchanged, and which are copied."""

import unittest

import numpy as np
from numpy.lib.stride_tricks import as_strided, sliding_window_view
from server_process import ServerProcess

import opmill
from opmill import _tensors, _wire


def tensor_of(array):
    return _tensors.tensor_of(array)


def addresses(array):
    return np.frombuffer(tensor_of(array).data, np.uint8)


class Views(unittest.TestCase):
    x = np.arange(240, dtype=np.float32).reshape(4, 6, 10)

    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(ServerProcess(device="reference"))
        cls.c = cls.enterClassContext(opmill.connect(cls.server.address))

    def check(self, view, copied, strides=None):
        tensor = tensor_of(view)
        self.assertEqual(np.shares_memory(addresses(view), view), not copied)
        if strides is not None:
            self.assertEqual(list(tensor.desc.strides), strides)
        for axis in range(view.ndim):
            np.testing.assert_array_equal(self.c.argmax(view, axis), view.argmax(axis))
            np.testing.assert_array_equal(self.c.max(view, axis), view.max(axis))

    def test_packed(self):
        self.check(self.x, copied=False, strides=[])
        self.check(self.x[1:3], copied=False, strides=[])

    def test_order_of_fortran_and_permuted_axes(self):
        self.check(np.asfortranarray(self.x), copied=False, strides=[1, 4, 24])
        self.check(self.x.T, copied=False, strides=[1, 10, 60])
        self.check(self.x.transpose(1, 2, 0), copied=False, strides=[10, 1, 60])

    def test_small_gaps_are_sent_and_large_ones_are_not(self):
        self.check(self.x[:, :, :9], copied=False, strides=[60, 10, 1])
        self.check(self.x[:, :, :4], copied=True, strides=[])
        self.check(self.x[::2], copied=True, strides=[])
        self.check(self.x[:, :, 3], copied=True, strides=[])

    def test_negative_strides_are_copied(self):
        self.check(self.x[:, ::-1], copied=True, strides=[])

    def test_repeated_dimensions(self):
        row = np.arange(10, dtype=np.float32)
        view = np.broadcast_to(row, (4, 6, 10))
        self.check(view, copied=False, strides=[0, 0, 1])
        self.assertEqual(len(tensor_of(view).data), 40)
        view = np.broadcast_to(row[::-1], (4, 6, 10))
        self.check(view, copied=True, strides=[0, 0, 1])
        self.assertEqual(len(tensor_of(view).data), 40)

    def test_overlapping_windows(self):
        view = sliding_window_view(np.arange(12, dtype=np.int32), 5)
        self.check(view, copied=False, strides=[1, 1])
        self.assertEqual(len(tensor_of(view).data), 48)

    def test_fields_of_records(self):
        records = np.zeros(20, [("a", "u1"), ("b", "<f4")])
        records["b"] = np.arange(20)
        self.check(records["b"].reshape(4, 5), copied=True)

    def test_sizes_of_one_have_no_stride(self):
        self.check(as_strided(self.x, (1, 6, 10), (-999, 40, 4)), copied=False)

    def test_other_byte_order(self):
        self.check(self.x.astype(">f4"), copied=True, strides=[])

    def test_read_only(self):
        view = self.x[:]
        view.flags.writeable = False
        self.check(view, copied=False, strides=[])

    def test_not_aligned(self):
        raw = np.zeros(4 * 240 + 1, np.uint8)[1:].view(np.float32).reshape(self.x.shape)
        raw[...] = self.x
        self.check(raw, copied=False, strides=[])

    def test_nothing(self):
        self.assertEqual(len(tensor_of(np.zeros((0, 3), np.float32)).data), 0)


class Wire(unittest.TestCase):
    def test_is_what_protobuf_writes(self):
        from opmill._contract import ExecuteStreamRequest, TensorChunk

        for size in (0, 1, 127, 128, 70000):
            data = bytes(range(256)) * (size // 256) + bytes(size % 256)
            head = ExecuteStreamRequest(execution_id=1).SerializeToString()
            joined = _wire.join((head, *_wire.chunk_parts(1, 300, memoryview(data))))
            parsed = ExecuteStreamRequest.FromString(joined)
            self.assertEqual(parsed.chunks[0],
                             TensorChunk(tensor_index=1, offset=300, data=data))
            header, chunks = _wire.split(parsed.SerializeToString())
            self.assertEqual(header, head)
            self.assertEqual([(i, o, bytes(d)) for i, o, d in chunks], [(1, 300, data)])

    def test_what_is_no_message(self):
        for bad in (b"\xff", b"\xa2\x06\x05ab", b"\x0b", b"\xa2\x06\x02\x08\xff"):
            with self.assertRaises(opmill.Internal):
                _wire.split(bad)

"""Products of matrices and convolutions, compared with NumPy in double precision."""

import unittest

import numpy as np
from server_process import ServerProcess

import opmill


def close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)


class Matrix(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(ServerProcess(device="cpu"))
        cls.client = cls.enterClassContext(opmill.connect(cls.server.address))
        cls.random = np.random.default_rng(3)

    def array(self, *shape):
        return self.random.standard_normal(shape).astype(np.float32)

    def test_products(self):
        a, b = self.array(2, 7, 33), self.array(2, 33, 19)
        expected = a.astype(np.float64) @ b
        close(self.client.matmul(a, b), expected)
        close(self.client.matmul(np.ascontiguousarray(a.transpose(0, 2, 1)), b, trans_a="transpose"), expected)
        c = self.array(2, 7, 19)
        close(self.client.matmul(a, b, c, alpha=0.5, beta=2), 0.5 * expected + 2 * c)

    def test_convolution(self):
        image, weights = self.array(1, 3, 9, 11), self.array(4, 3, 3, 3)
        windows = np.lib.stride_tricks.sliding_window_view(image.astype(np.float64), (3, 3), axis=(2, 3))
        close(self.client.conv(image, weights), np.einsum("nchwij,ocij->nohw", windows, weights))

    def test_sizes_that_do_not_fit(self):
        with self.assertRaisesRegex(opmill.InvalidArgument, "b.sizes"):
            self.client.matmul(self.array(2, 3), self.array(2, 3))


if __name__ == "__main__":
    unittest.main()

"""Pooling, softmax and normalizations through the package, compared with NumPy in double precision."""

import unittest

import numpy as np
from server_process import ServerProcess

import opmill


def close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)


class Window(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(ServerProcess(device="cpu"))
        cls.client = cls.enterClassContext(opmill.connect(cls.server.address))
        cls.x = np.random.default_rng(3).standard_normal((2, 3, 6, 8), np.float32)
        cls.wide = cls.x.astype(np.float64)

    def test_pooling(self):
        window = {"window_size": [2, 4], "strides": [2, 4]}
        blocks = self.wide.reshape(2, 3, 3, 2, 2, 4)
        close(self.client.max_pooling(self.x, **window), blocks.max((3, 5)))
        close(self.client.average_pooling(self.x, **window), blocks.mean((3, 5)))
        close(self.client.lp_pooling(self.x, **window), np.sqrt((blocks**2).sum((3, 5))))
        values, indices = self.client.max_pooling_with_indices(self.x, **window)
        np.testing.assert_array_equal(self.x.ravel()[indices], values)
        padded = np.pad(self.wide, ((0, 0), (0, 0), (1, 0), (0, 0)))
        sums = padded[:, :, :-1] + padded[:, :, 1:]
        shifted = self.client.average_pooling(
            self.x, [2, 1], start_padding=[1, 0], include_padding=True)
        close(shifted, sums / 2)

    def test_softmax(self):
        powers = np.exp(self.wide)
        for axes in ((1,), -1, (2, 3), None):
            axis = axes if axes is None or isinstance(axes, int) else tuple(axes)
            expected = powers / powers.sum(axis, keepdims=True)
            close(self.client.softmax(self.x, axes), expected)
            close(self.client.log_softmax(self.x, axes), np.log(expected))

    def test_normalizations(self):
        scale, bias = np.float32([1, 2, 3]).reshape(3, 1, 1), np.float32([4, 5, 6]).reshape(3, 1, 1)
        mean, variance = self.wide.mean((2, 3), keepdims=True), self.wide.var((2, 3), keepdims=True)
        normalized = (self.wide - mean) / np.sqrt(variance + 1e-5)
        close(self.client.mean_variance_normalization([self.x], [2, 3]), normalized)
        close(self.client.mean_variance_normalization([self.x, scale[None], bias[None]], [-2, -1]),
              normalized * scale + bias)
        statistics = [each[:1].astype(np.float32) for each in (mean, variance)]
        close(self.client.batch_normalization(self.x, *statistics, scale[None], bias[None]),
              (self.wide - mean[:1]) / np.sqrt(variance[:1] + 1e-5) * scale + bias)
        squares = np.pad(self.wide**2, ((0, 0), (1, 1), (0, 0), (0, 0)))
        sums = squares[:, :-2] + squares[:, 1:-1] + squares[:, 2:]
        close(self.client.local_response_normalization(self.x, 3, alpha=0.6, beta=0.5, bias=2),
              self.wide / np.sqrt(2 + 0.6 / 3 * sums))


if __name__ == "__main__":
    unittest.main()

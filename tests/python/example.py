"""A typed program, which mypy checks and tests run: example.py HOST:PORT"""

import asyncio
import sys

import numpy as np
from numpy.typing import NDArray

import opmill
import opmill.aio


def best(c: opmill.Client, x: NDArray[np.float32]) -> list[int]:
    top: opmill.TopK = c.top_k(x, 2, axis=1, largest=False, timeout=30)
    print(top.values, top.indices)
    total = c.reduce(x, "log_sum_exp", axis=(0, 1), keepdims=True)
    print(total.shape, c.mean(x, axis=0, feature_level="3.0"))
    indices: list[int] = c.argmax(x, axis=1, axis_direction="decreasing").tolist()
    return indices


async def at_a_time(target: str, x: NDArray[np.float32]) -> None:
    async with await opmill.aio.connect(target) as c:
        first, second = await asyncio.gather(c.argmax(x, 1), c.hardmax(x))
        print(first, second.sum())


def main() -> None:
    target = sys.argv[1]
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    with opmill.connect(target, timeout=60) as c:
        info: opmill.ServerInfo = c.server_info()
        print(info.version, info.device.kind, info.limits.max_message_bytes)
        print(best(c, x))
        try:
            c.top_k(x, 9)
        except opmill.InvalidArgument as error:
            print(error.field, error.sentence)
    asyncio.run(at_a_time(target, x))


if __name__ == "__main__":
    main()

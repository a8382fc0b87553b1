"""opmill.aio: the behavior of the blocking client, in one event loop."""

import asyncio
import unittest

import numpy as np
import oracle
from server_process import ServerProcess

import opmill


class Aio(unittest.IsolatedAsyncioTestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(ServerProcess(device="cpu"))

    async def asyncSetUp(self):
        self.c = await self.enterAsyncContext(await opmill.aio.connect(self.server.address))

    async def test_many_at_a_time(self):
        x = oracle.awkward("float32", (40, 50), nans=0.01)
        tops = await asyncio.gather(*(self.c.top_k(row[None], 5) for row in x))
        values, indices = oracle.top_k(x, 5)
        np.testing.assert_array_equal(np.concatenate([top.values for top in tops]), values)
        np.testing.assert_array_equal(np.concatenate([top.indices for top in tops]), indices)
        oracle.assert_close(await self.c.log_sum_exp(x[:, :1], 0), x[:, :1], "log_sum_exp", 0)

    async def test_large_inputs_with_progress(self):
        x = np.random.default_rng(1).random((2000, 1000), np.float32)
        seen = []
        index = await self.c.argmax(x, 1, progress=lambda sent, total: seen.append(sent))
        np.testing.assert_array_equal(index, x.argmax(1))
        self.assertEqual(seen[-1], x.nbytes)

        def fail(sent, total):
            raise ZeroDivisionError("enough")

        with self.assertRaisesRegex(ZeroDivisionError, "enough"):
            await self.c.sum(x, progress=fail)

    async def test_errors(self):
        for rows in (2, 2000):
            with self.assertRaises(opmill.InvalidArgument) as raised:
                await self.c.sum(np.zeros((rows, 1000), np.float32), 2)
            self.assertEqual(raised.exception.field, "operator.reduce.axes[0]")
        with self.assertRaises(opmill.DeadlineExceeded):
            await self.c.sum(np.zeros((8000, 1000), np.float32), timeout=0.001)
        with self.assertRaises(opmill.Unavailable):
            await opmill.aio.connect("unix:/nonexistent/socket")

    async def test_a_cancelled_task(self):
        task = asyncio.ensure_future(self.c.sum(np.ones((4000, 1000), np.float32)))
        await asyncio.sleep(0)
        task.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await task
        self.assertEqual(await self.c.sum(np.ones(3, np.float32)), 3)

    async def test_calls_end_when_another_task_closes_the_client(self):
        for shape in ((3, 4), (20, 1 << 20)):
            with self.subTest(shape):
                c = await opmill.aio.connect(self.server.address, shared_memory="off")
                array = np.ones(shape, np.float32)

                async def work():
                    while True:
                        await c.sum(array)

                tasks = [asyncio.ensure_future(work()) for _ in range(4)]
                await asyncio.sleep(0.3)
                await c.close()
                for error in await asyncio.gather(*tasks, return_exceptions=True):
                    self.assertEqual((type(error), str(error)),
                                     (opmill.FailedPrecondition,
                                      f"The client of {self.server.address} is closed."))

    async def test_answers_of_the_server(self):
        self.assertEqual((await self.c.server_info()).device.kind, "cpu")
        x = np.ones((3, 4), np.float32)
        compiled = await self.c.compile("argmax", [x], {"axes": 1, "axis_direction": "increasing"})
        self.assertEqual(compiled.outputs[0].sizes, (3, 1))
        execution = await self.c.execute("reduce", [x], {"function": "sum", "axes": 1})
        self.assertEqual(execution.outputs[0].tolist(), [[4], [4], [4]])
        self.assertGreaterEqual(len((await self.c.statistics()).operators), 1)

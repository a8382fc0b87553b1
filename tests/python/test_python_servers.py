"""A client of several servers, whose tensors live on one each."""

import asyncio
import unittest

import numpy as np
from server_process import ServerProcess

import opmill

RANDOM = np.random.default_rng(3)


def numbers(*shape):
    return RANDOM.standard_normal(shape, np.float32)


class Servers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.servers = [cls.enterClassContext(ServerProcess(device="cpu")) for _ in range(3)]
        cls.addresses = [server.address for server in cls.servers]

    def setUp(self):
        self.c = self.enterContext(opmill.connect(self.addresses))

    def tearDown(self):
        for tensor in self.c.tensors.list():
            self.c.tensors.delete(tensor.name)

    def refused(self, kind, sentence, function, *arguments, **named):
        with self.assertRaises(kind) as raised:
            function(*arguments, **named)
        self.assertEqual(raised.exception.sentence, sentence)

    def test_calls_go_where_the_tensor_is(self):
        arrays = {f"x{i}": numbers(3, 4) for i in range(6)}
        put = {name: self.c.tensors.put(name, x, capacity=10) for name, x in arrays.items()}
        self.assertEqual({tensor.server for tensor in put.values()}, set(self.addresses))
        for _ in range(4):
            for name, x in arrays.items():
                np.testing.assert_array_equal(self.c.multiply(put[name], x), x * x)
                np.testing.assert_array_equal(self.c.tensors.get(name), x)
        self.assertEqual([(tensor.name, tensor.server) for tensor in self.c.tensors.list()],
                         [(name, tensor.server) for name, tensor in put.items()])
        kept = self.c.multiply(put["x1"], 2.0, keep="twice")
        self.assertEqual(kept.server, put["x1"].server)
        np.testing.assert_array_equal(self.c.add(kept, put["x1"]), arrays["x1"] * 2 + arrays["x1"])

    def test_other_clients_ask(self):
        x = numbers(4, 5)
        put = [self.c.tensors.put(name, x, capacity=20) for name in "abc"]
        with opmill.connect(list(reversed(self.addresses))) as other:
            for tensor in put:
                appended = other.tensors.append(tensor.name, x[:2])
                self.assertEqual((appended.shape, appended.server), ((6, 5), tensor.server))
                self.assertEqual(other.tensors.write(tensor.name, 0, x[1:2]).shape, (6, 5))
                np.testing.assert_array_equal(other.tensors.get(tensor.name),
                                              np.concatenate([x[1:2], x[1:], x[:2]]))
            # In place of the old one, and not beside it.
            self.assertEqual(other.tensors.put("b", x[:1]).server, put[1].server)
            other.tensors.delete("b")
            self.assertEqual([tensor.name for tensor in other.tensors.list()], ["a", "c"])
        asked = ", ".join(self.addresses)
        self.refused(opmill.NotFound, f"{put[1].server}: There is no tensor \"b\" here.",
                     self.c.multiply, put[1], x[:1])
        self.refused(opmill.NotFound, f'No server has a tensor "b"; these were asked: {asked}.',
                     self.c.tensors.find, "b")
        self.refused(opmill.NotFound, f'No server has a tensor "b"; these were asked: {asked}.',
                     self.c.tensors.append, "b", x)

    def test_tensors_of_two_servers(self):
        a, b = (self.c.tensors.put(name, numbers(2, 2)) for name in "ab")
        self.refused(opmill.InvalidArgument, "A call computes on one server, but names tensors of several: "
                     f'"a" on {a.server}, "b" on {b.server}.', self.c.add, a, b)
        self.refused(opmill.InvalidArgument, "A call computes on one server, but names tensors of several: "
                     f'"a" on {a.server}, "b" on {b.server}.', self.c.add, a, 1.0, keep="b")

    def test_indexes(self):
        vectors, queries = numbers(200, 8), numbers(3, 8)
        expected = np.argsort(-(queries @ vectors.T), axis=1, kind="stable")[:, :5]
        homes = set()
        for _ in range(3):
            index = self.enterContext(opmill.Index(self.c, vectors[:150]))
            index.add(vectors[150:])
            np.testing.assert_array_equal(index.search(queries, 5).ids, expected)
            self.assertEqual(index.remove(expected[0, 0]), 1)
            self.assertEqual(index.search(queries[0], 1).ids, expected[0, 1])
            homes.add(self.c.tensors.find(index.name).server)
        self.assertEqual(homes, set(self.addresses))
        found = opmill.Index(self.c, self.c.tensors.find(index.name))
        np.testing.assert_array_equal(found.search(queries, 5).ids, expected)

    def test_asyncio(self):
        async def check():
            async with await opmill.aio.connect(self.addresses) as c:
                x = numbers(4, 4)
                put = [await c.tensors.put(f"async{i}", x) for i in range(3)]
                self.assertEqual({tensor.server for tensor in put}, set(self.addresses))
                results = await asyncio.gather(*(c.multiply(tensor, x) for tensor in put * 10))
                for result in results:
                    np.testing.assert_array_equal(result, x * x)
                self.assertEqual((await c.tensors.find("async1")).server, put[1].server)
                with self.assertRaisesRegex(opmill.NotFound, 'No server has a tensor "none"'):
                    await c.tensors.find("none")
                async with opmill.aio.Index(c, x) as index:
                    self.assertEqual((await index.search(x, 1)).ids.shape, (4, 1))

        asyncio.run(check())


class LostServers(unittest.TestCase):
    def test_what_the_others_have_stays_in_reach(self):
        servers = [self.enterContext(ServerProcess(device="cpu")) for _ in range(2)]
        x = numbers(3, 3)
        with opmill.connect([server.address for server in servers], max_attempts=1, timeout=20) as c:
            a, b = (c.tensors.put(name, x) for name in "ab")
            servers[0].kill()
            lost, kept = (a, b) if a.server == servers[0].address else (b, a)
            np.testing.assert_array_equal(c.multiply(kept, x), x * x)
            with self.assertRaises(opmill.Unavailable):
                c.multiply(lost, x)
            with opmill.connect([server.address for server in servers], max_attempts=1) as other:
                self.assertEqual(other.tensors.find(kept.name).server, kept.server)
                with self.assertRaises(opmill.Unavailable):  # the lost server may have it
                    other.tensors.find("c")


if __name__ == "__main__":
    unittest.main()

"""opmill.Index, that of asyncio and of Dask, and NearestNeighbors, against NumPy."""

import asyncio
import pathlib
import pickle
import subprocess
import tempfile
import threading
import time
import unittest

import dask
import dask.array as da
import numpy as np
import tritonclient.grpc as triton
from server_process import CLI, ServerProcess

import opmill
import opmill.dask as od
from opmill.neighbors import NearestNeighbors

RANDOM = np.random.default_rng(11)


def numbers(*shape, dtype="float32"):
    """Small integers, so that all scores are exact in every type, and many are equal."""
    return RANDOM.integers(-3, 4, shape).astype(dtype)


def scores_of(queries, vectors, metric):
    q, v = queries.astype(np.float64), vectors.astype(np.float64)
    if metric == "l2":
        return ((q[:, np.newaxis] - v) ** 2).sum(2)
    products = q @ v.T
    if metric == "cosine":
        return products / np.sqrt((q**2).sum(1)[:, np.newaxis] * (v**2).sum(1))
    return products


def expect(queries, vectors, k, metric="ip", allowed=None):
    """Scores and ids, of equal scores the lowest id first, and places without a vector last."""
    scores = scores_of(queries, vectors, metric)
    sign = 1 if metric == "l2" else -1
    order = sign * scores
    order[:, ~np.broadcast_to(True if allowed is None else allowed, len(vectors))] = np.inf
    ids = np.argsort(order, axis=1, kind="stable")[:, :k]
    ids[np.isinf(np.take_along_axis(order, ids, 1))] = -1
    found = np.where(ids < 0, sign * np.inf, np.take_along_axis(scores, np.maximum(ids, 0), 1))
    missing = ((0, 0), (0, k - ids.shape[1]))
    return (np.pad(found, missing, constant_values=sign * np.inf),
            np.pad(ids, missing, constant_values=-1))


class Served(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(ServerProcess(device="cpu"))
        cls.c = cls.enterClassContext(opmill.connect(cls.server.address))

    def tearDown(self):
        self.assertEqual(self.c.tensors.list(), ())

    def check(self, index, queries, vectors, k, **expected):
        scores, ids = index.search(queries, k)
        wanted = expect(queries, vectors, k, index.metric, **expected)
        np.testing.assert_array_equal(ids, wanted[1])
        if scores.dtype == np.int32:
            wanted[0][:] = np.clip(wanted[0], -2**31, 2**31 - 1)
        np.testing.assert_allclose(scores, wanted[0], rtol=1e-6)
        self.assertEqual(ids.dtype, np.int64)

    def refused(self, kind, sentence, function, *arguments, **named):
        with self.assertRaises(kind) as raised:
            function(*arguments, **named)
        self.assertEqual(raised.exception.sentence, sentence)


class Search(Served):
    def test_types_and_metrics(self):
        vectors, queries = numbers(300, 7), numbers(9, 7)
        for dtype in ("float32", "float16", "int8"):
            for metric in ("ip", "l2", "cosine"):
                with self.subTest(dtype=dtype, metric=metric):
                    v, q = vectors.astype(dtype), queries.astype(dtype)
                    if metric == "cosine":  # sums of squares whose roots are exact
                        v, q = np.sign(v + 0.5).astype(dtype), np.sign(q + 0.5).astype(dtype)
                    with opmill.Index(self.c, v, metric) as index:
                        self.check(index, q, v, 10)
                        self.check(index, q, v, 300)
                        self.assertEqual((len(index), index.dimensions, index.dtype), (300, 7, dtype))

    def test_one_query_and_more_than_there_are(self):
        vectors = numbers(4, 3)
        with opmill.Index(self.c, vectors, "l2") as index:
            scores, ids = index.search(vectors[2], 6)
            wanted = expect(vectors[2:3], vectors, 6, "l2")
            np.testing.assert_array_equal(ids, wanted[1][0])
            np.testing.assert_array_equal(scores, wanted[0][0])
            self.assertEqual(index.search(np.empty((0, 3), np.float32), 2).ids.shape, (0, 2))

    def test_casts(self):
        vectors, queries = numbers(40, 5, dtype="float64"), numbers(3, 5, dtype="int64")
        for dtype in ("float32", "float16"):
            with opmill.Index(self.c, vectors, dtype=dtype) as index:
                self.check(index, queries, vectors, 5)
                self.assertEqual(self.c.tensors.find(index.name).dtype, dtype)
        self.refused(opmill.InvalidArgument, "Elements of vectors are float64, and search takes float32, "
                     'float16, int8. Convert the array with astype, or pass dtype="float32".',
                     opmill.Index, self.c, vectors)
        self.refused(opmill.InvalidArgument, "A cast from float64 to int8 would change values; convert the "
                     "array with astype.", opmill.Index, self.c, vectors, dtype="int8")
        self.refused(opmill.InvalidArgument, "dtype is int32, and search takes float32, float16, int8.",
                     opmill.Index, self.c, vectors, dtype="int32")

    def test_int8_of_no_vector(self):
        with opmill.Index(self.c, numbers(2, 3, dtype="int8"), "l2") as index:
            scores, ids = index.search(numbers(1, 3, dtype="int8"), 3)
            self.assertEqual((scores.dtype, scores[0, 2], ids[0, 2]), (np.int32, 2**31 - 1, -1))
            self.refused(opmill.InvalidArgument, "queries is float32, and the index int8; convert the array "
                         "with astype.", index.search, numbers(1, 3), 1)

    def test_masks(self):
        vectors, queries = numbers(60, 4), numbers(5, 4)
        with opmill.Index(self.c, vectors) as index:
            allowed = RANDOM.random(60) < 0.2
            scores, ids = index.search(queries, 20, allowed)
            wanted = expect(queries, vectors, 20, allowed=allowed)
            np.testing.assert_array_equal(ids, wanted[1])
            np.testing.assert_array_equal(scores, wanted[0])
            each = RANDOM.random((5, 60)) < 0.5
            _, ids = index.search(queries, 8, each)
            for query, mask, found in zip(queries, each, ids):
                np.testing.assert_array_equal(found, expect(query[None], vectors, 8, allowed=mask)[1][0])
            index.remove(np.flatnonzero(allowed)[:3])
            allowed[np.flatnonzero(allowed)[:3]] = False
            _, ids = index.search(queries, 20, allowed)
            np.testing.assert_array_equal(ids, expect(queries, vectors, 20, allowed=allowed)[1])
            self.refused(opmill.InvalidArgument, "mask has the shape (59,); it must be that of the rows "
                         "(60,), or one for each query, (5, 60).", index.search, queries, 1, allowed[1:])
            self.refused(opmill.InvalidArgument, "mask is of int64; it must be of bool.", index.search,
                         queries, 1, np.arange(60))

    def test_refusals(self):
        with opmill.Index(self.c, numbers(5, 3)) as index:
            self.refused(opmill.InvalidArgument, "queries has the shape (2, 4); the index has vectors of 3 "
                         "elements.", index.search, numbers(2, 4), 1)
            self.refused(opmill.InvalidArgument, "rows has the shape (2, 2, 3); the index has vectors of 3 "
                         "elements.", index.add, numbers(2, 2, 3))
            for k in (0, -1, 1.5, True):
                self.refused(opmill.InvalidArgument, f"k is {k!r}; it must be an integer of at least 1.",
                             index.search, numbers(2, 3), k)
            for ids in ([5], [2, -1], 7):
                bad = min(ids) if -1 in np.atleast_1d(ids) else np.max(ids)
                self.refused(opmill.InvalidArgument, f"ids has {bad}, but the ids are 0 to 4.",
                             index.remove, ids)
            self.refused(opmill.InvalidArgument, "ids is of bool; ids are integers.", index.remove,
                         [True, False])
        self.refused(opmill.InvalidArgument, 'metric ("dot") is none of inner_product, l2, cosine, ip.',
                     opmill.Index, self.c, numbers(5, 3), "dot")
        self.refused(opmill.InvalidArgument, "vectors has the shape (5,); it must have 2 dimensions.",
                     opmill.Index, self.c, numbers(5))
        with self.assertRaisesRegex(TypeError, "did you mean 'metric'"):
            opmill.Index(self.c, numbers(5, 3), metrik="ip")


class Changes(Served):
    def test_random_changes(self):
        """Against a list, with a capacity that is exceeded again and again."""
        vectors, queries = numbers(3, 4), numbers(4, 4)
        allowed = np.ones(3, bool)
        with opmill.Index(self.c, vectors, "l2", capacity=5) as index:
            for step in range(40):
                if step % 3 < 2:
                    more = numbers(RANDOM.integers(0, 4), 4)
                    np.testing.assert_array_equal(index.add(more), np.arange(len(more)) + len(vectors))
                    vectors = np.concatenate([vectors, more])
                    allowed = np.concatenate([allowed, np.ones(len(more), bool)])
                else:
                    gone = RANDOM.integers(0, len(vectors), 3)
                    self.assertEqual(index.remove(gone), allowed[np.unique(gone)].sum())
                    allowed[gone] = False
                self.assertEqual((len(index), index.rows), (allowed.sum(), len(vectors)))
                self.check(index, queries, vectors, 7, allowed=allowed)

    def test_an_empty_one(self):
        with opmill.Index(self.c, np.empty((0, 3), np.float32), capacity=10) as index:
            self.assertEqual(len(index), 0)
            np.testing.assert_array_equal(index.search(numbers(2, 3), 2).ids, -1)
            self.refused(opmill.InvalidArgument, "ids has 0, but the index is empty.", index.remove, 0)
            vectors = numbers(4, 3)
            index.add(vectors)
            self.check(index, numbers(2, 3), vectors, 3)
            self.assertEqual(self.c.tensors.find(index.name).capacity, 10)

    def test_files(self):
        vectors, queries = numbers(50, 4), numbers(3, 4)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "vectors.npy"
            with opmill.Index(self.c, vectors) as index:
                index.remove([0, 7, 49])
                kept = index.save(path)
            np.testing.assert_array_equal(kept, np.setdiff1d(np.arange(50), [0, 7, 49]))
            np.testing.assert_array_equal(np.load(path), vectors[kept])
            with opmill.Index.load(self.c, path, "l2", name="loaded") as index:
                self.assertEqual(self.c.tensors.find("loaded").shape, (47, 4))
                self.check(index, queries, vectors[kept], 6)

    def test_a_tensor_of_the_server(self):
        vectors, queries = numbers(50, 4), numbers(3, 4)
        there = self.c.tensors.put("there", vectors, capacity=60)
        with opmill.Index(self.c, there) as index:
            self.check(index, queries, vectors, 6)
            index.remove(3)
            index.add(vectors[:1])
            self.check(index, queries, np.concatenate([vectors, vectors[:1]]), 6,
                       allowed=np.arange(51) != 3)
            self.c.tensors.append("there", vectors[:1])
            with self.assertRaises(opmill.FailedPrecondition) as raised:
                index.add(vectors[:1])  # its ids would be those of others
            self.assertEqual(raised.exception.reason, "OTHER_GENERATION")
        self.c.tensors.delete("there")

    def test_a_pickled_one(self):
        vectors, queries = numbers(50, 4), numbers(3, 4)
        with opmill.Index(self.c, vectors) as index:
            index.remove(5)
            self.check(pickle.loads(pickle.dumps(index)), queries, vectors, 6, allowed=np.arange(50) != 5)

    def test_asyncio(self):
        vectors, queries = numbers(40, 4), numbers(3, 4)

        async def main(folder):
            async with await opmill.aio.connect(self.server.address) as c:
                async with opmill.aio.Index(c, vectors[:30], "l2") as index:
                    added, found = await asyncio.gather(index.add(vectors[30:]), index.search(queries, 4))
                    np.testing.assert_array_equal(added, np.arange(30, 40))
                    self.assertLess(found.ids.max(), 40)
                    self.assertEqual(await index.remove([1, 2]), 2)
                    with self.assertRaises(opmill.InvalidArgument):
                        await index.remove(40)
                    _, ids = await index.search(queries, 50)
                    np.testing.assert_array_equal(
                        ids, expect(queries, vectors, 50, "l2", ~np.isin(np.arange(40), [1, 2]))[1])
                    await index.save(f"{folder}/v.npy")
                index = await opmill.aio.Index.load(c, f"{folder}/v.npy")
                self.assertEqual(len(index), 38)
                await index.delete()

        with tempfile.TemporaryDirectory() as folder:
            asyncio.run(main(folder))

    def test_appends_while_searching(self):
        """About 1,000 rows a second: each answer is that of a state between its call and its end."""
        vectors, queries = numbers(4000, 16), numbers(4, 16)
        scores = scores_of(queries, vectors, "ip")
        searched, ends = [], threading.Event()
        with opmill.Index(self.c, vectors[:500], capacity=1000) as index:
            added = [500]  # rows that are there; all rows below are in the index

            def search():
                while not ends.is_set():
                    before = added[0]
                    answer = index.search(queries, 5)
                    searched.append((before, begun[0], answer))

            begun = [500]  # rows whose add has begun
            searchers = [threading.Thread(target=search) for _ in range(2)]
            for searcher in searchers:
                searcher.start()
            start = time.monotonic()
            for first in range(500, 4000, 20):
                time.sleep(max(0, start + (first - 500) / 1000 - time.monotonic()))
                begun[0] = first + 20
                index.add(vectors[first:first + 20])
                added[0] = first + 20
            ends.set()
            for searcher in searchers:
                searcher.join()
            seconds = time.monotonic() - start
        print(f"{3500 / seconds:.0f} rows/s beside {len(searched) / seconds:.0f} searches/s")
        self.assertGreater(len(searched), 20)
        for before, after, (found, ids) in searched:
            self.assertTrue(any(
                np.array_equal(ids, np.argsort(-scores[:, :rows], axis=1, kind="stable")[:, :5])
                for rows in range(before, after + 1, 20)), (before, after, ids))
            np.testing.assert_array_equal(found, np.take_along_axis(scores, ids, 1))


class Memory(Served):
    """Of removed vectors."""

    def test_compact(self):
        vectors, queries = numbers(500, 8), numbers(4, 8)
        with opmill.Index(self.c, vectors, "l2", name="documents") as index:
            self.assertEqual(index.compact(), 0)
            index.remove(np.arange(0, 500, 2))
            before = self.c.tensors.find(index.name).bytes
            self.assertEqual(index.compact(capacity=300), 250)
            self.assertEqual(self.c.tensors.list(), (self.c.tensors.find(index.name),))
            after = self.c.tensors.find(index.name)
            self.assertEqual((after.shape, after.capacity, before, after.bytes),
                             ((250, 8), 300, 500 * 8 * 4, 300 * 8 * 4))
            self.assertEqual((len(index), index.rows), (250, 500))
            allowed = np.arange(500) % 2 == 1
            self.check(index, queries, vectors, 9, allowed=allowed)
            # Ids stay those of the rows that were added, in searches, masks, changes and files.
            mask = RANDOM.random(500) < 0.5
            _, ids = index.search(queries, 9, mask)
            np.testing.assert_array_equal(ids, expect(queries, vectors, 9, "l2", mask & allowed)[1])
            more = numbers(3, 8)
            np.testing.assert_array_equal(index.add(more), [500, 501, 502])
            self.assertEqual(index.remove([0, 1, 3, 501]), 3)
            allowed = np.concatenate([allowed, [True, False, True]])
            allowed[[1, 3]] = False
            vectors = np.concatenate([vectors, more])
            self.check(index, queries, vectors, 9, allowed=allowed)
            with tempfile.TemporaryDirectory() as folder:
                np.testing.assert_array_equal(index.save(f"{folder}/v.npy"), np.flatnonzero(allowed))
                np.testing.assert_array_equal(np.load(f"{folder}/v.npy"), vectors[allowed])
            self.refused(opmill.InvalidArgument, "ids has 503, but the ids are 0 to 502.", index.remove, 503)
            self.refused(opmill.InvalidArgument, "mask has the shape (253,); it must be that of the rows "
                         "(503,), or one for each query, (4, 503).", index.search, queries, 1,
                         np.ones(253, bool))
            index.remove(np.flatnonzero(allowed))
            self.assertEqual(index.compact(), 253 - 3 + 3)
            self.assertEqual(self.c.tensors.list(), ())
            np.testing.assert_array_equal(index.search(queries, 2).ids, -1)
            np.testing.assert_array_equal(index.add(more), [503, 504, 505])
            self.check(index, queries, np.concatenate([vectors, more]), 2, allowed=np.arange(506) > 502)

    def test_a_tensor_of_others_keeps_its_rows(self):
        there = self.c.tensors.put("there", numbers(5, 3))
        with opmill.Index(self.c, there) as index:
            index.remove(1)
            self.refused(opmill.FailedPrecondition, 'The tensor "there" is not of the index, and keeps its '
                         "rows.", index.compact)
        self.c.tensors.delete("there")

    def test_random_changes(self):
        for dtype, compacts in (("float32", True), ("float16", True), ("int8", False)):
            vectors, queries = numbers(3, 4, dtype=dtype), numbers(4, 4, dtype=dtype)
            allowed = np.ones(3, bool)
            with opmill.Index(self.c, vectors, "l2", capacity=5) as index:
                for step in range(60):
                    more = numbers(RANDOM.integers(0, 4), 4, dtype=dtype)
                    np.testing.assert_array_equal(index.add(more), np.arange(len(more)) + len(vectors))
                    vectors = np.concatenate([vectors, more])
                    allowed = np.concatenate([allowed, np.ones(len(more), bool)])
                    gone = RANDOM.integers(max(0, len(vectors) - 20), len(vectors), 3)
                    self.assertEqual(index.remove(gone), allowed[np.unique(gone)].sum())
                    allowed[gone] = False
                    if compacts and step % 7 == 6:
                        index.compact(capacity=RANDOM.integers(0, 40))
                    self.assertEqual((len(index), index.rows), (allowed.sum(), len(vectors)))
                    self.check(index, queries, vectors, 7, allowed=allowed)

    def test_what_comes_and_goes_takes_no_more(self):
        """With half of the rows removed, `add` drops these instead of growing."""
        vectors = numbers(4000, 16)
        with opmill.Index(self.c, vectors[:100], capacity=200) as index, \
                opmill.Index(self.c, vectors[:100], capacity=200, name="named") as named:
            for first in range(100, 4000, 50):
                for each in (index, named):
                    each.add(vectors[first:first + 50])
                    each.remove(np.arange(first - 100, first - 50))
            self.check(index, vectors[:3], vectors, 8, allowed=np.arange(4000) >= index.rows - 100)
            self.assertLessEqual(self.c.tensors.find(index.name).capacity, 200)
            # A name that the caller has given stays that of the tensor.
            self.assertEqual(named.name, "named")
            self.check(named, vectors[:3], vectors, 8, allowed=np.arange(4000) >= index.rows - 100)

    def test_compaction_while_searching(self):
        """Each answer is that of a state between its call and its end."""
        vectors, queries = numbers(3000, 16), numbers(4, 16)
        scores = scores_of(queries, vectors, "ip")
        with opmill.Index(self.c, vectors[:1000]) as index:
            # Vectors below `removed` are not in the index, and those from `added` on.
            removed, added, ends, searched, failures = [0, 0], [1000, 1000], threading.Event(), [], []

            def search(number):
                try:
                    while not ends.is_set():
                        before = removed[0], added[0]
                        mask = None if number else np.ones(index.rows, bool)
                        try:
                            found = index.search(queries, 5, mask)
                        except opmill.InvalidArgument:  # the mask is of fewer rows than there are now
                            self.assertIsNotNone(mask)
                            continue
                        searched.append((before, (removed[1], added[1]), found))
                except Exception as error:
                    failures.append(error)

            searchers = [threading.Thread(target=search, args=(number,)) for number in range(3)]
            for searcher in searchers:
                searcher.start()
            for first in range(1000, 3000, 40):
                added[1] = first + 40
                index.add(vectors[first:first + 40])
                added[0] = first + 40
                removed[1] = first - 960
                index.remove(np.arange(first - 1000, first - 960))
                removed[0] = first - 960
                if first % 80 == 0:
                    index.compact(capacity=1100)
            ends.set()
            for searcher in searchers:
                searcher.join()
        self.assertEqual(failures, [])
        print(f"{len(searched)} searches beside 25 compactions")
        self.assertGreater(len(searched), 20)

        def nearest(low, high):
            order = np.argsort(-scores[:, low:high], axis=1, kind="stable")[:, :5] + low
            return order

        for (low, high), (later_low, later_high), (found, ids) in searched:
            self.assertTrue(any(np.array_equal(ids, nearest(first, last))
                                for first in range(low, later_low + 1, 40)
                                for last in range(high, later_high + 1, 40)), (low, high, later_low, later_high))
            np.testing.assert_array_equal(found, np.take_along_axis(scores, ids, 1))


class Losses(Served):
    """Of the tensors on the server."""

    GONE = ('The vectors of the index, the tensor "{}", are not on the server any more: it has restarted or '
            "lost its device, their lease has ended, or they were deleted. Make the index again; with "
            "keep_copy=True it puts them again by itself.")

    def test_a_lease(self):
        vectors, queries = numbers(60, 4), numbers(3, 4)
        index = opmill.Index(self.c, vectors, lease=2)
        index.remove(7)
        allowed = np.arange(60) != 7
        self.assertEqual({each.lease.seconds for each in self.c.tensors.list()}, {2})
        for _ in range(6):  # searches renew it, and those with a mask name only the vectors
            time.sleep(0.5)
            _, ids = index.search(queries, 5, np.ones(60, bool))
            np.testing.assert_array_equal(ids, expect(queries, vectors, 5, allowed=allowed)[1])
        self.check(index, queries, vectors, 5, allowed=allowed)  # the mask was put again
        index.add(vectors)  # a larger tensor
        index.compact()
        self.assertEqual([each.lease.seconds for each in self.c.tensors.list()], [2])
        until = time.monotonic() + 30
        while self.c.tensors.list() and time.monotonic() < until:
            time.sleep(0.1)
        gone = self.GONE.format(index.name)
        self.refused(opmill.NotFound, gone, index.search, queries, 5)
        self.refused(opmill.NotFound, gone, index.add, vectors)
        self.refused(opmill.NotFound, gone, index.save, "/dev/null")
        index.delete()

    def test_a_copy(self):
        vectors, queries = numbers(60, 4), numbers(3, 4)
        with opmill.Index(self.c, vectors[:20], keep_copy=True, capacity=25) as index:
            index.add(vectors[20:40])
            index.remove([3, 30])
            allowed = ~np.isin(np.arange(60), [3, 30])
            changes = (lambda: None, lambda: index.add(vectors[40:50]), lambda: index.remove([5]),
                       index.compact, lambda: index.add(vectors[50:]))
            for rows, change in zip((40, 50, 50, 50, 60), changes):
                for tensor in self.c.tensors.list():
                    self.c.tensors.delete(tensor.name)
                change()
                allowed[5] = rows == 40 or change is changes[1]
                for tensor in self.c.tensors.list():
                    self.c.tensors.delete(tensor.name)
                self.check(index, queries, vectors[:rows], 9, allowed=allowed[:rows])

    def test_a_restarted_server(self):
        vectors, queries = numbers(60, 4), numbers(3, 4)
        wanted = expect(queries, vectors, 9)[1]
        server = ServerProcess(device="cpu")
        with opmill.connect(server.address) as c:
            kept, lost = opmill.Index(c, vectors, keep_copy=True), opmill.Index(c, vectors)
            server.kill()
            with ServerProcess(f"--address={server.address}", device="cpu"):
                self.refused(opmill.NotFound, self.GONE.format(lost.name), lost.search, queries, 9)
                answers, threads = [], []
                for _ in range(8):  # one of them puts the vectors
                    threads.append(threading.Thread(
                        target=lambda: answers.append(kept.search(queries, 9).ids)))
                    threads[-1].start()
                for thread in threads:
                    thread.join()
                self.assertEqual(len(answers), 8)
                for ids in answers:
                    np.testing.assert_array_equal(ids, wanted)
                kept.delete()
                lost.delete()
                self.assertEqual(c.tensors.list(), ())

    def test_asyncio(self):
        vectors, queries = numbers(40, 4), numbers(3, 4)

        async def main():
            async with await opmill.aio.connect(self.server.address) as c:
                async with opmill.aio.Index(c, vectors, keep_copy=True, lease=600) as index:
                    await index.remove(np.arange(20))
                    self.assertEqual(await index.compact(), 20)
                    self.c.tensors.delete(index.name)
                    answers = await asyncio.gather(*(index.search(queries, 5) for _ in range(4)))
                    for found in answers:
                        np.testing.assert_array_equal(
                            found.ids, expect(queries, vectors, 5, allowed=np.arange(40) >= 20)[1])
                    self.assertEqual(self.c.tensors.find(index.name).lease.seconds, 600)

        asyncio.run(main())

    def test_refusals(self):
        there = self.c.tensors.put("there", numbers(5, 3))
        self.refused(opmill.InvalidArgument, "keep_copy is for vectors that the index puts; these are the "
                     'tensor "there".', opmill.Index, self.c, there, keep_copy=True)
        self.c.tensors.delete("there")


class Neighbors(Served):
    def test_distances(self):
        vectors, queries = numbers(80, 5, dtype="float64"), numbers(6, 5, dtype="float64")
        for metric, distance in (("euclidean", np.sqrt), ("l2", np.sqrt), ("sqeuclidean", np.asarray)):
            with NearestNeighbors(self.c, n_neighbors=4, metric=metric) as neighbors:
                self.assertIs(neighbors.fit(vectors), neighbors)
                distances, ids = neighbors.kneighbors(queries)
                wanted = expect(queries, vectors, 4, "l2")
                np.testing.assert_array_equal(ids, wanted[1])
                np.testing.assert_allclose(distances, distance(wanted[0]), rtol=1e-6)
                np.testing.assert_array_equal(neighbors.kneighbors(queries, 2, return_distance=False),
                                              wanted[1][:, :2])
        signs = np.sign(vectors + 0.5)
        with NearestNeighbors(self.c, metric="cosine").fit(signs) as neighbors:
            distances, ids = neighbors.kneighbors(signs[:3])
            wanted = expect(signs[:3], signs, 5, "cosine")
            np.testing.assert_array_equal(ids, wanted[1])
            np.testing.assert_allclose(distances, 1 - wanted[0], atol=1e-6)

    def test_of_the_vectors_themselves(self):
        vectors = np.repeat(numbers(9, 4), 3, axis=0)  # each three times
        with NearestNeighbors(self.c, n_neighbors=1).fit(vectors) as neighbors:
            for k in (1, 2, 20):
                _, ids = neighbors.kneighbors(n_neighbors=k)
                distances = scores_of(vectors, vectors, "l2")
                np.fill_diagonal(distances, np.inf)
                np.testing.assert_array_equal(ids, np.argsort(distances, axis=1, kind="stable")[:, :k])

    def test_parameters(self):
        neighbors = NearestNeighbors(self.c)
        self.refused(opmill.FailedPrecondition, "This NearestNeighbors is not fitted; call fit first.",
                     neighbors.kneighbors, numbers(1, 3))
        copy = NearestNeighbors(**neighbors.set_params(n_neighbors=3).get_params())
        self.assertEqual(copy.get_params()["n_neighbors"], 3)
        with copy.fit(numbers(5, 3)):
            copy.fit(numbers(4, 3))  # the vectors of the first fit go
            self.assertEqual(len(self.c.tensors.list()), 1)
            self.refused(opmill.InvalidArgument, "n_neighbors (5) is not between 1 and 4.", copy.kneighbors,
                         numbers(1, 3), 5)
        self.refused(opmill.InvalidArgument, 'metric ("manhattan") is none of cosine, euclidean, l2, '
                     "sqeuclidean.", NearestNeighbors(self.c, metric="manhattan").fit, numbers(5, 3))


class Dask(Served):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.second = cls.enterClassContext(ServerProcess(device="cpu"))
        cls.other = cls.enterClassContext(opmill.connect(cls.second.address))

    def tearDown(self):
        super().tearDown()
        self.assertEqual(self.other.tensors.list(), ())

    def test_is_that_of_one_server(self):
        for metric in ("ip", "l2"):
            for dtype in ("float32", "int8"):
                vectors, queries = numbers(70, 5, dtype=dtype), numbers(8, 5, dtype=dtype)
                x = da.from_array(vectors, chunks=((13, 1, 0, 40, 16), (2, 3)))
                with od.Index([self.c, self.other], x, metric) as index, \
                        opmill.Index(self.c, vectors, metric) as whole:
                    self.assertEqual((len(self.c.tensors.list()), len(self.other.tensors.list())), (3, 2))
                    for k in (1, 6, 50, 75):
                        for split in (None, 2):
                            found = dask.compute(*index.search(queries, k, split_every=split))
                            for actual, wanted in zip(found, whole.search(queries, k)):
                                np.testing.assert_array_equal(actual, wanted)
                                self.assertEqual(actual.dtype, wanted.dtype)
                    mask = RANDOM.random(70) < 0.3
                    lazy = index.search(da.from_array(queries, chunks=(3, 2)), 40, mask)
                    self.assertEqual((lazy.ids.shape, lazy.ids.dtype), ((8, 40), np.int64))
                    for actual, wanted in zip(dask.compute(*lazy), whole.search(queries, 40, mask)):
                        np.testing.assert_array_equal(actual, wanted)

    def test_refusals(self):
        x = da.ones((6, 3), chunks=2, dtype=np.float32)
        with self.assertRaisesRegex(TypeError, "ndarray"):
            od.Index(self.c, np.ones((6, 3), np.float32))
        with self.assertRaisesRegex(ValueError, "compute_chunk_sizes"):
            od.Index(self.c, x[x[:, 0] > 0])
        with od.Index(self.c, x) as index:
            with self.assertRaisesRegex(opmill.InvalidArgument, r"\(2, 4\); the index has vectors of 3"):
                index.search(numbers(2, 4), 1)
            with self.assertRaisesRegex(opmill.InvalidArgument, r"\(5,\); it must be that of the rows, \(6,\)"):
                index.search(numbers(2, 3), 1, np.ones(5, bool))


class OtherClients(Served):
    def setUp(self):
        self.vectors, self.queries = numbers(50, 4), numbers(3, 4)
        self.c.tensors.put("documents", self.vectors)
        self.addCleanup(self.c.tensors.delete, "documents")

    def tearDown(self):
        pass

    def test_tritonclient(self):
        with triton.InferenceServerClient(self.server.address) as client:
            inputs = [triton.InferInput("queries", self.queries.shape, "FP32"),
                      triton.InferInput("vectors", self.vectors.shape, "FP32")]
            inputs[0].set_data_from_numpy(self.queries)
            inputs[1]._get_tensor().parameters["tensor"].string_param = "documents"
            result = client.infer("search", inputs, parameters={"k": 5, "metric": "L2"}, client_timeout=60)
            wanted = expect(self.queries, self.vectors, 5, "l2")
            np.testing.assert_array_equal(result.as_numpy("output_scores"), wanted[0])
            np.testing.assert_array_equal(result.as_numpy("output_indices"), wanted[1])

    def opmill(self, *words, status=0):
        ended = subprocess.run([CLI, "--server", self.server.address, "search", *map(str, words)],
                               capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(ended.returncode, status, ended.stderr)
        return ended.stdout + ended.stderr

    def test_the_command_line(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            np.save(folder / "q.npy", self.queries.astype(np.float64))
            np.save(folder / "one.npy", self.queries[0])
            allowed = np.arange(50) % 3 == 0
            np.save(folder / "mask.npy", allowed)
            for metric, word in (("ip", "ip"), ("l2", "l2"), ("ip", "inner_product")):
                self.opmill("documents", "--queries", folder / "q.npy", "--k", 7, "--metric", word, "--mask",
                            folder / "mask.npy", "--output", folder / "s.npy", "--indices", folder / "i.npy")
                wanted = expect(self.queries, self.vectors, 7, metric, allowed)
                np.testing.assert_array_equal(np.load(folder / "s.npy"), wanted[0])
                np.testing.assert_array_equal(np.load(folder / "i.npy"), wanted[1])
            nearest = expect(self.queries[:1], self.vectors, 3)[1][0]
            shown = self.opmill("documents", "--queries", folder / "one.npy", "--k", 3)
            self.assertRegex(shown, r"\[\[ *{} +{} +{}\]\]".format(*nearest))
            for words, sentence in (
                    (("nothing", "--queries", folder / "q.npy", "--k", 3), 'There is no tensor "nothing" here.'),
                    (("documents", "--queries", folder / "q.npy", "--k", 51),
                     "k (51) is larger than vectors.sizes[0] (50).")):
                self.assertIn(sentence, self.opmill(*words, status=1))
            for words, sentence in (
                    (("documents", "--k", 3), "--queries"),
                    (("--queries", folder / "q.npy", "--k", 3), "opmill search takes the NAME of a tensor."),
                    (("documents", "--queries", folder / "q.npy", "--k", 3, "--metric", "l3"),
                     'There is no metric "l3"; the choices are inner_product (or ip), l2, cosine.')):
                self.assertIn(sentence, self.opmill(*words, status=2))


if __name__ == "__main__":
    unittest.main()

"""Nearest-neighbour search through the package, compared with NumPy."""

import threading
import unittest

import numpy as np
from server_process import SANITIZED, ServerProcess

import opmill

METRICS = ("ip", "l2", "cosine")
TYPES = ("float32", "float16", "int8")
CASES = 200
EMPTY = 0xFFFFFFFF


def scores(queries, vectors, metric):
    """In double precision; of L2 negative, so that the largest comes first."""
    queries, vectors = queries.astype(np.float64), vectors.astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        products = queries @ vectors.T
        if metric == "ip":
            return products
        if metric == "l2":
            return -((queries[:, None] - vectors) ** 2).sum(-1)
        norms = np.sqrt((queries**2).sum(1))[:, None] * np.sqrt((vectors**2).sum(1))
        return np.where(norms == 0, products * 0, products / norms)


def nearest(queries, vectors, k, metric, mask):
    """Scores and indices, and which places are empty."""
    all_scores = scores(queries, vectors, metric)
    if mask is not None:
        all_scores = np.where(mask, all_scores, np.nan)
    order = np.argsort(-all_scores, axis=1, kind="stable")[:, :k]  # NaN last
    best = np.take_along_axis(all_scores, order, 1)
    empty = np.isnan(best)
    return np.where(metric == "l2", -best, best), np.where(empty, EMPTY, order), empty


def random_case(seed):
    generator = np.random.default_rng(seed)
    dtype, metric = TYPES[seed % 3], METRICS[seed // 3 % 3]
    batch, dims = generator.integers(1, 40), generator.integers(1, 70)
    count = generator.integers(1, 400)
    queries, vectors = (generator.integers(-9, 10, (rows, dims)).astype(dtype) for rows in (batch, count))
    vectors[generator.integers(0, count, count // 5)] = vectors[generator.integers(0, count)]
    if dtype != "int8":
        vectors[generator.integers(0, count, count // 20), generator.integers(0, dims)] = np.nan
    k = int(generator.choice([1, count, generator.integers(1, count + 1)]))
    mask = None
    if seed % 4 > 1:
        mask = generator.random((batch if seed % 4 == 2 else 1, count)) < 0.7
    return queries, vectors, k, metric, mask


class Search(unittest.TestCase):
    """Each device computes cases of its own, with integers, whose sums are exact."""

    def client_of(self, device):
        server = self.enterContext(ServerProcess(device=device))
        return self.enterContext(opmill.connect(server.address))

    def check(self, client, seeds):
        for seed in seeds:
            queries, vectors, k, metric, mask = random_case(seed)
            with self.subTest(seed=seed, metric=metric, dtype=queries.dtype.name):
                found, indices = client.search(queries, vectors, k, metric=metric, mask=mask)
                best, order, empty = nearest(queries, vectors, k, metric, mask)
                exact = queries.dtype == np.int8 and metric != "cosine"
                self.assertEqual(found.dtype, np.int32 if exact else np.float32)
                self.assertEqual(indices.dtype, np.uint32)
                np.testing.assert_array_equal(indices == EMPTY, empty)
                if metric == "cosine":  # rounded, so that equal ones may be in any order
                    np.testing.assert_allclose(found[~empty], best[~empty], rtol=0, atol=2e-6)
                    continue
                np.testing.assert_array_equal(indices, order)
                np.testing.assert_array_equal(found[~empty], best[~empty])
                sign = 1 if metric == "l2" else -1
                last = sign * 2147483647 - (sign < 0) if exact else sign * np.inf
                np.testing.assert_array_equal(found[empty], np.full(empty.sum(), last))

    def test_random_cases_on_the_processor(self):
        self.check(self.client_of("cpu"), range(CASES))

    def test_random_cases_on_the_reference(self):
        self.check(self.client_of("reference"), range(CASES))

    def test_random_cases_on_the_software_adapter(self):
        self.check(self.client_of("software"), range(0, CASES, 14))

    def test_bits_of_int8_are_those_of_other_devices(self):
        clients = [self.client_of(device) for device in ("cpu", "reference", "software")]
        generator = np.random.default_rng(5)
        for metric in ("ip", "l2"):
            queries, vectors = (generator.integers(-128, 128, (rows, 200), np.int8) for rows in (5, 500))
            results = [client.search(queries, vectors, 20, metric=metric) for client in clients]
            for scores_and_indices in results[1:]:
                for one, other in zip(results[0], scores_and_indices):
                    np.testing.assert_array_equal(one, other)

    def test_random_numbers_are_within_their_bound(self):
        client = self.client_of("cpu")
        generator = np.random.default_rng(7)
        for dims in (3, 96, 700):
            queries, vectors = (generator.standard_normal((rows, dims), np.float32) for rows in (9, 3000))
            for metric in METRICS:
                found, indices = client.search(queries, vectors, 30, metric=metric)
                all_scores = np.abs(scores(queries, vectors, metric))
                own = np.take_along_axis(all_scores, indices.astype(np.int64), 1)
                scale = {"ip": np.abs(queries) @ np.abs(vectors).T, "l2": all_scores}.get(metric, np.ones((1, 1)))
                bound = (dims + 16) * 2.0**-23 * scale.max()
                np.testing.assert_allclose(np.abs(found), own, rtol=0, atol=bound)
                best, _, _ = nearest(queries, vectors, 30, metric, None)
                np.testing.assert_allclose(found, best, rtol=0, atol=bound)

    def test_takes_the_generic_form_and_says_what_is_wrong(self):
        client = self.client_of("cpu")
        x = np.eye(3, dtype=np.float32)
        found, indices = client.execute("search", [x, x], {"k": 1, "metric": "L2"}).outputs
        np.testing.assert_array_equal(found, np.zeros((3, 1)))
        np.testing.assert_array_equal(indices.ravel(), [0, 1, 2])
        mask = np.array([[False, True, True]])
        masked = client.execute("search", [x, x, mask], {"k": 1}).outputs[1]
        np.testing.assert_array_equal(masked.ravel(), [1, 1, 2])
        for arguments, sentence in (
                ({"k": 4}, r"k \(4\) is larger than vectors.sizes\[0\] \(3\)"),
                ({"k": 1, "mask": np.ones((1, 2), bool)}, r"mask.sizes\[1\] is 2, but vectors.sizes\[0\] is 3"),
                ({"k": 1, "metric": "l1"}, "l1|L1")):
            with self.assertRaisesRegex(opmill.InvalidArgument, sentence):
                client.search(x, x, **arguments)


class SharedRuns(unittest.TestCase):
    """Of callers that search in one tensor at the same time, each with a k and a mask of its own."""

    CALLERS, DIMS, KS = 24, 128, (1, 5, 10, 100)
    ROUNDS, COUNT = (4, 15000) if SANITIZED else (12, 60000)

    def setUp(self):
        server = self.enterContext(ServerProcess(device="cpu"))
        self.client = self.enterContext(opmill.connect(server.address))

    def questions(self, generator, numbers):
        """(queries, k, mask) of each caller, of which every third has no mask."""
        for caller in range(self.CALLERS):
            rows = 1 + caller % 3
            mask = None
            if caller % 3:
                mask = generator.random((1 if caller % 3 == 1 else rows, self.COUNT)) < 0.3
            yield numbers(rows, self.DIMS), self.KS[caller // 3 % 4], mask

    def ask_at_once(self, ask):
        """The answers of all rounds, by caller, and how many runs the device has had."""
        answers, failures = [[] for _ in range(self.CALLERS)], []
        barrier = threading.Barrier(self.CALLERS)

        def call(caller):
            try:
                for _ in range(self.ROUNDS):
                    barrier.wait(60)
                    answers[caller].append(ask(caller))
            except Exception as error:
                failures.append(error)
                barrier.abort()

        before = self.client.statistics().device.runs
        threads = [threading.Thread(target=call, args=(caller,)) for caller in range(self.CALLERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])
        return answers, self.client.statistics().device.runs - before

    def test_answers_are_those_of_numpy(self):
        generator = np.random.default_rng(3)

        def integers(*shape):
            return generator.integers(-9, 10, shape).astype(np.float32)

        vectors = self.client.tensors.put("v", integers(self.COUNT, self.DIMS))
        held = self.client.tensors.get("v")
        for metric in ("ip", "l2"):
            asked = list(self.questions(generator, integers))
            wanted = [nearest(queries, held, k, metric, mask) for queries, k, mask in asked]
            answers, runs = self.ask_at_once(lambda caller: self.client.search(
                asked[caller][0], vectors, asked[caller][1], metric=metric, mask=asked[caller][2]))
            for (best, order, empty), found in zip(wanted, answers):
                self.assertFalse(empty.any())
                for scores_, indices in found:
                    np.testing.assert_array_equal(indices, order)
                    np.testing.assert_array_equal(scores_, best)
            print(f"{metric}: {self.CALLERS * self.ROUNDS} calls in {runs} runs")
            self.assertLess(runs, self.CALLERS * self.ROUNDS / 2)

    def test_bits_do_not_depend_on_other_callers(self):
        generator = np.random.default_rng(4)

        def normal(*shape):
            return generator.standard_normal(shape, np.float32)

        for dtype in ("float32", "float16"):
            vectors = self.client.tensors.put("v", normal(self.COUNT, self.DIMS).astype(dtype))
            asked = [(queries.astype(dtype), k, mask) for queries, k, mask in self.questions(generator, normal)]

            def ask(caller):
                queries, k, mask = asked[caller]
                return self.client.search(queries, vectors, k, metric="cosine", mask=mask)

            alone = [ask(caller) for caller in range(self.CALLERS)]
            answers, runs = self.ask_at_once(ask)
            self.assertLess(runs, self.CALLERS * self.ROUNDS / 2)
            for wanted, found in zip(alone, answers):
                for scores_, indices in found:
                    np.testing.assert_array_equal(indices, wanted[1])
                    np.testing.assert_array_equal(scores_.view(np.uint32), wanted[0].view(np.uint32))

    def test_rows_come_and_go_meanwhile(self):
        """Each answer is that of a state between its call and its end; runs are shared all the same."""
        generator = np.random.default_rng(6)
        vectors = generator.integers(-9, 10, (self.COUNT, self.DIMS)).astype(np.float32)
        queries = generator.integers(-9, 10, (self.CALLERS, self.DIMS)).astype(np.float32)
        order = np.argsort(-(queries @ vectors.T), axis=1, kind="stable")
        first, step, ends = self.COUNT // 2, 10, threading.Event()
        with opmill.Index(self.client, vectors[:first], capacity=self.COUNT) as index:
            index.remove(np.arange(100))
            added, changes = [first, first], [0]

            def add():
                for low in range(first, self.COUNT - step, step):
                    if ends.is_set():
                        return
                    added[1] = low + step
                    index.add(vectors[low:low + step])
                    added[0] = low + step
                    changes[0] += 1
                    ends.wait(0.01)

            def ask(caller):
                low, k = added[0], self.KS[caller % 4]
                ids = index.search(queries[caller], k).ids
                return low, added[1], ids

            adder = threading.Thread(target=add)
            adder.start()
            answers, runs = self.ask_at_once(ask)
            ends.set()
            adder.join()
        runs -= changes[0]
        print(f"{self.CALLERS * self.ROUNDS} calls in {runs} runs beside {changes[0]} changes")
        self.assertGreater(changes[0], self.ROUNDS)
        self.assertLess(runs, self.CALLERS * self.ROUNDS / 2)
        for caller, found in enumerate(answers):
            those = order[caller][order[caller] >= 100]
            for low, high, ids in found:
                self.assertTrue(any(np.array_equal(ids, those[those < rows][:len(ids)])
                                    for rows in range(low, high + 1, step)), (caller, low, high))

    def test_a_k_of_all_vectors(self):
        """Beyond what is computed for the others, who get their own rows."""
        vectors = self.client.tensors.put("v", np.arange(300, dtype=np.float32)[:, None])
        ks = (1, 120, 128, 129, 256, 257, 299, 300)
        query = np.ones((1, 1), np.float32)
        answers, _ = self.ask_at_once(lambda caller: self.client.search(query, vectors, ks[caller % 8]))
        for caller, found in enumerate(answers):
            for scores_, indices in found:
                np.testing.assert_array_equal(indices, [np.arange(299, 299 - ks[caller % 8], -1)])
                np.testing.assert_array_equal(scores_, indices)


if __name__ == "__main__":
    unittest.main()

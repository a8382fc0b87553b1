"""Arguments of the public functions: unknown ones, words of NumPy and PyTorch, casts, and arrays
that no operator takes."""

import asyncio
import inspect
import re
import socket
import tempfile
import unittest

import dask.array as da
import numpy as np
import oracle
from server_process import ROOT, ServerProcess

import opmill
import opmill.dask as od
from opmill import _operators
from opmill._tensor_methods import Tensors

try:
    import pandas
except ImportError:
    pandas = None

X = np.array([[3, 1, 2], [6, 5, 4]], np.float32)


class ServedCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(ServerProcess(device="cpu"))
        cls.c = cls.enterClassContext(opmill.connect(cls.server.address))


def public_functions():
    """Apart from map_blocks, whose arguments have the names of a model's inputs."""
    for owner in (opmill.Client, opmill.aio.Client):
        for name, function in inspect.getmembers(owner, inspect.isfunction):
            if not name.startswith("_") and name != "close":
                yield f"{owner.__module__}.{name}", function
    for name, function in inspect.getmembers(od, inspect.isfunction):
        if (not name.startswith("_") and name != "map_blocks"
                and function.__module__ == "opmill.dask"):
            yield f"dask.{name}", function
    yield "connect", opmill.connect
    yield "aio.connect", opmill.aio.connect
    yield "shared_empty", opmill.shared_empty
    for name, function in inspect.getmembers(Tensors, inspect.isfunction):
        if not name.startswith("_"):
            yield f"tensors.{name}", function


class Names(ServedCase):
    def test_every_function_refuses_unknown_arguments(self):
        """Whatever else it gets: an unknown argument is the first thing that is wrong."""
        functions = dict(public_functions())
        self.assertEqual(len(functions), 2 * (23 + len(_operators.NAMED_METHODS)) + 14 + 3 + 7)
        for name, function in functions.items():
            with self.assertRaisesRegex(TypeError, r"\(\) has no argument 'no_such'", msg=name):
                function(no_such=1)

    def test_the_nearest_name(self):
        for name, function in public_functions():
            for known in inspect.signature(function).parameters:
                if known not in ("self", "options") and len(known) > 2:
                    typo = known[:2] + "_" + known[2:]
                    with self.assertRaisesRegex(TypeError, f"did you mean '{known}'", msg=name):
                        function(**{typo: 1})
        for typo, name in (("keep_dims", "keepdims"), ("time_out", "timeout"), ("dims", "dim")):
            with self.assertRaisesRegex(TypeError, f"sum.*did you mean '{name}'"):
                self.c.sum(X, **{typo: 1})
        with self.assertRaisesRegex(TypeError, "did you mean 'largest'"):
            self.c.top_k(X, 2, largets=False)
        with self.assertRaisesRegex(TypeError, "no argument 'initial'; it takes x, axis, keep"):
            self.c.sum(X, initial=3)
        with self.assertRaisesRegex(ValueError, "did you mean 'axis_direction'"):
            self.c.execute("argmax", [X], {"axes": 1, "direction": "increasing"})

    def test_words_of_numpy_and_pytorch(self):
        self.assertEqual(self.c.sum(X, dim=1).tolist(), [6, 15])
        self.assertEqual(self.c.sum(X, dim=1, keepdim=True).tolist(), [[6], [15]])
        self.assertEqual(self.c.reduce(X, "max", dim=-1).tolist(), [3, 6])
        self.assertEqual(self.c.cumulative_sum(X, dim=0).tolist(), X.cumsum(0).tolist())
        self.assertEqual(self.c.argmax(input=X, dim=0).tolist(), [1, 1, 1])
        self.assertEqual(self.c.top_k(X, 1, descending=False).values.tolist(), [[1], [4]])
        self.assertEqual(self.c.top_k(X, 1, dim=0, descending=True).values.tolist(), [[6, 5, 4]])
        d = da.from_array(X, chunks=1)
        self.assertEqual(od.sum(self.c, d, dim=1, keepdim=True).compute().tolist(), [[6], [15]])

    def test_both_words(self):
        for call in (lambda: self.c.sum(X, axis=0, dim=1), lambda: self.c.sum(X, 0, dim=1),
                     lambda: self.c.sum(X, axis=None, dim=None),
                     lambda: od.sum(self.c, da.from_array(X), 0, dim=0)):
            with self.assertRaisesRegex(TypeError, "both 'axis' and 'dim'"):
                call()
        with self.assertRaisesRegex(TypeError, "both 'keepdims' and 'keepdim'"):
            self.c.sum(X, keepdims=False, keepdim=True)

    def test_words_for_what_there_is_not(self):
        for name, words in (("dtype", "cast="), ("out", "new arrays"), ("where", "select")):
            for function in (self.c.sum, self.c.max, self.c.add):
                with self.assertRaisesRegex(TypeError, f"'{name}': .*{words}"):
                    function(X, **{name: None})

    def test_asyncio(self):
        async def main():
            async with await opmill.aio.connect(self.server.address) as c:
                with self.assertRaisesRegex(TypeError, "did you mean 'largest'"):
                    await c.top_k(X, 2, largets=False)
                with self.assertRaisesRegex(TypeError, "did you mean 'timeout'"):
                    await c.compile("reduce", [X], {"axes": 1}, timeou=3)
                with self.assertRaisesRegex(TypeError, "'no'"):
                    await c.execute("reduce", [X], {"axes": 1}, no=3)
                self.assertEqual((await c.sum(X, dim=1)).tolist(), [6, 15])
                return await c.sum(X.astype(float), cast="float32")

        self.assertEqual(asyncio.run(main()), 21)

    def test_values_of_other_types(self):
        for call, words in ((lambda: self.c.sum(X, keepdims="no"), "keepdims is 'no'"),
                            (lambda: self.c.cumulative_sum(X, has_exclusive_sum="no"), "is 'no'"),
                            (lambda: self.c.sum(X, 1.5), "axis is 1.5; it must be an integer"),
                            (lambda: self.c.sum(X, "rows"), "axis is 'rows'; it must be"),
                            (lambda: self.c.top_k(X, "2"), "k is '2'"),
                            (lambda: self.c.sum(X, timeout="5s"), "timeout is '5s'; it must be a "
                             "number of seconds"),
                            (lambda: self.c.sum(X, priority="high"), "priority is 'high'"),
                            (lambda: self.c.sum(X, progress=3), "progress is 3; it must be a func")):
            with self.assertRaisesRegex(TypeError, words):
                call()
        self.assertEqual(self.c.sum(X, feature_level=5.0, timeout=np.float32(60)), 21)
        self.assertEqual(self.c.sum(X, (0, 0)).tolist(), X.sum(0).tolist())  # axes are a set
        for call, words in ((lambda: self.c.sum(X, timeout=0), "timeout is 0; it must be above 0"),
                            (lambda: self.c.sum(None), "The input is None"),
                            (lambda: self.c.sum(X, cast="float33"), "cast is 'float33'; it must"),
                            (lambda: self.c.argmax(X, index_dtype="index"), "'index' are the res"),
                            (lambda: self.c.execute("reduce", X), "takes 1 input, and got 2")):
            with self.assertRaisesRegex(opmill.InvalidArgument, words):
                call()
        for axis in (None, (0, 1)):
            with self.assertRaisesRegex(ValueError, "not one axis.*-1 is the last"):
                self.c.cumulative_sum(X, axis)
        self.assertIn("last axis by default", re.sub(r"\s+", " ", self.c.cumulative_sum.__doc__))


class Elements(ServedCase):
    def refused(self, call, *words):
        with self.assertRaises(opmill.InvalidArgument) as raised:
            call()
        print(raised.exception)
        for word in words:
            self.assertIn(word, raised.exception.sentence)

    def test_are_not_cast_by_default(self):
        for array, advice in ((X.astype(float), "float32"), (X > 2, "int32"),
                              ([1.0, 2.0], "float32"), (X.astype(np.int8), "int32")):
            self.refused(lambda: self.c.sum(array), f'cast="{advice}"', "takes float32, float16")
        for array in (X.astype(np.int64), X > 2, [1, 2, 3]):
            self.refused(lambda: self.c.mean(array), 'mean takes float32, float16', "astype",
                         'cast="float32"')
        self.refused(lambda: self.c.max(X.astype(complex)), "complex", "astype")

    def test_casts(self):
        for dtype in ("float64", "int64", "bool", "uint8", "float32", ">f8"):
            x = X.astype(dtype)
            for like in (x, x.tolist()):
                self.assertEqual(self.c.mean(like, cast="float32"), x.astype("f4").mean())
        self.assertEqual(self.c.sum(X > 2, cast="int32").dtype, np.int32)
        self.assertEqual(self.c.sum(X > 2, cast="int32"), 4)
        self.assertEqual(self.c.add(X.astype(float), [1.0, 2.0, 3.0], cast=np.float32)[0, 0], 4)
        self.assertEqual(self.c.compile("reduce", [X.astype(float)], {"function": "sum", "axes": 1},
                                        cast="float16").outputs[0].data_type, "float16")

    def test_casts_of_connect_are_for_what_the_operator_does_not_take(self):
        exact = np.array([2**62 + 1, 5])
        with opmill.connect(self.server.address, cast="float32") as c:
            self.assertEqual(c.max(exact), 2**62 + 1)
            self.assertEqual(c.max(exact, cast="float32").dtype, np.float32)
            self.assertEqual(c.mean([1, 2]), 1.5)
            self.assertEqual(c.mean([1, 2]).dtype, np.float32)
            self.assertEqual(c.sum([0.5, 2.0], cast="float16").dtype, np.float16)
            self.assertEqual(c.sum(np.full((2, 1 << 20), 0.25)), 1 << 19)  # streamed

        async def main():
            async with await opmill.aio.connect(self.server.address, cast="float32") as c:
                return await c.mean([1, 2])

        self.assertEqual(asyncio.run(main()), 1.5)

    def test_casts_that_would_change_values_are_refused(self):
        self.refused(lambda: self.c.sum(X + 0.5j, cast="float32"), "complex64", "change values")
        self.refused(lambda: self.c.sum(X.astype(float), cast="int32"), "change values")
        self.refused(lambda: self.c.mean(X.astype(float), cast="int32"), "mean takes float32")
        for value, cast in ((1e300, "float32"), (70000, "float16"), (-1, "uint32"),
                            (2**40, "int32"), (np.uint64(2**63), "int64")):
            self.refused(lambda: self.c.max([value], cast=cast), f"({value}", f"fit in {cast}")
        self.assertEqual(self.c.max([1, np.inf], cast="float32"), np.inf)
        for cast in ("float64", bool):
            self.refused(lambda: self.c.mean(X, cast=cast), "cast is", "float32")
            self.refused(lambda: opmill.connect(self.server.address, cast=cast), "cast is")

    @unittest.skipUnless(pandas, "needs pandas")
    def test_pandas(self):
        frame = pandas.DataFrame({"a": [1.5, 2.5], "b": [3.0, 4.0]})
        self.refused(lambda: self.c.sum(frame), "float64", "cast=")
        self.assertEqual(self.c.sum(frame, axis=0, cast="float32").tolist(), [4, 7])
        self.assertEqual(self.c.mean(frame["a"], cast="float32"), 2)
        self.assertEqual(self.c.add(frame.astype("float32"), 1)[0, 0], 2.5)
        words = pandas.DataFrame({"a": ["one", "two"]})
        self.refused(lambda: self.c.max(words), "takes float32")
        self.refused(lambda: self.c.max(words, cast="float32"), "float32")
        missing = pandas.Series([1, None], dtype="Int64")
        self.refused(lambda: self.c.max(missing))
        whole = pandas.Series([1, 2], dtype="Int64").astype(object)
        self.assertEqual(self.c.mean(whole, cast="float32"), 1.5)

    def test_masked_arrays(self):
        masked = np.ma.masked_greater(X, 3)
        for array in (masked, [masked, masked]):
            self.refused(lambda: self.c.sum(array), "masked", "filled")
        self.refused(lambda: self.c.add(X, masked), "masked")
        self.refused(lambda: self.c.compile("hardmax", [masked], {"axes": 1}), "masked")
        self.assertEqual(self.c.sum(masked.filled(0)), 6)

    def test_arrays_without_dimensions_or_elements(self):
        for value in (3.0, np.float32(3), X[0, 0], np.array(2, np.float32)):
            for call in (self.c.sum, self.c.cumulative_sum, self.c.hardmax):
                self.refused(lambda: call(value), "single value", "1 to 8 dimensions")
        self.refused(lambda: self.c.top_k(X[0, 0], 1), "single value")
        self.refused(lambda: self.c.add(1, 2), "single value")
        for shape in ((0,), (0, 3), (3, 0)):
            for call in (self.c.sum, self.c.max, self.c.cumulative_sum):
                self.refused(lambda: call(np.zeros(shape, np.float32)), "no elements", str(shape))
        self.refused(lambda: self.c.sum([]), "no elements")

    def test_numbers_take_the_type_of_the_array(self):
        whole = np.array([1, 2], np.int32)
        self.assertEqual(self.c.add(whole, 2.0).tolist(), [3, 4])
        for number in (1.5, 2**31, float("nan"), float("inf")):
            self.refused(lambda: self.c.add(whole, number), "int32")
        self.refused(lambda: self.c.add(300, whole.astype(np.uint8)), "300", "uint8")
        self.refused(lambda: self.c.add(whole > 1, 3, cast="int32"), "3", "bool")
        self.assertEqual(self.c.add(whole > 1, 1, cast="int32").tolist(), [1, 2])


class Connections(ServedCase):
    def test_addresses(self):
        for target in ("localhost", "10.0.0.1", "::1", "host:", ":50051", "host:0", "host:65536",
                       "dns:///name", "[::1]", "10.0.0.1:5,10.0.0.2", "http://host:1", "",
                       "unix-abstract:name"):
            with self.assertRaises(opmill.InvalidArgument, msg=target) as raised:
                opmill.connect(target)
            self.assertIn("it must be host:port, for example 127.0.0.1:50051",
                          raised.exception.sentence)
        for target in ("httpd:50051", "unix:socket", "ipv4:10.0.0.1:5", "dns:///name:1"):
            opmill._channel.options_of(target, None, None)

    def test_values_of_other_types(self):
        for target in (50051, None):
            with self.assertRaisesRegex(TypeError, f"The server address is {target}; it must be"):
                opmill.connect(target)
        for name, value, words in (("connect_timeout", "5s", "a number of seconds"),
                                   ("timeout", True, "a number of seconds"),
                                   ("max_attempts", 2.5, "an integer"),
                                   ("tls", "ca.pem", "True, or opmill.Tls")):
            for connect in (opmill.connect, opmill.aio.connect):
                with self.assertRaisesRegex(TypeError, f"{name} is {value!r}; it must be {words}"):
                    asyncio.run(connect(self.server.address, **{name: value}))
        with self.assertRaisesRegex(opmill.InvalidArgument, "max_attempts is 0; it must be at lea"):
            opmill.connect(self.server.address, max_attempts=0)
        with self.assertRaisesRegex(TypeError, "The token is of type bytes; it must be a string"):
            opmill.connect(self.server.address, token=b"secret")
        for token in ("se cret\n", lambda: "s\u00e9cret"):
            with self.assertRaises(opmill.InvalidArgument) as raised:
                opmill.connect(self.server.address, token=token)
            self.assertIn("other than visible ASCII", raised.exception.sentence)
            self.assertNotIn("cret", raised.exception.sentence)

    def test_no_server(self):
        with ServerProcess(device="cpu") as server:
            address = server.address
        with self.assertRaises(opmill.Unavailable) as raised:
            opmill.connect(address)
        self.assertEqual(raised.exception.sentence,
                         f"No server answers at {address}: Connection refused.")
        with self.assertRaises(opmill.Unavailable) as raised:
            asyncio.run(opmill.aio.connect(address))
        self.assertIn(f"No server answers at {address}", raised.exception.sentence)
        with tempfile.TemporaryDirectory() as folder:
            with self.assertRaisesRegex(opmill.Unavailable, "No server answers at unix:"):
                opmill.connect(f"unix:{folder}/socket")
        options = opmill._channel.ConnectOptions("unix:/a")
        for words in ("UNKNOWN: unix:/a: No such file or directory.",
                      "UNKNOWN: connect failed: addr: unix:/a error: No such file or directory."):
            error = opmill.Unavailable(f"last error: {words}")
            self.assertEqual(opmill._connect_failure.connect_failure(error, options).sentence,
                             "No server answers at unix:/a: No such file or directory.")

    def test_sentences_are_those_of_the_command_line(self):
        """The table of client/connect_failure.cc has the same rows."""
        source = (ROOT / "client" / "connect_failure.cc").read_text(encoding="utf-8")
        table = re.search(r"kMeanings\[\] = \{(.*?)\n\};", source, re.DOTALL)[1]
        rows = re.findall(r'\{(true|false), "([^"]*)",\s*((?:"[^"]*"\s*)+)\}', table)
        self.assertEqual(
            [(tls == "true", words, "".join(re.findall('"([^"]*)"', sentence)))
             for tls, words, sentence in rows],
            [(tls, *row) for tls, meanings in opmill._connect_failure._MEANINGS.items()
             for row in meanings.items()])

    def test_names_that_cannot_be_resolved(self):
        """In the words of old and new versions of gRPC."""
        options = opmill._channel.ConnectOptions("dns:///nowhere:1")
        for words in ("DNS resolution failed for nowhere:1: Domain name not found",
                      "errors resolving nowhere:1: [field:hostname lookup error:address lookup "
                      "failed for nowhere:1: Domain name not found]"):
            error = opmill.Unavailable(f"The connection to the server failed: {words}.")
            self.assertEqual(opmill._connect_failure.connect_failure(error, options).sentence,
                             "The name nowhere cannot be resolved: Domain name not found.")

    def test_a_server_that_does_not_speak_grpc(self):
        words = "INTERNAL: ipv4:10.0.0.1:80: Trying to connect an http1.x server"
        error = opmill.Unavailable(f"The connection to the server failed: last error: {words}.")
        options = opmill._channel.ConnectOptions("10.0.0.1:80")
        self.assertEqual(opmill._connect_failure.connect_failure(error, options).sentence,
                         f"The server at 10.0.0.1:80 speaks HTTP/1, not gRPC ({words}).")

    def test_a_server_that_is_lost(self):
        with ServerProcess(device="cpu") as server:
            c = self.enterContext(opmill.connect(server.address, max_attempts=1))
            server.kill()
        with self.assertRaisesRegex(opmill.Unavailable, "The connection to the server failed: "):
            c.sum(X)

    def test_a_silent_server(self):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            target = "127.0.0.1:%d" % silent.getsockname()[1]
            with self.assertRaisesRegex(opmill.Unavailable, f"{target} within 0.2 s"):
                opmill.connect(target, connect_timeout=0.2)

    def test_closed_clients(self):
        c = opmill.connect(self.server.address)
        c.close()
        c.close()
        for call in (lambda: c.sum(X), c.server_info, c.statistics,
                     lambda: c.sum(np.ones((2, 1 << 20), np.float32)),
                     lambda: c.compile("hardmax", [X], {"axes": 1})):
            with self.assertRaisesRegex(opmill.OpMillError, "client of .* is closed"):
                call()

        async def main():
            c = await opmill.aio.connect(self.server.address)
            await c.close()
            for array in (X, np.ones((2, 1 << 20), np.float32)):
                with self.assertRaisesRegex(opmill.OpMillError, "closed"):
                    await c.sum(array)
            return repr(c)

        self.assertIn("closed", asyncio.run(main()))

    def test_repr(self):
        with opmill.connect(self.server.address) as c:
            self.assertRegex(repr(c), f"^<opmill.Client {self.server.address}, cpu device: .+>$")
        self.assertEqual(repr(c), f"<opmill.Client {self.server.address}, closed>")

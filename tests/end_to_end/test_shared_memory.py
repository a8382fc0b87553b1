"""Tensors in shared memory, from a client with the contract alone; segments that do not keep their
promises; what is left of clients that are killed."""

import contextlib
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import unittest

import grpc
import numpy as np

import api
import arrays
from api import Refusal, sv
from server_process import ServerProcess, plain_environment

DEVICE = "reference"


class Segment:
    """A segment of /dev/shm, which shm_open names without the folder."""

    def __init__(self, size, name=None):
        self.key = name or f"/opmill-test-{os.urandom(8).hex()}"
        self.path = "/dev/shm" + self.key
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        self.resize(size)

    def resize(self, size):
        os.truncate(self._file, size)

    def remove(self):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)

    def write(self, data, offset=0):
        assert os.pwrite(self._file, data, offset) == len(data)

    def read(self, size, offset=0):
        return os.pread(self._file, size, offset)

    def range(self, byte_size, offset=0):
        return sv.SharedMemoryRange(key=self.key, offset=offset, byte_size=byte_size)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.remove()
        os.close(self._file)


def segments_open_in(pid):
    folder = pathlib.Path(f"/proc/{pid}/fd")
    links = []
    for entry in os.listdir(folder):
        with contextlib.suppress(OSError):  # has been closed
            links.append(os.readlink(folder / entry))
    maps = pathlib.Path(f"/proc/{pid}/maps").read_text()
    return [link for link in [*links, *maps.splitlines()] if "/dev/shm/" in link]


class SharedMemoryCase(unittest.TestCase):
    flags = []

    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(ServerProcess(*cls.flags, device=DEVICE))
        cls.channel = cls.enterClassContext(api.connect(cls.server.address))
        cls.stub = api.stub_of(cls.channel)

    def execute(self, operator, **fields):
        outcome = api.Outcome()
        request = sv.ExecuteRequest(operator=operator, **fields)
        for message in self.stub.Execute(request, timeout=api.TIMEOUT_SECONDS):
            outcome.add(message)
        return outcome

    def refused(self, operator, **fields):
        with self.assertRaises(grpc.RpcError) as raised:
            self.execute(operator, **fields)
        return Refusal.of_error(raised.exception)


class SharedMemory(SharedMemoryCase):
    def check(self, operator, inputs, at=64):
        """Inputs in shared memory, outputs there, both: the bytes are those without."""
        data = [arrays.data_of(array) for array in inputs]
        plain = self.execute(operator, inputs=data)
        sizes = plain.started.output_bytes
        with Segment(at + sum(map(len, data))) as source, Segment(at + sum(sizes)) as target:
            offset, sources = at, []
            for each in data:
                source.write(each, offset)
                sources.append(source.range(len(each), offset))
                offset += len(each)
            offset, targets = at, []
            for size in sizes:
                targets.append(target.range(size, offset))
                offset += size

            outcome = self.execute(operator, shared_inputs=sources)
            for index in range(len(sizes)):
                self.assertEqual(outcome.output(index), plain.output(index))
            places = [{"inputs": data}, {"shared_inputs": sources}]
            for sent in range(len(data) if len(data) > 1 else 0):  # one beside shared ones
                ranges = sources[:sent] + [sv.SharedMemoryRange()] + sources[sent + 1:]
                places.append({"inputs": [data[sent]], "shared_inputs": ranges})
            for fields in places:
                target.write(b"\xa5" * (at + sum(sizes)))
                outcome = self.execute(operator, shared_outputs=targets, **fields)
                self.assertEqual(outcome.outputs, {})
                self.assertEqual(outcome.messages, 1)
                self.assertEqual(outcome.started, plain.started)
                self.assertTrue(outcome.statistics.HasField("compute"))
                self.assertEqual(target.read(at), b"\xa5" * at)
                for index, each in enumerate(targets):
                    self.assertEqual(target.read(each.byte_size, each.offset), plain.output(index))

    def test_every_type(self):
        for dtype in arrays.ALL_TYPES:
            array = arrays.awkward(dtype, (3, 50, 7), seed=1)
            with self.subTest(dtype=dtype):
                self.check(arrays.reduce(array, "max", [1]), [array])
                self.check(arrays.argmin(array, [0, 2]), [array], at=0)
                self.check(arrays.top_k(array, 1, 9), [array], at=3)  # two outputs, unaligned
        for dtype in arrays.FLOATS:
            array = arrays.awkward(dtype, (3, 50, 7), seed=2)
            self.check(arrays.hardmax(array, [1]), [array])

    def test_strides_and_several_inputs(self):
        array = np.asfortranarray(arrays.awkward("int16", (31, 17), seed=3))
        self.check(arrays.argmax(array, [0]), [array])
        a, b = (arrays.awkward("float32", (40, 30), seed=seed) for seed in (4, 5))
        add = api.op.OperatorDesc(element_wise_add=api.op.ElementWiseAddDesc(
            a=arrays.tensor(a), b=arrays.tensor(b)))
        self.check(add, [a, b])

    def test_tensors_of_several_steps(self):
        array = arrays.awkward("float32", (1100, 4096), seed=6)  # 17 MiB, in steps of 4
        self.check(arrays.hardmax(array, [1]), [array], at=1)
        self.check(arrays.reduce(array, "sum", [0]), [array], at=1)

    def test_an_output_may_replace_the_input(self):
        array = arrays.awkward("float32", (1500, 1024), seed=7)
        data = arrays.data_of(array)
        with Segment(len(data)) as segment:
            segment.write(data)
            both = [segment.range(len(data))]
            self.execute(arrays.hardmax(array, [1]), shared_inputs=both, shared_outputs=both)
            result = np.frombuffer(segment.read(len(data)), "float32").reshape(array.shape)
        np.testing.assert_array_equal(result, arrays.expect_hardmax(array, [1]))

    def test_many_clients_at_once(self):
        wrong = []

        def work(seed):
            array = arrays.awkward("float32", (600, 1000), seed)
            data = arrays.data_of(array)
            with api.connect(self.server.address) as channel, Segment(2 * len(data)) as segment:
                for _ in range(5):
                    segment.write(data)
                    request = sv.ExecuteRequest(
                        operator=arrays.hardmax(array, [1]),
                        shared_inputs=[segment.range(len(data))],
                        shared_outputs=[segment.range(len(data), len(data))])
                    list(api.stub_of(channel).Execute(request, timeout=api.TIMEOUT_SECONDS))
                    result = np.frombuffer(segment.read(len(data), len(data)), "float32")
                    if not np.array_equal(result.reshape(array.shape),
                                          arrays.expect_hardmax(array, [1])):
                        wrong.append(seed)

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_refusals_name_field_and_value(self):
        array = arrays.awkward("float32", (4, 8), seed=8)
        operator = arrays.hardmax(array, [1])
        data = arrays.data_of(array)
        with Segment(1000) as segment:
            good = segment.range(128)

            def ranged(**fields):
                fields = {"key": segment.key, "offset": 0, "byte_size": 128} | fields
                return sv.SharedMemoryRange(**fields)

            for bad, field, words in (
                    (ranged(key=""), ".key", "is not the name of a shared memory segment"),
                    (ranged(key="../../etc/passwd"), ".key", "is not the name"),
                    (ranged(key="/dev/shm" + segment.key), ".key", "is not the name"),
                    (ranged(key="x" * 5000), ".key", "is not the name"),
                    (ranged(key="/opmill-none"), ".key", "No such file"),
                    (ranged(byte_size=0), ".byte_size", "byte_size (0)"),
                    (ranged(byte_size=1001), ".byte_size", "byte_size (1001)"),
                    (ranged(byte_size=2**64 - 1), ".byte_size", "1000 bytes"),
                    (ranged(offset=873), ".byte_size", "offset 873"),
                    (ranged(offset=1000), ".offset", "offset (1000)"),
                    (ranged(offset=2**64 - 1), ".offset", "1000 bytes"),
                    (ranged(offset=2**64 - 64), ".offset", "1000 bytes"),
                    (ranged(byte_size=127), ".byte_size", "takes 128 bytes")):
                with self.subTest(bad=str(bad)):
                    refusal = self.refused(operator, shared_inputs=[bad])
                    self.assertEqual(refusal.code, grpc.StatusCode.INVALID_ARGUMENT)
                    self.assertEqual(refusal.fields, ["shared_inputs[0]" + field])
                    self.assertIn(words, refusal.sentence)
                    self.assertLess(len(refusal.sentence), 1000)
                    refusal = self.refused(operator, inputs=[data], shared_outputs=[bad])
                    self.assertEqual(refusal.fields, ["shared_outputs[0]" + field])

            refusal = self.refused(operator, shared_inputs=[segment.range(129)])
            self.assertEqual(refusal.fields, ["shared_inputs[0].byte_size"])
            refusal = self.refused(operator, shared_inputs=[good], inputs=[data])
            self.assertEqual(refusal.fields, ["shared_inputs"])
            self.assertEqual(refusal.sentence, "shared_inputs leaves 0 of 1 tensors to inputs, "
                             "which has 1; each input has one source.")
            refusal = self.refused(operator, shared_inputs=[sv.SharedMemoryRange()])
            self.assertEqual(refusal.sentence, "shared_inputs leaves 1 of 1 tensors to inputs, "
                             "which has 0; each input has one source.")
            refusal = self.refused(operator, shared_inputs=[sv.SharedMemoryRange()],
                                   inputs=[data[:-1]])
            self.assertEqual(refusal.fields, ["inputs[0]"])
            refusal = self.refused(operator, shared_inputs=[good, good])
            self.assertEqual(refusal.fields, ["shared_inputs"])
            refusal = self.refused(operator, inputs=[data], shared_outputs=[good, good])
            self.assertEqual(refusal.fields, ["shared_outputs"])
            refusal = self.refused(operator, shared_outputs=[good])
            self.assertEqual(refusal.fields, ["inputs"])
            refusal = self.refused(arrays.top_k(array, 1, 8), inputs=[data],
                                   shared_outputs=[good, segment.range(128, 127)])
            self.assertEqual(refusal.fields, ["shared_outputs[1]"])
        api.wait_until_idle(self.stub)

    def test_what_is_no_segment(self):
        operator = arrays.hardmax(np.zeros(1, np.float32), [0])
        key = f"opmill-test-{os.urandom(8).hex()}"
        path = f"/dev/shm/{key}"
        for create, remove in ((os.mkfifo, os.unlink), (os.mkdir, os.rmdir),
                               (lambda p: os.symlink("/etc/passwd", p), os.unlink)):
            create(path)
            try:
                refusal = self.refused(operator, shared_inputs=[
                    sv.SharedMemoryRange(key=key, byte_size=4)])
            finally:
                remove(path)
            self.assertEqual(refusal.fields, ["shared_inputs[0].key"])

    def test_segments_that_change_under_the_server(self):
        array = arrays.awkward("float32", (1 << 11, 1 << 10), seed=9)  # 8 MiB
        data = arrays.data_of(array)
        expected = arrays.data_of(arrays.expect_hardmax(array, [1]).astype(np.float32))
        with Segment(len(data)) as source, Segment(len(data)) as target:
            done = threading.Event()

            def disturb():
                # Never longer than it was: growing it back gives zeros, which is a valid input.
                for step in range(1 << 30):
                    (source, target)[step % 2].resize(step * 997 % len(data))
                    (source, target)[step % 2].resize(len(data))
                    if done.is_set():
                        return

            disturber = threading.Thread(target=disturb)
            disturber.start()
            fields = set()
            try:
                for _ in range(40):
                    try:
                        self.execute(arrays.hardmax(array, [1]),
                                     shared_inputs=[source.range(len(data))],
                                     shared_outputs=[target.range(len(data))])
                    except grpc.RpcError as error:
                        fields.update(Refusal.of_error(error).fields)
            finally:
                done.set()
                disturber.join()
            print("refused for", sorted(fields))
            self.assertLessEqual({field.split("[")[0] for field in fields},
                                 {"shared_inputs", "shared_outputs"})
            source.write(data)
            target.resize(len(data))
            self.execute(arrays.hardmax(array, [1]), shared_inputs=[source.range(len(data))],
                         shared_outputs=[target.range(len(data))])
            self.assertEqual(target.read(len(data)), expected)
        api.wait_until_idle(self.stub)
        self.assertEqual(segments_open_in(self.server.pid), [])

    def test_segments_that_vanish(self):
        array = arrays.awkward("float32", (64, 64), seed=10)
        with Segment(1 << 14) as source, Segment(1 << 14) as target:
            target.remove()
            refusal = self.refused(arrays.hardmax(array, [1]),
                                   shared_inputs=[source.range(1 << 14)],
                                   shared_outputs=[target.range(1 << 14)])
            self.assertEqual(refusal.fields, ["shared_outputs[0].key"])
            source.remove()
            refusal = self.refused(arrays.hardmax(array, [1]),
                                   shared_inputs=[source.range(1 << 14)])
            self.assertEqual(refusal.fields, ["shared_inputs[0].key"])

    def test_an_output_that_shrinks_during_the_run(self):
        array = arrays.awkward("float32", (1100, 4096), seed=11)  # 17 MiB, slow on this device
        data = arrays.data_of(array)
        for _ in range(10):
            with Segment(len(data)) as target:
                call = self.stub.Execute(
                    sv.ExecuteRequest(operator=arrays.hardmax(array, [1]), inputs=[data],
                                      shared_outputs=[target.range(len(data))]),
                    timeout=api.TIMEOUT_SECONDS)
                while (not self.stub.GetStatistics(sv.GetStatisticsRequest()).in_flight.running
                       and call.is_active()):
                    pass
                target.resize(len(data) - 1)
                try:
                    list(call)
                except grpc.RpcError as error:
                    refusal = Refusal.of_error(error)
                    self.assertEqual(refusal.fields, ["shared_outputs[0].key"])
                    self.assertIn(f"it ends at byte {len(data) - 1}", refusal.sentence)
                    break  # else the run was faster than this test
        else:
            self.fail("no run was slow enough")
        api.wait_until_idle(self.stub)

    def test_a_killed_client_leaves_nothing_open(self):
        program = f"""
import os, sys
sys.path.insert(0, {str(pathlib.Path(__file__).parent)!r})
import numpy as np
import api, arrays, test_shared_memory
array = np.zeros((1 << 12, 1 << 11), np.float32)
segment = test_shared_memory.Segment(array.nbytes, sys.argv[2])
ranges = [segment.range(array.nbytes)]
request = api.sv.ExecuteRequest(operator=arrays.hardmax(array, [1]), shared_inputs=ranges,
                                shared_outputs=ranges)
stub = api.stub_of(api.connect(sys.argv[1]))
calls = [stub.Execute(request) for _ in range(4)]
next(calls[0])
os.kill(os.getpid(), 9)
"""
        key = f"/opmill-test-{os.urandom(8).hex()}"
        try:
            done = subprocess.run([sys.executable, "-c", program, self.server.address, key],
                                  env=plain_environment(), capture_output=True, text=True,
                                  timeout=300, check=False)
            self.assertEqual(done.returncode, -9, done.stderr)
            api.wait_until_idle(self.stub)
            self.assertEqual(segments_open_in(self.server.pid), [])
        finally:
            os.unlink("/dev/shm" + key)

    def test_it_is_announced(self):
        self.assertTrue(self.stub.GetServerInfo(sv.GetServerInfoRequest()).shared_memory)
        self.assertEqual(self.server.lines("serving")[0]["shared_memory"], "on")


@unittest.skipUnless(os.geteuid() == 0, "only root may give a segment away")
class SegmentsOfOtherUsers(unittest.TestCase):
    USER, STRANGER = 12345, 12346

    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.array = arrays.awkward("float32", (4, 8), seed=12)
        self.segment = self.enterContext(Segment(128))
        self.segment.write(arrays.data_of(self.array))

    def serve(self, *flags):
        server = self.enterContext(ServerProcess(
            f"--address=127.0.0.1:0,unix:{self.folder}/socket", *flags, device=DEVICE))
        os.chmod(self.folder, 0o755)
        os.chmod(self.folder / "socket", 0o666)
        return server.address.split(",")

    def stub_at(self, address, user=0):
        """Over a connection of its own, which this user has opened."""
        channel = self.enterContext(grpc.insecure_channel(
            address, options=[("grpc.use_local_subchannel_pool", 1)]))
        os.seteuid(user)
        try:
            grpc.channel_ready_future(channel).result(timeout=api.TIMEOUT_SECONDS)
        finally:
            os.seteuid(0)
        return api.stub_of(channel)

    def execute(self, stub):
        ranges = [self.segment.range(128)]
        request = sv.ExecuteRequest(operator=arrays.hardmax(self.array, [1]),
                                    shared_inputs=ranges, shared_outputs=ranges)
        list(stub.Execute(request, timeout=api.TIMEOUT_SECONDS))

    def refused(self, stub):
        with self.assertRaises(grpc.RpcError) as raised:
            self.execute(stub)
        refusal = Refusal.of_error(raised.exception)
        self.assertEqual(refusal.fields, ["shared_inputs[0].key"])
        self.assertIn(f"it belongs to user {self.USER}, the server runs as user 0",
                      refusal.sentence)
        self.assertIn("--shared_memory=on", refusal.sentence)

    def test_are_used_for_their_users_at_a_unix_socket(self):
        tcp, unix = self.serve()
        over_tcp = self.stub_at(tcp)
        self.execute(over_tcp)  # of the server's own user
        os.chown(self.segment.path, self.USER, -1)
        self.refused(over_tcp)
        self.refused(self.stub_at(unix))
        own = self.stub_at(unix, self.USER)
        self.execute(own)
        self.refused(over_tcp)
        self.refused(self.stub_at(unix, self.STRANGER))
        self.refused(own)  # a call may now be of either

    def test_are_used_with_the_flag(self):
        tcp, _ = self.serve("--shared_memory=on")
        os.chown(self.segment.path, self.USER, -1)
        self.execute(self.stub_at(tcp))


class SharedMemoryOff(SharedMemoryCase):
    flags = ["--shared_memory=off"]

    def test_ranges_are_refused(self):
        self.assertFalse(self.stub.GetServerInfo(sv.GetServerInfoRequest()).shared_memory)
        operator = arrays.hardmax(np.zeros(1, np.float32), [0])
        with Segment(4) as segment:
            refusal = self.refused(operator, shared_inputs=[segment.range(4)])
        self.assertEqual(refusal.fields, ["shared_inputs[0].key"])
        self.assertIn("--shared_memory", refusal.sentence)


class SharedMemoryOfAnAddressThatOthersReach(SharedMemoryCase):
    flags = ["--address=0.0.0.0:0", "--insecure"]

    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(ServerProcess(*cls.flags, device=DEVICE))

    def test_is_off(self):
        self.assertEqual(self.server.lines("serving")[0]["shared_memory"], "off")


if __name__ == "__main__":
    unittest.main()

"""What the Open Inference Protocol has in common with our own service: callers, their limits, and the
priorities of their executions."""

import pathlib
import queue
import tempfile
import time
import unittest

import grpc
import numpy as np
import tritonclient.grpc as triton

import api
import arrays
import test_open_inference
import test_shared_memory
from api import sv
from server_process import ServerProcess
from test_open_inference import inputs_of

TOKENS = {"alice": "alice-token-0123456789", "bob": "bob-token-0123456789abcdef"}
BLOCKER_ROWS = 3840
ATTEMPTS = 20


def headers_of(name):
    return {"authorization": f"Bearer {TOKENS[name]}"}


class Callers(unittest.TestCase):
    def serve(self, *flags):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        (folder / "tokens").write_text("".join(f"{name} {token}\n" for name, token in
                                               TOKENS.items()), encoding="utf-8")
        (folder / "tokens").chmod(0o600)
        self.server = self.enterContext(
            ServerProcess(f"--token_file={folder / 'tokens'}", *flags, device="reference"))
        self.client = self.enterContext(triton.InferenceServerClient(self.server.address))

    def infer(self, name):
        array = np.ones((2, 3), np.float32)
        return self.client.infer("argmax", inputs_of(input=array), parameters={"axes": 1},
                                 headers=headers_of(name),
                                 client_timeout=test_open_inference.TIMEOUT_SECONDS)

    def refused(self, call, *arguments, **fields):
        with self.assertRaises(triton.InferenceServerException) as raised:
            call(*arguments, **fields)
        return raised.exception.status().split(".")[1], raised.exception.message()

    def test_limits_of_a_caller(self):
        self.serve("--caller_limits=rate=0.001/s")
        self.infer("alice")
        self.server.wait_for(lambda line: line.get("rpc") == "ModelInfer" and
                             line.get("caller") == "alice")
        code, sentence = self.refused(self.infer, "alice")
        self.assertEqual(code, "RESOURCE_EXHAUSTED")
        self.assertIn("rate", sentence)
        answers = queue.SimpleQueue()
        self.client.start_stream(lambda result, error: answers.put(error),
                                 headers=headers_of("alice"))
        self.client.async_stream_infer("argmax", inputs_of(input=np.ones((2, 3), np.float32)),
                                       parameters={"axes": "1"})
        self.assertEqual(answers.get(timeout=test_open_inference.TIMEOUT_SECONDS).message(),
                         sentence)
        self.client.stop_stream()
        array = np.ones((2, 3), np.float32)
        request = sv.ExecuteRequest(operator=arrays.hardmax(array, [1]),
                                    inputs=[arrays.data_of(array)])
        with api.connect(self.server.address) as channel, \
                self.assertRaises(grpc.RpcError) as raised:
            list(api.stub_of(channel).Execute(request, timeout=api.TIMEOUT_SECONDS,
                                              metadata=list(headers_of("alice").items())))
        self.assertEqual(raised.exception.details(), sentence)
        self.infer("bob")

    def test_regions_belong_to_their_caller(self):
        self.serve()
        alice, bob = headers_of("alice"), headers_of("bob")
        array = np.ones((2, 16), np.float32)
        tensor = triton.InferInput("input", array.shape, "FP32")
        tensor.set_shared_memory("region", array.nbytes)
        with test_shared_memory.Segment(array.nbytes) as segment:
            self.client.register_system_shared_memory("region", segment.key, array.nbytes,
                                                      headers=alice)
            self.client.infer("argmax", [tensor], parameters={"axes": 1}, headers=alice)
            code, sentence = self.refused(self.client.infer, "argmax", [tensor],
                                          parameters={"axes": 1}, headers=bob)
            self.assertEqual((code, sentence),
                             ("INVALID_ARGUMENT",
                              'name ("region") is not a registered region of shared memory.'))
            self.client.unregister_system_shared_memory(headers=bob)
            self.assertEqual(len(self.client.get_system_shared_memory_status(
                headers=bob).regions), 0)
            self.assertEqual(len(self.client.get_system_shared_memory_status(
                headers=alice).regions), 1)

    def test_every_method_needs_a_token(self):
        self.serve()
        self.assertEqual(self.refused(self.client.infer, "argmax", [])[0], "UNAUTHENTICATED")
        for method in ("is_server_ready", "get_model_repository_index",
                       "get_system_shared_memory_status", "unregister_system_shared_memory"):
            with self.subTest(method):
                self.assertEqual(self.refused(getattr(self.client, method))[0], "UNAUTHENTICATED")


class Priority(test_open_inference.TritonCase):
    def start(self, columns, priority, count, answers):
        array = np.ones((1100, columns), np.float32)  # 5 MiB
        for _ in range(count):
            self.client.async_infer("argmax", inputs_of(input=array),
                                    lambda result, error: answers.put(error),
                                    parameters={"axes": 1}, priority=priority)

    def wait_for_queue(self, count, blocker):
        """False if the blocker has ended before."""
        until = time.monotonic() + test_open_inference.TIMEOUT_SECONDS
        while time.monotonic() < until:
            in_flight = self.stub.GetStatistics(sv.GetStatisticsRequest()).in_flight
            if not blocker.empty():
                return False
            if in_flight.queued == count:
                return True
        self.fail(f"{count} executions are never queued")

    def test_the_highest_runs_first(self):
        self.stub = api.stub_of(self.enterContext(api.connect(self.server.address)))
        blocking = inputs_of(input=np.ones((BLOCKER_ROWS, BLOCKER_ROWS), np.float32))  # 56 MiB
        for attempt in range(ATTEMPTS):
            blocker, answers = queue.SimpleQueue(), queue.SimpleQueue()
            self.client.async_infer("reduce_log_sum_exp", blocking,
                                    lambda result, error, to=blocker: to.put(error),
                                    parameters={"axes": 1})
            while (blocker.empty() and
                   not self.stub.GetStatistics(sv.GetStatisticsRequest()).in_flight.running):
                pass
            queued = True
            # In the order of their arrival: priority 0, the default; 2; 1, the highest.
            columns = {priority: 1200 + 10 * attempt + priority for priority in (0, 2, 1)}
            for index, priority in enumerate(columns):
                self.start(columns[priority], priority, 2, answers)
                queued = queued and self.wait_for_queue(2 * (index + 1), blocker)
            for _ in range(6):
                self.assertIsNone(answers.get(timeout=test_open_inference.TIMEOUT_SECONDS))
            self.assertIsNone(blocker.get(timeout=test_open_inference.TIMEOUT_SECONDS))
            if queued:
                break
        else:
            self.fail("no run was slow enough")

        def waits(priority):
            lines = [line["queue_us"] for line in self.server.lines("execute")
                     if f"FLOAT32[1100,{columns[priority]}]" in line["operator"]]
            return lines if len(lines) == 2 else None

        self.server.wait_for(lambda _: all(map(waits, columns)))
        # They began to wait in the opposite order.
        self.assertLess(max(waits(1)), min(waits(2)))
        self.assertLess(max(waits(2)), min(waits(0)))


if __name__ == "__main__":
    unittest.main()

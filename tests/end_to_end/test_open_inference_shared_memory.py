"""System shared memory of the Open Inference Protocol: through tritonclient's utilities, and regions
that do not keep their promises."""

import os
import queue
import time
import unittest

import numpy as np
import tritonclient.grpc as triton
from tritonclient.utils import shared_memory as triton_memory

import api
import arrays
import doc_page
import test_open_inference
import test_shared_memory

MOST_REGIONS = 1000


def key_of_test():
    return f"/opmill-test-{os.urandom(8).hex()}"


def shared_input(name, array, region, offset=0, byte_size=None):
    tensor = triton.InferInput(name, array.shape, test_open_inference.type_name(array))
    tensor.set_shared_memory(region, array.nbytes if byte_size is None else byte_size, offset)
    return tensor


def shared_output(name, region, byte_size, offset=0):
    output = triton.InferRequestedOutput(name)
    output.set_shared_memory(region, byte_size, offset)
    return output


class SharedMemoryCase(test_open_inference.TritonCase):
    def setUp(self):
        self.addCleanup(self.client.unregister_system_shared_memory)

    def region(self, name, size):
        """A region of tritonclient's; its handle."""
        key = key_of_test()
        handle = triton_memory.create_shared_memory_region(name, key, size)
        self.addCleanup(triton_memory.destroy_shared_memory_region, handle)
        self.client.register_system_shared_memory(name, key, size)
        return handle

    def segment(self, name, size):
        """A region whose segment the test can change."""
        segment = self.enterContext(test_shared_memory.Segment(size))
        self.client.register_system_shared_memory(name, segment.key, size)
        return segment

    def call(self, model, inputs, outputs=None, **parameters):
        return self.client.infer(model, inputs, outputs=outputs, parameters=parameters,
                                 client_timeout=test_open_inference.TIMEOUT_SECONDS)

    def refusal(self, model, inputs, outputs=None, **parameters):
        with self.assertRaises(triton.InferenceServerException) as raised:
            self.call(model, inputs, outputs, **parameters)
        self.assertEqual(raised.exception.status(), "StatusCode.INVALID_ARGUMENT")
        return raised.exception.message()

    def refused_call(self, call, *arguments):
        with self.assertRaises(triton.InferenceServerException) as raised:
            call(*arguments)
        return raised.exception.status().split(".")[1], raised.exception.message()


class SharedMemory(SharedMemoryCase):
    def test_every_type(self):
        source, target = self.region("in", 1 << 16), self.region("out", 1 << 16)
        for dtype in arrays.ALL_TYPES:
            array = arrays.awkward(dtype, (5, 300), seed=1)
            triton_memory.set_shared_memory_region(source, [array], offset=64)
            values, indices = arrays.expect_top_k(array, 1, 9, "decreasing")
            outputs = [shared_output("output_indices", "out", indices.nbytes, values.nbytes),
                       shared_output("output_values", "out", values.nbytes)]
            with self.subTest(dtype=dtype):
                result = self.call("top_k", [shared_input("input", array, "in", 64)], outputs,
                                   axis=1, k=9)
                response = result.get_response()
                self.assertEqual(list(response.raw_output_contents), [b"", b""])
                self.assertEqual([(o.name, o.datatype, list(o.shape)) for o in response.outputs],
                                 [("output_indices", "UINT32", [5, 9]),
                                  ("output_values", test_open_inference.type_name(array), [5, 9])])
                np.testing.assert_array_equal(
                    triton_memory.get_contents_as_numpy(target, array.dtype, (5, 9)), values)
                # Its offset must be a multiple of the size of an index for tritonclient.
                written = triton_memory.get_contents_as_numpy(target, np.uint8,
                                                              values.nbytes + indices.nbytes)
                self.assertEqual(written[values.nbytes:].tobytes(),
                                 indices.astype("uint32").tobytes())

    def test_inputs_and_outputs_in_both_places(self):
        a = arrays.awkward("int32", (300, 70), seed=2)
        b = arrays.awkward("int32", (300, 70), seed=3)
        source, target = self.region("in", a.nbytes), self.region("out", a.nbytes)
        triton_memory.set_shared_memory_region(source, [b])
        plain = {t.name(): t for t in test_open_inference.inputs_of(a=a, b=b)}
        expected = self.call("element_wise_add", list(plain.values())).as_numpy("output")
        shared = shared_input("b", b, "in")
        for inputs in ([plain["a"], shared], [shared, plain["a"]]):
            np.testing.assert_array_equal(
                self.call("element_wise_add", inputs).as_numpy("output"), expected)
            self.call("element_wise_add", inputs, [shared_output("output", "out", a.nbytes)])
            np.testing.assert_array_equal(
                triton_memory.get_contents_as_numpy(target, np.int32, a.shape), expected)
        result = self.call("top_k", [shared_input("input", b, "in")],
                           [triton.InferRequestedOutput("output_values"),
                            shared_output("output_indices", "out", 4 * 300 * 2)], axis=1, k=2)
        values, indices = arrays.expect_top_k(b, 1, 2, "decreasing")
        np.testing.assert_array_equal(result.as_numpy("output_values"), values)
        np.testing.assert_array_equal(
            triton_memory.get_contents_as_numpy(target, np.uint32, (300, 2)), indices)

    def test_typed_contents_beside_shared_memory(self):
        a = arrays.awkward("int32", (30, 7), seed=6)
        b = arrays.awkward("int32", (30, 7), seed=7)
        triton_memory.set_shared_memory_region(self.region("in", b.nbytes + 4), [b], offset=4)
        typed = triton.InferInput("a", a.shape, "INT32")
        typed._get_tensor().contents.int_contents.extend(a.ravel().tolist())
        result = self.call("element_wise_add", [typed, shared_input("b", b, "in", 4)])
        plain = test_open_inference.inputs_of(a=a, b=b)
        np.testing.assert_array_equal(result.as_numpy("output"),
                                      self.call("element_wise_add", plain).as_numpy("output"))

    def test_tensors_of_several_steps_beside_raw_contents(self):
        a = arrays.awkward("int32", (1100, 2048), seed=4)  # 9 MiB, copied in steps of 4
        b = arrays.awkward("int32", (1100, 2048), seed=5)
        source, target = self.region("in", b.nbytes + 1), self.region("out", b.nbytes)
        triton_memory.set_shared_memory_region(source, [b], offset=1)
        plain = {t.name(): t for t in test_open_inference.inputs_of(a=a, b=b)}
        self.call("element_wise_add", [plain["a"], shared_input("b", b, "in", 1)],
                  [shared_output("output", "out", b.nbytes)])
        np.testing.assert_array_equal(
            triton_memory.get_contents_as_numpy(target, np.int32, b.shape),
            self.call("element_wise_add", list(plain.values())).as_numpy("output"))

    def test_an_output_may_replace_the_input(self):
        array = arrays.awkward("float32", (40, 50), seed=6)
        region = self.region("both", array.nbytes)
        triton_memory.set_shared_memory_region(region, [array])
        self.call("hardmax", [shared_input("input", array, "both")],
                  [shared_output("output", "both", array.nbytes)], axes=1)
        np.testing.assert_array_equal(
            triton_memory.get_contents_as_numpy(region, np.float32, array.shape),
            arrays.expect_hardmax(array, [1]))

    def test_tensors_that_leave_shared_memory_and_return(self):
        """As Triton's example of inputs and outputs that are used again."""
        arrays_of = {name: arrays.awkward("int32", (1, 16), seed) for seed, name in enumerate("ab")}
        regions = {name: self.region(name, 64) for name in ("a", "b", "out")}
        inputs = [triton.InferInput(name, [1, 16], "INT32") for name in "ab"]
        outputs = [triton.InferRequestedOutput("output")]
        for round_, is_shared in enumerate((True, False, True)):
            given = [array + round_ for array in arrays_of.values()]
            for tensor, array in zip(inputs, given):
                if is_shared:
                    triton_memory.set_shared_memory_region(regions[tensor.name()], [array])
                    tensor.set_shared_memory(tensor.name(), array.nbytes)
                else:
                    tensor.set_data_from_numpy(array)
            if is_shared:
                outputs[0].set_shared_memory("out", 64)
            else:
                outputs[0].unset_shared_memory()
            result = self.call("element_wise_add", inputs, outputs)
            actual = (triton_memory.get_contents_as_numpy(regions["out"], np.int32, (1, 16))
                      if is_shared else result.as_numpy("output"))
            np.testing.assert_array_equal(actual, given[0] + given[1])

    def test_the_example_of_the_document(self):
        doc_page.run(self, "docs/open-inference-protocol.md",
                     {"127.0.0.1:50051": self.server.address})

    def test_streams(self):
        array = arrays.awkward("int16", (4, 60), seed=7)
        source, target = self.region("in", array.nbytes), self.region("out", 64)
        triton_memory.set_shared_memory_region(source, [array])
        answers = queue.SimpleQueue()
        self.client.start_stream(lambda result, error: answers.put((result, error)))
        for region in ("out", "nothing", "out"):
            self.client.async_stream_infer(
                "argmax", [shared_input("input", array, "in")], parameters={"axes": "1"},
                outputs=[shared_output("output", region, 16, 16)])
        for index in range(3):
            _, error = answers.get(timeout=test_open_inference.TIMEOUT_SECONDS)
            if index == 1:
                self.assertIn("nothing", error.message())
            else:
                self.assertIsNone(error)
        self.client.stop_stream()
        np.testing.assert_array_equal(
            triton_memory.get_contents_as_numpy(target, np.uint32, (4, 1), 16),
            arrays.expect_arg(array, [1], "max"))

    def test_regions_are_listed_and_unregistered(self):
        one, two = self.segment("one", 64), self.segment("two", 128)
        client = self.client
        self.assertIn("system_shared_memory", client.get_server_metadata().extensions)
        regions = client.get_system_shared_memory_status().regions
        self.assertEqual({name: (r.name, r.key, r.offset, r.byte_size)
                          for name, r in regions.items()},
                         {"one": ("one", one.key, 0, 64), "two": ("two", two.key, 0, 128)})
        self.assertEqual(list(client.get_system_shared_memory_status("two").regions), ["two"])
        client.unregister_system_shared_memory("one")
        client.unregister_system_shared_memory("one")
        self.assertEqual(self.refused_call(client.get_system_shared_memory_status, "one"),
                         ("INVALID_ARGUMENT",
                          'name ("one") is not a registered region of shared memory.'))
        client.unregister_system_shared_memory()
        self.assertEqual(len(client.get_system_shared_memory_status().regions), 0)

    def test_cuda_memory_is_refused(self):
        self.client.unregister_cuda_shared_memory()
        self.assertEqual(
            self.refused_call(self.client.register_cuda_shared_memory, "region", b"", 0, 64),
            ("UNIMPLEMENTED", "This server has no CUDA shared memory; system shared memory and "
                              "raw_input_contents hold the same tensors."))


class Attacks(SharedMemoryCase):
    flags = (f"--max_shared_memory_regions={MOST_REGIONS}",)

    def test_registrations_that_lie(self):
        segment = self.segment("taken", 64)
        register = self.client.register_system_shared_memory
        for name, key, size, offset, word in (
                ("taken", segment.key, 64, 0, "name"), ("", segment.key, 64, 0, "name"),
                ("x" * 300, segment.key, 64, 0, "name"), ("x", segment.key, 65, 0, "byte_size"),
                ("x", segment.key, 0, 0, "byte_size"), ("x", segment.key, 1, 64, "offset"),
                ("x", segment.key, (1 << 64) - 1, 1, "byte_size"),
                ("x", segment.key, 64, (1 << 64) - 64, "offset"),
                ("x", "", 64, 0, "key"), ("x", "/../etc/passwd", 64, 0, "key"),
                ("x", "/x\0y", 64, 0, "key"), ("x", "/" + "x" * 5000, 64, 0, "key"),
                ("x", key_of_test(), 64, 0, "key")):
            with self.subTest(name=name[:9], key=key[:9], size=size, offset=offset):
                code, sentence = self.refused_call(register, name, key, size, offset)
                self.assertEqual((code, sentence.split()[0]), ("INVALID_ARGUMENT", word))
        self.assertEqual(list(self.client.get_system_shared_memory_status().regions), ["taken"])

    def test_requests_that_lie(self):
        array = np.zeros((2, 16), np.float32)  # 128 bytes; the output has 8
        self.segment("in", 128)
        self.segment("out", 8)
        good = shared_input("input", array, "in")
        unnamed, colour = (triton.InferInput("input", array.shape, "FP32") for _ in range(2))
        unnamed._get_tensor().parameters["shared_memory_offset"].int64_param = 1
        colour._get_tensor().parameters["colour"].string_param = "red"
        negative = shared_input("input", array, "in")
        negative._get_tensor().parameters["shared_memory_offset"].int64_param = -1
        sizeless = shared_input("input", array, "in")
        del sizeless._get_tensor().parameters["shared_memory_byte_size"]
        parameters = "inputs[0].parameters."
        for tensor, sentence in (
                (shared_input("input", array, "nothing"), 'name ("nothing") is not a registered'),
                (shared_input("input", array, "in", 1), "byte_size (128) at offset 1 exceeds the"),
                (shared_input("input", array, "in", 128), "offset (128) is not below the size"),
                (shared_input("input", array, "in", 0, 127),
                 f"{parameters}shared_memory_byte_size is 127; "),
                (shared_input("input", array, "in", 0, (1 << 63) - 1), "byte_size ("),
                (negative, f'{parameters}shared_memory_offset ("-1") is not an integer of at'),
                (unnamed, f"{parameters}shared_memory_region is not given."),
                (sizeless, f"{parameters}shared_memory_byte_size is not given."),
                (colour, f'{parameters}colour ("red") is not a parameter that')):
            with self.subTest(sentence):
                self.assertIn(sentence, self.refusal("argmax", [tensor], axes=1))
        for output, sentence in (
                (shared_output("output", "nothing", 8), 'name ("nothing") is not a registered'),
                (shared_output("output", "out", 7),
                 "outputs[0].parameters.shared_memory_byte_size is 7; "),
                (shared_output("output", "out", 9), "byte_size (9) at offset 0 exceeds the")):
            with self.subTest(sentence):
                self.assertIn(sentence, self.refusal("argmax", [good], [output], axes=1))
        good._get_tensor().contents.fp32_contents.extend([0] * 32)
        self.assertIn("inputs[0].contents is given, but the input is in shared memory",
                      self.refusal("argmax", [good], axes=1))

    def test_outputs_that_overlap(self):
        array = np.zeros((2, 16), np.float32)
        self.segment("in", 128)
        segment = self.segment("out", 16)
        self.client.register_system_shared_memory("alias", segment.key, 12, 4)
        for region, offset in (("out", 4), ("alias", 0)):
            outputs = [shared_output("output_values", "out", 8),
                       shared_output("output_indices", region, 8, offset)]
            self.assertEqual(
                self.refusal("top_k", [shared_input("input", array, "in")], outputs, axis=1, k=1),
                "outputs[1] overlaps outputs[0].")
        outputs = [shared_output("output_values", "out", 8),
                   shared_output("output_indices", "alias", 8, 4)]
        self.call("top_k", [shared_input("input", array, "in")], outputs, axis=1, k=1)

    def test_segments_that_shrink_and_vanish(self):
        array = np.ones((2, 16), np.float32)
        source, target = self.segment("in", 128), self.segment("out", 8)
        inputs, outputs = [shared_input("input", array, "in")], [shared_output("output", "out", 8)]
        for segment, size in ((source, 128), (target, 8)):
            segment.resize(size - 1)
            self.assertIn("exceeds the segment", self.refusal("argmax", inputs, outputs, axes=1))
            segment.resize(size)
        self.call("argmax", inputs, outputs, axes=1)
        source.remove()
        self.assertIn("names no shared memory segment",
                      self.refusal("argmax", inputs, outputs, axes=1))

    def test_an_output_that_shrinks_during_the_run(self):
        array = np.ones((1100, 4096), np.float32)  # 17 MiB, slow on this device
        source, target = self.segment("in", array.nbytes), self.segment("out", array.nbytes)
        inputs = [shared_input("input", array, "in")]
        outputs = [shared_output("output", "out", array.nbytes)]
        stub = api.stub_of(self.enterContext(api.connect(self.server.address)))
        for _ in range(10):
            answers = queue.SimpleQueue()
            self.client.async_infer("hardmax", inputs, lambda result, error: answers.put(error),
                                    outputs=outputs, parameters={"axes": 1})
            while answers.empty():
                if stub.GetStatistics(api.sv.GetStatisticsRequest()).in_flight.running:
                    break
            target.resize(array.nbytes - 1)
            error = answers.get(timeout=test_open_inference.TIMEOUT_SECONDS)
            target.resize(array.nbytes)
            if error is not None:
                self.assertIn(f"it ends at byte {array.nbytes - 1}", error.message())
                break  # else the run was faster than this test
        else:
            self.fail("no run was slow enough")
        source.remove()
        self.assertEqual(test_shared_memory.segments_open_in(self.server.pid), [])

    def test_a_thousand_registrations(self):
        client = self.client
        stub = api.stub_of(self.enterContext(api.connect(self.server.address)))
        limits = stub.GetServerInfo(api.sv.GetServerInfoRequest()).limits
        self.assertEqual(limits.max_shared_memory_regions, MOST_REGIONS)
        with test_shared_memory.Segment(64) as segment:
            for index in range(MOST_REGIONS):
                client.register_system_shared_memory(f"region {index}", segment.key, 1, index % 64)
            code, sentence = self.refused_call(client.register_system_shared_memory, "one more",
                                               segment.key, 64)
            self.assertEqual(code, "RESOURCE_EXHAUSTED")
            self.assertIn(str(MOST_REGIONS), sentence)
            self.assertEqual(len(client.get_system_shared_memory_status().regions), MOST_REGIONS)
            client.unregister_system_shared_memory("region 500")
            client.register_system_shared_memory("one more", segment.key, 64)
            self.assertEqual(test_shared_memory.segments_open_in(self.server.pid), [])
        # Their segment is gone, so some make room.
        self.segment("another", 64)
        self.assertIn("another", client.get_system_shared_memory_status().regions)

    def test_registrations_of_a_caller_that_is_gone_make_room(self):
        segment = self.enterContext(test_shared_memory.Segment(64))
        alone = [("grpc.use_local_subchannel_pool", 1)]  # not over the connection of self.client
        with triton.InferenceServerClient(self.server.address, channel_args=alone) as gone:
            for index in range(MOST_REGIONS):
                gone.register_system_shared_memory(f"region {index}", segment.key, 1)
            code, _ = self.refused_call(self.client.register_system_shared_memory, "one more",
                                        segment.key, 64)
            self.assertEqual(code, "RESOURCE_EXHAUSTED")
        until = time.monotonic() + 10  # the server notices soon that the connection is closed
        while True:
            try:
                self.client.register_system_shared_memory("one more", segment.key, 64)
                break
            except triton.InferenceServerException:
                self.assertLess(time.monotonic(), until)
                time.sleep(0.02)
        for index in range(MOST_REGIONS - 1):
            self.client.register_system_shared_memory(f"own {index}", segment.key, 64)
        names = set(self.client.get_system_shared_memory_status().regions)
        self.assertEqual(names, {"one more", *(f"own {i}" for i in range(MOST_REGIONS - 1))})


class SharedMemoryOff(SharedMemoryCase):
    flags = ("--shared_memory=off",)

    def test_is_refused(self):
        self.client.unregister_system_shared_memory()  # as perf_analyzer begins
        self.assertEqual(len(self.client.get_system_shared_memory_status().regions), 0)
        self.assertNotIn("system_shared_memory", self.client.get_server_metadata().extensions)
        with test_shared_memory.Segment(64) as segment:
            code, sentence = self.refused_call(self.client.register_system_shared_memory, "x",
                                               segment.key, 64)
        self.assertEqual(code, "INVALID_ARGUMENT")
        self.assertIn("--shared_memory", sentence)
        self.assertIn("--shared_memory", self.refusal(
            "argmax", [shared_input("input", np.zeros((2, 2), np.float32), "x")], axes=1))


if __name__ == "__main__":
    unittest.main()

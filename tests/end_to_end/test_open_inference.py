"""The Open Inference Protocol through tritonclient: unary, asyncio and stream, on every type."""

import asyncio
import queue
import unittest

import numpy as np
import tritonclient.grpc as triton
import tritonclient.grpc.aio as triton_aio

import arrays
from server_process import ServerProcess

TIMEOUT_SECONDS = 60
TYPE_NAMES = {"float32": "FP32", "float16": "FP16"}


def type_name(array):
    return TYPE_NAMES.get(array.dtype.name, array.dtype.name.upper())


def inputs_of(module=triton, **tensors):
    inputs = []
    for name, array in tensors.items():
        inputs.append(module.InferInput(name, array.shape, type_name(array)))
        inputs[-1].set_data_from_numpy(array)
    return inputs


class TritonCase(unittest.TestCase):
    flags = ()

    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(ServerProcess(*cls.flags, device="reference"))
        cls.client = cls.enterClassContext(triton.InferenceServerClient(cls.server.address))

    def infer(self, model, parameters=None, **tensors):
        return self.client.infer(model, inputs_of(**tensors), parameters=parameters,
                                 client_timeout=TIMEOUT_SECONDS)

    def refused(self, code, model, parameters=None, **tensors):
        with self.assertRaises(triton.InferenceServerException) as raised:
            self.infer(model, parameters, **tensors)
        self.assertEqual(raised.exception.status(), f"StatusCode.{code}")
        return raised.exception.message()


class Unary(TritonCase):
    def test_arg_operators_on_every_type(self):
        for dtype in arrays.ALL_TYPES:
            array = arrays.awkward(dtype, (3, 5, 7), seed=1)
            for direction in arrays.DIRECTIONS:
                with self.subTest(dtype=dtype, direction=direction):
                    result = self.infer("argmax", {"axes": "0,2", "direction": direction},
                                        input=array)
                    np.testing.assert_array_equal(
                        result.as_numpy("output"),
                        arrays.expect_arg(array, [0, 2], "max", direction))

    def test_each_function_of_reduce(self):
        for function, dtypes in arrays.FUNCTION_TYPES.items():
            for dtype in dtypes:
                array = arrays.awkward(dtype, (4, 33, 3), seed=2)
                with self.subTest(function=function, dtype=dtype):
                    actual = self.infer(f"reduce_{function}", {"axes": 1}, input=array)
                    actual = actual.as_numpy("output")
                    expected = arrays.expect_reduce(array, function, [1])
                    if expected.dtype == np.float64:
                        arrays.check_close(actual, expected, array, function, [1])
                    else:
                        np.testing.assert_array_equal(actual, expected)

    def test_top_k_on_every_type(self):
        for dtype in arrays.ALL_TYPES:
            array = arrays.awkward(dtype, (4, 40), seed=3)
            with self.subTest(dtype=dtype):
                result = self.infer("top_k", {"axis": -1, "k": 9}, input=array)
                values, indices = arrays.expect_top_k(array, 1, 9, "decreasing")
                np.testing.assert_array_equal(result.as_numpy("output_values"), values)
                np.testing.assert_array_equal(result.as_numpy("output_indices"), indices)

    def test_operators_with_two_inputs_in_any_order(self):
        a = np.arange(12, dtype="int16").reshape(3, 4)
        b = a * 10
        for tensors in ({"a": a, "b": b}, {"b": b, "a": a}):
            result = self.infer("element_wise_add", **tensors)
            np.testing.assert_array_equal(result.as_numpy("output"), a + b)

    def test_element_wise_operators(self):
        x = np.array([[-3, 0, 2, 9]], "float32")
        for model, parameters, expected in (
                ("relu", {}, np.maximum(x, 0)),
                ("leaky_relu", {"alpha": 0.5}, np.where(x > 0, x, x / 2)),
                ("clip", {"min": -1, "max": "2.5"}, np.clip(x, -1, 2.5)),
                ("round", {"rounding_mode": "toward_zero"}, x),
                ("cast", {"output_type": "INT8"}, x.astype("int8"))):
            with self.subTest(model):
                actual = self.infer(model, parameters, input=x).as_numpy("output")
                self.assertEqual(actual.dtype, expected.dtype)
                np.testing.assert_array_equal(actual, expected)
        result = self.infer("if", condition=(x > 0).astype("uint8"), a=x, b=-x)
        np.testing.assert_array_equal(result.as_numpy("output"), np.abs(x))
        result = self.infer("logical_less_than", {"output_type": "UINT32"}, a=x, b=-x)
        self.assertEqual(result.as_numpy("output").dtype, np.uint32)
        self.refused("INVALID_ARGUMENT", "clip", {"min": 1}, input=x)
        self.refused("INVALID_ARGUMENT", "cast", {}, input=x)

    def test_answers_the_outputs_that_are_requested(self):
        array = arrays.awkward("int32", (4, 9), seed=3)
        result = self.client.infer("top_k", inputs_of(input=array), parameters={"axis": 1, "k": 2},
                                   outputs=[triton.InferRequestedOutput("output_indices")])
        self.assertEqual([output.name for output in result.get_response().outputs],
                         ["output_indices"])
        np.testing.assert_array_equal(result.as_numpy("output_indices"),
                                      arrays.expect_top_k(array, 1, 2, "decreasing")[1])

    def test_parameters_choose_types_and_flags(self):
        array = np.arange(6, dtype="float32").reshape(2, 3)
        result = self.infer("argmin", {"axis": "-1", "index_type": "INT64"}, input=array)
        self.assertEqual(result.as_numpy("output").dtype, np.int64)
        result = self.infer("cumulative_summation", {"axis": 1, "has_exclusive_sum": True},
                            input=array)
        np.testing.assert_array_equal(result.as_numpy("output"), [[0, 0, 1], [0, 3, 7]])

    def test_returns_id_and_names(self):
        result = self.client.infer("hardmax", inputs_of(input=np.ones((2, 2), "float32")),
                                   request_id="order 66", parameters={"axes": "1"})
        response = result.get_response()
        self.assertEqual((response.id, response.model_name, response.model_version),
                         ("order 66", "hardmax", "1"))

    def test_ignores_what_other_servers_grant(self):
        array = np.ones((2, 2), "float32")
        parameters = {"axes": "1", "triton_enable_empty_final_response": True, "triton_other": 1}
        self.infer("hardmax", parameters, input=array)
        self.client.infer("hardmax", inputs_of(input=array), parameters={"axes": "1"}, priority=3,
                          timeout=60_000_000)

    def test_a_timeout_is_a_deadline(self):
        with ServerProcess(device="reference") as server, \
                triton.InferenceServerClient(server.address) as client:
            with self.assertRaises(triton.InferenceServerException) as raised:
                client.infer("reduce_sum", inputs_of(input=np.ones((1000, 3000), "float32")),
                             parameters={"axes": "0"}, timeout=1)
            self.assertEqual(raised.exception.status(), "StatusCode.DEADLINE_EXCEEDED")

    def test_refuses_with_a_sentence(self):
        array = np.ones((2, 3), "float32")
        cases = [
            ("INVALID_ARGUMENT", "argmax", {}, "parameters.axes is not given."),
            ("INVALID_ARGUMENT", "argmax", {"axes": "1", "colour": "red"},
             'parameters.colour ("red") is not a parameter of argmax; its parameters are axes, '
             "direction, index_type, feature_level."),
            ("INVALID_ARGUMENT", "argmax", {"axes": "2"},
             'parameters.axes ("2") has axis 2, but the first input has 2 dimensions: axes are '
             "-2 to 1."),
            ("INVALID_ARGUMENT", "argmax", {"axes": "one"},
             'parameters.axes ("one") is not a list of integers such as 0,2.'),
            ("INVALID_ARGUMENT", "reduce_sum", {"axes": "1", "function": "MAX"},
             'parameters.function ("MAX") is not a parameter of reduce_sum; its parameters are '
             "axes, index_type, feature_level."),
            ("INVALID_ARGUMENT", "reduce_sum", {"axes": "1", "index_type": "INT64"},
             'parameters.index_type ("INT64") is given, but reduce SUM has no indices.'),
            ("INVALID_ARGUMENT", "top_k", {"axis": 1, "k": 4},
             "k (4) is larger than the size (3) of axis (1)."),
            ("INVALID_ARGUMENT", "argmax", {"axes": "1", "direction": "up"},
             'parameters.axis_direction ("up") is none of increasing, decreasing.'),
            ("FAILED_PRECONDITION", "hardmax", {"axes": "0", "feature_level": "3.0"}, None),
            ("NOT_FOUND", "nothing", {},
             'There is no model "nothing"; RepositoryIndex and ListModels list the models.'),
        ]
        for code, model, parameters, sentence in cases:
            with self.subTest(model=model, parameters=parameters):
                message = self.refused(code, model, parameters, input=array)
                if sentence is not None:
                    self.assertEqual(message, sentence)
        message = self.refused("INVALID_ARGUMENT", "argmax", {"axes": "1"}, x=array)
        self.assertEqual(message, 'inputs[0].name ("x") is not an input of argmax, which takes '
                         "input.")


class Information(TritonCase):
    def test_is_live_and_ready(self):
        self.assertTrue(self.client.is_server_live())
        self.assertTrue(self.client.is_server_ready())
        self.assertTrue(self.client.is_model_ready("argmax"))
        self.assertTrue(self.client.is_model_ready("argmax", "1"))
        self.assertFalse(self.client.is_model_ready("argmax", "2"))
        self.assertFalse(self.client.is_model_ready("nothing"))

    def test_describes_server_and_models(self):
        server = self.client.get_server_metadata()
        self.assertEqual(server.name, "opmill")
        self.assertIn("statistics", server.extensions)
        metadata = self.client.get_model_metadata("top_k")
        self.assertEqual([output.name for output in metadata.outputs],
                         ["output_values", "output_indices"])
        config = self.client.get_model_config("reduce_sum").config
        self.assertEqual((config.backend, config.max_batch_size), ("opmill", 0))

    def test_lists_a_model_for_every_operator(self):
        names = {model.name for model in self.client.get_model_repository_index().models}
        self.assertLessEqual({"argmin", "argmax", "reduce_log_sum_exp", "top_k", "hardmax",
                              "element_wise_add", "cumulative_summation"}, names)
        for name in names:
            self.client.get_model_metadata(name)

    def test_counts_inferences(self):
        array = np.ones((2, 3), "float32")
        for _ in range(3):
            self.infer("reduce_l1", {"axes": "1"}, input=array)
        self.refused("INVALID_ARGUMENT", "reduce_l1", {"axes": "9"}, input=array)
        model, = self.client.get_inference_statistics("reduce_l1").model_stats
        stats = model.inference_stats
        self.assertEqual([part.count for part in (stats.success, stats.queue, stats.compute_input,
                                                  stats.compute_infer, stats.compute_output)],
                         [3] * 5)
        self.assertEqual((stats.fail.count, model.inference_count), (1, 3))

    def test_logs_the_calls(self):
        self.infer("hardmax", {"axes": "1"}, input=np.ones((2, 3), "float32"))
        self.server.wait_for(lambda line: line.get("event") == "execute" and
                             line["rpc"] == "ModelInfer" and line["operator"].startswith("hardmax"))

    def test_says_what_to_do_instead_of_what_it_does_not_serve(self):
        cases = ((self.client.get_trace_settings, (), "its log has a line for each request"),
                 (self.client.update_trace_settings, (), "its log has a line for each request"),
                 (self.client.get_log_settings, (), "start the server with --log_level"),
                 (self.client.update_log_settings, ({"log_verbose_level": 1},),
                  "start the server with --log_level"))
        for call, arguments, sentence in cases:
            with self.subTest(call=call.__name__):
                with self.assertRaises(triton.InferenceServerException) as raised:
                    call(*arguments)
                self.assertEqual(raised.exception.status(), "StatusCode.UNIMPLEMENTED")
                self.assertIn(sentence, raised.exception.message())


class Aio(TritonCase):
    def test_many_calls_at_once_of_every_type(self):
        data = [arrays.awkward(dtype, (3, 50), seed)
                for seed, dtype in enumerate(arrays.ALL_TYPES * 2)]

        async def run():
            async with triton_aio.InferenceServerClient(self.server.address) as client:
                return await asyncio.gather(*(
                    client.infer("argmin", inputs_of(triton_aio, input=array),
                                 parameters={"axes": "1"}) for array in data))

        for array, result in zip(data, asyncio.run(run())):
            np.testing.assert_array_equal(result.as_numpy("output"),
                                          arrays.expect_arg(array, [1], "min"))


class Stream(TritonCase):
    def test_answers_in_order_and_survives_errors(self):
        answers = queue.SimpleQueue()
        data = [arrays.awkward(dtype, (4, 60), seed=seed)
                for seed, dtype in enumerate(arrays.ALL_TYPES * 3)]
        self.client.start_stream(lambda result, error: answers.put((result, error)))
        for index, array in enumerate(data):
            axes = "7" if index % 10 == 9 else "1"
            self.client.async_stream_infer("argmax", inputs_of(input=array), request_id=str(index),
                                           parameters={"axes": axes})
        for index, array in enumerate(data):
            result, error = answers.get(timeout=TIMEOUT_SECONDS)
            if index % 10 == 9:
                self.assertIn("has axis 7", error.message())
                continue
            self.assertIsNone(error)
            self.assertEqual(result.get_response().id, str(index))
            np.testing.assert_array_equal(result.as_numpy("output"),
                                          arrays.expect_arg(array, [1], "max"))
        self.client.stop_stream()

    def test_large_results(self):
        answers = queue.SimpleQueue()
        array = np.arange(1 << 20, dtype="float32").reshape(1024, 1024)
        self.client.start_stream(lambda result, error: answers.put((result, error)))
        for _ in range(3):
            self.client.async_stream_infer("element_wise_add", inputs_of(a=array, b=array))
        for _ in range(3):
            result, error = answers.get(timeout=TIMEOUT_SECONDS)
            self.assertIsNone(error)
            np.testing.assert_array_equal(result.as_numpy("output"), array + array)
        self.client.stop_stream()

    def test_a_stream_that_has_ended_leaves_its_place(self):
        array = arrays.awkward("float32", (4, 8), seed=9)
        with ServerProcess("--max_streams=3", device="cpu") as server:
            for _ in range(10):
                answers = queue.SimpleQueue()
                with triton.InferenceServerClient(server.address) as client:
                    client.start_stream(lambda result, error, to=answers: to.put((result, error)))
                    client.async_stream_infer("argmax", inputs_of(input=array),
                                              parameters={"axes": "1"})
                    result, error = answers.get(timeout=TIMEOUT_SECONDS)
                    self.assertIsNone(error)
                    client.stop_stream()

    def test_many_small_requests(self):
        array = arrays.awkward("float32", (8, 32), seed=8)
        inputs = inputs_of(input=array)
        expected = arrays.expect_top_k(array, 1, 2, "decreasing")[1]
        for _ in range(5):
            answers = queue.SimpleQueue()
            with triton.InferenceServerClient(self.server.address) as client:
                client.start_stream(lambda result, error, to=answers: to.put((result, error)))
                for _ in range(1000):
                    client.async_stream_infer("top_k", inputs, parameters={"axis": 1, "k": 2})
                for _ in range(1000):
                    result, error = answers.get(timeout=TIMEOUT_SECONDS)
                    self.assertIsNone(error)
                    np.testing.assert_array_equal(result.as_numpy("output_indices"), expected)
                client.stop_stream()

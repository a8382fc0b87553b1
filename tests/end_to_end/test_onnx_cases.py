"""The cases of ONNX's own operator tests that OpMill's operators can compute, through ModelInfer.

ONNX's attributes become parameters. It keeps reduced axes only if keepdims says so, so results are
compared without regard to dimensions of size 1."""

import collections
import unittest
import warnings

import numpy as np
import onnx
import tritonclient.grpc as triton
from onnx.backend.test.case.node import collect_testcases

import arrays
from server_process import ServerProcess

MODELS = {"ReduceSum": "reduce_sum", "ReduceMean": "reduce_average", "ReduceMax": "reduce_max",
          "ReduceMin": "reduce_min", "ReduceProd": "reduce_multiply", "ReduceL1": "reduce_l1",
          "ReduceL2": "reduce_l2", "ReduceLogSum": "reduce_log_sum",
          "ReduceLogSumExp": "reduce_log_sum_exp", "ReduceSumSquare": "reduce_sum_square",
          "ArgMax": "argmax", "ArgMin": "argmin", "TopK": "top_k", "Hardmax": "hardmax",
          "Add": "element_wise_add", "CumSum": "cumulative_summation"}
TYPE_NAMES = {"float32": "FP32", "float16": "FP16"}


def parameters_of(node, tensors):
    """The parameters of the request, and the tensors that remain inputs."""
    attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    data = tensors[0]
    if node.op_type.startswith("Reduce"):
        axes = attributes.get("axes", tensors[1].tolist() if len(tensors) > 1 else [])
        if len(axes) == 0 and not attributes.get("noop_with_empty_axes", 0):
            axes = range(data.ndim)
        return {"axes": ",".join(map(str, axes))}, [data]
    if node.op_type in ("ArgMax", "ArgMin"):
        last = attributes.get("select_last_index", 0)
        return {"axis": attributes.get("axis", 0), "index_type": "INT64",
                "direction": "decreasing" if last else "increasing"}, [data]
    if node.op_type == "TopK":
        return {"axis": attributes.get("axis", -1), "k": int(tensors[1][0]),
                "direction": "decreasing" if attributes.get("largest", 1) else "increasing"}, [data]
    if node.op_type == "Hardmax":
        return {"axis": attributes.get("axis", -1)}, [data]
    if node.op_type == "CumSum":
        return {"axis": int(tensors[1]), "has_exclusive_sum": bool(attributes.get("exclusive", 0)),
                "direction": "decreasing" if attributes.get("reverse", 0) else "increasing"}, [data]
    return {}, list(tensors)


def reason_to_leave_out(tensors):
    if any(tensor.dtype.name not in arrays.ALL_TYPES for tensor in tensors):
        return f"{tensors[0].dtype.name} is no type of DirectML's operators"
    if any(tensor.size == 0 for tensor in tensors):
        return "an empty tensor"
    if any(tensor.ndim == 0 for tensor in tensors):
        return "a scalar"
    if len({tensor.shape for tensor in tensors}) > 1:
        return "inputs of different shapes"
    return None


class OnnxCases(unittest.TestCase):
    def test_each_case(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            cases = [case for case in collect_testcases(None)
                     if len(case.model.graph.node) == 1 and
                     case.model.graph.node[0].op_type in MODELS]
        passed, left_out = 0, collections.defaultdict(list)
        with (ServerProcess(device="reference") as server,
              triton.InferenceServerClient(server.address) as client):
            for case in cases:
                node = case.model.graph.node[0]
                for given, expected in case.data_sets:
                    parameters, tensors = parameters_of(node, given)
                    reason = reason_to_leave_out(tensors)
                    if reason is not None:
                        left_out[reason].append(case.name)
                        continue
                    with self.subTest(case.name):
                        self.compare(client, node, parameters, tensors, expected)
                        passed += 1
        print(f"{passed} cases agree; left out:")
        for reason, names in left_out.items():
            print(f"  {len(names)}, {reason}: {' '.join(names)}")
        self.assertEqual(passed, 125)

    @staticmethod
    def compare(client, node, parameters, tensors, expected):
        names = ["a", "b"] if len(tensors) == 2 else ["input"]
        inputs = []
        for name, tensor in zip(names, tensors):
            datatype = TYPE_NAMES.get(tensor.dtype.name, tensor.dtype.name.upper())
            inputs.append(triton.InferInput(name, tensor.shape, datatype))
            inputs[-1].set_data_from_numpy(np.ascontiguousarray(tensor))
        result = client.infer(MODELS[node.op_type], inputs, parameters=parameters,
                              client_timeout=60)
        for output, wanted in zip(result.get_response().outputs, expected):
            actual = result.as_numpy(output.name)
            np.testing.assert_allclose(np.squeeze(actual), np.squeeze(wanted), rtol=1e-5, atol=1e-6)

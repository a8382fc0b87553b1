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
          "Add": "element_wise_add", "CumSum": "cumulative_summation",
          "Max": "element_wise_max", "Min": "element_wise_min", "Mean": "element_wise_mean",
          "Sub": "subtract", "Mul": "multiply", "Div": "divide", "Neg": "negate",
          "Reciprocal": "recip", "IsNaN": "is_nan", "IsInf": "is_infinity", "Where": "if",
          "Equal": "logical_equals", "Greater": "logical_greater_than",
          "GreaterOrEqual": "logical_greater_than_or_equal", "Less": "logical_less_than",
          "LessOrEqual": "logical_less_than_or_equal", "BitwiseAnd": "bit_and",
          "BitwiseOr": "bit_or", "BitwiseXor": "bit_xor", "BitwiseNot": "bit_not",
          "HardSigmoid": "hard_sigmoid", "HardSwish": "hard_swish", "LeakyRelu": "leaky_relu",
          "PRelu": "parameterized_relu", "Selu": "scaled_elu",
          "ThresholdedRelu": "thresholded_relu"}
# The words that both have.
MODELS |= {name: name.lower() for name in (
    "Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Celu", "Cos", "Cosh", "Elu",
    "Erf", "Exp", "Floor", "Gelu", "Identity", "Log", "Pow", "Relu", "Round", "Shrink", "Sigmoid",
    "Sign", "Sin", "Sinh", "Softplus", "Softsign", "Sqrt", "Tan", "Tanh")}
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
    if node.op_type == "IsInf":
        mode = {(1, 1): "either", (0, 1): "positive", (1, 0): "negative"}
        return {"infinity_mode": mode[attributes.get("detect_negative", 1),
                                      attributes.get("detect_positive", 1)]}, [data]
    names = {"lambd": "threshold"}
    return ({names.get(name, name): str(value) for name, value in attributes.items()},
            [np.asarray(tensor).view(np.uint8) if np.asarray(tensor).dtype == np.bool_ else tensor
             for tensor in tensors])


def reason_to_leave_out(node, tensors):
    if not all(isinstance(tensor, np.ndarray) for tensor in tensors):
        return "a sequence or an optional value"
    if node.op_type in ("Max", "Min", "Mean") and len(tensors) != 2:
        return "not two inputs"
    if node.op_type == "Pow" and not all(tensor.dtype.kind == "f" for tensor in tensors):
        return "a power of integers"
    if node.op_type == "Gelu" and node.attribute:
        return "an approximation"
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
                    reason = reason_to_leave_out(node, tensors)
                    if reason is not None:
                        left_out[reason].append(case.name)
                        continue
                    with self.subTest(case.name):
                        self.compare(client, node, parameters, tensors, expected)
                        passed += 1
        print(f"{passed} cases agree; left out:")
        for reason, names in left_out.items():
            print(f"  {len(names)}, {reason}: {' '.join(names)}")
        self.assertEqual(passed, 302)

    @staticmethod
    def compare(client, node, parameters, tensors, expected):
        names = ["input"] if len(tensors) == 1 else ["condition", "a", "b"][-len(tensors):]
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

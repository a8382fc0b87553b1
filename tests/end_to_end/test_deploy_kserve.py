"""deploy/kubernetes/kserve: valid for KServe, and a server as its runtime starts it serves its models."""

import pathlib
import re
import tempfile
import unittest

import kserve.models
import kubernetes.client.models
import numpy as np
from kserve import InferenceGRPCClient, InferInput, InferRequest

import api
import onnx_model
from manifests import render
from server_process import ServerProcess

MODELS = "/mnt/models"  # where KServe puts what storageUri names
SCALARS = {"str": str, "int": int, "bool": bool, "float": (int, float)}


def check(value, kind, path):
    """Checks that the value is one of this type of KServe's or Kubernetes' API, without unknown fields."""
    # The two packages write types in different styles: dict(str, str) and Dict[str, str].
    if (inner := re.fullmatch(r"[lL]ist\[(.*)\]", kind)) and isinstance(value, list):
        for index, each in enumerate(value):
            check(each, inner[1], f"{path}[{index}]")
    elif (inner := re.fullmatch(r"[dD]ict[(\[]str, (.*)[)\]]", kind)) and isinstance(value, dict):
        for key, each in value.items():
            check(each, inner[1], f"{path}.{key}")
    elif kind in SCALARS:
        if not isinstance(value, SCALARS[kind]):
            raise AssertionError(f"{path} is {value!r}, not a {kind}")
    elif kind != "object":
        model = getattr(kserve.models, kind, None) or getattr(kubernetes.client.models, kind)
        fields = {field: (name, model.openapi_types[name])
                  for name, field in model.attribute_map.items()}
        if unknown := set(value) - set(fields):
            raise AssertionError(f"{path} has no field {sorted(unknown)}")
        for field, each in value.items():
            check(each, fields[field][1], f"{path}.{field}")
        model(**{fields[field][0]: each for field, each in value.items()})  # refuses what is missing


def container():
    (only,) = render("kserve")["ServingRuntime"]["spec"]["containers"]
    return only


class DeployKServeTest(unittest.IsolatedAsyncioTestCase):
    def test_both_objects_are_valid(self):
        objects = render("kserve")
        check(objects["ServingRuntime"], "V1alpha1ServingRuntime", "ServingRuntime")
        check(objects["InferenceService"], "V1beta1InferenceService", "InferenceService")

    def test_broken_objects_are_found(self):
        runtime = render("kserve")["ServingRuntime"]
        runtime["spec"]["containers"][0]["readinessProb"] = {}
        with self.assertRaisesRegex(AssertionError, "readinessProb"):
            check(runtime, "V1alpha1ServingRuntime", "ServingRuntime")
        service = render("kserve")["InferenceService"]
        service["spec"]["predictor"]["minReplicas"] = "2"
        with self.assertRaisesRegex(AssertionError, "minReplicas"):
            check(service, "V1beta1InferenceService", "InferenceService")
        del service["spec"]["predictor"]
        with self.assertRaisesRegex(ValueError, "predictor"):
            check(service, "V1beta1InferenceService", "InferenceService")

    def test_the_service_fits_the_runtime(self):
        objects = render("kserve")
        runtime = objects["ServingRuntime"]
        model = objects["InferenceService"]["spec"]["predictor"]["model"]
        self.assertEqual(model["runtime"], runtime["metadata"]["name"])
        self.assertIn(model["protocolVersion"], runtime["spec"]["protocolVersions"])
        formats = [{"name": each["name"], "version": each["version"]}
                   for each in runtime["spec"]["supportedModelFormats"]]
        self.assertIn(model["modelFormat"], formats)

    def test_the_port_and_the_probes_are_the_flags(self):
        environment = {each["name"]: each["value"] for each in container()["env"]}
        (port,) = container()["ports"]
        self.assertEqual(environment["OPMILL_ADDRESS"], f"0.0.0.0:{port['containerPort']}")
        for probe in ("readinessProbe", "livenessProbe"):
            self.assertEqual(environment["OPMILL_METRICS_ADDRESS"],
                             f"0.0.0.0:{container()[probe]['httpGet']['port']}")

    async def test_a_server_with_its_arguments_serves_the_models(self):
        files = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        (files / "made" / "1").mkdir(parents=True)
        (files / "made" / "1" / "model.onnx").write_bytes(onnx_model.made_model())
        arguments = [each.replace(MODELS, str(files)) for each in container()["args"]]
        self.assertNotEqual(arguments, container()["args"])
        inputs = {"x": np.ones((2, 6), np.float32), "offset": np.zeros(6, np.float32),
                  "shape": np.array([3, 4], np.int64)}
        types = {np.dtype(np.float32): "FP32", np.dtype(np.int64): "INT64"}
        request = []
        for name, array in inputs.items():
            request.append(InferInput(name, list(array.shape), types[array.dtype]))
            request[-1].set_data_from_numpy(array, binary_data=True)
        with ServerProcess(*arguments, device="cpu") as server:
            async with InferenceGRPCClient(server.address, timeout=api.TIMEOUT_SECONDS) as client:
                self.assertTrue(await client.is_model_ready("made"))
                answer = await client.infer(InferRequest("made", request))
        np.testing.assert_array_equal(answer.get_output_by_name("y").as_numpy(),
                                      np.full((3, 4), 2, np.float32))

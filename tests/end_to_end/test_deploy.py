"""The Kubernetes manifests under deploy/: valid, and consistent with each other and with the server."""

import functools
import json
import pathlib
import re
import subprocess
import tempfile
import unittest
import urllib.request

import kubernetes_validate

import certificates
from manifests import render
from server_process import ROOT, SERVER, ServerProcess, plain_environment

OVERLAYS = ("linux", "linux-gpu", "linux-keda", "linux-traces", "windows", "windows-gpu")
# The version that the manifests require: 1.30 introduced the sleep of preStop.
KUBERNETES = "1.31"
KINDS = {"Deployment", "Service", "PodDisruptionBudget", "NetworkPolicy"}
SPARE_SECONDS = 5


def seconds(text):
    return int(re.fullmatch(r"(\d+)s", text)[1])


def in_each_overlay(test):
    """Runs the test for each overlay; failures name the overlay."""
    @functools.wraps(test)
    def test_each(self):
        for folder in OVERLAYS:
            with self.subTest(folder):
                objects = render(folder)
                pod = objects["Deployment"]["spec"]["template"]
                test(self, objects, pod, pod["spec"]["containers"][0])
    return test_each


@functools.cache
def variables_of_flags():
    text = subprocess.run([SERVER, "--help"], capture_output=True, check=False, text=True,
                          env=plain_environment()).stdout
    return {"OPMILL_" + name.upper() for name in re.findall(r"^ +--(\w+) \(", text, re.M)}


def health_check(dockerfile):
    """The command of a Dockerfile's HEALTHCHECK."""
    text = (ROOT / dockerfile).read_text(encoding="utf-8").replace("\\\n", "")
    return json.loads(re.search(r"^HEALTHCHECK .*?CMD (\[.*\])$", text, re.M)[1])


class DeployTest(unittest.TestCase):
    @in_each_overlay
    def test_every_object_is_valid(self, objects, _pod, _container):
        (scaler,) = set(objects) - KINDS
        self.assertIn(scaler, ("HorizontalPodAutoscaler", "ScaledObject"))
        self.assertLessEqual(KINDS, set(objects))
        for kind, each in objects.items():
            if kind != "ScaledObject":  # ./dev lint checks the kinds that are not Kubernetes' own
                kubernetes_validate.validate(each, KUBERNETES, strict=True)

    def test_a_broken_object_is_found(self):
        broken = render("linux")["Deployment"]
        broken["spec"]["template"]["spec"]["containers"][0]["readinessProb"] = {}
        with self.assertRaises(kubernetes_validate.ValidationError):
            kubernetes_validate.validate(broken, KUBERNETES, strict=True)

    @in_each_overlay
    def test_selectors_select_the_pods(self, objects, pod, _container):
        monitor = render("monitoring")["ServiceMonitor"]
        labels = pod["metadata"]["labels"]
        selectors = [objects["Deployment"]["spec"]["selector"]["matchLabels"],
                     objects["Service"]["spec"]["selector"],
                     objects["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"],
                     objects["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"]]
        for selector in selectors:
            self.assertTrue(selector)
            self.assertLessEqual(selector.items(), labels.items())
        scaler = objects.get("HorizontalPodAutoscaler") or objects["ScaledObject"]
        self.assertEqual(scaler["spec"]["scaleTargetRef"]["name"],
                         objects["Deployment"]["metadata"]["name"])
        service = objects["Service"]
        self.assertLessEqual(monitor["spec"]["selector"]["matchLabels"].items(),
                             service["metadata"]["labels"].items())
        self.assertLessEqual({each["port"] for each in monitor["spec"]["endpoints"]},
                             {port["name"] for port in service["spec"]["ports"]})

    @in_each_overlay
    def test_the_network_policy_opens_the_ports(self, objects, _pod, container):
        policy = objects["NetworkPolicy"]["spec"]
        opened = [port["port"] for rule in policy["ingress"] for port in rule["ports"]]
        self.assertEqual(opened, [port["name"] for port in container["ports"]])
        self.assertEqual(policy["policyTypes"], ["Ingress", "Egress"])
        environment = {each["name"]: each["value"] for each in container["env"]}
        endpoint = environment.get("OPMILL_TRACE_ENDPOINT")
        if endpoint is None:
            self.assertEqual(policy["egress"], [])
            return
        to_collector, to_names = policy["egress"]
        name, port = endpoint.split(":")
        self.assertEqual(to_collector, {
            "to": [{"namespaceSelector": {"matchLabels": {
                "kubernetes.io/metadata.name": name.split(".")[1]}}}],
            "ports": [{"port": int(port)}]})
        self.assertEqual({each["port"] for each in to_names["ports"]}, {53})

    @in_each_overlay
    def test_drain_and_grace_agree(self, _objects, pod, container):
        environment = {each["name"]: each["value"] for each in container["env"]}
        stop = container["lifecycle"]["preStop"]["sleep"]["seconds"]
        drain = seconds(environment["OPMILL_DRAIN_TIMEOUT"])
        self.assertGreaterEqual(pod["spec"]["terminationGracePeriodSeconds"],
                                stop + drain + SPARE_SECONDS)
        # Load balancers have removed the pod before it begins to refuse.
        ready = container["readinessProbe"]
        self.assertGreaterEqual(stop, ready["periodSeconds"] * ready["failureThreshold"])

    @in_each_overlay
    def test_the_environment_is_the_servers_flags(self, _objects, _pod, container):
        flags = variables_of_flags()
        self.assertIn("OPMILL_ADDRESS", flags)
        ours = {each["name"] for each in container["env"] if each["name"].startswith("OPMILL")}
        self.assertLessEqual(ours, flags)

    @in_each_overlay
    def test_certificates_lie_where_the_flags_say(self, _objects, pod, container):
        environment = {each["name"]: each["value"] for each in container["env"]}
        mounts = {each["name"]: each["mountPath"] for each in container["volumeMounts"]}
        volumes = {each["name"]: each for each in pod["spec"]["volumes"]}
        self.assertLessEqual(set(mounts), set(volumes))
        windows = pod["spec"].get("os", {}).get("name") == "windows"
        path = pathlib.PureWindowsPath if windows else pathlib.PurePosixPath
        for flag, key in (("OPMILL_TLS_CERT", "tls.crt"), ("OPMILL_TLS_KEY", "tls.key")):
            self.assertEqual(path(environment[flag]), path(mounts["tls"]) / key)

    def test_probes_and_metrics_are_answered(self):
        objects = render("linux")
        container = objects["Deployment"]["spec"]["template"]["spec"]["containers"][0]
        monitor = render("monitoring")["ServiceMonitor"]
        with ServerProcess("--metrics_address=127.0.0.1:0") as server:
            address = server.lines("serving")[0]["metrics_address"]

            def get(path):
                with urllib.request.urlopen(f"http://{address}{path}", timeout=10) as answer:
                    self.assertEqual(answer.status, 200)
                    return answer.read().decode()

            for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
                get(container[probe]["httpGet"]["path"])
            self.assertIn("opmill_ready 1", get(monitor["spec"]["endpoints"][0]["path"]))

    def test_the_image_is_healthy_with_tls_and_tokens(self):
        files = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        authority = certificates.Authority("an authority")
        authority.issue("server", ("localhost",)).write(files, "server")
        (files / "ca.crt").write_bytes(authority.certificate)
        (files / "tokens").write_text("alice 5f1c1b5c2d0e4c3a9f5b0f6d8a7e6c11\n", encoding="utf-8")
        with ServerProcess(f"--tls_cert={files}/server.crt", f"--tls_key={files}/server.key",
                           f"--tls_client_ca={files}/ca.crt", f"--token_file={files}/tokens",
                           "--metrics_address=127.0.0.1:0", device="reference") as server:
            address = server.lines("serving")[0]["metrics_address"]

            def check():
                return subprocess.run(health_check("Dockerfile.linux"), check=False, timeout=10,
                                      stderr=subprocess.DEVNULL,
                                      env=plain_environment() | {"OPMILL_METRICS_ADDRESS": address}
                                      ).returncode

            self.assertEqual(check(), 0)
        self.assertNotEqual(check(), 0)

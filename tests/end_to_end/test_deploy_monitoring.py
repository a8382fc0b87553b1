"""Alerts and autoscaling under deploy/kubernetes: what they ask of Prometheus is what the server has, and
is answered as they mean it."""

import pathlib
import re
import subprocess
import tempfile
import unittest
import urllib.request

import yaml

from manifests import MANIFESTS, render
from server_process import ROOT, ServerProcess

PROMTOOL = str(ROOT / "build" / "promtool" / "promtool")
ALERT_TESTS = ROOT / "tests" / "end_to_end" / "alerts_test.yaml"
# The metric that only servers with TLS have.
TLS_ONLY = {"opmill_certificate_expiry_timestamp_seconds"}


def alerts():
    return render("monitoring")["PrometheusRule"]["spec"]


def adapter_rules():
    values = yaml.safe_load((MANIFESTS / "monitoring" / "adapter-values.yaml").read_text("utf-8"))
    return {rule["name"]["as"]: rule for rule in values["rules"]["custom"]}


def metrics_of_autoscaler():
    """Name and target of each."""
    metrics = render("linux")["HorizontalPodAutoscaler"]["spec"]["metrics"]
    return {each["pods"]["metric"]["name"]: each["pods"]["target"]["averageValue"]
            for each in metrics}


def triggers_of_keda():
    """Query and target of each."""
    triggers = render("linux-keda")["ScaledObject"]["spec"]["triggers"]
    return {each["metadata"]["query"]: each["metadata"]["threshold"] for each in triggers}


def query_of_adapter(rule):
    """What the adapter asks for the pods of the namespace `prod`."""
    series = rule["seriesQuery"].partition("{")[0]
    query = rule["metricsQuery"].replace("<<.Series>>", series)
    query = query.replace("<<.LabelMatchers>>", 'namespace="prod",pod=~"one|two"')
    return query.replace("<<.GroupBy>>", "pod")


class DeployMonitoringTest(unittest.TestCase):
    def promtool(self, *arguments, **files):
        """Runs it in a folder with these files."""
        with tempfile.TemporaryDirectory() as text:
            folder = pathlib.Path(text)
            for name, content in files.items():
                (folder / f"{name}.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
            done = subprocess.run([PROMTOOL, *arguments], cwd=folder, capture_output=True, text=True,
                                  timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_alerts_are_valid(self):
        self.promtool("check", "rules", "rules.yaml", rules=alerts())

    def test_alerts_fire_when_they_should(self):
        tests = yaml.safe_load(ALERT_TESTS.read_text(encoding="utf-8"))
        self.promtool("test", "rules", "tests.yaml", rules=alerts(), tests=tests)

    def test_every_alert_has_a_case_that_fires(self):
        names = [rule["alert"] for group in alerts()["groups"] for rule in group["rules"]]
        tests = yaml.safe_load(ALERT_TESTS.read_text(encoding="utf-8"))["tests"]
        cases = [case for test in tests for case in test["alert_rule_test"]]
        self.assertEqual({case["alertname"] for case in cases if case["exp_alerts"]}, set(names))

    def test_autoscaling_counts_what_is_in_progress(self):
        rules = adapter_rules()
        self.assertEqual(set(rules), set(metrics_of_autoscaler()))
        # Two pods, 12 and 3 executions, of which 5 and 0 wait.
        series = [{"series": f'opmill_executions_in_flight{{job="opmill",namespace="prod",pod="{pod}",'
                             f'stage="{stage}"}}', "values": f"{value}x2"}
                  for pod, stage, value in (("one", "queued", 5), ("one", "running", 7),
                                            ("two", "queued", 0), ("two", "running", 3))]

        def case(query, *samples):
            return {"expr": query, "eval_time": "1m",
                    "exp_samples": [{"labels": labels, "value": value} for labels, value in samples]}

        by_pod = [case(query_of_adapter(rules["opmill_executions_in_flight"]),
                       ('{pod="one"}', 12), ('{pod="two"}', 3)),
                  case(query_of_adapter(rules["opmill_executions_queued"]),
                       ('{pod="one"}', 5), ('{pod="two"}', 0))]
        in_all = [case(query, ("{}", 5 if "queued" in query else 15)) for query in triggers_of_keda()]
        self.promtool("test", "rules", "tests.yaml", tests={"tests": [
            {"input_series": series, "promql_expr_test": by_pod + in_all}]})

    def test_both_autoscalers_have_the_same_targets(self):
        self.assertEqual(list(metrics_of_autoscaler().values()), list(triggers_of_keda().values()))

    def test_the_server_has_every_metric(self):
        with ServerProcess("--metrics_address=127.0.0.1:0", device="reference") as server:
            address = server.lines("serving")[0]["metrics_address"]
            with urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as answer:
                names = set(re.findall(r"^# TYPE (\S+)", answer.read().decode(), re.MULTILINE))
        queries = [rule["expr"] for group in alerts()["groups"] for rule in group["rules"]]
        queries += [rule["seriesQuery"] for rule in adapter_rules().values()]
        queries += triggers_of_keda()
        for query in queries:
            with self.subTest(query):
                asked = set(re.findall(r"\b(?:opmill|process)_\w+", query))
                self.assertTrue(asked or query.startswith("up{"))
                self.assertEqual(asked - names - TLS_ONLY, set())

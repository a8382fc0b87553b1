"""The page at --metrics_address in a browser, with real servers under load. `./dev page` runs it, because it
needs Chromium."""

import json
import os
import pathlib
import signal
import tempfile
import threading
import time
import unittest

import grpc
import numpy as np
import tritonclient.grpc as triton
from tritonclient.utils import triton_to_np_dtype

import api
import arrays
import onnx_model
from browser import Browser, chromium
from server_process import ROOT, DriverFaults, ServerProcess
from test_metrics import Scrape
from test_page import HOSTILE

# pylint: disable=wrong-import-order,import-error
from opmill.v1.model_pb2 import ModelDesc

TOKENS = {"alice": "alice-token-0123456789", "batch": "batch-token-0123456789"}
WINDOW_SECONDS = 10
PHONE = {"width": 375, "height": 812, "scale": 2, "phone": True}
PICTURES = ROOT / "docs" if os.environ.get("OPMILL_UPDATE_DOCS") else ROOT / "build" / "page"

# The contrast of every text with what is behind it, at least 4.5 (WCAG 2, AA).
CONTRAST = """(() => {
  const channels = (color) => color.match(/[\\d.]+/g).map(Number);
  const luminance = ([r, g, b]) => [r, g, b].map((c) => c / 255)
    .map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (node) => {
    for (; node !== null; node = node.parentElement) {
      const color = channels(getComputedStyle(node).backgroundColor);
      if (color.length === 3 || color[3] > 0) return color;
    }
    return [255, 255, 255];
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement;
    if (walker.currentNode.data.trim() === "" || !node.checkVisibility()) continue;
    const [one, other] = [channels(getComputedStyle(node).color), behind(node)].map(luminance);
    const ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    found.push([ratio, walker.currentNode.data]);
  }
  return found;
})()"""

ROWS = """((id) => Object.fromEntries(Array.from(
  document.querySelectorAll(`#${id} tbody tr`),
  (row) => [row.cells[0].firstChild.textContent, Array.from(row.cells, (cell) => cell.innerText)])))"""
TILE = """((name) => Array.from(document.querySelectorAll(".tile"))
  .find((tile) => tile.querySelector("h3").textContent === name))"""
METER = """((name) => Array.from(document.querySelectorAll(".meter"))
  .find((meter) => meter.querySelector("h3").textContent === name))"""
UNITS = {"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "µs": 1e-6, "ms": 1e-3, "s": 1}


def number_of(text):
    """Of a text such as "1,234/s", "12.3 MiB/s" or "5.3 ms"."""
    number, _, unit = text.removesuffix("/s").strip().partition(" ")
    return float(number.replace(",", "")) * UNITS[unit]


class Callers:
    """Each calls its operator with its token, at an even rate, until `stop`."""

    def __init__(self, address):
        self._address = address
        self._stopping = threading.Event()
        self._threads = []
        self.failed = []

    def add(self, name, operator, data, rate):
        self._threads.append(threading.Thread(target=self._run, args=(name, operator, data, rate)))
        self._threads[-1].start()

    def _run(self, name, operator, data, rate):
        request = api.sv.ExecuteRequest(operator=operator, inputs=[data])
        metadata = [("authorization", f"Bearer {TOKENS[name]}")]
        with api.connect(self._address) as channel:
            stub = api.stub_of(channel)
            following = time.monotonic()
            while not self._stopping.wait(max(0, following - time.monotonic())):
                following += 1 / rate
                try:
                    for _ in stub.Execute(request, metadata=metadata, timeout=60):
                        pass
                except grpc.RpcError as error:
                    self.failed.append(error)

    def stop(self):
        self._stopping.set()
        for thread in self._threads:
            thread.join()
        self._threads = []


@unittest.skipUnless(chromium(), "There is no chromium; ./dev page installs it.")
class PageInBrowser(unittest.TestCase):
    def serve(self, *flags, **process):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        tokens = self.folder / "tokens"
        tokens.write_text("".join(f"{name} {token}\n" for name, token in TOKENS.items()), encoding="utf-8")
        models = self.folder / "models"
        models.mkdir()
        onnx_model.write_model(models, "scaled", model=onnx_model.scaled_model(2.0))
        (models / "broken").mkdir()
        (models / "broken" / "config.pbtxt").write_text('max_batch_size: "many"', encoding="utf-8")
        process = {"device": "cpu"} | process
        self.server = self.enterContext(ServerProcess(
            "--metrics_address=127.0.0.1:0", f"--token_file={tokens}", f"--model_repository={models}", *flags,
            **process))
        self.address = self.server.lines("serving")[0]["metrics_address"]
        self.metadata = [("authorization", f"Bearer {TOKENS['alice']}")]
        self.stub = api.stub_of(self.enterContext(api.connect(self.server.address)))

    def statistics(self):
        return self.stub.GetStatistics(api.sv.GetStatisticsRequest(), metadata=self.metadata, timeout=30)

    def statistics_at_rest(self):
        until = time.monotonic() + 30
        while (said := self.statistics()).in_flight != api.sv.InFlight():
            self.assertLess(time.monotonic(), until)
            time.sleep(0.02)
        return said

    def load(self):
        """Both callers, with 80 small and 6 larger calls per second, if the machine is idle."""
        callers = Callers(self.server.address)
        self.addCleanup(callers.stop)
        small = np.arange(4096, dtype=np.float32).reshape(64, 64)
        large = np.arange(1 << 18, dtype=np.float32).reshape(512, 512)
        callers.add("alice", arrays.reduce(small, "sum", [1]), small.tobytes(), 60)
        callers.add("alice", arrays.argmax(small, [1]), small.tobytes(), 20)
        callers.add("batch", arrays.top_k(large, 1, 5), large.tobytes(), 6)
        return callers

    def infer(self, count=1):
        with triton.InferenceServerClient(self.server.address) as client:
            metadata = dict(self.metadata)
            tensors = []
            for each in client.get_model_metadata("scaled", headers=metadata).inputs:
                sizes = [6 if size < 0 else size for size in each.shape]
                tensor = triton.InferInput(each.name, sizes, each.datatype)
                tensor.set_data_from_numpy(np.ones(sizes, triton_to_np_dtype(each.datatype)))
                tensors.append(tensor)
            for _ in range(count):
                client.infer("scaled", tensors, headers=metadata, client_timeout=30)

    def refuse(self, name):
        with self.assertRaises(grpc.RpcError) as raised:
            self.stub.DescribeModel(api.sv.DescribeModelRequest(model=ModelDesc(name=name)),
                                    metadata=self.metadata, timeout=30)
        return raised.exception.details()

    def make_errors(self):
        """An execution with too few bytes, and a descriptor that is invalid."""
        values = np.ones((3, 4), np.float32)
        for operator, data in ((arrays.hardmax(values, [1]), values.tobytes()[:8]),
                               (arrays.top_k(values, 1, 9), values.tobytes())):
            with self.assertRaises(grpc.RpcError):
                list(self.stub.Execute(api.sv.ExecuteRequest(operator=operator, inputs=[data]),
                                       metadata=self.metadata, timeout=30))

    def browse(self, **browser):
        page = self.enterContext(Browser(**browser))
        page.open(f"http://{self.address}/")
        page.wait_for("document.querySelector('#facts dd') !== null")
        return page

    def rows(self, page, table):
        return page.evaluate(f"{ROWS}({json.dumps(table)})")

    def tile(self, page, name):
        """The figures and the text below them."""
        return page.evaluate(f"""((tile) => [Array.from(tile.querySelectorAll("dd"), (node) => node.innerText),
                                             tile.querySelector(".sub").innerText])({TILE}({json.dumps(name)}))""")

    def test_totals_are_those_of_get_statistics(self):
        self.serve()
        callers = self.load()
        self.infer(7)
        self.make_errors()
        time.sleep(3)
        callers.stop()
        self.assertEqual(callers.failed, [])
        said = self.statistics_at_rest()
        page = self.browse()
        operators = self.rows(page, "operators")
        self.assertEqual(set(operators), {each.operator for each in said.operators})
        for each in said.operators:
            cells = operators[each.operator]
            self.assertEqual(number_of(cells[6]), each.succeeded + each.failed + each.cancelled)
            self.assertEqual(number_of(cells[7]), each.failed)
        callers_shown = self.rows(page, "callers")
        self.assertEqual(set(callers_shown), {each.caller for each in said.callers})
        for each in said.callers:
            self.assertEqual(number_of(callers_shown[each.caller][4]),
                             each.succeeded + each.failed + each.cancelled)
            self.assertEqual(number_of(callers_shown[each.caller][5]), each.failed)
        models = self.rows(page, "models")
        self.assertEqual(set(models), {"scaled", "broken"})
        self.assertEqual(models["scaled"][1], "ready")
        self.assertEqual(models["scaled"][4:], ["7", "0"])
        self.assertRegex(models["broken"][1], r"^unavailable\s+.*Expected integer")
        succeeded = sum(each.succeeded for each in said.operators)
        self.assertGreater(succeeded, 100)
        self.assertIn(f"total {succeeded:,}", self.tile(page, "Calls")[1])
        failed = sum(each.failed for each in said.operators)
        self.assertIn(f"total {failed} failed, {said.refused_requests} refused, 0 cancelled",
                      self.tile(page, "Errors")[1])
        received = sum(each.input_bytes for each in said.operators)
        shown = self.tile(page, "Tensor bytes")[1].split(" in, ")[0].removeprefix("total ")
        self.assertAlmostEqual(number_of(shown), received, delta=received / 200)
        cache = page.text("#cache")
        self.assertIn(f"{said.cache.entries} operators", cache)
        self.assertIn(f"{said.cache.misses}, of these {said.cache.failures} failed", cache)
        info = self.stub.GetServerInfo(api.sv.GetServerInfoRequest(), metadata=self.metadata)
        facts = page.text("#facts")
        for text in (info.device.adapter, info.device.driver, info.version):
            self.assertIn(text, facts)
        meter = page.evaluate(f"""((track) => ["aria-valuenow", "aria-valuemax"].map((name) =>
            Number(track.getAttribute(name))))({METER}("Memory of models").querySelector(".track"))""")
        self.assertEqual(meter, [said.model_bytes, info.limits.max_total_model_bytes])
        self.assertEqual(page.console, [])

    def test_rates_and_latencies_are_those_of_the_load(self):
        self.serve()
        self.load()
        page = self.browse()
        time.sleep(2)
        samples = []  # the whole window of the page lies within them
        scrape = Scrape(self.address)
        while not samples or samples[-1][0] - samples[0][0] < WINDOW_SECONDS + 5:
            samples.append((time.monotonic(), self.statistics()))
            time.sleep(0.5)
        later = Scrape(self.address)
        (calls,), _ = self.tile(page, "Calls")
        bytes_in_and_out, _ = self.tile(page, "Tensor bytes")
        quantiles, _ = self.tile(page, "Latency")
        operators = self.rows(page, "operators")
        read = time.monotonic()

        def rates_of(get):
            """The least and the greatest rate in any window that could be that of the page."""
            rates = [(get(after) - get(before)) / (end - start)
                     for start, before in samples for end, after in samples
                     if read - end < 4 and WINDOW_SECONDS - 2 < end - start < WINDOW_SECONDS + 3]
            return min(rates), max(rates)

        def sum_of(field):
            return lambda said: sum(getattr(each, field) for each in said.operators)

        expected = [(calls, sum_of("succeeded")), (bytes_in_and_out[0], sum_of("input_bytes")),
                    (bytes_in_and_out[1], sum_of("output_bytes"))]
        for name, cells in operators.items():
            expected.append((cells[1], lambda said, name=name: next(
                each.succeeded for each in said.operators if each.operator == name)))
        for shown, get in expected:
            least, most = rates_of(get)
            print(f"shown {shown}, measured {least:.1f} to {most:.1f}/s")
            self.assertGreater(least, 0)
            self.assertTrue(0.97 * least <= number_of(shown) <= 1.03 * most, shown)
        # The same histogram over about the same time: NumPy interpolates its cumulative counts.
        bounds, counts = [0.0], [0.0]
        for bound in sorted({float(dict(labels)["le"]) for name, labels in later.samples
                             if name == "opmill_execution_duration_seconds_bucket"}):
            def counted(of, bound=bound):
                return sum(value for (name, labels), value in of.samples.items()
                           if name == "opmill_execution_duration_seconds_bucket"
                           and float(dict(labels)["le"]) == bound)
            bounds.append(bound)
            counts.append(counted(later) - counted(scrape))
        for share, shown in zip((0.5, 0.99), quantiles):
            rank = share * counts[-1]
            index = int(np.searchsorted(counts, rank))
            print(f"shown {shown}, between {bounds[index - 1]} and {bounds[index]} s")
            # Either window may have its quantile in a neighbouring range.
            self.assertTrue(bounds[max(0, index - 2)] <= number_of(shown) * 1.01
                            and number_of(shown) * 0.99 <= bounds[min(index + 1, len(bounds) - 1)], shown)

    def test_numbers_are_right_to_the_digit(self):
        """The functions of numbers.js with known histograms and values."""
        self.serve()
        page = self.browse()

        def run(expression):
            return page.evaluate(f'import("./numbers.js").then((numbers) => {expression})')

        metrics = ('# HELP x\\nx_bucket{a="1",le="0.1"} 10\\nx_bucket{a="1",le="0.5"} 30\\n'
                   'x_bucket{a="1",le="+Inf"} 40\\nx_bucket{a="2",le="0.1"} 0\\n'
                   'x_bucket{a="2",le="0.5"} 10\\nx_bucket{a="2",le="+Inf"} 10\\n'
                   'y{name="a\\\\"b\\\\\\\\c\\\\nd, {e}=\\\\"f\\\\""} 1.5e+06\\n')
        self.assertEqual(run(f"[...numbers.parseMetrics('{metrics}').get('y')]"),
                         [{"labels": {"name": 'a"b\\c\nd, {e}="f"'}, "value": 1.5e6}])
        histogram = f"numbers.histogramOf(numbers.parseMetrics('{metrics}'), 'x')"
        self.assertEqual(run(f"[...{histogram}.values()]"), [10, 40, 50])
        for q, expected in ((0.1, 0.05), (0.2, 0.1), (0.5, 0.3), (0.8, 0.5), (0, 0)):
            self.assertAlmostEqual(run(f"numbers.quantile({histogram}, {q})"), expected)
        self.assertEqual(run(f"String(numbers.quantile({histogram}, 0.81))"), "Infinity")
        self.assertIsNone(run("numbers.quantile(new Map(), 0.5)"))
        self.assertIsNone(run("numbers.quantile(new Map([[1, 0], [Infinity, 0]]), 0.5)"))
        for expression, expected in (
                ("countText(1234567)", "1,234,567"), ("countText(0)", "0"),
                ("rateText(0)", "0/s"), ("rateText(0.0123)", "0.012/s"), ("rateText(12.345)", "12.3/s"),
                ("rateText(99.96)", "100/s"), ("rateText(12345.6)", "12,346/s"),
                ("bytesText(0)", "0 B"), ("bytesText(1023)", "1023 B"), ("bytesText(1024)", "1 KiB"),
                ("bytesText(1536)", "1.5 KiB"), ("bytesText(1048575)", "1 MiB"),
                ("bytesText(266 * 1024)", "266 KiB"), ("bytesText(2 ** 62)", "4096 PiB"),
                ("latencyText(null)", "–"), ("latencyText(Infinity)", "> 60 s"),
                ("latencyText(0.000064)", "64 µs"), ("latencyText(0.00525)", "5.3 ms"),
                ("latencyText(0.99)", "990 ms"), ("latencyText(12.3)", "12 s"),
                ("timeText(0.4)", "0 s"), ("timeText(59.9)", "59 s"), ("timeText(60)", "1 min"),
                ("timeText(3661)", "1 h 1 min"), ("timeText(90061)", "1 d 1 h"), ("timeText(86400)", "1 d"),
                ("shareText(1, 3)", "33.3 %"), ("shareText(0, 0)", "–")):
            self.assertEqual(run(f"numbers.{expression}"), expected, expression)

    def test_hostile_sentences_are_only_text(self):
        self.serve()
        said = self.refuse(HOSTILE)
        page = self.browse()
        page.wait_for("document.querySelector('#errors .sentence') !== null")
        self.assertEqual(page.evaluate("document.querySelector('#errors .sentence').textContent"), said)
        self.assertEqual(page.evaluate("document.querySelectorAll('img, #errors script, iframe').length"), 0)
        self.assertEqual(page.console, [])
        # If there were a way to add elements, the policy would not run or load them.
        page.evaluate("""(() => {
          const script = document.createElement("script");
          script.textContent = "window.ran = true";
          const image = document.createElement("img");
          image.src = "data:image/gif;base64,R0lGODlhAQABAAAAACw=";
          image.setAttribute("onerror", "window.ran = true");
          document.body.append(script, image);
        })()""")
        time.sleep(0.5)
        self.assertIsNone(page.evaluate("window.ran ?? null"))
        self.assertTrue([line for line in page.console if "Content Security Policy" in line], page.console)

    def test_says_when_the_server_drains_and_is_gone_and_is_back(self):
        self.serve("--drain_timeout=30s")
        page = self.browse()
        self.assertEqual(page.text("#state"), "Ready")
        self.assertRegex(page.evaluate("document.title"), r"^Ready – OpMill at 127")
        data = np.ones((3, 4), np.float32)
        requests = api.queue.SimpleQueue()
        call = self.stub.ExecuteStream(iter(requests.get, None), metadata=self.metadata, timeout=60)
        requests.put(api.sv.ExecuteStreamRequest(execution_id=1, begin=api.sv.BeginExecution(
            operator=arrays.hardmax(data, [1]))))
        page.wait_for(f"""{METER}("Executions").innerText.includes("1 uploading")""")
        self.server.signal(signal.SIGTERM)
        page.wait_for("document.querySelector('#state').innerText === 'Draining'")
        call.cancel()
        self.assertEqual(self.server.wait(), 0)
        page.wait_for("/^No answer since /.test(document.querySelector('#state').innerText)")
        self.assertTrue(page.evaluate("document.body.classList.contains('stale')"))
        self.enterContext(ServerProcess(f"--metrics_address={self.address}", device="reference"))
        page.wait_for("document.querySelector('#state').innerText === 'Ready'")
        self.assertFalse(page.evaluate("document.body.classList.contains('stale')"))
        self.assertRegex(page.text("#facts"), "reference")

    def test_says_when_the_device_is_lost(self):
        for flag, kind, state in (("--standby=off", "bad", "Device lost"),
                                  ("--standby=on", "warn", "Ready, on standby: device lost")):
            faults = DriverFaults(self.enterContext(tempfile.TemporaryDirectory()))
            self.serve(flag, "--small_work=gpu", device="software", environment=faults.environment)
            callers = self.load()
            page = self.browse()
            self.assertEqual(page.evaluate("document.querySelector('#state').className"), "state good")
            self.assertEqual("none" in page.text("#facts"), flag == "--standby=off")
            faults.begin("no_device")
            faults.begin("lose_device")
            page.wait_for(f"document.querySelector('#state').innerText === {json.dumps(state)}")
            self.assertEqual(page.evaluate("document.querySelector('#state').className"), f"state {kind}")
            if flag == "--standby=off":
                page.wait_for("document.querySelector('#errors .code').innerText === 'UNAVAILABLE'")
            faults.end("no_device")
            page.wait_for("document.querySelector('#state').innerText === 'Ready'")
            self.assertRegex(page.text("#device"), r"Losses of the device\s+1\b")
            callers.stop()

    def test_errors_move_and_selections_survive(self):
        self.serve()
        first = self.refuse("one")
        page = self.browse()
        page.wait_for("document.querySelector('#errors .sentence') !== null")
        self.refuse("two")
        self.refuse("one")
        page.wait_for("document.querySelector('#errors li').innerText.includes('× 2')")
        self.assertEqual(page.evaluate("document.querySelector('#errors .sentence').textContent"), first)
        page.evaluate("getSelection().selectAllChildren(document.querySelector('#errors li:last-child .sentence'))")
        for i in range(18):
            self.refuse(f"more {i}")
        page.wait_for("document.querySelector('#errors .sentence').textContent.includes('more 17')")
        self.assertEqual(page.evaluate("document.querySelectorAll('#errors li').length"), 20)
        self.assertIn('no model "two"', page.evaluate("String(getSelection())"))
        self.refuse("three")  # the oldest gives way
        page.wait_for("document.querySelector('#errors .sentence').textContent.includes('three')")
        self.assertEqual(page.evaluate("document.querySelectorAll('#errors li').length"), 20)
        self.assertNotIn('"two"', page.text("#errors"))

    def test_serves_keyboards_and_screen_readers(self):
        self.serve()
        self.make_errors()
        page = self.browse()
        page.press("Tab", 9)
        self.assertEqual(page.evaluate("document.activeElement.className"), "skip")
        self.assertGreaterEqual(page.evaluate("document.activeElement.getBoundingClientRect().left"), 0)
        page.press("Tab", 9)
        self.assertEqual(page.evaluate("document.activeElement.id"), "pause")
        page.press(" ", 32)
        self.assertEqual(page.evaluate("document.activeElement.getAttribute('aria-pressed')"), "true")
        # An answer may still be under way.
        time.sleep(1)
        before = page.text("#facts")
        time.sleep(3)
        self.assertEqual(page.text("#facts"), before)
        page.press(" ", 32)
        page.wait_for(f"document.querySelector('#facts').innerText !== {json.dumps(before)}")

        nodes = page.command("Accessibility.getFullAXTree")["nodes"]
        seen = [(node["role"]["value"], node.get("name", {}).get("value", "")) for node in nodes
                if not node["ignored"]]
        roles = [role for role, _ in seen]
        for role in ("banner", "main", "contentinfo", "status"):
            self.assertEqual(roles.count(role), 1, role)
        self.assertEqual(page.evaluate("document.querySelectorAll('[aria-live], [role=status]').length"), 1)
        self.assertEqual(roles.count("meter"), 8)
        for role, name in seen:
            if role in ("button", "link", "meter", "image", "region", "heading", "table"):
                self.assertNotEqual(name, "", role)
        levels = page.evaluate("""Array.from(document.querySelectorAll("h1, h2, h3"),
                                             (node) => Number(node.tagName[1]))""")
        self.assertEqual(levels[0], 1)
        self.assertEqual(levels.count(1), 1)
        for level, following in zip(levels, levels[1:]):
            self.assertLessEqual(following, level + 1)
        self.assertEqual(page.evaluate("document.querySelectorAll('tbody th:not([scope=row])').length"), 0)

    def test_fits_phones_and_is_readable_in_both_schemes(self):
        self.serve()
        self.make_errors()
        self.refuse("z" * 300)
        callers = self.load()
        time.sleep(3)
        callers.stop()
        # The table of callers also has those without a name.
        with ServerProcess("--metrics_address=127.0.0.1:0", device="cpu") as nameless:
            values = np.ones((3, 4), np.float32)
            with api.connect(nameless.address) as channel:
                api.execute(api.stub_of(channel), arrays.hardmax(values, [1]), values.tobytes())
            page = self.enterContext(Browser(**PHONE))
            page.open(f"http://{nameless.lines('serving')[0]['metrics_address']}/")
            page.wait_for("document.querySelector('#callers tbody th') !== null")
            self.assert_fits(page)
        for dark in (False, True):
            page = self.browse(**PHONE, dark=dark)
            time.sleep(3)
            self.assert_fits(page)
            found = page.evaluate(CONTRAST)
            self.assertGreater(len(found), 80)
            print(f"the least contrast is {min(found)[0]:.1f}")
            for ratio, text in found:
                self.assertGreaterEqual(ratio, 4.5, text)

    def assert_fits(self, page):
        widths = page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
        self.assertEqual(widths, [375, 375])
        for table in ("operators", "models", "callers"):
            self.assertTrue(page.evaluate(f"""((holder) => holder.scrollWidth <= holder.clientWidth)(
                document.getElementById("{table}"))"""), table)

    def test_pictures(self):
        """Those of docs/operations.md, with OPMILL_UPDATE_DOCS=1; else below build/page."""
        self.serve("--standby=on", device="software")
        callers = self.load()
        self.infer()
        desktop, phone = self.browse(width=1200, height=720, dark=True), self.browse(**PHONE | {"scale": 1.5})
        for i in range(40):
            if i == 4:
                self.make_errors()
            if i == 12:
                self.make_errors()
                self.refuse("classifier")
            self.infer(1 + i % 4)
            time.sleep(1)
        PICTURES.mkdir(parents=True, exist_ok=True)
        for page, name in ((desktop, "page_desktop.png"), (phone, "page_phone.png")):
            page.screenshot(PICTURES / name)
            print(PICTURES / name, (PICTURES / name).stat().st_size)
            self.assertLess((PICTURES / name).stat().st_size, 150_000)
            self.assertEqual(page.console, [])
        callers.stop()


if __name__ == "__main__":
    unittest.main()

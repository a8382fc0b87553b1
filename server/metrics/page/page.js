// Polls the metrics and status.json, and shows them. What comes from the server is only ever set as
// text, because callers and files choose names and parts of sentences.

import { bytesRateText, bytesText, countText, latencyText, rateText, shareText, timeText } from
  "./numbers.js";
import { difference, histogramOf, histogramsBy, parseMetrics, quantile, sumOf, sumsBy } from
  "./numbers.js";
import { ErrorList, List, Meter, setText, Table, Tile } from "./parts.js";

const POLL_MS = 2000;
const ANSWER_MS = 5000;
const WINDOW = 5; // polls
const MOST_ROWS = 15;

const byId = (id) => document.getElementById(id);

const tiles = {
  calls: new Tile(byId("tiles"), "Calls", [""], rateText),
  latency: new Tile(byId("tiles"), "Latency", ["p50", "p99"], latencyText, true),
  bytes: new Tile(byId("tiles"), "Tensor bytes", ["in", "out"], bytesRateText),
  errors: new Tile(byId("tiles"), "Errors", [""], rateText),
};

const meters = {
  executions: new Meter(byId("meters"), "Executions", countText),
  queued: new Meter(byId("meters"), "Waiting for the device", countText),
  bytes: new Meter(byId("meters"), "Bytes in flight", bytesText),
  memory: new Meter(byId("meters"), "Memory of the process", bytesText),
  tensors: new Meter(byId("meters"), "Resident tensors", bytesText),
  models: new Meter(byId("meters"), "Memory of models", bytesText),
  streams: new Meter(byId("meters"), "Streams", countText),
  connections: new Meter(byId("meters"), "Connections", countText),
};

const tables = {
  operators: new Table(byId("operators"), "operators-title", [
    { title: "Operator" }, { title: "Calls" }, { title: "p50" }, { title: "p99" },
    { title: "In", wide: true }, { title: "Out", wide: true }, { title: "Total", wide: true },
    { title: "Failed" }], "No operator has been used since the server started."),
  models: new Table(byId("models"), "models-title", [
    { title: "Model" }, { title: "State", text: true }, { title: "Requests" },
    { title: "Mean", wide: true }, { title: "Total", wide: true }, { title: "Failed" }],
  "The server has no model repository, and no built-in model has been used."),
  callers: new Table(byId("callers"), "callers-title", [
    { title: "Caller" }, { title: "Calls" }, { title: "Work", wide: true },
    { title: "Queue p99" }, { title: "Total", wide: true }, { title: "Failed" }],
  "There have been no calls since the server started."),
};

const errors = new ErrorList(byId("errors"));

const lists = {
  facts: new List(byId("facts")),
  cache: new List(byId("cache")),
  device: new List(byId("device")),
};

// Samples

const isOk = ({ code }) => code === "OK";
const isError = ({ code }) => code !== "OK" && code !== "CANCELLED";

// What is compared with later polls. `seconds` is of the browser's clock.
function sampleOf(metrics, status, seconds) {
  const executions = "opmill_executions_total";
  const ofCallers = "opmill_caller_executions_total";
  return {
    seconds,
    started: sumOf(metrics, "process_start_time_seconds"),
    succeeded: sumOf(metrics, executions, isOk),
    failed: sumOf(metrics, executions, isError),
    cancelled: sumOf(metrics, executions) - sumOf(metrics, executions, (of) => isOk(of) || isError(of)),
    refused: sumOf(metrics, "opmill_refused_requests_total", isError),
    input: sumOf(metrics, "opmill_input_bytes_total"),
    output: sumOf(metrics, "opmill_output_bytes_total"),
    latency: histogramOf(metrics, "opmill_execution_duration_seconds"),
    latencySum: sumOf(metrics, "opmill_execution_duration_seconds_sum"),
    operators: {
      succeeded: sumsBy(metrics, executions, "operator", isOk),
      failed: sumsBy(metrics, executions, "operator", isError),
      all: sumsBy(metrics, executions, "operator"),
      input: sumsBy(metrics, "opmill_input_bytes_total", "operator"),
      output: sumsBy(metrics, "opmill_output_bytes_total", "operator"),
      latency: histogramsBy(metrics, "opmill_execution_duration_seconds", "operator"),
    },
    callers: {
      succeeded: sumsBy(metrics, ofCallers, "caller", isOk),
      failed: sumsBy(metrics, ofCallers, "caller", isError),
      all: sumsBy(metrics, ofCallers, "caller"),
      work: sumsBy(metrics, "opmill_caller_work_bytes_total", "caller"),
      queue: histogramsBy(metrics, "opmill_caller_queue_duration_seconds", "caller"),
    },
    models: new Map(status.models.map((model) => [keyOfModel(model), model])),
    hits: sumOf(metrics, "opmill_operator_cache_lookups_total", ({ result }) => result !== "miss"),
    misses: sumOf(metrics, "opmill_operator_cache_lookups_total", ({ result }) => result === "miss"),
    runs: sumOf(metrics, "opmill_device_runs_total"),
    submissions: sumOf(metrics, "opmill_device_submissions_total"),
    processor: sumOf(metrics, "process_cpu_seconds_total"),
  };
}

const keyOfModel = ({ name, version }) => `${name}\n${version}`;

let samples = []; // the latest WINDOW + 1

// Remembers the sample, and forgets those before a restart of the server or a long pause.
function remember(sample) {
  const last = samples.at(-1);
  const isBreak = last !== undefined &&
    (last.started !== sample.started || sample.seconds - last.seconds > (WINDOW * POLL_MS) / 1000);
  if (isBreak) {
    samples = [];
    for (const tile of Object.values(tiles)) {
      if (last.started === sample.started) tile.interrupt();
      else tile.clear();
    }
  }
  samples.push(sample);
  if (samples.length > WINDOW + 1) samples.shift();
}

// Per second, of a number that `get` finds in a sample, or null after the first poll.
function rateOf(get, before = samples[0]) {
  const now = samples.at(-1);
  if (before === undefined || before === now) return null;
  return Math.max(0, (get(now) ?? 0) - (get(before) ?? 0)) / (now.seconds - before.seconds);
}

const latencyOf = (get, q, before = samples[0]) => {
  const now = samples.at(-1);
  return before === now ? null : quantile(difference(get(now), get(before)), q);
};

const orDash = (write, value) => (value === null ? "–" : write(value));

// Showing

function showTraffic() {
  const now = samples.at(-1);
  const before = samples.at(-2); // the lines have one point for each poll
  const failures = (sample) => sample.failed + sample.refused;
  const latency = (sample) => sample.latency;
  tiles.calls.show([rateOf((of) => of.succeeded)], [rateOf((of) => of.succeeded, before)],
    `total ${countText(now.succeeded)}`);
  const quantiles = (since) => [0.5, 0.99].map((q) => latencyOf(latency, q, since));
  const count = now.succeeded - samples[0].succeeded;
  const mean = count > 0 ? (now.latencySum - samples[0].latencySum) / count : null;
  tiles.latency.show(quantiles(samples[0]), before === undefined ? [null, null] : quantiles(before),
    mean === null ? "no calls" : `mean ${latencyText(mean)}`);
  const bytes = (since) => [rateOf((of) => of.input, since), rateOf((of) => of.output, since)];
  tiles.bytes.show(bytes(samples[0]), bytes(before),
    `total ${bytesText(now.input)} in, ${bytesText(now.output)} out`);
  tiles.errors.show([rateOf(failures)], [rateOf(failures, before)],
    `total ${countText(now.failed)} failed, ${countText(now.refused)} refused, ` +
    `${countText(now.cancelled)} cancelled`, (rateOf(failures) ?? 0) > 0);
}

function showMeters(metrics) {
  const of = (name) => sumOf(metrics, name);
  const stages = sumsBy(metrics, "opmill_executions_in_flight", "stage");
  meters.executions.show(of("opmill_executions_in_flight"), of("opmill_executions_limit"),
    [...stages].filter(([, count]) => count > 0)
      .map(([stage, count]) => `${countText(count)} ${stage}`).join(", "));
  meters.queued.show(stages.get("queued") ?? 0, of("opmill_queued_limit"));
  meters.bytes.show(of("opmill_in_flight_bytes"), of("opmill_in_flight_limit_bytes"));
  meters.memory.show(of("process_resident_memory_bytes"), of("opmill_memory_limit_bytes"));
  const ended = of("opmill_resident_tensors_ended_total");
  meters.tensors.show(of("opmill_resident_tensor_bytes"), of("opmill_resident_tensor_limit_bytes"),
    `${countText(of("opmill_resident_tensors"))} tensors` +
    (ended > 0 ? `, ${countText(ended)} expired or lost` : ""));
  meters.models.show(of("opmill_model_bytes"), of("opmill_model_limit_bytes"));
  meters.streams.show(of("opmill_streams_open"), of("opmill_streams_limit"));
  const turnedAway = of("opmill_refused_connections_total") + of("opmill_closed_connections_total");
  meters.connections.show(of("opmill_connections_open"), of("opmill_connections_limit"),
    turnedAway > 0 ? `${countText(turnedAway)} refused or closed by the server` : "");
}

const failedCell = (count) => ({ text: countText(count), mark: count > 0 ? "bad" : "" });

// The rows with the highest rates, then those with the most calls. Their order is that of all calls,
// so that it rarely changes.
function topRows(rows, noun) {
  const byCalls = (a, b) => b.all - a.all || (a.key < b.key ? -1 : 1);
  rows.sort((a, b) => b.rate - a.rate || byCalls(a, b));
  const rest = rows.length - MOST_ROWS;
  return { rows: rows.slice(0, MOST_ROWS).sort(byCalls), note: rest > 0 ? `and ${rest} more ${noun}` : "" };
}

function showOperators() {
  const { operators } = samples.at(-1);
  const rows = [...operators.all].filter(([, all]) => all > 0).map(([name, all]) => {
    const rate = rateOf((of) => of.operators.succeeded.get(name));
    const latency = (q) => latencyText(latencyOf((of) => of.operators.latency.get(name) ?? new Map(), q));
    const bytes = (get) => orDash(bytesRateText, rateOf((of) => get(of.operators).get(name)));
    return { key: name, rate: rate ?? 0, all, cells: [
      name, orDash(rateText, rate), latency(0.5), latency(0.99), bytes((of) => of.input),
      bytes((of) => of.output), countText(all), failedCell(operators.failed.get(name) ?? 0)] };
  });
  tables.operators.show(topRows(rows, "operators"));
}

const NAMELESS = { address: "without a token or certificate", other: "beyond the first 64 names" };

function showCallers(metrics) {
  const { callers } = samples.at(-1);
  const rows = [...callers.all].filter(([, all]) => all > 0).map(([name, all]) => {
    const rate = rateOf((of) => of.callers.succeeded.get(name));
    const queue = latencyOf((of) => of.callers.queue.get(name) ?? new Map(), 0.99);
    return { key: name, rate: rate ?? 0, all, cells: [
      { text: name, note: NAMELESS[name] ?? "" }, orDash(rateText, rate),
      orDash(bytesRateText, rateOf((of) => of.callers.work.get(name))), latencyText(queue),
      countText(all), failedCell(callers.failed.get(name) ?? 0)] };
  });
  tables.callers.show(topRows(rows, "callers"));
  const strangers = sumOf(metrics, "opmill_unauthenticated_calls_total");
  setText(byId("callers-note"), `${countText(sumOf(metrics, "opmill_callers"))} in the last minute` +
    (strangers > 0 ? `, ${countText(strangers)} calls without a known token` : ""));
}

function showModels(status) {
  const rows = status.models.map((model) => {
    const key = keyOfModel(model);
    const rate = rateOf((of) => of.models.get(key)?.succeeded);
    const before = samples[0].models.get(key);
    const count = model.succeeded - (before?.succeeded ?? 0);
    const mean = count > 0 ? (model.succeeded_ns - (before?.succeeded_ns ?? 0)) / count / 1e9 : null;
    const isReady = model.state === "ready";
    return { key, cells: [
      { text: model.name, note: model.built_in ? "built in" : model.version && `version\u00a0${model.version}` },
      { text: model.state, note: model.reason, mark: !isReady ? "bad" : model.reason ? "warn" : "" },
      orDash(rateText, rate), latencyText(mean), countText(model.succeeded), failedCell(model.failed)] };
  });
  const leftOut = status.models_left_out;
  tables.models.show({ rows, note: leftOut > 0 ? `and ${countText(leftOut)} more models` : "" });
  setText(byId("models-note"), `${countText(status.repository_models)} in the repository` +
    (status.sent_models > 0 ? `, ${countText(status.sent_models)} sent by callers` : ""));
}

function showErrors(status) {
  byId("no-errors").hidden = status.errors.length > 0;
  errors.show(status.errors.map((error) => ({
    ...error, age: `${timeText((status.time_ms - error.time_ms) / 1000)} ago`,
    times: error.count > 1 ? `× ${countText(error.count)}` : "" })));
}

function showFacts(metrics, status) {
  const { version, adapter, device, driver } = metrics.get("opmill_build_info")[0].labels;
  const { standby } = status;
  lists.facts.show([
    ["Device", `${adapter} · ${device} · ${driver}`],
    ["Standby", standby === undefined ? "none" : `${standby.name} · ${standby.driver}`],
    ["Version", version],
    ["Up", timeText(status.uptime_ms / 1000)],
  ]);
}

function showCache(metrics) {
  const of = (name) => sumOf(metrics, `opmill_operator_cache_${name}`);
  const { hits, misses } = samples.at(-1);
  const newHits = hits - samples[0].hits;
  const newMisses = misses - samples[0].misses;
  lists.cache.show([
    ["Kept", `${countText(of("entries"))} operators, ${bytesText(of("bytes"))}`],
    ["Found in the cache", `${shareText(newHits, newHits + newMisses)} in 10 s, ` +
      `${shareText(hits, hits + misses)} since the start`],
    ["Compiled", `${countText(misses)}, of these ${countText(of("failures_total"))} failed`],
    ["Evicted", countText(of("evictions_total"))],
    ["Live kernels", countText(sumOf(metrics, "opmill_device_live_kernels"))],
    ["Kernels compiled, not read from disk",
      countText(sumOf(metrics, "opmill_device_shaders_compiled_total"))],
  ]);
}

function showDevice(metrics, status) {
  const of = (name) => sumOf(metrics, name);
  const buffers = sumsBy(metrics, "opmill_device_buffer_bytes", "state");
  const runs = rateOf((sample) => sample.runs);
  const submissions = rateOf((sample) => sample.submissions);
  const standby = sumsBy(metrics, "opmill_device_standby_runs_total", "reason");
  const memory = of("opmill_device_memory_bytes");
  const expires = of("opmill_certificate_expiry_timestamp_seconds") - Date.now() / 1000;
  const hasStandby = status.standby !== undefined;
  lists.device.show([
    ["Runs", `${orDash(rateText, runs)} in ${orDash(rateText, submissions)} submissions`],
    ["Longest submission", latencyText(of("opmill_device_longest_submission_seconds"))],
    ["Losses of the device", countText(of("opmill_device_resets_total"))],
    ...(hasStandby ? [["Runs on the standby", `${countText(standby.get("small") ?? 0)} small, ` +
      `${countText(standby.get("device_lost") ?? 0)} while the device was lost, ` +
      `${countText(standby.get("no_memory") ?? 0)} without memory`]] : []),
    ["Buffers", `${bytesText(buffers.get("in_use") ?? 0)} in use, ` +
      `${bytesText(buffers.get("pooled") ?? 0)} kept for reuse` +
      (memory > 0 ? `; the device has ${bytesText(memory)}` : "")],
    ["Processor time", orDash((value) => `${value.toFixed(2)} cores`, rateOf((sample) => sample.processor))],
    ["Open files", countText(of("process_open_fds"))],
    ...(metrics.has("opmill_certificate_expiry_timestamp_seconds")
      ? [["Certificate", expires > 0 ? `expires in ${timeText(expires)}` : "has expired"]] : []),
  ]);
}

// The state is a live region: screen readers say it when it changes, and no other number.
function showState(kind, text) {
  const state = byId("state");
  const sentence = text.charAt(0).toUpperCase() + text.slice(1);
  state.className = `state ${kind}`;
  setText(state, sentence);
  document.title = `${sentence} – OpMill at ${location.host}`;
}

function kindOf(status) {
  if (status.ready) return status.state === "ready" ? "good" : "warn";
  return status.state === "device lost" ? "bad" : "warn";
}

// Polling

let answered = null; // when the server last answered, as a time of day
let timer = 0;
let isPolling = false;

async function read(path) {
  const answer = await fetch(path, { cache: "no-store", signal: AbortSignal.timeout(ANSWER_MS) });
  if (!answer.ok) throw new Error(`${path} says ${answer.status}`);
  return answer;
}

async function poll() {
  try {
    const [status, [metrics, seconds]] = await Promise.all([
      read("status.json").then((answer) => answer.json()),
      read("metrics").then(async (answer) => {
        const seconds = performance.now() / 1000; // its header arrived; the text may take longer
        return [parseMetrics(await answer.text()), seconds];
      }),
    ]);
    remember(sampleOf(metrics, status, seconds));
    answered = new Date();
    document.body.classList.remove("stale");
    showState(kindOf(status), status.state);
    showFacts(metrics, status);
    showTraffic();
    showMeters(metrics);
    showOperators();
    showErrors(status);
    showModels(status);
    showCallers(metrics);
    showCache(metrics);
    showDevice(metrics, status);
  } catch (error) {
    console.info("no answer:", error);
    document.body.classList.add("stale");
    showState("bad", answered === null ? "no answer from the server"
      : `no answer since ${answered.toLocaleTimeString()}`);
  }
}

const isPaused = () => byId("pause").getAttribute("aria-pressed") === "true";

async function pollAndWait() {
  clearTimeout(timer);
  if (isPolling || isPaused() || document.hidden) return;
  isPolling = true;
  const began = performance.now();
  await poll();
  isPolling = false;
  const period = samples.length < 2 ? POLL_MS / 2 : POLL_MS; // the first rates come soon
  timer = setTimeout(pollAndWait, Math.max(POLL_MS / 4, period - (performance.now() - began)));
}

byId("pause").addEventListener("click", () => {
  const button = byId("pause");
  button.setAttribute("aria-pressed", String(!isPaused()));
  pollAndWait();
});
document.addEventListener("visibilitychange", pollAndWait);
pollAndWait();

// Reads the metrics, computes rates and quantiles, and writes numbers with their units. No DOM.

const SAMPLE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)/;
const LABEL = /(\w+)="((?:[^"\\]|\\.)*)"/g;
const ESCAPED = { n: "\n", "\\": "\\", '"': '"' };

// Prometheus' text: a Map from names to lists of {labels, value}.
export function parseMetrics(text) {
  const metrics = new Map();
  for (const line of text.split("\n")) {
    const match = line.startsWith("#") ? null : SAMPLE.exec(line);
    if (match === null) continue;
    const labels = {};
    for (const [, name, value] of (match[2] ?? "").matchAll(LABEL)) {
      labels[name] = value.replace(/\\(.)/g, (_, character) => ESCAPED[character] ?? character);
    }
    if (!metrics.has(match[1])) metrics.set(match[1], []);
    metrics.get(match[1]).push({ labels, value: numberOf(match[3]) });
  }
  return metrics;
}

function numberOf(text) {
  return text === "+Inf" ? Infinity : text === "-Inf" ? -Infinity : Number(text);
}

// The sum of the samples with this name that `accepts` takes.
export function sumOf(metrics, name, accepts = () => true) {
  let sum = 0;
  for (const { labels, value } of metrics.get(name) ?? []) if (accepts(labels)) sum += value;
  return sum;
}

// A Map from the values of a label to the sums of their samples.
export function sumsBy(metrics, name, label, accepts = () => true) {
  const sums = new Map();
  for (const { labels, value } of metrics.get(name) ?? []) {
    if (accepts(labels)) sums.set(labels[label], (sums.get(labels[label]) ?? 0) + value);
  }
  return sums;
}

// The histogram as a Map from upper bounds to cumulative counts, in ascending order.
export function histogramOf(metrics, name, accepts) {
  const sums = sumsBy(metrics, `${name}_bucket`, "le", accepts);
  return new Map([...sums].map(([bound, count]) => [numberOf(bound), count]).sort(
    (a, b) => a[0] - b[0]));
}

export function histogramsBy(metrics, name, label) {
  const histograms = new Map();
  for (const { labels, value } of metrics.get(`${name}_bucket`) ?? []) {
    const of = labels[label];
    if (!histograms.has(of)) histograms.set(of, new Map());
    histograms.get(of).set(numberOf(labels.le), value);
  }
  return histograms;
}

// What `now` has counted since `before`, which may be missing.
export function difference(now, before) {
  return new Map([...now].map(([bound, count]) => [bound, count - (before?.get(bound) ?? 0)]));
}

// The value below which the share `q` of a histogram lies, as Prometheus computes it: linear within
// a range. Infinity if it is in the last range, which has no upper bound; null without values.
export function quantile(histogram, q) {
  const counts = [...histogram];
  const total = counts.at(-1)?.[1] ?? 0;
  if (!(total > 0)) return null;
  const rank = q * total;
  let lower = 0;
  let below = 0;
  for (const [upper, count] of counts) {
    if (count >= rank && count > below) {
      if (upper === Infinity) return Infinity;
      return lower + ((upper - lower) * Math.max(0, rank - below)) / (count - below);
    }
    lower = upper;
    below = count;
  }
  return Infinity;
}

// Text

function digits(value, count) {
  return value.toLocaleString("en", { maximumSignificantDigits: count });
}

export function countText(value) {
  return Math.round(value).toLocaleString("en");
}

export function rateText(value) {
  if (value === 0) return "0/s";
  return `${value >= 100 ? countText(value) : digits(value, value >= 1 ? 3 : 2)}/s`;
}

const BYTE_UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

export function bytesText(value) {
  let unit = 0;
  while (value >= 1023.5 && unit < BYTE_UNITS.length - 1) {
    value /= 1024;
    ++unit;
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : digits(value, 3)} ${BYTE_UNITS[unit]}`;
}

export function bytesRateText(value) {
  return `${bytesText(value)}/s`;
}

// Of a latency in seconds. `last` is the upper bound of the last range that has one.
export function latencyText(seconds, last = 60) {
  if (seconds === null) return "–";
  if (seconds === Infinity) return `> ${last} s`;
  if (seconds < 0.001) return `${digits(seconds * 1e6, 2)} µs`;
  if (seconds < 1) return `${digits(seconds * 1e3, 2)} ms`;
  return `${digits(seconds, 2)} s`;
}

// Of a long time in seconds, in one or two units.
export function timeText(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  const parts = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const first = parts.findIndex(([size]) => whole >= size);
  if (first < 0) return "0 s";
  return parts.slice(first, first + 2).map(([size, unit], i) =>
    [Math.floor((i === 0 ? whole : whole % parts[first][0]) / size), unit])
    .filter(([count], i) => i === 0 || count > 0)
    .map(([count, unit]) => `${count} ${unit}`).join(" ");
}

export function shareText(part, whole) {
  return whole > 0 ? `${digits((100 * part) / whole, 3)} %` : "–";
}

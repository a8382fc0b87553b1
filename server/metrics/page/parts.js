// The parts of the page. Each is created once and updated in place, so that focus and selections
// survive, and sets what it shows as text.

const POINTS = 120; // of a line, at most
const LEAST_POINTS = 30; // for which there is room from the start
const WIDTH = 120;
const HEIGHT = 32;
const SVG = "http://www.w3.org/2000/svg";

export function element(tag, className = "", text = "") {
  const node = document.createElement(tag);
  if (className !== "") node.className = className;
  if (text !== "") node.textContent = text;
  return node;
}

export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

function add(parent, ...what) {
  return parent.appendChild(element(...what));
}

let lastId = 0;

function idFor(node) {
  if (node.id === "") node.id = `part-${++lastId}`;
  return node.id;
}

// A few figures, and a line for each of them.
export class Tile {
  // `write` makes text of a figure. The lines of what is never 0 may be logarithmic.
  constructor(parent, title, names, write, isLogarithmic = false) {
    this.write = write;
    this.isLogarithmic = isLogarithmic;
    this.points = names.map(() => []);
    const tile = add(parent, "article", "tile");
    add(tile, "h3", "", title);
    this.holder = add(tile, "dl", "figures");
    this.figures = names.map((name, i) => {
      const pair = add(this.holder, "div");
      add(pair, "dt", i === 0 ? "first" : "second", name);
      return add(pair, "dd", "", "–");
    });
    this.sub = add(tile, "p", "sub");
    this.image = tile.appendChild(document.createElementNS(SVG, "svg"));
    this.image.setAttribute("class", "spark");
    this.image.setAttribute("viewBox", `0 -1 ${WIDTH} ${HEIGHT + 2}`);
    this.image.setAttribute("preserveAspectRatio", "none");
    this.image.setAttribute("role", "img");
    const base = this.shape("line", "");
    base.setAttribute("x2", WIDTH);
    for (const end of ["y1", "y2"]) base.setAttribute(end, HEIGHT);
    this.area = this.shape("path", "area");
    this.lines = names.map((_, i) => this.shape("path", i === 0 ? "" : "second"));
  }

  shape(tag, className) {
    const shape = this.image.appendChild(document.createElementNS(SVG, tag));
    if (className !== "") shape.setAttribute("class", className);
    return shape;
  }

  // Forgets the points of the lines.
  clear() {
    for (const points of this.points) points.length = 0;
  }

  // Leaves a gap in the lines.
  interrupt() {
    for (const points of this.points) points.push(null);
  }

  // `figures` may have nulls, which are unknown. `points` are the next points of the lines.
  show(figures, points, sub, isBad = false) {
    this.holder.classList.toggle("bad", isBad);
    figures.forEach((figure, i) => setText(this.figures[i], figure === null ? "–" : this.write(figure)));
    this.points.forEach((line, i) => {
      line.push(points[i]);
      if (line.length > POINTS) line.shift();
    });
    const known = this.points.flat().filter((point) => point !== null && point !== Infinity);
    const most = Math.max(0, ...known);
    const height = scaleOf(known, most, this.isLogarithmic);
    this.lines.forEach((line, i) => line.setAttribute("d", pathOf(this.points[i], height)));
    if (!this.isLogarithmic) this.area.setAttribute("d", pathOf(this.points[0], height, true));
    const peak = `peak ${this.write(most)}`;
    setText(this.sub, known.length > 0 && most > 0 ? `${sub}, ${peak}` : sub);
    this.image.setAttribute("aria-label", known.length === 0 ? "no values yet"
      : `Up to the last 4 minutes: from ${this.write(Math.min(...known))} to ${this.write(most)}`);
  }
}

// `height` is that of a point, from 0 to 1. The newest point is at the right. Unknown points
// interrupt the line.
function pathOf(points, height, isArea = false) {
  const step = WIDTH / (Math.max(LEAST_POINTS, points.length) - 1);
  let path = "";
  let start = null; // of the current piece
  let last = null;
  const endPiece = () => {
    if (isArea && start !== null) path += `L${last} ${HEIGHT}L${start} ${HEIGHT}Z`;
    start = null;
  };
  points.forEach((point, i) => {
    if (point === null) {
      endPiece();
      return;
    }
    last = (WIDTH - (points.length - 1 - i) * step).toFixed(2);
    path += `${start === null ? "M" : "L"}${last} ${(HEIGHT * (1 - height(point))).toFixed(2)}`;
    start ??= last;
  });
  endPiece();
  return path;
}

// The height of a point among known ones, from 0 to `most`. Infinity is at the top.
function scaleOf(known, most, isLogarithmic) {
  if (most === 0) return () => 0;
  if (!isLogarithmic) return (point) => Math.min(1, point / most);
  const least = Math.min(...known) / 2;
  return (point) => Math.min(1, Math.log(point / least) / Math.log(most / least));
}

// A value and its limit.
export class Meter {
  constructor(parent, title, write) {
    this.write = write;
    const meter = add(parent, "article", "meter");
    const heading = add(meter, "h3", "", title);
    const values = add(meter, "div", "values");
    const line = add(values, "p", "value");
    this.value = add(line, "span", "", "–");
    this.limit = add(line, "span", "limit");
    this.sub = add(values, "p", "sub");
    this.track = add(meter, "div", "track");
    this.track.setAttribute("role", "meter");
    this.track.setAttribute("aria-labelledby", idFor(heading));
    this.track.setAttribute("aria-valuemin", "0");
    this.bar = add(this.track, "div");
  }

  show(value, limit, sub = "") {
    const share = limit > 0 ? Math.min(1, value / limit) : 0;
    setText(this.value, this.write(value));
    setText(this.limit, ` of ${this.write(limit)}`);
    setText(this.sub, sub);
    this.sub.hidden = sub === "";
    this.track.className = `track ${share >= 0.9 ? "bad" : share >= 0.75 ? "warn" : ""}`;
    this.track.setAttribute("aria-valuemax", limit);
    this.track.setAttribute("aria-valuenow", Math.min(value, limit));
    this.track.setAttribute("aria-valuetext", `${this.write(value)} of ${this.write(limit)}`);
    this.bar.style.width = `${(100 * share).toFixed(1)}%`;
  }
}

// A table, or a note if it has no rows. Wide columns are left out on phones.
export class Table {
  constructor(holder, titleId, columns, emptyNote) {
    this.holder = holder;
    this.columns = columns;
    this.emptyNote = emptyNote;
    this.rows = new Map();
    holder.setAttribute("role", "group");
    this.table = add(holder, "table");
    for (const node of [holder, this.table]) node.setAttribute("aria-labelledby", titleId);
    const head = add(add(this.table, "thead"), "tr");
    for (const { title, wide, text } of columns) {
      const cell = add(head, "th", classes(wide && "wide", text && "text"), title);
      cell.scope = "col";
    }
    this.body = add(this.table, "tbody");
    this.note = holder.parentElement.appendChild(element("p", "note"));
  }

  // `rows` have a key and cells, which are texts or {text, note, mark}.
  show({ rows, note }) {
    const keys = new Set(rows.map(({ key }) => key));
    for (const [key, row] of this.rows) {
      if (keys.has(key)) continue;
      row.remove();
      this.rows.delete(key);
    }
    rows.forEach(({ key, cells }, i) => {
      if (!this.rows.has(key)) this.rows.set(key, this.newRow());
      const row = this.rows.get(key);
      if (this.body.children[i] !== row) this.body.insertBefore(row, this.body.children[i] ?? null);
      cells.forEach((cell, column) => this.showCell(row.cells[column], this.columns[column], cell));
    });
    const isEmpty = rows.length === 0;
    this.holder.hidden = isEmpty;
    setText(this.note, isEmpty ? this.emptyNote : note);
    this.note.hidden = this.note.textContent === "";
    // Reachable with the keyboard if there is something to scroll.
    this.holder.tabIndex = this.holder.scrollWidth > this.holder.clientWidth ? 0 : -1;
  }

  newRow() {
    const row = element("tr");
    this.columns.forEach((_, column) => {
      const cell = add(row, column === 0 ? "th" : "td");
      if (column === 0) cell.scope = "row";
      add(cell, "span");
      add(cell, "small");
    });
    return row;
  }

  showCell(node, { wide, text: isText }, cell) {
    const { text, note = "", mark = "" } = typeof cell === "string" ? { text: cell } : cell;
    const [main, small] = node.children;
    setText(main, text);
    setText(small, note);
    small.hidden = note === "";
    node.className = classes(wide && "wide", isText && "text", mark);
  }
}

const classes = (...names) => names.filter(Boolean).join(" ");

// Errors with the latest first. Those that were there before are moved and updated.
export class ErrorList {
  constructor(holder) {
    this.holder = holder;
    this.items = new Map();
  }

  show(errors) {
    const before = this.items;
    this.items = new Map(errors.map((error) => {
      const key = [error.code, error.rpc, error.field, error.sentence].join("\n");
      const item = before.get(key) ?? this.newItem(error);
      before.delete(key);
      setText(item.times, error.times);
      setText(item.time, error.age);
      item.time.dateTime = new Date(error.time_ms).toISOString();
      item.time.title = new Date(error.time_ms).toLocaleString();
      return [key, item];
    }));
    for (const { node } of before.values()) node.remove();
    let i = 0;
    for (const { node } of this.items.values()) {
      if (this.holder.children[i] !== node) this.holder.insertBefore(node, this.holder.children[i] ?? null);
      ++i;
    }
    // Reachable with the keyboard if there is something to scroll.
    this.holder.tabIndex = this.holder.scrollHeight > this.holder.clientHeight ? 0 : -1;
  }

  newItem({ code, rpc, field, sentence }) {
    const node = element("li");
    const about = add(node, "p", "about");
    add(about, "span", "code", code);
    add(about, "span", "", rpc);
    if (field !== "") add(about, "span", "", field);
    const times = add(about, "span");
    const time = add(about, "time");
    add(node, "p", "sentence", sentence);
    return { node, times, time };
  }
}

// Names and values.
export class List {
  constructor(holder) {
    this.holder = holder;
    this.values = new Map();
  }

  show(pairs) {
    for (const [name, value] of pairs) {
      if (!this.values.has(name)) {
        const pair = add(this.holder, "div");
        add(pair, "dt", "", name);
        this.values.set(name, add(pair, "dd"));
      }
      setText(this.values.get(name), value);
    }
  }
}

"""build/bench/results.md: all tables of a run. docs/notes/ keeps those of the last full run, and
docs/performance.md its medians."""

HEADINGS = {"kernels": "Kernels: share of the limit", "transport": "End to end",
            "small": "Small calls: argmin of 4 KiB", "cold": "Cold and warm",
            "fairness": "Fairness: a small caller beside a heavy one",
            "peers": "Beside ONNX Runtime and NumPy, in process: times as fast"}

SHARE = "device time and (in brackets) share of the limit"
OTHER_TYPES = ("INT32", "UINT32", "INT64", "UINT64", "INT16", "UINT16", "UINT8")


def table(columns, rows):
    lines = ["| " + " | ".join(row) + " |" for row in [columns, *rows]]
    return "\n".join([lines[0], "|" + "---|" * len(columns), *lines[1:]])


def targets_of(part):
    def row(target):
        value, unit = target.value, target.unit
        return [target.what, f"{value['median']:.3f}{unit}",
                f"{value['low']:.3f}..{value['high']:.3f}",
                f"at {'most' if target.at_most else 'least'} {target.bound:.4g}",
                "" if target.met else "missed"]
    rows = [row(target) for target in part.targets]
    return f"**{HEADINGS[part.name]}**\n\n" + table(["what", "median", "10..90 %", "bound", ""], rows)


def matrix(found, line, column, cell):
    """A table of results by two of their fields."""
    columns = list(dict.fromkeys(str(column(row)) for row in found))
    lines = {}
    for row in found:
        lines.setdefault(str(line(row)), {})[str(column(row))] = cell(row)
    return table(["", *columns], [[name, *(cells.get(c, "") for c in columns)]
                                  for name, cells in lines.items()])


def share(row):
    return f"{row['share']['median']:.2f}"


def time_and_share(row):
    clock = row[row["clock"]]["median"]
    return f"{clock * 1e3:.{2 if row['bytes'] < 1 << 20 else 1}f} ms ({share(row)})"


def kernels(data):
    """Short tables of the rows that have no target."""
    others = [row for row in data["rows"] if row["group"].split("[")[0] in OTHER_TYPES]
    parts = [("Other types, share of the limit:", others, lambda row: row["group"],
              lambda row: row["name"], share),
             (f"Sizes, {SHARE}; a small run costs what a submission does:", data["sizes"],
              lambda row: row["group"], lambda row: row["name"], time_and_share),
             (f"top_k against ranks, {SHARE}:", data["ranks"],
              lambda row: f"{row['group']} over {row['name'].rsplit(' ', 1)[1]}",
              lambda row: f"k={row['k']}", time_and_share),
             (f"Results of few elements: 64 MiB of FLOAT32 by the elements of a result, {SHARE}:",
              data["lengths"], lambda row: row["name"], lambda row: row["length"], time_and_share)]
    return [f"{title}\n\n{matrix(*how)}" for title, *how in parts if how[0]]


def page(machine, parts):
    sections = ["\n".join(f"- {name}: {value}" for name, value in machine.items())]
    sections += [targets_of(part) for part in parts if part.targets]
    for part in parts:
        if part.name == "kernels":
            sections += kernels(part.data)
    sections.append("The tables behind these, of the same run:")
    for part in parts:
        if part.name != "kernels":
            sections += ["\n".join(f"    {line}" for line in table.text().splitlines())
                         for table in part.tables]
    return "\n\n".join(sections) + "\n"

"""The results of one part of the bench: tables to print, series to draw, and targets."""

import dataclasses


@dataclasses.dataclass
class Target:
    """A measured value, and the bound that it should meet."""

    what: str
    bound: float
    value: dict  # a spread
    at_most: bool = False
    unit: str = ""

    @property
    def met(self):
        median = self.value["median"]
        return median <= self.bound if self.at_most else median >= self.bound

    @property
    def sentence(self):
        return f"{'<=' if self.at_most else '>='} {self.bound:.4g}{self.unit}"

    @property
    def verdict(self):
        return "met" if self.met else "missed"

    def as_data(self):
        return {"what": self.what, "bound": self.bound, "at_most": self.at_most,
                "unit": self.unit, "value": self.value, "met": self.met}


@dataclasses.dataclass
class Table:
    title: str
    columns: list
    rows: list = dataclasses.field(default_factory=list)  # of cells, the first a name
    notes: list = dataclasses.field(default_factory=list)

    def text(self):
        cells = [self.columns, *self.rows]
        widths = [max(len(row[i]) for row in cells) for i in range(len(self.columns))]
        lines = [self.title]
        for row in cells:
            padded = [row[0].ljust(widths[0])]
            padded += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]
            lines.append("  " + "  ".join(padded).rstrip())
        return "\n".join(lines + [f"  {note}" for note in self.notes])


@dataclasses.dataclass
class Chart:
    """Bars, one per series, or lines; see charts.py."""

    title: str
    kind: str  # bars or lines
    unit: str
    series: dict  # bars: name to (value, target or None); lines: name to [(x, y)]
    x_unit: str = ""


@dataclasses.dataclass
class Part:
    name: str
    tables: list = dataclasses.field(default_factory=list)
    charts: list = dataclasses.field(default_factory=list)
    targets: list = dataclasses.field(default_factory=list)
    data: dict = dataclasses.field(default_factory=dict)

    def as_data(self):
        return {"data": self.data, "targets": [target.as_data() for target in self.targets]}


def between(value, scale=1.0, digits=2):
    """The ends of a spread as text."""
    return f"{value['low'] * scale:.{digits}f}..{value['high'] * scale:.{digits}f}"


def number(value, scale=1.0, digits=2):
    return f"{value['median'] * scale:.{digits}f}"


def target_table(targets):
    table = Table("Targets: ratios within this run", ["", "median", "10%..90%", "target", ""])
    for target in targets:
        table.rows.append([target.what, number(target.value, digits=3),
                           between(target.value, digits=3), target.sentence, target.verdict])
    met = sum(target.met for target in targets)
    table.notes.append(f"{met} of {len(targets)} met")
    return table


def bytes_text(count):
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:g} {unit}"
        count /= 1024
    return f"{count:g} GiB"

"""Draws docs/tour.svg, the picture of docs/tour.md: python3 docs/tour_picture.py

Left: the page's function as a heat map, with the argmax of each row. Right: latency against load,
from the tables of docs/notes/bench-2026-11-25.md. Needs NumPy."""

import math
import pathlib
import re

import numpy as np

DOCS = pathlib.Path(__file__).resolve().parent
WIDTH, HEIGHT = 900, 300
LEVELS = 24
LOW, MIDDLE, HIGH = (37, 52, 110), (63, 152, 148), (250, 226, 110)
SERVICES = {"bare unary": "#6b6b6b", "Execute": "#2563a8", "ExecuteStream": "#c2571a"}


def function():
    """The same as in docs/tour.md."""
    y, x = np.mgrid[-2:2:32j, -4:4:64j].astype(np.float32)
    return np.exp(-((x - 2 * np.sin(2 * y)) ** 2)) + np.cos(x) / 4


def color(share):
    start, end, t = (LOW, MIDDLE, 2 * share) if share < 0.5 else (MIDDLE, HIGH, 2 * share - 1)
    return "#" + "".join(f"{round(a + (b - a) * t):02x}" for a, b in zip(start, end))


def text(x, y, words, anchor="start", fill="#333", more=""):
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" fill="{fill}"{more}>{words}</text>'


def heat_map(z, left, top, size):
    """Cells of `size` pixels. Those of one color are one path."""
    levels = ((z - z.min()) / (z.max() - z.min()) * (LEVELS - 1)).round().astype(int)
    parts = [f'<g transform="translate({left} {top}) scale({size})" shape-rendering="crispEdges">']
    for level in range(LEVELS):
        cells = "".join(f"M{j} {i}h1v1h-1z" for i, j in np.argwhere(levels == level))
        parts.append(f'<path fill="{color(level / (LEVELS - 1))}" d="{cells}"/>')
    parts.append("</g>")
    for i, j in enumerate(z.argmax(axis=1)):
        parts.append(f'<circle cx="{left + (j + 0.5) * size:g}" cy="{top + (i + 0.5) * size:g}" '
                     'r="2.6" fill="#fff" stroke="#000"/>')
    parts.append(text(left, top - 10, "z, and the argmax of each row"))
    parts.append(text(left, top + z.shape[0] * size + 16, "column 0"))
    parts.append(text(left + z.shape[1] * size, top + z.shape[0] * size + 16,
                      f"column {z.shape[1] - 1}", "end"))
    return parts


def measured(service):
    """Executions in flight, calls per second, and the median latency in ms."""
    rows = re.findall(rf"^ +{service} +(\d+) +(\d+) +\d+\.\.\d+ +[\d.]+ +(\d+) ",
                      (DOCS / "notes/bench-2026-11-25.md").read_text(encoding="utf-8"), re.M)
    points = {}
    for in_flight, rate, microseconds in rows:
        points.setdefault(int(in_flight), (int(in_flight), int(rate), int(microseconds) / 1000))
    return list(points.values())


def chart(left, top, width, height):
    """Logarithmic axes: 2,000 to 100,000 calls per second, and 0.1 to 100 ms."""
    def at(rate, milliseconds):
        return (left + width * math.log(rate / 2000) / math.log(50),
                top + height * (1 - math.log10(milliseconds / 0.1) / 3))

    parts = [text(left, top - 10, "p50 latency of argmin of 4 KiB, against calls per second")]
    for milliseconds in (0.1, 1, 10, 100):
        _, y = at(2000, milliseconds)
        parts.append(f'<path stroke="#ddd" d="M{left} {y:.1f}h{width}"/>')
        parts.append(text(left - 6, y + 4, f"{milliseconds:g} ms", "end"))
    for rate in (2000, 5000, 10000, 20000, 50000, 100000):
        x, y = at(rate, 0.1)
        parts.append(f'<path stroke="#ddd" d="M{x:.1f} {top}v{height}"/>')
        parts.append(text(x, y + 16, f"{rate // 1000}k", "middle"))
    for i, (service, stroke) in enumerate(SERVICES.items()):
        points = measured(service)
        assert len(points) == 4, service
        line = " ".join("{:.1f},{:.1f}".format(*at(rate, ms)) for _, rate, ms in points)
        parts.append(f'<polyline fill="none" stroke="{stroke}" stroke-width="2" points="{line}"/>')
        for in_flight, rate, ms in points:
            x, y = at(rate, ms)
            parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{stroke}"/>')
            if service == "Execute":
                parts.append(text(x - 7, y - 5, in_flight, "end", stroke))
        parts.append(text(left + 12, top + 18 + 16 * i, service, fill=stroke))
    return parts


def main():
    parts = (heat_map(function(), 20, 40, 7)
             + chart(560, 40, 310, 224))
    picture = (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
               f'width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" font-size="12">'
               f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>' + "\n".join(parts)
               + "</svg>\n")
    (DOCS / "tour.svg").write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    main()

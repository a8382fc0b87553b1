"""Charts as inline SVG."""

import html
import math

COLORS = ("#2563a8", "#c2571a", "#2e7d4f", "#8a4f9e", "#a08a1b", "#6b6b6b", "#b3325f")
WIDTH = 860


def svg(chart):
    return (bars if chart.kind == "bars" else lines)(chart)


def _text(x, y, text, anchor="start", color="#333"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{color}">'
            f"{html.escape(str(text))}</text>")


def _frame(height, parts):
    return (f'<svg viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
            f'font-family="sans-serif" font-size="12">{"".join(parts)}</svg>')


def bars(chart):
    """One bar per value, with a mark at its target. Bars that miss their target are red."""
    left, right, step = 320, 70, 20
    top = max([value for value, _ in chart.series.values()]
              + [target for _, target in chart.series.values() if target])
    scale = (WIDTH - left - right) / top if top > 0 else 0
    parts = []
    for i, (name, (value, target)) in enumerate(chart.series.items()):
        y = 6 + i * step
        met = target is None or value >= target
        color = COLORS[5] if target is None else COLORS[0] if met else "#c62828"
        parts.append(_text(left - 8, y + 12, name, "end"))
        parts.append(f'<rect x="{left}" y="{y}" width="{max(value * scale, 1):.1f}" '
                     f'height="{step - 6}" fill="{color}"/>')
        parts.append(_text(left + value * scale + 6, y + 12, f"{value:.3g}{chart.unit and ' '}"
                           f"{chart.unit}"))
        if target is not None:
            x = left + target * scale
            parts.append(f'<line x1="{x:.1f}" y1="{y - 2}" x2="{x:.1f}" y2="{y + step - 4}" '
                         'stroke="#000" stroke-width="2"/>')
    return _frame(12 + step * len(chart.series), parts)


def lines(chart):
    """A line chart with logarithmic axes."""
    left, right, top, bottom, height = 70, 220, 12, 40, 320
    points = [point for series in chart.series.values() for point in series]
    low_x, high_x = _span(point[0] for point in points)
    low_y, high_y = _span(point[1] for point in points)

    def place(point):
        x, y = (math.log10(value) for value in point)
        return (left + (x - low_x) / (high_x - low_x) * (WIDTH - left - right),
                height - bottom - (y - low_y) / (high_y - low_y) * (height - top - bottom))

    parts = []
    for exponent in range(math.ceil(low_y), math.floor(high_y) + 1):
        _, y = place((10 ** low_x, 10 ** exponent))
        parts.append(f'<line x1="{left}" y1="{y:.1f}" x2="{WIDTH - right}" y2="{y:.1f}" '
                     'stroke="#ddd"/>')
        parts.append(_text(left - 6, y + 4, f"{10.0 ** exponent:g}", "end"))
    for x_value in sorted({point[0] for point in points}):
        x, _ = place((x_value, 10 ** low_y))
        parts.append(f'<line x1="{x:.1f}" y1="{top}" x2="{x:.1f}" y2="{height - bottom}" '
                     'stroke="#eee"/>')
        parts.append(_text(x, height - bottom + 16, _short(x_value, chart.x_unit), "middle"))
    parts.append(_text((left + WIDTH - right) / 2, height - 6, chart.x_unit, "middle"))
    parts.append(_text(4, top + 4, chart.unit))
    for i, (name, series) in enumerate(chart.series.items()):
        color = COLORS[i % len(COLORS)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in map(place, sorted(series)))
        parts.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{color}"/>'
                  for x, y in map(place, series)]
        parts.append(_text(WIDTH - right + 12, top + 14 + 18 * i, name, color=color))
    return _frame(height, parts)


def _span(values):
    """The range of the values' logarithms, with a margin."""
    logarithms = [math.log10(value) for value in values]
    low, high = min(logarithms), max(logarithms)
    room = max(0.05 * (high - low), 0.1)
    return low - room, high + room


def _short(value, unit):
    if unit != "bytes":
        return f"{value:g}"
    for suffix in ("", "K", "M", "G"):
        if value < 1024:
            return f"{value:g}{suffix}"
        value /= 1024
    return f"{value:g}T"

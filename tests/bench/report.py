"""Writes build/bench/report.html: all tables and charts in one file."""

import html

import charts
from results import target_table

STYLE = """body { font-family: sans-serif; margin: 2em auto; max-width: 72em; color: #222; }
table { border-collapse: collapse; font-size: 13px; margin: 0.5em 0 1.5em; }
th, td { padding: 2px 10px; text-align: right; border-bottom: 1px solid #e4e4e4; }
th:first-child, td:first-child { text-align: left; }
td.met { color: #2e7d4f; } td.missed { color: #c62828; font-weight: bold; }
p.note { color: #666; font-size: 13px; }"""


def table_html(table):
    rows = "".join(
        "<tr>" + "".join(f'<td class="{cell if cell in ("met", "missed") else ""}">'
                         f"{html.escape(cell)}</td>" for cell in row) + "</tr>"
        for row in table.rows)
    head = "".join(f"<th>{html.escape(column)}</th>" for column in table.columns)
    notes = "".join(f'<p class="note">{html.escape(note)}</p>' for note in table.notes)
    return f"<h3>{html.escape(table.title)}</h3><table><tr>{head}</tr>{rows}</table>{notes}"


def page(machine, parts):
    body = ["<h1>OpMill bench</h1>", "<table>"]
    body += [f"<tr><td>{html.escape(name)}</td><td>{html.escape(str(value))}</td></tr>"
             for name, value in machine.items()]
    body.append("</table>")
    body.append('<p class="note">Black marks in bars are targets, red bars miss theirs, grey ones '
                "have none. Medians; the range is what lies 10 % from the ends.</p>")
    targets = [target for part in parts for target in part.targets]
    if targets:
        body.append(table_html(target_table(targets)))
    for part in parts:
        body.append(f"<h2>{html.escape(part.name)}</h2>")
        for chart in part.charts:
            body.append(f"<h3>{html.escape(chart.title)}</h3>{charts.svg(chart)}")
        body += [table_html(table) for table in part.tables]
    return ("<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\">"
            f"<title>OpMill bench</title><style>{STYLE}</style></head><body>{''.join(body)}"
            "</body></html>\n")

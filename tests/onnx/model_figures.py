"""Prints a table for docs/models.md: what the models of models.py take on the cpu device. Steps and bytes moved, if each
operator is a step, with chains, and with what the device joins; the arena, and what is needed at the same time.

    ./dev build release onnx_run
    build/venv/bin/python tests/onnx/model_figures.py
"""

import os
import pathlib
import subprocess

import models

PROGRAMS = os.environ.get("OPMILL_ONNX_PROGRAMS",
                          pathlib.Path(__file__).resolve().parents[2] / "build/release/tests/onnx")


def figures_of(model):
    """Steps and bytes of the three ways, then the arena and its bound."""
    ended = subprocess.run([pathlib.Path(PROGRAMS, "onnx_run"), "--figures", model.path, *models.arguments(model)],
                           check=True, capture_output=True, text=True)
    return [int(number) for number in ended.stdout.split()]


def row(name, figures):
    alone, alone_bytes, chains, chains_bytes, joined, joined_bytes, arena, live = figures
    cells = [name, alone, chains, joined, *(f"{each / 1e6:.1f}" for each in (alone_bytes, chains_bytes, joined_bytes)),
             f"{arena / 1e6:.2f}", f"{live / 1e6:.2f}"]
    return f"| {' | '.join(map(str, cells))} |"


def main():
    models.fetch()
    print("| model | operators | with chains | steps | MB moved | with chains | by steps | MB of arena | needed at once |")
    print("|---|---|---|---|---|---|---|---|---|")
    total = [0] * 8
    for model in models.MODELS:
        figures = figures_of(model)
        print(row(f"{model.path.stem} {' '.join(models.arguments(model))}".strip(), figures), flush=True)
        total = [a + b for a, b in zip(total, figures)]
    print(row("all", total))


if __name__ == "__main__":
    main()

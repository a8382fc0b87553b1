"""Starts the programs of OpMill: `opmill-server`, and the command line `opmill`."""

import os
import signal
import sys

__all__ = ["run"]


def run() -> None:
    """Replaces this process by the program that has the name of its script."""
    # Python ignores these, and so would the program.
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(ignored, signal.SIG_DFL)
    name = os.path.basename(sys.argv[0])
    os.execv(os.path.join(os.path.dirname(__file__), "bin", name), sys.argv)

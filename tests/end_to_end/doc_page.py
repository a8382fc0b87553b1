"""Runs the Python examples of a document."""

import contextlib
import io
import re

from server_process import ROOT


def run(test, page, addresses):
    """Executes the blocks of `page` in their order. A line `print(x)  # y` must print y. `addresses`
    has the replacement of each address on the page."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    test.assertGreaterEqual(len(blocks), 1)
    names = {"__name__": "__main__"}
    for block in blocks:
        print(block)
        source = block
        for address, replacement in addresses.items():
            source = source.replace(address, replacement)
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(source, page, "exec"), names)  # pylint: disable=exec-used
        expected = re.findall(r"^ *print\(.*\)  # (.*)$", block, re.MULTILINE)
        test.assertEqual(printed.getvalue().splitlines(), expected)

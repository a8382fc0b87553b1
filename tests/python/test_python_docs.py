"""Runs the Python examples of the documents in the order of the page. A line `x  # y` must print
y."""

import contextlib
import io
import re
import unittest

from server_process import ROOT, ServerProcess

ADDRESS = "127.0.0.1:50051"


class Docs(unittest.TestCase):
    def run_page(self, page):
        blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
        self.assertGreaterEqual(len(blocks), 1)
        names = {"__name__": "__main__"}
        with (ServerProcess(device="cpu") as first, ServerProcess(device="cpu") as second):
            for block in blocks:
                print(block)
                source = (block.replace(ADDRESS, first.address)
                          .replace("10.0.0.1:50051", first.address)
                          .replace("10.0.0.2:50051", second.address))
                with contextlib.redirect_stdout(io.StringIO()) as printed:
                    exec(compile(source, page, "exec"), names)  # pylint: disable=exec-used
                expected = re.findall(r"^ *print\(.*\)  # (.*)$", block, re.MULTILINE)
                self.assertEqual(printed.getvalue().splitlines(), expected)

    def test_readme(self):
        self.run_page("README.md")

    def test_python(self):
        self.run_page("docs/python.md")

    def test_tour(self):
        self.run_page("docs/tour.md")

    def test_package(self):
        self.run_page("python/README.md")

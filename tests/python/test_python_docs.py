"""The Python examples of the documents print what they say."""

import pathlib
import tempfile
import unittest

import doc_page
import onnx_model
from server_process import ServerProcess


class Docs(unittest.TestCase):
    def run_page(self, page):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        onnx_model.write_model(pathlib.Path(folder), "layer")
        with (ServerProcess(f"--model_repository={folder}", device="cpu") as first,
              ServerProcess(device="cpu") as second):
            doc_page.run(self, page, {"127.0.0.1:50051": first.address,
                                      "10.0.0.1:50051": first.address,
                                      "10.0.0.2:50051": second.address})

    def test_readme(self):
        self.run_page("README.md")

    def test_python(self):
        self.run_page("docs/python.md")

    def test_search(self):
        self.run_page("docs/search.md")

    def test_tour(self):
        self.run_page("docs/tour.md")

    def test_package(self):
        self.run_page("python/README.md")

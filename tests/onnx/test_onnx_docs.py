"""The commands and the Python example of docs/models.md."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import doc_page
from server_process import CLI, ROOT, ServerProcess

PAGE = "docs/models.md"


class OnnxDocs(unittest.TestCase):
    def test_from_a_package_to_an_answer(self):
        commands = re.search(r"```sh\n(.*?)```", (ROOT / PAGE).read_text(), re.DOTALL)[1].splitlines()
        self.assertEqual(len(commands), 5)
        prepare, serve, show = commands[:3], commands[3], commands[4]
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        tools = os.pathsep.join((str(pathlib.Path(sys.executable).parent), os.environ["PATH"]))
        for command in prepare:
            subprocess.run(command, shell=True, check=True, cwd=folder, env=os.environ | {"PATH": tools})
        flag = re.fullmatch(r"\./dev serve (--model_repository)=(\S+) 2>build/serve\.log &", serve)
        server = self.enterContext(ServerProcess(f"{flag[1]}={folder / flag[2]}", device="cpu"))
        program, *arguments = show.split()
        self.assertEqual(program, "build/release/client/opmill")
        shown = subprocess.run([CLI, *arguments, "--server", server.address],
                               check=True, capture_output=True, text=True).stdout
        print(shown)
        for word in ("magika", "bytes", "target_label", "2048", "214"):
            self.assertIn(word, shown)
        doc_page.run(self, PAGE, {"127.0.0.1:50051": server.address})

"""Adds the files in programs/ to the wheel.

The programs for Windows are static, and become the scripts. Those for Linux need the libraries that
auditwheel adds, at a fixed place beside them: their scripts start them.
"""

import pathlib

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface


def files(root):
    return sorted((pathlib.Path(root) / "programs").iterdir())


def for_windows(root):
    return any(each.suffix == ".exe" for each in files(root))


class Scripts(MetadataHookInterface):
    def update(self, metadata):
        metadata["scripts"] = {} if for_windows(self.root) else {
            name: "opmill_server:run" for name in ("opmill", "opmill-server")}


class Programs(BuildHookInterface):
    def initialize(self, _version, build_data):
        build_data["pure_python"] = False
        if for_windows(self.root):
            build_data["tag"] = "py3-none-win_amd64"
            build_data["shared_scripts"] = {str(each): each.name for each in files(self.root)}
            return
        build_data["tag"] = "py3-none-linux_x86_64"
        for each in files(self.root):
            folder = "opmill_server.libs" if ".so" in each.name else "opmill_server/bin"
            build_data["force_include"][str(each)] = f"{folder}/{each.name}"

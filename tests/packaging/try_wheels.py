"""Installs the wheels of build/wheels in clean systems, and runs README.md's example against the server.

    ./dev wheel --try [SYSTEM...]
"""

import pathlib
import socket
import sys
import tempfile

import clean_root

WHEELS = clean_root.ROOT / "build" / "wheels"
PYTHON = ("python3-venv",)
SYSTEMS = {  # name: suite, packages, what the server computes with
    "debian-12": ("bookworm", PYTHON, "auto"),
    "debian-13": ("trixie", PYTHON, "auto"),
    "debian-13-mesa": ("trixie", (*PYTHON, "libvulkan1", "mesa-vulkan-drivers"), "software"),
}
SCRIPT = r"""
if command -v cc gcc g++ clang; then exit 1; fi
now() { date +%s.%N; }
since() { awk "BEGIN { printf \"%.1f s\", $(now) - $1 }"; }

python3 -m venv venv && . venv/bin/activate
start=$(now)
pip install --quiet --disable-pip-version-check /files/*.whl
echo "pip install: $(since $start)"
opmill-server --address=127.0.0.1:PORT --device=DEVICE 2>server.log &
server=$!
opmill --server 127.0.0.1:PORT health --wait 60s || { cat server.log && exit 1; }
python3 /files/example.py | tee printed
echo "from pip install to README's answers: $(since $start)"
diff printed /files/expected
sed -n 's/.* \(adapter=.*\) preloaded.*/\1/p' server.log

# The program is in the place of Python: its name, the signals that it ignores, its exit status.
[[ $(cat /proc/$server/comm) == opmill-server ]]
ignored=0x$(sed -n 's/^SigIgn:\t//p' /proc/$server/status)
((!(ignored & 1 << 12)))  # SIGPIPE
kill $server && wait $server
opmill --server 127.0.0.1:PORT health >/dev/null 2>&1 && status=0 || status=$?
((status == 3))
python3 -c 'import opmill, opmill_server; print("opmill", opmill.__version__)'
opmill version
"""


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return str(found.getsockname()[1])


def main():
    failed = []
    example = clean_root.readme_example("python")
    for name in sys.argv[1:] or SYSTEMS:
        suite, packages, device = SYSTEMS[name]
        system = clean_root.make(name, suite, packages)
        print(f"== {name}", flush=True)
        port = free_port()
        with tempfile.TemporaryDirectory() as text:
            folder = pathlib.Path(text)
            (folder / "example.py").write_text(example.replace("50051", port), encoding="utf-8")
            (folder / "expected").write_text("".join(
                f"{line}\n" for line in clean_root.printed_by(example)), encoding="utf-8")
            files = [*folder.iterdir(), *WHEELS.glob("opmill-*.whl"), *WHEELS.glob("*-manylinux*.whl")]
            script = SCRIPT.replace("PORT", port).replace("DEVICE", device)
            if clean_root.run(system, files, script) != 0:
                failed.append(name)
    print(f"failed: {', '.join(failed)}" if failed else "all passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

"""Runs scripts in clean Debian systems, without a compiler or anything else of this machine."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROOTS = ROOT / "build" / "roots"

# The system is below, what the script writes is above, in memory. What the script started ends with it.
_MOUNT = r"""
set -eu
root=$2/root script=$4
mkdir -p "$2"
mount -t tmpfs tmpfs "$2"
mkdir "$2/upper" "$2/work" "$root"
mount -t overlay -o "lowerdir=$1,upperdir=$2/upper,workdir=$2/work" overlay "$root"
cp -r "$3" "$root/files"
echo "$script" >"$root/files/script"
shift 4
"""
_ENTER = _MOUNT + r"""
cp /etc/resolv.conf "$root/etc/"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
exec chroot "$root" env -i HOME=/root LANG=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@" \
  bash -euo pipefail -c "cd && . /files/script"
"""
_BOOT = _MOUNT + r"""
cat >"$root/etc/systemd/system/try.service" <<END
[Unit]
After=multi-user.target
SuccessAction=exit-force
SuccessActionExitStatus=0
FailureAction=exit-force
FailureActionExitStatus=1
[Service]
Type=oneshot
ExecStart=bash -euo pipefail /files/script
StandardOutput=tty
StandardError=tty
TTYPath=/dev/console
END
# Quiet, except for what the script prints. Limits of addresses and devices need BPF, which systemd may load here, and
# unified control groups, even if this machine has others.
export SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1
exec systemd-nspawn --quiet --register=no --keep-unit --directory="$root" --resolv-conf=copy-host \
  --capability=CAP_BPF,CAP_NET_ADMIN --system-call-filter=bpf --boot \
  systemd.unit=try.service systemd.show_status=no systemd.log_level=err </dev/null
"""


def make(name, suite, packages=()):
    """Makes the system once, with debootstrap, and returns its folder."""
    folder = ROOTS / name
    subprocess.run([ROOT / "cmake" / "debian_root.sh", folder, suite, *packages], check=True)
    return folder


def run(folder, files, script, booted=False):
    """Runs the script with bash in the system, which is booted first, or only entered. Copies of the files
    are in /files. Returns the exit status."""
    scratch = ROOTS / "scratch"
    shutil.rmtree(scratch, ignore_errors=True)
    (scratch / "files").mkdir(parents=True)
    for each in files:
        shutil.copy(each, scratch / "files")
    # How this machine reaches the registries, if variables say so.
    network = [f"{name}={value}" for name, value in os.environ.items()
               if re.fullmatch(r"PIP_INDEX_URL|(https?|no)_proxy", name, re.IGNORECASE)]
    sys.stdout.flush()
    return subprocess.run(
        ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc",
         "bash", "-c", _BOOT if booted else _ENTER,
         "_", folder, scratch / "mount", scratch / "files", script, *network], check=False).returncode


def readme_example(language):
    """The first example of README.md in this language."""
    _, found, rest = (ROOT / "README.md").read_text(encoding="utf-8").partition(f"```{language}\n")
    assert found, f"README.md has no example in {language}"
    return rest.partition("```")[0]


def printed_by(example):
    """What the comments of an example say that it prints."""
    return [line.partition("  # ")[2] for line in example.splitlines() if line.startswith("print(")]

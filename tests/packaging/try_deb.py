"""Installs the package of build/deb in a clean system that systemd has booted, and calls its service.

    ./dev deb --try
"""

import sys

import clean_root

SCRIPT = r"""
trap 'journalctl --no-pager --output=cat --unit=opmill-server | tail -n 5' ERR
start=$(date +%s.%N)
apt-get -qq update
DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends install /files/*.deb >/dev/null 2>&1
systemctl enable --quiet --now opmill-server
opmill health --wait 60s
opmill demo | tail -n 1
echo "from apt-get install to the examples' answers:" \
  "$(awk "BEGIN { printf \"%.1f\", $(date +%s.%N) - $start }") s"

process=$(systemctl show --property=MainPID --value opmill-server)
grep -E '^(Uid|CapEff|NoNewPrivs|Seccomp):' "/proc/$process/status"
[[ $(sed -n 's/^Uid:\t\([0-9]*\).*/\1/p' "/proc/$process/status") != 0 ]]
grep -q '^CapEff:.0*$' "/proc/$process/status"
grep -q '^Seccomp:.2$' "/proc/$process/status"

systemctl reload opmill-server
opmill health

# A Vulkan driver works under the same restrictions, and its compiler.
DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends install libvulkan1 mesa-vulkan-drivers \
  >/dev/null 2>&1
echo --device=software >>/etc/opmill/server.flags
systemctl restart opmill-server
opmill health --wait 60s
opmill demo | tail -n 1
opmill info | grep -i llvmpipe
systemctl stop opmill-server
journalctl --no-pager --output=cat --unit=opmill-server | tail -n 4
[[ $(systemctl show --property=Result --value opmill-server) == success ]]

apt-get -qq -y purge opmill >/dev/null 2>&1
[[ ! -e /etc/opmill && ! -e /usr/bin/opmill-server && ! -e /var/cache/private/opmill ]]
echo "installed, served, stopped, purged"
"""


def main():
    system = clean_root.make("debian-12-systemd", "bookworm", ("systemd", "dbus"))
    packages = list((clean_root.ROOT / "build" / "deb").glob("*.deb"))
    failed = clean_root.run(system, packages, SCRIPT, booted=True) != 0
    print("failed" if failed else "all passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

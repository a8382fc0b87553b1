"""Installs the package of build/deb in a clean system that systemd has booted, and calls its service. Tries what
its unit forbids, and sends traces to a collector here, as an administrator is told to set it up.

    ./dev deb --try
"""

import pathlib
import subprocess
import sys

import clean_root

sys.path.append(str(clean_root.ROOT / "tests" / "end_to_end"))
from collector import Collector  # pylint: disable=wrong-import-position

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

# What the unit forbids is tried by an ordinary user without a limit, and with all settings of the unit.
systemctl stop opmill-server
mkdir --mode=777 /srv/limits
touch /home/limits /tmp/limits
cp /usr/bin/id /srv/limits
chmod 4755 /srv/limits/id
mknod --mode=666 /srv/limits/device c 10 200
for name in free limited; do
  unit=/run/systemd/system/$name.service
  echo "[Service]" >$unit
  [[ $name == free ]] && echo User=nobody >>$unit ||
    sed -e '/^\[Install\]/,$d' -e '/^\(Type\|Exec.*\|Restart\)=/d' -e 's/^CacheDirectory=.*/CacheDirectory=limits/' \
      /usr/lib/systemd/system/opmill-server.service >$unit
  printf '[Service]\n%s\n' Type=oneshot "StandardOutput=truncate:/run/$name" \
    "ExecStart=/usr/bin/perl /files/limits.pl try $OUTSIDE" >>$unit
done
systemctl daemon-reload
systemctl start free limited
no_bpf=$(journalctl --no-pager --output=cat | grep -m 1 -E "does(n't| not).* support .*BPF" || true)
NO_BPF=$no_bpf NO_PORTS=$(systemctl --version | sed -n 's/.* \(-BPF_FRAMEWORK\) .*/its systemd has \1./p') \
  perl /files/limits.pl compare /run/free /run/limited
systemctl start opmill-server

# Traces: what the log says while the unit forbids them, and the drop-in of docs/operations.md.
exported() {
  exec 3<>/dev/tcp/127.0.0.1/9464
  printf 'GET /metrics HTTP/1.0\r\n\r\n' >&3
  sed -n 's/^opmill_traced_calls_exported_total //p' <&3
  exec 3>&-
}
# with_traces [SETTING...]: the service with a drop-in of these, after a call.
with_traces() {
  mkdir -p /etc/systemd/system/opmill-server.service.d
  printf '%s\n' '[Service]' "$@" >/etc/systemd/system/opmill-server.service.d/override.conf
  systemctl daemon-reload
  systemctl restart opmill-server
  opmill health --wait 60s
  opmill demo >/dev/null
}
# Awaits and prints what the log of the restarted service says.
dropped() {
  local started=_SYSTEMD_INVOCATION_ID=$(systemctl show --property=InvocationID --value opmill-server)
  for ((i = 0; i < 100; ++i)); do
    journalctl --no-pager --output=cat "$started" | grep traces_dropped && return || sleep 0.2
  done
  return 1
}
cp /etc/opmill/server.flags /etc/opmill/before
echo "--trace_endpoint=$COLLECTOR" >>/etc/opmill/server.flags
with_traces
dropped | grep "Operation not permitted"
[[ $(exported) == 0 ]]
if [[ $no_bpf || $COLLECTOR == 127.* ]]; then
  echo "not shown: the drop-in needs IPAddressAllow: this system has no other address, or: $no_bpf"
else
  with_traces SystemCallFilter=connect
  dropped
  [[ $(exported) == 0 ]]
fi
with_traces SystemCallFilter=connect "IPAddressAllow=${COLLECTOR%:*}"
for ((i = 0; i < 50; ++i)); do
  [[ $(exported) == 0 ]] || break
  sleep 0.2
done
echo "with the drop-in exported calls: $(exported)"
[[ $(exported) != 0 ]]
rm -r /etc/systemd/system/opmill-server.service.d
mv /etc/opmill/before /etc/opmill/server.flags
systemctl daemon-reload
systemctl restart opmill-server
opmill health --wait 60s

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


def own_address():
    """Of this machine, whose network the system shares: an address that is not loopback, or None."""
    found = subprocess.run(["hostname", "-I"], capture_output=True, text=True, check=True).stdout.split()
    return next((address for address in found if "." in address), None)


def main():
    system = clean_root.make("debian-12-systemd", "bookworm", ("systemd", "dbus"))
    files = [*(clean_root.ROOT / "build" / "deb").glob("*.deb"), pathlib.Path(__file__).with_name("limits.pl")]
    address = own_address()
    with Collector(f"{address or '127.0.0.1'}:0") as collector:
        names = f"COLLECTOR={collector.endpoint} OUTSIDE={address or '192.0.2.1'}\n"
        failed = clean_root.run(system, files, names + SCRIPT, booted=True) != 0
        traced = {span.name for span in collector.spans()}
    if not failed and "opmill.v1.OperatorService/Execute" not in traced:
        print("The collector has no span of an execution, but:", *traced)
        failed = True
    print("failed" if failed else "all passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

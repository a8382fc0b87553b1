#!/usr/bin/env bash
# fetch_promtool.sh DIR: unpacks under DIR the promtool of this Debian release. The package that has it,
# prometheus, would start a server where it is installed.
set -euo pipefail
# shellcheck source=cmake/private_apt.sh
. "$(dirname "${BASH_SOURCE[0]}")/private_apt.sh"

dir=${1:?usage: fetch_promtool.sh DIR}
[[ -e $dir ]] && exit 0

private_apt_beside "$dir"
private_apt_source "deb [target=Packages arch=$(dpkg --print-architecture)] %s $(debian_codename) main"

echo "Unpacking promtool under $dir, from $apt_mirror"
private_apt_fetch download prometheus
dpkg -x "$work"/apt/files/prometheus_*.deb "$work/root"
mkdir "$work/bin"
mv "$work/root/usr/bin/promtool" "$work/bin"
mv "$work/bin" "$dir"

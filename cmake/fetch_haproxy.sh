#!/usr/bin/env bash
# fetch_haproxy.sh DIR: unpacks under DIR the HAProxy of this Debian release; DIR/haproxy runs it. The
# package would start a server where it is installed.
set -euo pipefail
# shellcheck source=cmake/private_apt.sh
. "$(dirname "${BASH_SOURCE[0]}")/private_apt.sh"

dir=${1:?usage: fetch_haproxy.sh DIR}
[[ -e $dir ]] && exit 0

private_apt_beside "$dir"
private_apt_source "deb [target=Packages arch=$(dpkg --print-architecture)] %s $(debian_codename) main"

echo "Unpacking haproxy under $dir, from $apt_mirror"
private_apt_fetch download haproxy liblua5.3-0 libopentracing-c-wrapper0 libopentracing1
for deb in "$work"/apt/files/*.deb; do dpkg -x "$deb" "$work/root"; done
libraries=$(dirname "$(find "$work/root" -name 'libopentracing.so.1')")
cat >"$work/haproxy" <<END
#!/bin/sh
here=\$(dirname "\$0")
LD_LIBRARY_PATH="\$here/${libraries#"$work/"}" exec "\$here/root/usr/sbin/haproxy" "\$@"
END
chmod +x "$work/haproxy"
"$work/haproxy" -v >/dev/null || fail "the haproxy of $apt_mirror does not run here."
rm -rf "$work/apt"
chmod 755 "$work"
mv "$work" "$dir"

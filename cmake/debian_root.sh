#!/usr/bin/env bash
# debian_root.sh DIR SUITE [PACKAGE...]: makes DIR the root of a minimal Debian that has these packages too,
# from this machine's mirror. DIR appears whole or not at all; a second call does nothing. Needs root.
set -euo pipefail
# shellcheck source=cmake/private_apt.sh
. "$(dirname "${BASH_SOURCE[0]}")/private_apt.sh"

dir=${1:?usage: debian_root.sh DIR SUITE [PACKAGE...]}
suite=${2:?usage: debian_root.sh DIR SUITE [PACKAGE...]}
shift 2
[[ -e $dir ]] && exit 0
command -v debootstrap >/dev/null || fail "needs debootstrap."

private_apt_beside "$(realpath -m "$dir")"
include=$(IFS=, && echo "ca-certificates${*+,$*}")
echo "Making $dir: $suite with $include, from $apt_mirror"
debootstrap --variant=minbase --include="$include" "$suite" "$work/root" "$apt_mirror" >"$work/log" 2>&1 ||
  { tail -n 20 "$work/log" >&2 && fail "debootstrap did not make $suite."; }

# As Debian's container images have it.
rm "$work/root/etc/apt/sources.list"
cat >"$work/root/etc/apt/sources.list.d/debian.sources" <<END
Types: deb
URIs: $apt_mirror
Suites: $suite $suite-updates
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
END
# How this machine reaches the mirror.
apt-config dump Acquire | grep -E '::(Check-|http)' >"$work/root/etc/apt/apt.conf.d/90machine" || true
cp /etc/ssl/certs/ca-certificates.crt "$work/root/etc/ssl/certs/"
rm -rf "$work"/root/var/{cache/apt/archives,lib/apt/lists}/*
mv "$work/root" "$dir"

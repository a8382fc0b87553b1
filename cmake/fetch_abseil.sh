#!/usr/bin/env bash
# fetch_abseil.sh DIR: unpacks under DIR the source of the Abseil that this Debian release packages.
#
# The thread sanitizer needs it: absl::Mutex in the packaged library is not instrumented, so that
# everything it guards looks like a race.
set -euo pipefail
# shellcheck source=cmake/private_apt.sh
. "$(dirname "${BASH_SOURCE[0]}")/private_apt.sh"

dir=${1:?usage: fetch_abseil.sh DIR}
[[ -e $dir ]] && exit 0

private_apt_beside "$dir"
private_apt_source "deb-src [target=Sources] %s $(debian_codename) main"

echo "Unpacking the source of abseil under $dir, from $apt_mirror"
private_apt_fetch source --download-only abseil
mkdir "$work/source"
tar -xf "$work"/apt/files/abseil_*.orig.tar.* -C "$work/source" --strip-components 1
mv "$work/source" "$dir"

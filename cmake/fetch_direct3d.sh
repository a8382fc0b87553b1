#!/usr/bin/env bash
# fetch_direct3d.sh DIR [vkd3d] [lavapipe]
#
# Unpacks under DIR/root what this Debian release packages too old, and installs nothing:
#   vkd3d     Direct3D 12 on Vulkan, static libraries, 2.1 or newer, from unstable
#   lavapipe  Vulkan on the processor, Mesa 25 or newer, from backports; DIR/lvp.json names it
# The mirror is the machine's own. DIR appears whole or not at all; a second call does nothing.
set -euo pipefail

readonly attempts=3

fail() {
  echo "fetch_direct3d: $*" >&2
  exit 1
}

dir=${1:?usage: fetch_direct3d.sh DIR [vkd3d] [lavapipe]}
shift
readonly pieces=$*
readonly stamp="1 $pieces"
[[ "$(cat "$dir/stamp" 2>/dev/null)" == "$stamp" ]] && exit 0
command -v apt-get >/dev/null || fail "needs apt-get; install vkd3d 2.1 and Mesa 25 by hand instead."

mkdir -p "$(dirname "$dir")"
work=$(mktemp -d "$dir.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/apt/{lists,cache/archives}/partial "$work"/{debs,root}

# apt's own configuration with a sources list of ours; the system's lists are not touched.
private_apt() {
  local tool=$1
  shift
  "$tool" -qq -o Dir::Etc::SourceList="$work/apt/sources.list" -o Dir::Etc::SourceParts=/dev/null \
    -o Dir::State::Lists="$work/apt/lists" -o Dir::Cache="$work/apt/cache" \
    -o APT::Sandbox::User="$(id -un)" -o Acquire::Retries=3 "$@"
}

# shellcheck disable=SC2016  # apt expands $(REPO_URI)
debian_mirror() {
  apt-get "$@" indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' | sed -n 1p
}

mirror=$(debian_mirror)
if [[ -z $mirror ]]; then  # the system's lists were cleaned away
  own=(-o Dir::State::Lists="$work/apt/lists" -o APT::Sandbox::User="$(id -un)")
  apt-get -qq "${own[@]}" update || true
  mirror=$(debian_mirror "${own[@]}")
fi
[[ -n $mirror ]] || fail "apt's configuration names no Debian mirror to take vkd3d and Mesa from."

# shellcheck source=/dev/null
codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
architecture=$(dpkg --print-architecture)
packages=()
for piece in $pieces; do
  case $piece in
    vkd3d) suite=unstable names=(libvkd3d-dev libvkd3d-headers) ;;
    lavapipe) suite=$codename-backports names=(mesa-vulkan-drivers) ;;
    *) fail "knows vkd3d and lavapipe, not '$piece'." ;;
  esac
  echo "deb [target=Packages arch=$architecture] $mirror $suite main" >>"$work/apt/sources.list"
  packages+=("${names[@]/%//$suite}")
done

echo "Unpacking ${packages[*]} under $dir, from $mirror"
for ((attempt = 1; ; ++attempt)); do
  private_apt apt-get update &&
    (cd "$work/debs" && private_apt apt-get download "${packages[@]}") && break
  ((attempt < attempts)) || fail "$mirror did not give ${packages[*]} in $attempts attempts."
  echo "fetch_direct3d: attempt $attempt of $attempts failed; trying again." >&2
  sleep $((attempt * 5))
done
for deb in "$work"/debs/*.deb; do dpkg -x "$deb" "$work/root"; done

if [[ $pieces == *vkd3d* ]]; then
  archive=$(find "$work/root" -name libvkd3d-utils.a)
  [[ -n $archive ]] || fail "libvkd3d-dev of $mirror carries no static libraries."
  version=$(sed -n 's/^Version: //p' "$(dirname "$archive")/pkgconfig/libvkd3d-utils.pc")
  dpkg --compare-versions "$version" ge 2.1 || fail "$mirror has vkd3d $version; 2.1 is needed."
fi
if [[ $pieces == *lavapipe* ]]; then
  driver=$(find "$work/root" -name libvulkan_lvp.so)
  [[ -n $driver ]] || fail "mesa-vulkan-drivers of $mirror carries no lavapipe."
  absent=$(ldd "$driver" | sed -n 's/ => not found//p' | tr -d '\n')
  [[ -z $absent ]] || fail "lavapipe needs libraries that are not installed:$absent."
  # The loader reads a path with a slash as relative to the manifest.
  sed "s#\"library_path\": *\"[^\"]*\"#\"library_path\": \"${driver#"$work/"}\"#" \
    "$work"/root/usr/share/vulkan/icd.d/lvp_icd*.json >"$work/lvp.json"
fi

rm -rf "$work"/{apt,debs}
chmod 755 "$work"
echo "$stamp" >"$work/stamp"
[[ ! -e $dir ]] || mv "$dir" "$work.old"
mv "$work" "$dir"
rm -rf "$work.old"

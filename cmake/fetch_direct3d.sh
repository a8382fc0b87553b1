#!/usr/bin/env bash
# fetch_direct3d.sh DIR [vkd3d] [lavapipe]
#
# Unpacks under DIR/root what this Debian release packages too old, and installs nothing:
#   vkd3d     Direct3D 12 on Vulkan, static libraries, 2.1 or newer, from unstable
#   lavapipe  Vulkan on the processor, Mesa 25 or newer, from backports; DIR/lvp.json names it
# DIR appears whole or not at all; a second call does nothing.
set -euo pipefail
# shellcheck source=cmake/private_apt.sh
. "$(dirname "${BASH_SOURCE[0]}")/private_apt.sh"

dir=${1:?usage: fetch_direct3d.sh DIR [vkd3d] [lavapipe]}
shift
readonly pieces=$*
readonly stamp="1 $pieces"
[[ "$(cat "$dir/stamp" 2>/dev/null)" == "$stamp" ]] && exit 0

private_apt_beside "$dir"
mkdir "$work/root"

codename=$(debian_codename)
architecture=$(dpkg --print-architecture)
packages=()
for piece in $pieces; do
  case $piece in
    vkd3d) suite=unstable names=(libvkd3d-dev libvkd3d-headers) ;;
    lavapipe) suite=$codename-backports names=(mesa-vulkan-drivers) ;;
    *) fail "knows vkd3d and lavapipe, not '$piece'." ;;
  esac
  private_apt_source "deb [target=Packages arch=$architecture] %s $suite main"
  packages+=("${names[@]/%//$suite}")
done

echo "Unpacking ${packages[*]} under $dir, from $apt_mirror"
private_apt_fetch download "${packages[@]}"
for deb in "$work"/apt/files/*.deb; do dpkg -x "$deb" "$work/root"; done

if [[ $pieces == *vkd3d* ]]; then
  archive=$(find "$work/root" -name libvkd3d-utils.a)
  [[ -n $archive ]] || fail "libvkd3d-dev of $apt_mirror carries no static libraries."
  version=$(sed -n 's/^Version: //p' "$(dirname "$archive")/pkgconfig/libvkd3d-utils.pc")
  dpkg --compare-versions "$version" ge 2.1 || fail "$apt_mirror has vkd3d $version; 2.1 is needed."
fi
if [[ $pieces == *lavapipe* ]]; then
  driver=$(find "$work/root" -name libvulkan_lvp.so)
  [[ -n $driver ]] || fail "mesa-vulkan-drivers of $apt_mirror carries no lavapipe."
  absent=$(ldd "$driver" | sed -n 's/ => not found//p' | tr -d '\n')
  [[ -z $absent ]] || fail "lavapipe needs libraries that are not installed:$absent."
  # The loader reads a path with a slash as relative to the manifest.
  sed "s#\"library_path\": *\"[^\"]*\"#\"library_path\": \"${driver#"$work/"}\"#" \
    "$work"/root/usr/share/vulkan/icd.d/lvp_icd*.json >"$work/lvp.json"
fi

rm -rf "$work/apt"
chmod 755 "$work"
echo "$stamp" >"$work/stamp"
[[ ! -e $dir ]] || mv "$dir" "$work.old"
mv "$work" "$dir"
rm -rf "$work.old"

#!/usr/bin/env bash
# fetch_direct3d.sh DIR [vkd3d] [lavapipe]
#
# Unpacks under DIR/root what this Debian release packages too old, and installs nothing:
#   vkd3d     Direct3D 12 on Vulkan, static libraries, 2.1 or newer, from unstable: the version below. If the
#             mirror no longer has it: the newest, with a warning, or with OPMILL_PINNED=1 none
#   lavapipe  Vulkan on the processor, Mesa 25 or newer, from backports; DIR/lvp.json names it
# DIR appears whole or not at all; a second call does nothing.
set -euo pipefail
# shellcheck source=cmake/private_apt.sh
. "$(dirname "${BASH_SOURCE[0]}")/private_apt.sh"

# The only place that says which vkd3d. The sums are of the packages for amd64.
readonly vkd3d_version=2.1+ds-1
readonly vkd3d_sums="\
ea89104f33d5c472de9707f330318aef6150b2f00834716bc69d10ebec5bfa34  libvkd3d-dev_${vkd3d_version}_amd64.deb
2dca10553c52bde5e1861f582e6d1f77b8c488e93fa78562e97b1c895b0f41b0  libvkd3d-headers_${vkd3d_version}_all.deb"

dir=${1:?usage: fetch_direct3d.sh DIR [vkd3d] [lavapipe]}
shift
readonly pieces=$*
readonly stamp="2 $pieces $vkd3d_version"
[[ "$(cat "$dir/stamp" 2>/dev/null)" == "$stamp" ]] && exit 0

private_apt_beside "$dir"
mkdir "$work/root"

codename=$(debian_codename)
architecture=$(dpkg --print-architecture)
for piece in $pieces; do
  case $piece in
    vkd3d) suite=unstable ;;
    lavapipe) suite=$codename-backports ;;
    *) fail "knows vkd3d and lavapipe, not '$piece'." ;;
  esac
  private_apt_source "deb [target=Packages arch=$architecture] %s $suite main"
done
private_apt_fetch update

packages=() pinned=no
if [[ $pieces == *vkd3d* ]]; then
  if private_apt_has "libvkd3d-dev=$vkd3d_version"; then
    packages+=("libvkd3d-dev=$vkd3d_version" "libvkd3d-headers=$vkd3d_version")
    pinned=yes
  elif [[ -n ${OPMILL_PINNED-} ]]; then
    fail "$apt_mirror does not have vkd3d $vkd3d_version; OPMILL_DEBIAN_MIRROR may name a snapshot that does."
  else
    echo "${0##*/}: warning: $apt_mirror no longer has vkd3d $vkd3d_version; taking its newest." >&2
    packages+=(libvkd3d-dev/unstable libvkd3d-headers/unstable)
  fi
fi
[[ $pieces != *lavapipe* ]] || packages+=("mesa-vulkan-drivers/$codename-backports")

echo "Unpacking ${packages[*]} under $dir, from $apt_mirror"
private_apt_fetch download "${packages[@]}"
if [[ $pinned == yes && $architecture == amd64 ]]; then
  (cd "$work/apt/files" && sha256sum --quiet --check - <<<"$vkd3d_sums") ||
    fail "the packages of vkd3d $vkd3d_version from $apt_mirror are not those that this script names."
fi
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

#!/usr/bin/env bash
# fetch_nvk.sh DIR
#
# Unpacks under DIR/root NVK, Mesa's driver for NVIDIA's GPUs, a shim that stands in for a GPU, and the C
# library they need, all of Debian unstable; installs nothing. DIR/run CHIPSET COMMAND... runs a program
# with them. DIR appears whole or not at all; a second call does nothing.
set -euo pipefail
# shellcheck source=cmake/private_apt.sh
. "$(dirname "${BASH_SOURCE[0]}")/private_apt.sh"

dir=${1:?usage: fetch_nvk.sh DIR}
readonly stamp=1
[[ "$(cat "$dir/stamp" 2>/dev/null)" == "$stamp" ]] && exit 0

private_apt_beside "$dir"
private_apt_source "deb [target=Packages arch=amd64] %s unstable main"
names=(mesa-drm-shim mesa-vulkan-drivers libc6 libstdc++6 libgcc-s1 libdrm2 libexpat1 libzstd1 zlib1g
  libudev1 libcap2 libdisplay-info3 libwayland-client0 libffi8 libx11-6 libx11-xcb1 libxcb1
  libxcb-dri3-0 libxcb-present0 libxcb-randr0 libxcb-shm0 libxcb-sync1 libxcb-xfixes0 libxshmfence1
  libxau6 libxdmcp6 libmd0 libbsd0 libelf1t64)
echo "Unpacking NVK and its libraries under $dir, from $apt_mirror"
private_apt_fetch download "${names[@]/%//unstable}"
mkdir "$work/root"
for deb in "$work"/apt/files/*.deb; do dpkg -x "$deb" "$work/root"; done
rm -rf "$work/apt"

dir=$(realpath -m "$dir")
lib=$dir/root/usr/lib/x86_64-linux-gnu
cat >"$work/nvk.json" <<END
{"ICD": {"api_version": "1.4.305", "library_path": "$lib/libvulkan_nouveau.so"}, "file_format_version": "1.0.0"}
END
cat >"$work/run" <<END
#!/usr/bin/env bash
export NOUVEAU_CHIPSET=\$1 NVK_I_WANT_A_BROKEN_VULKAN_DRIVER=1
export VK_DRIVER_FILES=$dir/nvk.json VK_ICD_FILENAMES=$dir/nvk.json
exec $lib/ld-linux-x86-64.so.2 --library-path $lib:/usr/lib/x86_64-linux-gnu \\
  --preload $lib/libnouveau_noop_drm_shim.so "\${@:2}"
END
chmod 755 "$work" "$work/run"
echo "$stamp" >"$work/stamp"
rm -rf "$dir"
mv "$work" "$dir"

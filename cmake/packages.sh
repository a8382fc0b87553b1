# Sourced by dev, for its verbs wheel, deb, dist and image: builds what users install, and tries it in clean
# systems. Also lint's checks of what administrators get.
# shellcheck shell=bash disable=SC2154,SC2119,SC2120  # what dev sets; verbs that dist calls without arguments

readonly package_venv=$PWD/build/package-venv package_requirements=python/build_requirements.txt

# wheel [windows | --try [SYSTEM...]]
wheel_verb() {
  local system=()
  case ${1-} in
    windows) system=(windows) ;;
    '' | --try) build release opmill-server opmill ;;
    *) fail "wheel takes windows or --try, not '$1'." ;;
  esac
  fetch_venv "$package_venv" "$package_requirements" ||
    fail "pip cannot install $package_requirements; wheels need a Python package index."
  PATH=$package_venv/bin:$PATH python3 python/build_wheels.py "${system[@]}"
  [[ ${1-} != --try ]] || try_package wheels "${@:2}"
}

# try_package wheels|deb|image [ARGUMENT...]: needs root.
try_package() {
  install debootstrap
  local python=python3
  if [[ $1 == deb ]]; then  # for its collector of traces
    fetch_venv "$venv" "$requirements" || fail "pip cannot install $requirements; this needs a Python package index."
    python=$venv/bin/python
  fi
  as_root "$python" "tests/packaging/try_$1.py" "${@:2}"
}

# deb [--try]
deb_verb() {
  [[ $# == 0 || $* == --try ]] || fail "deb takes --try alone, not '$*'."
  build release opmill-server opmill
  rm -rf build/deb
  cpack --config build/release/CPackConfig.cmake >build/release/cpack.log 2>&1 ||
    { cat build/release/cpack.log >&2 && fail "cpack did not make the package."; }
  rm -rf build/deb/_CPack_Packages
  ls build/deb/*.deb
  [[ $* != --try ]] || { install systemd-container && try_package deb; }
}

# dist [TAG]: what a release consists of, in build/dist, with checksums.
dist_verb() {
  local version
  version=$(sed -n 's/^project(opmill VERSION \([^ ]*\) .*/\1/p' CMakeLists.txt)
  [[ $# == 0 || $1 == "v$version" ]] || fail "the tag is '$1', but CMakeLists.txt has version $version."
  wheel_verb
  deb_verb
  windows_verb build opmill opmill-server
  windows_compiler
  wheel_verb windows
  rm -rf build/dist
  mkdir build/dist
  cp build/wheels/*.whl build/deb/*.deb build/dist
  (cd build/dist && sha256sum -- * >SHA256SUMS && cat SHA256SUMS)
}

# image [--try]: on a base of Debian 12 that debootstrap makes, because no registry is needed then.
image_verb() {
  [[ $# == 0 || $* == --try ]] || fail "image takes --try alone, not '$*'."
  install debootstrap buildah
  mkdir -p build/image
  local store=$PWD/build/image base=$PWD/build/roots/debian-12-base container buildah
  buildah=(as_root env STORAGE_DRIVER=overlay buildah --root "$store/storage" --runroot "$store/run")
  as_root cmake/debian_root.sh "$base" bookworm
  if [[ -z $("${buildah[@]}" images --quiet opmill-base 2>/dev/null) ]]; then
    as_root tar -C "$base" -cf "$store/base.tar" .
    container=$("${buildah[@]}" from scratch)
    "${buildah[@]}" add --quiet "$container" "$store/base.tar" / >/dev/null
    "${buildah[@]}" commit --quiet --rm "$container" opmill-base >/dev/null
    rm "$store/base.tar"
  fi
  "${buildah[@]}" build --format docker --layers --isolation chroot --network host \
    --build-arg BASE=localhost/opmill-base --file Dockerfile.linux --tag opmill:linux .
  [[ $* != --try ]] || { install runc openssl && try_package image localhost/opmill:linux "$store"; }
}

# check_service: a part of lint. The program that the unit names is not installed; another one stands for it.
check_service() {
  local work words status=0
  work=$(mktemp -d)
  sed 's#^ExecStart=/usr/bin/opmill-server#ExecStart=/usr/bin/env#' deploy/systemd/opmill-server.service \
    >"$work/opmill-server.service"
  words=$(systemd-analyze verify --man=no "$work/opmill-server.service" 2>&1) || status=1
  [[ -z $words ]] || { echo "$words" && status=1; }  # of an unknown key it only warns
  systemd-analyze security --offline=true --threshold=20 --no-pager "$work/opmill-server.service" \
    >"$work/exposure" || { cat "$work/exposure" && status=1; }
  rm -r "$work"
  return $status
}

# manifest_tools: the schemas of Kubernetes' objects, once per content of their list.
manifest_tools() {
  install_for npm nodejs npm
  local folder=$PWD/build/manifest_tools list=cmake/manifest_requirements.json
  cmp -s "$list" "$folder/stamp" && return
  rm -rf "$folder"
  mkdir -p "$folder"
  cp "$list" "$folder/package.json"
  npm install --prefix "$folder" --silent --no-audit --no-fund ||
    fail "npm cannot fetch what $list names."
  cp "$list" "$folder/stamp"
}

# check_manifests: a part of lint; needs manifest_tools and kustomize.
check_manifests() {
  local folders=("$PWD"/deploy/kubernetes/*/)
  cp cmake/check_manifests.mjs build/manifest_tools
  (cd build/manifest_tools && node check_manifests.mjs "$gotools/kustomize" "${folders[@]%/}")
}

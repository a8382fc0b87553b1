#!/usr/bin/env bash
# deps.sh engine|all: builds what the Windows programs link, for mingw-w64, and prints the folder that
# holds it; engine leaves out what the kernels and their tests do without. There is one in the user's
# cache for each set of versions, flags and steps below. It appears whole or not at all, and a second
# call only prints.
#
# The sources are those of this Debian release's packages, the versions of the host's own libraries,
# so that the host's protoc and grpc_cpp_plugin generate the code.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
# shellcheck source=cmake/private_apt.sh
. ../private_apt.sh

readonly scope=${1:?usage: deps.sh engine|all}
readonly triplet=x86_64-w64-mingw32
readonly jobs=${OPMILL_JOBS:-$(nproc)}
readonly cache=${XDG_CACHE_HOME:-$HOME/.cache}/opmill-windows
readonly work=$cache/work prefix=$cache/work/prefix

key=$({
  cat toolchain.cmake directx-headersConfig.cmake deps.sh grpc/* highway/*
  "$triplet-g++-posix" --version
  dpkg-query -W libgrpc-dev libprotobuf-dev libabsl-dev libre2-dev libssl-dev libspdlog-dev libfmt-dev \
    prometheus-cpp-dev libz-mingw-w64-dev directx-headers-dev libhwy-dev libgtest-dev \
    libboost-dev libsimdjson-dev
} | sha256sum | cut -c 1-16)
readonly key

# step NAME COMMAND...: its output goes to a file, whose end is shown when it fails. In the background,
# since bash lets a function run on past its failures where somebody looks at its status.
step() {
  local started=$SECONDS log=$work/build/$1.log
  shift
  "$@" >"$log" 2>&1 &
  wait $! || { tail -n 40 "$log" >&2 && fail "failed (see above): $*"; }
  printf '%5d s  %s\n' $((SECONDS - started)) "${log##*/}" >&2
}

# fetch SOURCE...
fetch() {
  private_apt_begin "$work/apt"
  # shellcheck source=/dev/null
  private_apt_source "deb-src [target=Sources] %s $(. /etc/os-release && echo "$VERSION_CODENAME") main"
  private_apt_fetch source --download-only "$@"
  local name
  for name in "$@"; do
    mkdir "$work/source/$name"
    tar -xf "$work"/apt/files/"${name}"_*.orig.tar.?z -C "$work/source/$name" --strip-components 1
  done
}

# Debian's re2 leaves out its tables, and generates them from its Unicode data as this does.
re2_tables() {
  cd "$work/source/re2/re2"
  sed -i -e 's#^from six.moves import urllib#import urllib.request#' \
    -e 's#^_UNICODE_DIR = .*#_UNICODE_DIR = "/usr/share/unicode"#' unicode.py
  local table
  for table in casefold groups; do
    python3 "make_unicode_$table.py" >"unicode_$table.cc"
  done
  perl make_perl_groups.pl >perl_groups.cc
}

# cmake_build NAME SOURCE [OPTION...] [-- TARGET...]: with its tests and programs off, then installed.
cmake_build() {
  local name=$1 source=$2 options=()
  shift 2
  while (($#)) && [[ $1 != -- ]]; do options+=("$1") && shift; done
  cmake -G Ninja -S "$source" -B "$work/build/$name" -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_TOOLCHAIN_FILE="$PWD/toolchain.cmake" -DOPMILL_WINDOWS_DEPS="$prefix" \
    -DCMAKE_INSTALL_PREFIX="$prefix" -DCMAKE_INSTALL_LIBDIR=lib -DBUILD_SHARED_LIBS=OFF \
    -DCMAKE_CXX_STANDARD=17 -DBUILD_TESTING=OFF "${options[@]}"
  cmake --build "$work/build/$name" --parallel "$jobs" ${2+--target "${@:2}"}
  cmake --install "$work/build/$name"
}

openssl() {
  mkdir "$work/build/openssl" && cd "$work/build/openssl"
  local cc="${CMAKE_C_COMPILER_LAUNCHER-} $triplet-gcc-posix"
  "$work/source/openssl/Configure" mingw64 --cross-compile-prefix=$triplet- \
    no-shared no-tests no-module no-engine no-dso no-legacy \
    no-{aria,bf,camellia,cast,cms,ct,dtls,gost,idea,md4,mdc2,rc2,rc4,rmd160,seed,sm2,sm3,sm4,srp,srtp,ts,whirlpool}
  make -j"$jobs" CC="$cc" build_generated
  make -j"$jobs" CC="$cc" libcrypto.a libssl.a
  mkdir -p "$prefix/lib"
  cp libcrypto.a libssl.a "$prefix/lib"
  cp -r include/openssl "$prefix/include"
  cp -rn "$work/source/openssl/include/openssl" "$prefix/include"
}

directx() {
  cp -r /usr/include/directx /usr/include/dxguids "$prefix/include"
  mkdir -p "$prefix/lib/cmake/directx-headers"
  cp directx-headersConfig.cmake "$prefix/lib/cmake/directx-headers"
}

# Headers only, and the same for all systems.
boost() {
  cp -r /usr/include/boost "$prefix/include"
}

make_engine() {
  step fetch fetch abseil highway
  step directx directx
  step highway cmake_build highway "$PWD/highway" -DHIGHWAY_SOURCE="$work/source/highway"
  step abseil cmake_build abseil "$work/source/abseil" -DABSL_PROPAGATE_CXX_STD=ON
  step googletest cmake_build googletest /usr/src/googletest
}

patch_grpc() {
  # It looks for the descriptions of other services, to download them where there are none.
  mkdir -p "$work/source/grpc/third_party/opencensus-proto/src"
  patch --directory "$work/source/grpc" --strip 1 --silent <grpc/windows.patch
}

make_all() {
  cp -r "$cache/$key-engine/." "$prefix"
  step fetch fetch prometheus-cpp protobuf grpc re2 openssl simdjson spdlog fmtlib
  step boost boost
  step simdjson cmake_build simdjson "$work/source/simdjson"
  step prometheus cmake_build prometheus "$work/source/prometheus-cpp" \
    -DENABLE_{PULL,PUSH,TESTING,COMPRESSION}=OFF -DUSE_THIRDPARTY_LIBRARIES=OFF
  step re2_tables re2_tables
  step patch_grpc patch_grpc
  step protobuf cmake_build protobuf "$work/source/protobuf" -Dprotobuf_BUILD_TESTS=OFF \
    -Dprotobuf_BUILD_PROTOC_BINARIES=OFF -Dprotobuf_WITH_ZLIB=OFF
  step re2 cmake_build re2 "$work/source/re2" -DRE2_BUILD_TESTING=OFF
  step openssl openssl
  step fmt cmake_build fmt "$work/source/fmtlib" -DFMT_TEST=OFF -DFMT_DOC=OFF
  step spdlog cmake_build spdlog "$work/source/spdlog" -DSPDLOG_FMT_EXTERNAL=ON \
    -DSPDLOG_BUILD_EXAMPLE=OFF
  step grpc cmake_build grpc "$PWD/grpc" -DGRPC_SOURCE="$work/source/grpc" -- grpc++ grpc++_reflection
}

# provide engine|all: $cache/$key-SCOPE.
provide() {
  local dir=$cache/$key-$1 started=$SECONDS
  [[ ! -e $dir ]] || return 0
  rm -rf "$work"  # of one that was killed
  mkdir -p "$work/source" "$work/build" "$prefix/include"
  "make_$1"
  printf '%s\n' "$work"/apt/files/*.dsc | sed 's#.*/##' >>"$prefix/sources"
  mv "$prefix" "$dir"
  printf '%5d s  in all, for %s\n' $((SECONDS - started)) "$1" >&2
}

# One at a time: a second waits, and finds what the first has made.
mkdir -p "$cache"
exec {lock}>"$cache/lock"
flock "$lock"
trap 'rm -rf "$work"' EXIT
case $scope in
  engine) provide engine ;;
  all)
    provide engine
    provide all
    ;;
  *) fail "knows engine and all, not '$scope'." ;;
esac
echo "$cache/$key-$scope"

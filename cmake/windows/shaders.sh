# Sourced by dev behind cmake/windows.sh, for `windows shaders`: Microsoft's HLSL compiler, under Wine,
# over the kernels that plans ask for, and its bytecode through the conformance test on this machine's
# device.
# shellcheck shell=bash disable=SC2154  # what dev sets

# compile_shaders FOLDER: what kernel_list wrote there, in one process a core, since a cold one costs
# a second.
compile_shaders() {
  local folder=$1 share running=() status=0
  x86_64-w64-mingw32-g++-posix -std=c++20 -O2 -Wall -Wextra -Werror -I. -static -s \
    tests/fxc/fxc.cc -o "$folder/fxc.exe" -ld3dcompiler_47 || return
  cp "$PWD/build/windows/redist/d3dcompiler_47.dll" "$folder" || return
  (
    export WINEPREFIX=$PWD/build/windows/wine WINEDEBUG=-all
    export WINEDLLOVERRIDES="d3dcompiler_47=n;mscoree,mshtml=;winemenubuilder.exe="
    [[ -e $WINEPREFIX/system.reg ]] || "$wine" wineboot --init 2>/dev/null
    cd "$folder" || exit
    for ((share = 0; share < jobs; ++share)); do
      "$wine" fxc.exe . "$share" "$jobs" >"fxc.$share.log" 2>&1 &
      running+=($!)
    done
    for share in "${!running[@]}"; do
      wait "${running[share]}" || status=1
      cat "fxc.$share.log"
    done
    exit $status
  )
}

# windows_shaders [--all]: a sample that covers every pair of macros' values, or every kernel.
windows_shaders() {
  local folder=$PWD/build/windows/shaders all=() began=$SECONDS
  case ${1-} in
    --all) all=(all) ;;
    '') ;;
    *) fail "windows shaders takes --all alone, not '$1'." ;;
  esac
  install g++-mingw-w64-x86-64-posix wine64
  build release kernel_list conformance_test
  windows_compiler
  rm -rf "$folder"
  mkdir -p "$folder"
  build/release/tests/fxc/kernel_list write "$folder" "${all[@]}"
  local compiling=$SECONDS
  compile_shaders "$folder" || fail "Microsoft's compiler refuses what stands above."
  echo "Microsoft's compiler: $((SECONDS - compiling)) s in $jobs processes"
  build/release/tests/fxc/kernel_list cache "$folder" "$folder/cache"
  device_environment
  build/release/tests/conformance/conformance_test --shader_cache "$folder/cache" --gtest_brief=1
  echo "Every shader is right by Microsoft's compiler, in $((SECONDS - began)) s."
}

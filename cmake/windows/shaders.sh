# Sourced by dev behind cmake/windows.sh, for `windows shaders`: Microsoft's HLSL compiler, under Wine,
# over the kernels that plans ask for, and its bytecode through the conformance test on this machine's
# device.
# shellcheck shell=bash disable=SC2154  # what dev sets

# compile_shaders FOLDER KEPT: what kernel_list wrote there, in one process a core, since a cold one
# costs a second. KEPT holds what earlier runs of the same compiler made.
compile_shaders() {
  local folder=$1 kept=$2 made_by share running=() status=0
  made_by=$(sha256sum tests/fxc/fxc.cc kernels/d3d12/shader/shader_options.h && echo "$compiler_sha256")
  if [[ $(cat "$kept/stamp" 2>/dev/null) != "$made_by" ]]; then
    rm -rf "$kept"
    mkdir -p "$kept"
    echo "$made_by" >"$kept/stamp"
  fi
  x86_64-w64-mingw32-g++-posix -std=c++20 -O2 -Wall -Wextra -Werror -I. -static -s \
    tests/fxc/fxc.cc -o "$folder/fxc.exe" -ld3dcompiler_47 || return
  cp "$windows/redist/d3dcompiler_47.dll" "$folder" || return
  (
    export WINEPREFIX=$windows/compiler_wine WINEDEBUG=-all  # tests end all that runs in theirs
    export WINEDLLOVERRIDES="d3dcompiler_47=n;mscoree,mshtml=;winemenubuilder.exe="
    cd "$folder" || exit
    # One alone first, as in wine_begin; its server then waits some seconds for the next.
    WINEDEBUG=fixme-all "$wine" cmd /c exit </dev/null >wine.log 2>&1 ||
      { tail -n 20 wine.log && fail "Wine does not start."; }
    for ((share = 0; share < jobs; ++share)); do
      "$wine" fxc.exe . "../${kept##*/}" "$share" "$jobs" >"fxc.$share.log" 2>&1 &
      running+=($!)
    done
    for share in "${!running[@]}"; do
      wait "${running[share]}" || status=1
      cat "fxc.$share.log"
    done
    exit $status
  )
}

# microsoft_bytecode FOLDER [all]: the list of a sample that covers every pair of macros' values, or of
# every kernel, in FOLDER, and the bytecode in build/windows/bytecode.
microsoft_bytecode() {
  local folder=$1 began
  install g++-mingw-w64-x86-64-posix "${wine_packages[@]}"
  build release kernel_list
  windows_compiler
  rm -rf "$folder"
  mkdir -p "$folder"
  build/release/tests/fxc/kernel_list write "$@"
  began=$SECONDS
  compile_shaders "$folder" "$windows/bytecode" || fail "Microsoft's compiler rejects the kernels above."
  echo "Microsoft's compiler: $((SECONDS - began)) s in $jobs processes"
}

# windows_shaders [--all]
windows_shaders() {
  local folder=$windows/shaders all=() began=$SECONDS
  case ${1-} in
    --all) all=(all) ;;
    '') ;;
    *) fail "windows shaders takes --all alone, not '$1'." ;;
  esac
  microsoft_bytecode "$folder" "${all[@]}"
  build release conformance_test
  build/release/tests/fxc/kernel_list cache "$folder" "$windows/bytecode" "$folder/cache"
  device_environment
  build/release/tests/conformance/conformance_test --shader_cache "$folder/cache" --gtest_brief=1
  echo "Every shader is right by Microsoft's compiler, in $((SECONDS - began)) s."
}

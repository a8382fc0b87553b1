#!/usr/bin/env bash
# validate.sh BUILD [ARGUMENTS of conformance_test]
#
# Runs conformance tests under Vulkan's validation layer, which checks how Vulkan is used and, above all,
# synchronization: that a barrier separates each access from the writes before it. Drivers that run one
# dispatch after another give right results without any. Fails on every message of the layer, and if the
# layer does not notice that barriers are missing. Logs are in build/validation.
set -euo pipefail

readonly build=${1:?usage: validate.sh BUILD [ARGUMENTS of conformance_test]}
shift
# Plans for GPUs, separate device memory, and a plan of many passes. Not *.Together: a view of runs that share
# a dispatch also spans what lies between their buffers, which to the layer is access. If no runs share any,
# that test is clean too.
(($#)) || set -- --gtest_filter='*.OptionsOfHardware:*.OverCopies:*.TopKOfRowsInParts'
readonly two_passes='top_k input=FLOAT32[1,20001] output_values=FLOAT32[1,5]
  output_indices=UINT32[1,5] axis=1 k=5 axis_direction=DECREASING values=ties seed=3 view=134217728
  groups=512 threads=256'
readonly logs=build/validation
readonly layer=VK_LAYER_KHRONOS_validation

fail() {
  echo "validate.sh: $*" >&2
  exit 1
}

# validated LOG [ARGUMENTS of conformance_test]: runs it, and prints how often each message occurred.
validated() {
  local log=$logs/$1
  shift
  "$build/tests/conformance/conformance_test" "$@" >"$log" 2>&1 ||
    { tail -n 40 "$log" >&2 && fail "the conformance test failed; see $log."; }
  sed -nE 's/.*Validation (Error|Warning|Performance Warning): \[ ([^ ]+) \].*/\2/p' "$log" | sort | uniq -c
}

mkdir -p "$logs"
VK_LAYER_SETTINGS_PATH=$(dirname "${BASH_SOURCE[0]}")/vk_layer_settings.txt
export VK_LAYER_SETTINGS_PATH
# Without it vkd3d binds its whole heap of descriptors to every dispatch, and the layer cannot tell which
# of them a dispatch uses.
export VKD3D_CONFIG=virtual_heaps

# All cases of these tests, compiled without optimization.
export OPMILL_CONFORMANCE=full GALLIVM_PERF=nopt
export VK_INSTANCE_LAYERS=$layer
messages=$(validated log.txt "$@")
tail -n 1 "$logs/log.txt"

# The layer of faults comes first, so that the other one does not see the barriers.
export VK_INSTANCE_LAYERS=VK_LAYER_OPMILL_faults:$layer
export VK_ADD_LAYER_PATH=$build/tests/support/fault_layer FAULT_LAYER_SWITCHES=$logs/switches
mkdir -p "$FAULT_LAYER_SWITCHES"
touch "$FAULT_LAYER_SWITCHES/no_barriers"
missing=$(validated no_barriers.txt --case "$(tr -s '\n ' ' ' <<<"$two_passes")")
[[ $missing == *SYNC-HAZARD-READ-AFTER-WRITE* ]] ||
  fail "the layer did not notice missing barriers; see $logs/no_barriers.txt."

[[ -z $messages ]] || fail "messages of the layer, explained in $logs/log.txt:"$'\n'"$messages"
echo "Validation: clean; it notices missing barriers"

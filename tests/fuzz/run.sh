#!/usr/bin/env bash
# run.sh SECONDS TARGET: runs one fuzzer. Prints the end of its log; after a finding, all of it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
readonly seconds=$1 target=$2
readonly corpus=build/fuzz/corpus/$target findings=build/fuzz/findings log=build/fuzz/$target.log

# Limits per input: total memory, a single allocation, and time, including the sanitizers' overhead.
options=(-rss_limit_mb=2048 -malloc_limit_mb=1024 -timeout=60 -report_slow_units=60 -max_len=16384 -print_final_stats=1)
case $target in
  bytecode_cache | text) options+=(-max_len=1024) ;;
  # Its threads free what others have allocated: the target itself sees to what is left over.
  stream) options+=(-detect_leaks=0) ;;
esac
[[ ! -e tests/fuzz/$target.dict ]] || options+=(-dict="tests/fuzz/$target.dict")

mkdir -p "$corpus" "$findings"
if ! build/fuzz/tests/fuzz/"${target}_fuzzer" "${options[@]}" -max_total_time="$seconds" \
  -artifact_prefix="$findings/$target-" "$corpus" "tests/fuzz/corpus/$target" >"$log" 2>&1; then
  tail -n 100 "$log"
  echo "fuzz $target: a finding after $(grep -c . "$log") lines, above and in $log"
  exit 1
fi
awk -v target="$target" -v seconds="$seconds" '
  /cov: [0-9]/ { for (i = 1; i < NF; ++i) if ($i == "cov:") coverage = $(i + 1); else if ($i == "corp:") corpus = $(i + 1) }
  /stat::number_of_executed_units:/ { runs = $2 }
  /stat::average_exec_per_sec:/ { rate = $2 }
  /stat::peak_rss_mb:/ { memory = $2 }
  END {
    printf "fuzz %-14s %d s, %d inputs, %d a second, %d edges, corpus %s, %d MiB: no finding\n",
      target, seconds, runs, rate, coverage, corpus, memory
  }' "$log"

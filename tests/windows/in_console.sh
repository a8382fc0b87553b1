#!/usr/bin/env bash
# in_console.sh WINE CONSOLE_HOST.exe PROGRAM.exe [ARGUMENT...]: runs the program under Wine like a
# program of this system: SIGTERM and SIGINT become Ctrl-C, and killing this script kills it.
set -u

export IN_CONSOLE=$$  # by which a test finds the program's own process
exec {out}>&1
exec {ctrl_c}> >(exec "$@" >&"$out" {out}>&-)
program=$!
trap 'signalled=1; echo >&"$ctrl_c"' TERM INT
# A trap ends a wait early.
while true; do
  signalled=
  wait "$program"
  status=$?
  [[ $signalled ]] || exit "$status"
done

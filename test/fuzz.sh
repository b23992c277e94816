#!/usr/bin/env bash
# Runs every fuzz target of the project, each for the given time (30s), or one in so many of them (1), from that one on
# (0). Ends with 1 if any of them found something.
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:-30s} share=${2:-1} draw=${3:-0}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
found=0
while read -r pkg name; do
  if go test -run '^$' -fuzz "^$name\$" -fuzztime "$time" -fuzzminimizetime 1s "$pkg" >"$log" 2>&1; then
    verdict=ok
  elif ! grep -q 'Failing input\|panic' "$log" && grep -q 'context deadline exceeded' "$log"; then
    verdict='ok (the go command was still at work when the time ended)'
  else
    verdict=FAIL found=1
    cat "$log"
  fi
  printf '%s\t%s\t%s\t%s\n' "$verdict" "$pkg" "$name" "$(grep -o 'execs: [0-9]*' "$log" | tail -n 1)"
done < <(git grep -o -E '^func Fuzz[A-Za-z0-9_]+' -- '*_test.go' |
  sed -E 's|^(.*)/[^/]*:func (Fuzz.*)|./\1 \2|' | awk -v share="$share" -v draw="$draw" 'NR % share == draw % share')
exit "$found"

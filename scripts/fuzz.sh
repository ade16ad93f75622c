#!/usr/bin/env bash
# Runs every fuzz target of the module for the given time, one after another.
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:-60s}
grep -rlE '^func Fuzz[A-Z]' --include='*_test.go' pkg cmd | xargs -n 1 dirname | sort -u | while read -r dir; do
	grep -hoE '^func Fuzz[A-Za-z0-9_]*' "$dir"/*_test.go | sed 's/^func //' | sort -u | while read -r target; do
		echo "== $dir $target for $time"
		go test -run '^$' -fuzz "^${target}\$" -fuzztime "$time" "./$dir"
	done
done

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The driver finds what is wrong with a parser, shows the input, and finds it again by what it shows.
# Usage: broken.sh PROGRAM TARGET
set -uo pipefail
program=$1 target=$2
run() { "$program" --only "$target" --mutations 50000 --limit 1 "$@" 2>&1; }

if output=$(run); then
    printf '%s\nnothing was found\n' "$output"
    exit 1
fi
if [ "$target" = loses_memory ]; then
    grep -q 'loses_memory has lost memory' <<< "$output" && exit 0
    printf '%s\n' "$output"
    exit 1
fi
again=$(sed -n 's/.*again by --only [a-z_]* \(--seed [0-9]* --at [0-9]*\)$/\1/p' <<< "$output")
input=$(grep -A1 'again by' <<< "$output" | tail -n 1)
if [ -z "$again" ]; then
    printf '%s\nno input was shown\n' "$output"
    exit 1
fi
# shellcheck disable=SC2086
second=$(run $again) && { echo "$again: nothing was found"; exit 1; }
grep -qx "$input" <<< "$second" || { printf '%s\nanother input by %s\n' "$second" "$again"; exit 1; }

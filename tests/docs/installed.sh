#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs libring to FOLDER/prefix and builds the examples against it in FOLDER/examples.
# Usage: installed.sh SOURCE BUILD FOLDER
set -euo pipefail
unset CFLAGS # users have flags of their own
source_dir=$1 build_dir=$2 folder=$3
log=$folder/installed.log
mkdir -p "$folder"
rm -rf "$folder/prefix" "$folder/examples"
{
    cmake --install "$build_dir" --prefix "$folder/prefix"
    cmake -G Ninja -S "$source_dir/docs/examples" -B "$folder/examples" -DCMAKE_PREFIX_PATH="$folder/prefix"
    cmake --build "$folder/examples"
} > "$log" 2>&1 || { cat "$log"; exit 1; }

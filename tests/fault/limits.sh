#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Two ranks under the limits of a shell (ulimit): they work, with less shared memory or none.
# Usage: limits.sh BUILD
set -euo pipefail
bin=$1/bin

# under LIMIT VALUE TRANSPORT OPTION...: a small table, all values right.
under() {
    local limit=$1 value=$2 transport=$3 out
    shift 3
    out=$(ulimit "$limit" "$value" && RING_TRANSPORT=$transport "$bin/ringrun" -n 2 \
        "$bin/ringperf" all_reduce -b 8 -e 1M -f 64 -c 1 -n 3 -w 1 "$@" 2>&1) ||
        { echo "$out"; echo "FAILED: ulimit $limit $value, $transport $*"; exit 1; }
    grep -q 'Out of bounds values : 0 OK' <<< "$out" || { echo "$out"; echo "FAILED: $*"; exit 1; }
    echo "ok: ulimit $limit $value, $transport $*"
}

for transport in shm tcp; do
    under -f 1000000 $transport
    under -v 4000000 $transport
    under -v 600000 $transport --buffer plain
done
under -f 1000 shm --buffer plain # less than the smallest heap: through slots
under -f 100 tcp --buffer plain  # less than any shared memory

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# launchers.sh WAY PROBE: starts PROBE under a real launcher and counts the ranks that joined.
# Exit status 77: the launcher is not installed.
set -u
way=$1 probe=$2 ranks=3

# Leaks and races inside the launcher's own libraries are not ours to judge.
export ASAN_OPTIONS=detect_leaks=0
export RING_DEBUG=debug

skip() {
    echo "SKIPPED: $1 is not installed"
    exit 77
}

openmpi() {
    mpirun=$(command -v mpirun.openmpi) || mpirun=$(command -v orterun) || skip "Open MPI"
    "$mpirun" --allow-run-as-root --oversubscribe -n $ranks "$@"
}

case $way in
openmpi) # the id goes through PMIx
    want="by Open MPI" passed="by PMIx: used"
    output=$(openmpi "$probe" 2>&1) ;;
openmpi-file) # no PMIx: through a file
    want="by Open MPI" passed="by a shared file: used"
    output=$(openmpi sh -c "unset PMIX_NAMESPACE; exec '$probe'" 2>&1) ;;
pmix) # only PMIx knows the number of ranks
    want="by PMIx" passed="by PMIx: used"
    output=$(openmpi sh -c "unset OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE; exec '$probe'" 2>&1) ;;
mpich) # through PMI
    hydra=$(command -v mpiexec.hydra) || skip MPICH
    want="by PMI" passed="by PMI: used"
    output=$("$hydra" -n $ranks "$probe" 2>&1) ;;
esac
status=$?
[ $status = 77 ] && echo "$output" && exit 77
joined=$(echo "$output" | grep -c "^joined as rank [0-9] of $ranks $want")
ways=$(echo "$output" | grep -c "$passed")
echo "$output" | grep -v ' debug: '
echo "$joined of $ranks ranks joined, $ways of $((2 * ranks)) joins $passed, exit status $status"
[ $status = 0 ] && [ "$joined" = $ranks ] && [ "$ways" = $((2 * ranks)) ]

# SPDX-License-Identifier: Apache-2.0
# Helpers of the shell tests: every check names what it expected. A file that reaches
# `finish` with no failure passes.
set -u
bin=$1
ringrun=$bin/ringrun
ringinfo=$bin/ringinfo
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
unset RANK WORLD_SIZE LOCAL_RANK PBS_NODEFILE SLURM_JOB_NODELIST SLURM_TASKS_PER_NODE LSB_HOSTS DLTS_HOSTFILE DC_DL_CONFIG
# Hosts have made-up names, of which a name server may know nothing, or be silent.
export RES_OPTIONS="timeout:1 attempts:1"
# Marks the command lines of this test's processes; seconds for a long sleep, too.
tag=1$(printf %08d $$)
failures=0

wrong() {
    echo "FAILED: $*" >&2
    failures=$((failures + 1))
}

# equal WHAT EXPECTED GOT
equal() {
    [ "$2" = "$3" ] || wrong "$1: expected '$2', got '$3'"
}

# has WHAT TEXT PATTERN: the text holds a match of the extended regular expression
has() {
    grep -Eq -- "$3" <<<"$2" || wrong "$1: no match of '$3' in '$2'"
}

has_not() {
    ! grep -Eq -- "$3" <<<"$2" || wrong "$1: unexpected match of '$3' in '$2'"
}

# Jobs that end do so long before that many seconds; ranks of the tests sleep far longer.
patience=60

# run COMMAND...: leaves its output in $out and $err, its exit code in $code: 124 if it did not end
run() {
    timeout --foreground -k 1 $patience "$@" >"$work/out" 2>"$work/err" </dev/null
    code=$?
    out=$(cat "$work/out")
    err=$(cat "$work/err")
}

# quickly WHAT LIMIT COMMAND...: one of forty runs takes less than LIMIT milliseconds. A busy machine
# makes some slow; what waits makes all slow.
quickly() {
    local what=$1 limit=$2 start turn
    shift 2
    for turn in $(seq 40); do
        start=$(date +%s%N)
        run "$@"
        [ $((($(date +%s%N) - start) / 1000000)) -ge "$limit" ] || return 0
    done
    wrong "$what: forty runs took $limit ms or more each"
}

# becomes WHAT EXPECTED COMMAND...: what the command prints, at the latest in 30 s
becomes() {
    local what=$1 expected=$2 got turn
    shift 2
    for turn in $(seq 600); do
        got=$("$@")
        [ "$got" != "$expected" ] || return 0
        sleep 0.05
    done
    wrong "$what: expected '$expected', got '$got'"
}

# gone WHAT: no process has the tag in its command line, at the latest in 30 s
gone() {
    local turn
    for turn in $(seq 600); do
        pgrep -f -- "$tag" >/dev/null || return 0
        sleep 0.05
    done
    wrong "$1: still there: $(pgrep -af -- "$tag")"
}

# appears PATTERN FILE: waits up to 30 s for a line
appears() {
    local turn
    for turn in $(seq 600); do
        grep -Eq -- "$1" "$2" 2>/dev/null && return 0
        sleep 0.05
    done
    wrong "no line '$1' in $2: $(cat "$2")"
}

finish() {
    if [ "$failures" -gt 0 ]; then
        echo "$failures failure(s)" >&2
        exit 1
    fi
    echo "passed"
}

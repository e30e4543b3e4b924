# SPDX-License-Identifier: Apache-2.0
# ringinfo: what it must tell, and how it judges.
. "$(dirname "$0")/lib.sh"
for variable in $(compgen -e | grep -E '^(RING|NCCL|OMPI|PMI|PMIX|SLURM|MASTER)_'); do
    unset "$variable"
done

# row NAME: its value
row() {
    sed -n "s|^  $1  *||p" <<<"$out" | head -n 1
}

run "$ringinfo"
equal "exit code" 0 "$code"
equal "no warning" "" "$err"
equal "host" "$(hostname)" "$(row name)"
has "cores" "$(row cores)" '^[1-9][0-9]* '
equal "logical CPUs" "$(env -u OMP_NUM_THREADS nproc)" "$(row logical_cpus | cut -d' ' -f1)"
has "memory" "$(row total)" '^[0-9.]+ [MG]iB$'
has "shared memory" "$(row ring_mem_alloc)" 'works, by memfd'
has "the size of /dev/shm does not matter" "$(row /dev/shm)" 'does not (use|need) it'
equal "limit of open files" "$(ulimit -n)" "$(row open_files)"
has "loopback" "$(row lo)" '^up, loopback.* 127\.0\.0\.1'
has "GPUs" "$(row devices)" '^([1-9]|none \(.*(libcuda|CUDA))'
has "InfiniBand" "$out" 'by the transport verbs'
has "launcher" "$(row launcher)" '^none$'
for transport in loop shm tcp; do
    has "transport $transport" "$(row $transport)" '^works; '
done
equal "used on one host" shm "$(row on_one_host)"
equal "used between hosts" tcp "$(row between_hosts)"
has "kernels" "$(row simd)" '^(avx512|avx2|c)$'
has "verdict" "$out" '^Nothing is wrong\.$'
has_not "no colours in a file" "$out" $'\033'

run env RING_TRANSPORT=^shm RING_SIMD=c "$ringinfo"
has "left out" "$(row shm)" 'excluded by RING_TRANSPORT'
equal "then used on one host" tcp "$(row on_one_host)"
equal "chosen kernels" c "$(row simd)"

# wrong_setting PATTERN VARIABLE=VALUE: a FAIL row, exit code 3
wrong_setting() {
    run env "$2" "$ringinfo"
    equal "exit code with $2" 3 "$code"
    has "advice with $2" "$out" "FAIL .*$1"
}
wrong_setting 'RING_TIMEOUT=soon' RING_TIMEOUT=soon
wrong_setting 'known transports: .*shm' RING_TRANSPORT=carrier_pigeon
wrong_setting 'avx2' RING_SIMD=mmx
wrong_setting 'RING_SIZE is not' RING_RANK=1
run bash -c "ulimit -v 100000; '$ringinfo'"
if [ "$code" != 127 ] && [ -n "$out" ]; then
    equal "exit code without address space" 3 "$code"
    has "advice without address space" "$out" 'FAIL .*ulimit -v'
fi

# secret MODE BYTES: a key file, in RING_SECRET_FILE of a run
secret() {
    rm -f key
    head -c "$2" /dev/urandom >key
    chmod "$1" key
    run env RING_SECRET_FILE="$work/key" "$ringinfo"
}
secret 600 32
equal "exit code with a secret" 0 "$code"
equal "the secret" "mode 0600, 32 bytes: $work/key" "$(row RING_SECRET_FILE)"
secret 644 32
equal "exit code with an open secret" 3 "$code"
has "an open secret" "$out" "FAIL .*chmod 600 $work/key"
secret 600 3
equal "exit code with a short secret" 3 "$code"
has "a short secret" "$out" 'FAIL .* 3 bytes: want 16 .*head -c 32 /dev/urandom'
wrong_setting 'No such file.*head -c 32 /dev/urandom' RING_SECRET_FILE=/nowhere/key

run env RING_FOO=1 "$ringinfo"
has_not "a name that is far from all" "$out" 'did you mean'
run env RING_TIMOUT=3 "$ringinfo"
equal "an unknown variable is no failure" 0 "$code"
has "but a warning" "$out" 'WARN did you mean RING_TIMEOUT'
has "on standard error too" "$err" 'RING_TIMOUT .*RING_TIMEOUT'

run env RING_TIMEOUT=7 NCCL_DEBUG=INFO "$ringinfo" env
equal "exit code of env" 0 "$code"
has "value from the environment" "$out" '^RING_TIMEOUT +7 s  \(environment\)$'
has "its default" "$out" 'default 600'
has "value by NCCL's name" "$out" '^RING_DEBUG +info  \(NCCL_DEBUG\)$'
has "value by default" "$out" '^RING_PEER_TIMEOUT +15 s  \(default\)$'
run env RING_TIMEOUT=none "$ringinfo" env
has "no deadline" "$out" '^RING_TIMEOUT +none  \(environment\)$'
for name in RING_TRANSPORT RING_ALGO RING_INIT_TIMEOUT RING_SECRET_FILE RING_INSECURE RING_SIMD \
    RING_DATA RING_RANK MASTER_PORT; do
    has "env lists $name" "$out" "^$name "
done
run env RING_TIMEOUT=soon "$ringinfo" env
equal "env with a wrong value" 3 "$code"
has "env with a wrong value" "$err" 'RING_TIMEOUT=soon'

run "$ringinfo" --json
equal "exit code of JSON" 0 "$code"
for word in '"logical_cpus":' '"on_one_host":.*"shm"' '"findings":' '"name":.*"RING_TIMEOUT"' \
    '"source":.*"default"'; do
    has "JSON" "$out" "$word"
done
if command -v python3 >/dev/null; then
    python3 -m json.tool <"$work/out" >/dev/null || wrong "--json is not JSON"
    "$ringinfo" env --json | python3 -m json.tool >/dev/null || wrong "env --json is not JSON"
fi

run "$ringrun" -n 2 "$ringinfo"
equal "rank 0's view" "0 of 2" "$(row rank)"
has "rank 1's view" "$out" '^\[1\]   rank +1 of 2'
has "launcher in ranks" "$(row launcher)" '^ringrun$'

run "$ringinfo" evn
equal "unknown word" 2 "$code"
has "unknown word" "$err" "did you mean 'env'"
run "$ringinfo" --wrong
equal "unknown option" 2 "$code"
run "$ringinfo" --help
equal "help" 0 "$code"
has "help" "$out" 'ringinfo env'
run "$ringinfo" --version
has "version" "$out" '^ringinfo \(libring\) [0-9.]+$'

for words in "" --json env; do
    "$ringinfo" $words >/dev/full 2>"$work/err"
    equal "full disk: ringinfo $words" 1 "$?"
    has "full disk" "$(cat "$work/err")" 'not all of it could be written'
done

if command -v script >/dev/null; then
    TERM=xterm script -qec "$ringinfo" /dev/null >"$work/out" </dev/null
    has "colours at a terminal" "$(cat "$work/out")" $'\033\\[1m'
    TERM=xterm NO_COLOR=1 script -qec "$ringinfo" /dev/null >"$work/out" </dev/null
    has_not "NO_COLOR" "$(cat "$work/out")" $'\033'
fi
finish

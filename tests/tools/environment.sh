# SPDX-License-Identifier: Apache-2.0
# Checks the environment of ranks, and their surroundings.
. "$(dirname "$0")/lib.sh"

all='echo $RING_RANK/$RING_SIZE $RING_LOCAL_RANK/$RING_LOCAL_SIZE $RANK/$WORLD_SIZE \
$LOCAL_RANK/$LOCAL_WORLD_SIZE $CROSS_RANK/$CROSS_SIZE $RING_LAUNCHER'
run "$ringrun" -n 3 sh -c "$all"
equal "exit code" 0 "$code"
equal "ranks" 3 "$(wc -l <"$work/out")"
has "rank 0" "$out" '^0/3 0/3 0/3 0/3 0/1 ringrun$'
has "rank 2" "$out" '^\[2\] 2/3 2/3 2/3 2/3 0/1 ringrun$'

run "$ringrun" -n 2 sh -c 'echo $MASTER_ADDR $MASTER_PORT'
has "local address" "$out" '^127\.0\.0\.1 [0-9]+$'
equal "both ranks have one port" 1 "$(sed 's/^\[1\] //' "$work/out" | sort -u | wc -l)"
first=$out
run "$ringrun" -n 2 sh -c 'echo $MASTER_ADDR $MASTER_PORT'
[ "$out" != "$first" ] || wrong "two runs had the same port: $out"
run "$ringrun" -n 1 --master_addr=127.0.0.2 --master-port 4711 sh -c 'echo $MASTER_ADDR:$MASTER_PORT'
equal "chosen address and port" 127.0.0.2:4711 "$out"

run env -u OMP_NUM_THREADS OPENBLAS_NUM_THREADS=3 "$ringrun" -n 1 \
    sh -c 'echo $OMP_NUM_THREADS $OPENBLAS_NUM_THREADS'
equal "one thread a rank unless set" "1 3" "$out"

run env RANK=7 RING_RANK=7 WORLD_SIZE=9 LOCAL_RANK=3 RING_SECRET_FILE=/none \
    TORCHELASTIC_USE_AGENT_STORE=True "$ringrun" -n 1 \
    sh -c 'echo $RANK $RING_RANK $WORLD_SIZE "${RING_SECRET_FILE-unset}" "${TORCHELASTIC_USE_AGENT_STORE-unset}"'
equal "variables of an outer launcher do not leak" "0 0 1 unset unset" "$out"

run env HERE=yes "$ringrun" -n 1 -x HERE -x 'WITH=a b=c' sh -c 'echo "$HERE:$WITH"'
equal "exports" "yes:a b=c" "$out"

echo "for rank 0" >input
"$ringrun" -n 2 sh -c 'read line; echo "got $line"' <input >"$work/out" 2>&1
has "rank 0 reads standard input" "$(cat "$work/out")" '^got for rank 0$'
has "others have none" "$(cat "$work/out")" '^\[1\] got $'

run "$ringrun" -n 1 sh -c 'echo *'
equal "ranks start in the current folder" "err input out" "$out"
run "$ringrun" -n 2 ringrun --version
has "programs beside ringrun are found" "$out" '^\[1\] ringrun \(libring\) '

cpus=$(nproc)
run "$ringrun" -n $((cpus + 1)) --bind-to core sh -c 'env -u OMP_NUM_THREADS nproc'
equal "bound, more ranks than cores" 0 "$code"
has_not "each has its core only" "$out" "^(\\[[0-9]+\\] )?$((cpus + 1))"
if [ "$cpus" -gt 1 ]; then
    run "$ringrun" -n 2 --bind-to core sh -c 'taskset -p $$ | sed "s/.*: //"'
    equal "neighbours have different cores" 2 "$(sed 's/^\[1\] //' "$work/out" | sort -u | wc -l)"
fi
run "$ringrun" -n 2 --bind-to none env -u OMP_NUM_THREADS nproc
has "without binding all cores" "$out" "^$cpus\$"
run "$ringrun" -n $((cpus + 1)) env -u OMP_NUM_THREADS nproc
has "more ranks than cores are not bound by default" "$out" "^$cpus\$"
run "$ringrun" -n 2 -x OMP_NUM_THREADS=4 env -u OMP_NUM_THREADS nproc
has "ranks of several threads are not bound by default" "$out" "^$cpus\$"
for variable in OPENBLAS_NUM_THREADS MKL_NUM_THREADS; do
    run env $variable="$cpus" "$ringrun" -n 2 env -u OMP_NUM_THREADS nproc
    has "ranks that want all cores by $variable are not bound" "$out" "^$cpus\$"
done
if [ "$cpus" -gt 1 ]; then
    run "$ringrun" -n 2 env -u OMP_NUM_THREADS nproc
    has "ranks are bound to their share of the cores by default" "$out" "^$((cpus / 2))\$"
fi
run "$ringrun" -n 1 env -u OMP_NUM_THREADS nproc
equal "a single rank is free" "$cpus" "$out"

run "$ringrun" -n 8 --tag-output ls /proc/self/fd
equal "no descriptor leaks into later ranks" 1 \
    "$(cut -d' ' -f1 "$work/out" | sort | uniq -c | awk '{print $1}' | sort -u | wc -l)"
finish

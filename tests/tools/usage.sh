# SPDX-License-Identifier: Apache-2.0
# The command line: other launchers' words, suggestions, help.
. "$(dirname "$0")/lib.sh"

sizes='echo $RANK/$WORLD_SIZE'
for words in "-n 2" "-n2" "-np 2" "--np 2" "--np=2" "--nproc-per-node 2" "--nproc_per_node=2" \
    "--num_gpus 2" "--num_gpus=2 --num_nodes=1" "--nnodes 1 --nproc-per-node 2" \
    "--standalone --nproc-per-node=2 --no-python" "--include localhost:0,2" "-i localhost:1,3" \
    "--no_local_rank -n 2" "--bind_cores_to_rank -n 2" "--launcher ssh -n 2" \
    "--save_pid --force_multi -n 2" "--elastic_training --min_elastic_nodes 1 --max_elastic_nodes=4 -n 2" \
    "-H localhost:2" "-H localhost -n 2"; do
    run "$ringrun" $words sh -c "$sizes" --not-ours -n 7
    equal "ringrun $words" "0/2
[1] 1/2" "$(sort "$work/out")"
done
run "$ringrun" --elastic_training --max_elastic_nodes 2 -n 1 true
equal "one notice" "ringrun: --elastic_training has no effect: the number of ranks is fixed; ringtrain continues from a checkpoint with any number" "$err"
run "$ringrun" -n 1 -- echo --version -n
equal "options after the program are its own" "--version -n" "$out"
run "$ringrun" --nproc-per-node auto sh -c 'echo $WORLD_SIZE'
has "a rank a core" "$out" "^$(nproc)\$"

# refuse PATTERN WORDS...: exit 2, and a message that matches
refuse() {
    local pattern=$1
    shift
    run "$ringrun" "$@"
    equal "exit code of: $*" 2 "$code"
    has "message of: $*" "$err" "$pattern"
    equal "no output of: $*" "" "$out"
}
refuse "did you mean '--include localhost:0,2'" --localhost:0,2 true
refuse "did you mean '--include node-1:0'" -n 1 --node-1:0 true
refuse "did you mean '--include my_node:0'" -n 1 --my_node:0 true
refuse "did you mean '--master-addr'" -n 2 --master-adr x true
refuse "did you mean '--nproc-per-node'" --nproc-per-nodes 2 true
refuse "unknown option '--qqqqqqqqqqqqqqqqqqqq'" --qqqqqqqqqqqqqqqqqqqq true
refuse "the program is missing" -n 2
refuse "the number of ranks is missing" true
refuse "whole number" -n 0 true
refuse "whole number" -n -3 true
refuse "whole number" -n 2x true
refuse "whole number" -n 99999999999999999999 true
refuse "np needs a value" -np
refuse "whole number.*65535" -n 1 --master-port 70000 true
refuse "one number" --nnodes 1:4 true
refuse "none or core or auto" -n 1 --bind-to socket true
refuse "only ssh is supported" -n 1 --launcher pdsh true
refuse "NAME or NAME=VALUE" -n 1 -x 2A=1 true
refuse "not set here" -n 1 -x RING_TEST_SURELY_UNSET true
refuse "sets this variable itself" -n 1 -x RANK=1 true
refuse "a new secret" -n 1 -x RING_SECRET_FILE=/key true
refuse "no agent of torchrun" -n 1 -x TORCHELASTIC_USE_AGENT_STORE=True true
refuse "whole number" -n 1 --kill-wait soon true
refuse "needs --node-rank" -n 1 --no_ssh true
refuse "does not count GPUs" --nproc-per-node gpu true
refuse "give one" -n 1 -H a --hostfile b true
refuse "cannot be given together" --include a --exclude b true
refuse "leave out" --include localhost:0 --num_gpus 2 true
refuse "needs --nnodes" --node-rank 1 --nproc-per-node 2 true
refuse "needs --master-addr" --node-rank 1 --nnodes 2 --nproc-per-node 2 true
refuse "RING_SECRET_FILE" --node-rank 1 --nnodes 2 --nproc-per-node 2 --master-addr 127.0.0.1 true

# Nodes started one by one, and platforms that number nodes.
head -c 32 /dev/urandom >key && chmod 600 key
export RING_SECRET_FILE=$work/key
one='echo $RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE $CROSS_RANK/$CROSS_SIZE $MASTER_ADDR:$MASTER_PORT ${RING_SECRET_FILE##*/} ${RING_SECRET_FD-none}'
run "$ringrun" --no_ssh --node_rank=1 --num_nodes 2 --nproc-per-node 2 --master-addr 127.0.0.1 sh -c "$one"
equal "second of two nodes" "[2] 2/4 0/2 1/2 127.0.0.1:29500 key none
[3] 3/4 1/2 1/2 127.0.0.1:29500 key none" "$(sort "$work/out")"
run env RANK=1 WORLD_SIZE=3 MASTER_ADDR=127.0.0.1 MASTER_PORT=3000 \
    "$ringrun" --nproc_per_node 1 sh -c "$one"
equal "RANK and WORLD_SIZE of nodes" "[1] 1/3 0/1 1/3 127.0.0.1:3000 key none" "$out"
has "the interpretation is said" "$err" "RANK=1 and WORLD_SIZE=3 .* nodes"
unset RING_SECRET_FILE

run "$ringrun" -n 2 --dry-run touch "a file's name"
equal "dry run" 0 "$code"
[ ! -e "a file's name" ] || wrong "--dry-run has started something"
has "dry run: environment and command" "$out" "^env .*RING_RANK=1 .*touch 'a file'\\\\''s name'\$"
has "dry run: no secret" "$out" "RING_SECRET_FD=<"
line=$(grep RING_RANK=1 <<<"$out" | sed "s/'RING_SECRET_FD=[^']*'/RING_SECRET_FD=9/")
rm -f "a file's name"
bash -c "$line" && [ -e "a file's name" ] || wrong "the printed command does not run: $line"

run "$ringrun" -n 2 --dry-run no_such_program
equal "dry run: a program that is not there" 0 "$code"
equal "dry run: a program that is not there is told" \
    "ringrun: rank 0 could not start 'no_such_program': No such file or directory; it is neither in PATH nor in the folder of ringrun; give its path" "$err"
run "$ringrun" -n 1 --dry-run ringrun --version
has "dry run: a program beside ringrun" "$out" " $bin/ringrun --version\$"
cpus=$(nproc)
run "$ringrun" -n $((cpus + 1)) --dry-run true
has_not "dry run: more ranks than cores" "$out" bound
run "$ringrun" -n 2 --bind-to none --dry-run true
has_not "dry run: not bound" "$out" bound
if [ "$cpus" -gt 1 ]; then
    run "$ringrun" -n 2 --dry-run true
    has "dry run: bound by default" "$out" '^# rank 1 of 2 on localhost, bound to cores? [1-9]'
fi

run "$ringrun" --help
equal "help" 0 "$code"
for word in --kill-wait --hostfile --include --bind-to --dry-run --tag-output OMP_NUM_THREADS Examples: \
    'ringrun -n 4 ringperf' 'Exit status'; do
    has "help" "$out" "$word"
done
run "$ringrun" --version
has "version" "$out" '^ringrun \(libring\) [0-9]+\.[0-9]+\.[0-9]+$'
has "compiler" "$out" '^compiler: '
has "features" "$out" '^features: '
# lines that other launchers were to read
: >train.py
for line in "train.py --deepspeed_config d.json" "./train.py" "-n 2 train.py" "deepspeed --num_gpus 2 train.py" \
    "torchrun --nproc_per_node=2 train.py"; do
    run "$ringrun" $line
    equal "$line" 2 "$code"
    has "$line" "$err" "could not start '.*ringtrain replaces DeepSpeed training scripts: ringrun -n N ringtrain"
done
run "$ringrun" --module train
has "--module" "$err" "write ringrun -n N ringtrain --deepspeed_config FILE --data DIR"
run "$ringrun" --config_file c.yaml --module train
has "--module of accelerate" "$err" "write ringrun --config_file c.yaml ringtrain --config_file c.yaml --data DIR"
printf '#!/bin/sh\necho runs\n' >script.py
chmod +x script.py
run "$ringrun" -n 1 ./script.py
equal "a script that can be started" runs "$out"

finish

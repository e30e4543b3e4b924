# SPDX-License-Identifier: Apache-2.0
# Where ranks go: host lists of all kinds, shown by --dry-run.
. "$(dirname "$0")/lib.sh"

# placed WORDS...: "rank@host …" of a dry run
placed() {
    run "$ringrun" "$@" --dry-run true
    places=$(sed -n 's/^# rank \([0-9]*\) of [0-9]* on \([^, ]*\).*/\1@\2/p' "$work/out" | xargs)
}

printf '# two nodes\nn1 slots=2\n\nn2   slots=1  # the small one\n' >hosts
placed --hostfile hosts
equal "hostfile" "0@n1 1@n1 2@n2" "$places"
placed --hostfile hosts -n 2
equal "fewer ranks than slots" "0@n1 1@n1" "$places"
placed --hostfile hosts -n 5
equal "more ranks than slots begin again" "0@n1 1@n1 2@n1 3@n1 4@n2" "$places"
placed --hostfile hosts --num_nodes 1
equal "first node only" "0@n1 1@n1" "$places"
placed --hostfile hosts --num_gpus 1
equal "one on each" "0@n1 1@n2" "$places"
placed --hostfile hosts --include n2
equal "include a node" "0@n2" "$places"
placed --hostfile hosts --include n1:1@n2:0
equal "include slots" "0@n1 1@n2" "$places"
placed --hostfile hosts --exclude n1:0
equal "exclude a slot" "0@n1 1@n2" "$places"
placed --hostfile hosts --exclude n1
equal "exclude a node" "0@n2" "$places"
printf 'n1:2\nn2\n[::1]:1\nfe80::1\n' >short
placed --hostfile short
equal "hostfile in MPICH's form" "0@n1 1@n1 2@n2 3@::1 4@fe80::1" "$places"
placed -H a,b
equal "-H" "0@a 1@b" "$places"
placed -H a:2,b:2
equal "-H with slots" "0@a 1@a 2@b 3@b" "$places"
placed -H a,b -n 4
equal "-H with ranks" "0@a 1@a 2@b 3@b" "$places"
placed -H "localhost,127.0.0.1"
equal "-H with two names of this host" "0@localhost 1@localhost" "$places"
placed -np 4 --nproc-per-node 2 -H a,b,c
equal "-n and a number on each" "0@a 1@a 2@b 3@b" "$places"

printf 'p1\np2\np1\np1\n' >nodes
export PBS_NODEFILE=$work/nodes
placed
equal "PBS: repeated names add up" "0@p1 1@p1 2@p1 3@p2" "$places"
placed -H a
equal "-H is stronger than PBS" "0@a" "$places"
export PBS_NODEFILE=$work/missing
placed
equal "PBS: missing file" 2 "$code"
has "PBS: missing file" "$err" "$work/missing: No such file"
unset PBS_NODEFILE
export SLURM_JOB_NODELIST='n[01-02,10],x3' SLURM_TASKS_PER_NODE='2(x2),1(x2)'
placed
equal "Slurm" "0@n01 1@n01 2@n02 3@n02 4@n10 5@x3" "$places"
unset SLURM_JOB_NODELIST SLURM_TASKS_PER_NODE
export LSB_HOSTS='l1 l2 l1'
placed
equal "LSF" "0@l1 1@l1 2@l2" "$places"
unset LSB_HOSTS
export DLTS_HOSTFILE=$work/hosts
placed
equal "DLTS_HOSTFILE" "0@n1 1@n1 2@n2" "$places"
unset DLTS_HOSTFILE

has "ssh command" "$("$ringrun" -H a --ssh_port 2222 --dry-run true)" \
    "^ssh -oBatchMode=yes .*-oPort=2222 a ''?\\\\?''?/.*ringrun.* --remote-child"
has "other host: port" "$("$ringrun" -H a --dry-run true)" 'MASTER_PORT=29500'
has "other host: variables go along" "$(RING_DEBUG=info "$ringrun" -H a --dry-run true)" 'RING_DEBUG=info'

# The commands that a dry run prints for another host run there unchanged, except for the secret.
far=$("$ringrun" -H a:2,b --dry-run touch made 2>&1)
has "other host: the folder" "$far" "^cd $work && env .*RING_RANK=1 .* touch made\$"
has "other host: cores" "$far" '^# rank 1 of 3 on a, bound to its share of the cores if they suffice$'
has "other host: one rank" "$far" '^# rank 2 of 3 on b$'
has "other host: a core each" "$("$ringrun" -H a:2 --bind-to core --dry-run true)" \
    '^# rank 1 of 2 on a, bound to the core of slot 1$'

# refuse PATTERN WORDS...
refuse() {
    local pattern=$1
    shift
    run "$ringrun" "$@" true
    equal "exit code of: $*" 2 "$code"
    has "message of: $*" "$err" "$pattern"
}
refuse 'missing: No such file' --hostfile missing
printf 'n1 slots=2\nn2\nn1 slots=1\n' >twice
refuse 'twice:3: .*multiple entries for n1' --hostfile twice
printf 'n1 slots=two\n' >words
refuse "words:1: 'slots=two'.*expected slots=N" --hostfile words
printf 'n1 max=2\n' >words
refuse "words:1: 'max=2'" --hostfile words
printf 'n1:2 slots=3\n' >words
refuse "words:1: 'slots=3' after 'n1:2'" --hostfile words
printf '# nobody\n' >empty
refuse 'empty names no host' --hostfile empty
printf -- '-oProxyCommand=x slots=1\n' >evil
refuse "evil:1: .*not a host name" --hostfile evil
refuse 'not a host name' -H a -H -oProxyCommand=x
refuse 'empty name' -H a,,b
refuse 'NAME:SLOTS' -H a:0
refuse 'NAME:SLOTS' -H a:x
refuse '3 nodes requested, but only 2 known' --hostfile hosts --nnodes 3
refuse 'has no slot 2' --hostfile hosts --include n1:2
refuse "host 'n9' is not in the list" --hostfile hosts --include n9
refuse 'named twice' --hostfile hosts --include n1@n1
refuse 'no host is left' -H a --exclude a
refuse '3 ranks, 2 on each host, do not fit on 2 hosts' -n 3 --nproc-per-node 2 -H a,b
SLURM_JOB_NODELIST='n[1-' refuse 'not a Slurm node list' -n 1
SLURM_JOB_NODELIST='n[0-99999999]' refuse 'more than 65536 hosts' -n 1
SLURM_JOB_NODELIST='n[1-3]' SLURM_TASKS_PER_NODE='2' refuse 'does not fit the 3 nodes' -n 1
SLURM_JOB_NODELIST='n[1-2]' SLURM_TASKS_PER_NODE='2(x2),7,8' refuse 'does not fit the 2 nodes' -n 1
SLURM_JOB_NODELIST='n[1-2],n[2-3]' refuse "names node 'n2' twice" -n 1
export ALL_WORKERS="'w1', 'w2:2'"
placed --hostfile env:ALL_WORKERS
equal "hosts of a variable, quoted" "0@w1 1@w2 2@w2" "$places"
placed --hostfile env:NO_SUCH_WORKERS
equal "hosts of a variable that is not set" 2 "$code"
has "hosts of a variable that is not set" "$err" "--hostfile env:NO_SUCH_WORKERS: the variable is not set"
unset ALL_WORKERS

export DC_DL_CONFIG='{"framework":"pytorch","name":"x","worker": {"count":1,"gpus":0}}'
placed
equal "a platform without GPUs: one rank" "0@localhost" "$places"
has "a platform's wish is told" "$err" 'DC_DL_CONFIG has "gpus": 0; starting 1 rank on each node'
DC_DL_CONFIG='{"worker": {"count": 2 , "gpus" : 3 }}'
placed
equal "as many ranks as a platform has GPUs" "0@localhost 1@localhost 2@localhost" "$places"
has "workers without a number" "$err" "names 2 workers, but RANK and WORLD_SIZE are not set"
placed -n 1
equal "-n is stronger than a platform" "0@localhost" "$places"
RANK=1 WORLD_SIZE=2 RING_INSECURE=1 MASTER_ADDR=m placed
equal "a platform's second node" "3@node1 4@node1 5@node1" "$places"
unset DC_DL_CONFIG

printf 'num_processes: 3\nnum_machines: 1\nmachine_rank: 0\nmain_training_function: main\n' >accelerate.yaml
placed --config_file accelerate.yaml
equal "accelerate's processes" "0@localhost 1@localhost 2@localhost" "$places"
placed --config_file accelerate.yaml -n 1
equal "-n is stronger than accelerate" "0@localhost" "$places"
placed --config_file accelerate.yaml -H a:2,b
equal "-H with accelerate's processes" "0@a 1@a 2@b" "$places"
printf 'num_processes: 4\nnum_machines: 2\nmachine_rank: 1\nmain_process_ip: 10.0.0.1\n' >machines.yaml
RING_INSECURE=1 placed --config_file machines.yaml
equal "the second of accelerate's machines" "2@node1 3@node1" "$places"
printf '{"num_processes": 2,\n "fsdp_config": {}, "num_machines": 1, "main_process_ip": null, "commands": ["a"]}\n' >accelerate.json
placed --config_file accelerate.json
equal "accelerate's file as JSON" "0@localhost 1@localhost" "$places"
printf '{"num_processes": 4, "num_machines": 2, "machine_rank": 1, "main_process_ip": "10.0.0.1"}' >machines.json
RING_INSECURE=1 placed --config_file machines.json
equal "machines of JSON" "2@node1 3@node1" "$places"
printf 'commands:\n- a\nfsdp_config: {}\nnum_processes: 2\n' >lists.yaml
placed --config_file lists.yaml
equal "lists and empty sections" "0@localhost 1@localhost" "$places"
wrong_file() { # PATTERN TEXT
    printf "$2" >wrong.yaml
    placed --config_file wrong.yaml
    equal "accelerate: $1" 2 "$code"
    has "accelerate: $1" "$err" "ringrun: .*$1"
}
wrong_file "wrong.yaml: num_processes is missing" 'num_machines: 1\n'
wrong_file "num_processes: expected a whole number from 1 to 65536, not '2x'" 'num_processes: 2x\n'
wrong_file "wrong.yaml: num_processes 3 is not a multiple of num_machines 2" 'num_processes: 3\nnum_machines: 2\n'
wrong_file "wrong.yaml: num_processes is missing" '{"num_processes": -1}'
wrong_file "wrong.yaml:1:21: a brace is not closed" '{"num_processes": 2,'
wrong_file "wrong.yaml:2:1: YAML is indented with blanks, not with tabs" 'a: 1\n\tb: 2\n'
placed --config_file missing.yaml
has "accelerate: no file" "$err" "--config_file missing.yaml: No such file or directory"

finish

/* SPDX-License-Identifier: Apache-2.0
 * The table of ringrun's options, and its --help. */
#include "run_options_table.h"

#define HIDDEN OPTION_HIDDEN
const struct argp_option options_table[] = {
    {NULL, 0, NULL, 0, "How many ranks:", 1},
    {"np", 'n', "N", 0, "N ranks in all (also -np N)", 1},
    {"nproc-per-node", KEY_PER_NODE, "N", 0,
     "N ranks on each host; \"auto\": one a core of this host (also --num-gpus)", 1},
    {"num-gpus", KEY_PER_NODE, "N", HIDDEN, NULL, 1},
    {"nnodes", KEY_NODES, "N", 0, "Use the first N hosts (also --num-nodes)", 1},
    {"num-nodes", KEY_NODES, "N", HIDDEN, NULL, 1},

    {NULL, 0, NULL, 0, "Where:", 2},
    {"host", 'H', "A,B:SLOTS", 0, "Hosts, reached by ssh; a slot takes a rank (default 1)", 2},
    {"hostfile", KEY_HOSTFILE, "FILE", 0, "Hosts, a line each: NAME slots=N, or NAME:N", 2},
    {"include", KEY_INCLUDE, "NODE:SLOT,...@...", 0, "Of the hosts, only these (also -i)", 2},
    {NULL, 'i', "NODE", HIDDEN, NULL, 2},
    {"exclude", KEY_EXCLUDE, "NODE:SLOT,...@...", 0, "All hosts but these (also -e)", 2},
    {NULL, 'e', "NODE", HIDDEN, NULL, 2},
    {"ssh-port", KEY_SSH_PORT, "PORT", 0, "Port of ssh on the other hosts", 2},
    {"remote-ringrun", KEY_REMOTE_RINGRUN, "PATH", 0,
     "Where ringrun is on the other hosts (default: where it is here)", 2},
    {"node-rank", KEY_NODE_RANK, "R", 0,
     "Start only the ranks of node R, here; the other nodes are started in the same way. Needs "
     "--nnodes, --master-addr, and the same RING_SECRET_FILE everywhere",
     2},

    {NULL, 0, NULL, 0, "How ranks meet and run:", 3},
    {"master-addr", KEY_MASTER_ADDR, "ADDR", 0,
     "Where rank 0 listens (default: the first host; 127.0.0.1 if all ranks are here)", 3},
    {"master-port", KEY_MASTER_PORT, "PORT", 0,
     "Its port (default: 29500; a free one if all ranks are here)", 3},
    {"export", 'x', "NAME[=VALUE]", 0, "Give this variable to every rank, on every host", 3},
    {"bind-to", KEY_BIND, "core|none|auto", 0,
     "Tie each rank to the core of its slot; auto (default): the ranks of a host to equal shares "
     "of its cores, if a share has a core for each thread of a rank",
     3},
    {"kill-wait", KEY_KILL_WAIT, "SECONDS", 0,
     "After Ctrl-C or SIGTERM, which ranks get too, kill what has not ended by then (default 10)",
     3},

    {NULL, 0, NULL, 0, "What you see:", 4},
    {"dry-run", KEY_DRY_RUN, NULL, 0, "Print what would be started, start nothing", 4},
    {"tag-output", KEY_TAG, NULL, 0, "Begin rank 0's lines with its number too", 4},
    {"enable-each-rank-log", KEY_LOGS, "DIR", 0, "Also write each rank's output to DIR/rank_N.log",
     4},

    {NULL, 0, NULL, 0, "Understood from other launchers:", 5},
    {"launcher", KEY_LAUNCHER, "ssh", 0, "Other hosts are reached by plain ssh", 5},
    {"standalone", KEY_STANDALONE, NULL, 0, "This host only, as -H localhost", 5},
    {"no-ssh", KEY_NO_SSH, NULL, 0, "With --node-rank: nobody is reached by ssh", 5},
    {"bind-cores-to-rank", KEY_BIND_CORES, NULL, 0, "As --bind-to core", 5},
    {"no-local-rank", KEY_MEANT_ANYWAY, NULL, 0, "Nothing is added to the program's arguments", 5},
    {"no-python", KEY_MEANT_ANYWAY, NULL, 0, "The program is run as it is", 5},
    {NULL, 0, NULL, 0, "Help:", -1},
    {0},
};

const char options_doc[] =
    "Starts N ranks of PROGRAM, here or on several hosts, and stops them all if one fails."
    "\vRank 0's output passes as it is; the other ranks' lines begin with [rank]. Standard input "
    "goes to rank 0. When a rank dies, the others get 1 second to report, then are stopped; one "
    "message names the rank, its host and how it ended. Ctrl-C and SIGTERM are passed on, and "
    "ranks have 10 seconds to end (--kill-wait); a second signal kills them, and one that comes "
    "when they are gone drops the output that nobody has read yet.\n"
    "\n"
    "Each rank gets RING_RANK, RING_SIZE, RING_LOCAL_RANK, RING_LOCAL_SIZE, and the same as RANK, "
    "WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE; MASTER_ADDR, MASTER_PORT; and a fresh secret by "
    "which ranks know each other (never on a command line or in the environment). OMP_NUM_THREADS "
    "and OPENBLAS_NUM_THREADS are 1 unless set. These, MKL_NUM_THREADS, RING_* and NCCL_* go to "
    "all hosts, others with -x.\n"
    "\n"
    "Without -H or --hostfile the hosts are those of DLTS_HOSTFILE, PBS_NODEFILE, "
    "SLURM_JOB_NODELIST, LSB_HOSTS or /job/hostfile if there is one, else this one. Other hosts "
    "need ssh without a password, and libring under the same path; they have RING_INIT_TIMEOUT (60 "
    "seconds) to answer.\n"
    "\n"
    "PROGRAM is looked for in PATH, then beside ringrun. Options may be spelled with '_' for '-', "
    "as for torchrun and deepspeed.\n"
    "\n"
    "Examples:\n"
    "  ringrun -n 4 ringperf all_reduce -b 8 -e 64M -f 2 -c 1\n"
    "  ringrun -n 2 ringtrain --deepspeed_config deeps.json --data mnist\n"
    "  ringrun -H node1:2,node2:2 -x LD_LIBRARY_PATH ./my_program\n"
    "  ringrun --hostfile hosts --include node1:0,1@node2 ./my_program\n"
    "  ringrun -n 2 --dry-run ./my_program --its-option\n"
    "\n"
    "Exit status: 0 if all ranks ended with 0, else that of the first rank that did not (128 + "
    "signal if it was killed); 2 wrong use, 3 trouble on this host (also: output could not be "
    "written), 127 the program was not found, 130 interrupted (143 by SIGTERM), 255 a host was "
    "lost or did not answer.";

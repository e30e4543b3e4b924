/* SPDX-License-Identifier: Apache-2.0
 * Parses ringrun's command line and checks combinations of options. */
#include "run_options.h"

#include "args.h"
#include "command_lookup.h"
#include "option_sources.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PORT_MAX = 65535, KILL_WAIT = 10, KILL_WAIT_MAX = 86400 };

/* ---- Values -------------------------------------------------------------------------------- */

static void take_per_node(const args_given *given)
{
    options *o = given->out;
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    if (strcmp(given->text, "gpu") == 0)
        args_refuse(given, "ringrun does not count GPUs; give a number or \"auto\"");
    if (strcmp(given->text, "auto") == 0 || strcmp(given->text, "cpu") == 0)
        o->per_node = cores > 0 ? (int)cores : 1;
    else
        args_whole(given);
}

static void take_nodes(const args_given *given)
{
    if (strchr(given->text, ':') != NULL)
        args_refuse(given, "the number of hosts cannot change during a job; give one number");
    args_whole(given);
}

static void take_export(const args_given *given)
{
    options *o = given->out;
    const size_t length = strcspn(given->text, "=");
    char *name = memory_text(given->text, length);
    if (!job_is_variable(name))
        args_refuse(given, "expected NAME or NAME=VALUE");
    const char *decided = job_decides(name);
    if (decided != NULL)
        args_refuse(given, "%s; leave it out", decided);
    if (given->text[length] == '=')
        texts_put(&o->exports, given->text);
    else if (getenv(name) == NULL)
        args_refuse(given, "the variable is not set here; set it, or give -x %s=VALUE", name);
    else { /* the value that the variable has here */
        texts entry = {0};
        texts_add(&entry, "%s=%s", name, getenv(name));
        texts_put(&o->exports, entry.items[0]);
        texts_free(&entry);
    }
    free(name);
}

/* --standalone: sets the hosts like -H localhost. */
static void take_standalone(const args_given *given)
{
    options *o = given->out;
    o->hosts = "localhost";
}

static void take_launcher(const args_given *given)
{
    if (strcmp(given->text, "ssh") != 0)
        args_refuse(given, "only ssh is supported; leave out this option");
}

static void note_elastic(const args_given *given)
{
    options *o = given->out;
    if (!o->elastic)
        fprintf(stderr, "ringrun: --elastic_training has no effect: the number of ranks is fixed; "
                        "ringtrain continues from a checkpoint with any number\n");
    o->elastic = true;
}

static void refuse_module(const args_given *given)
{
    const options *o = given->out;
    const char *file = o->config_file != NULL ? o->config_file : "FILE";
    args_fail("--module %s: ringrun starts programs, not Python modules; write ringrun "
              "%s %s ringtrain %s %s --data DIR",
              given->text, o->config_file != NULL ? "--config_file" : "-n",
              o->config_file != NULL ? file : "N",
              o->config_file != NULL ? "--config_file" : "--deepspeed_config", file);
}

static const char *const bindings[] = {
    [BIND_NONE] = "none", [BIND_CORE] = "core", [BIND_AUTO] = "auto", NULL};

/* ---- The options --------------------------------------------------------------------------- */

#define AT(member) ARGS_AT(options, member)
#define HIDDEN .flags = OPTION_HIDDEN
static const args_row rows[] = {
    {.help = "Number of ranks:"},
    {"np", 'n', "N", "Start N ranks in all (also -np N)", args_whole, AT(ranks), .least = 1,
     .most = RANKS_MAX},
    {"nproc-per-node", 0, "N",
     "N ranks on each host; \"auto\": one for each logical CPU of this host (also --num-gpus)",
     take_per_node, AT(per_node), .least = 1, .most = RANKS_MAX},
    {"num-gpus", 0, "N", NULL, take_per_node, AT(per_node), .least = 1, .most = RANKS_MAX, HIDDEN},
    {"nnodes", 0, "N", "Use the first N hosts (also --num-nodes)", take_nodes, AT(nodes),
     .least = 1, .most = HOSTS_MAX},
    {"num-nodes", 0, "N", NULL, take_nodes, AT(nodes), .least = 1, .most = HOSTS_MAX, HIDDEN},
    {.help = "Hosts:"},
    {"host", 'H', "A,B:SLOTS",
     "Hosts, reached by ssh, with the number of slots, that is, ranks (default 1)", args_text,
     AT(hosts)},
    {"hostfile", 0, "FILE",
     "File with a line for each host: NAME slots=N, or NAME:N. env:NAME reads the list from "
     "the variable NAME: 'a','b:2'",
     args_text, AT(hostfile)},
    {"include", 0, "NODE:SLOT,...@...", "Use only these of the hosts (also -i)", args_text,
     AT(include)},
    {NULL, 'i', "NODE", NULL, args_text, AT(include), HIDDEN},
    {"exclude", 0, "NODE:SLOT,...@...", "Use all hosts but these (also -e)", args_text,
     AT(exclude)},
    {NULL, 'e', "NODE", NULL, args_text, AT(exclude), HIDDEN},
    {"ssh-port", 0, "PORT", "Port of ssh on the other hosts", args_whole, AT(ssh_port), .least = 1,
     .most = PORT_MAX},
    {"remote-ringrun", 0, "PATH",
     "Path of ringrun on the other hosts (default: its path on this host)", args_text,
     AT(remote_ringrun)},
    {"node-rank", 0, "R",
     "Start only the ranks of node R, on this host; start ringrun in the same way on each other "
     "node. Needs --nnodes, --master-addr, and the same RING_SECRET_FILE on all nodes",
     args_whole, AT(node_rank), .most = HOSTS_MAX - 1},
    {.help = "Start of ranks:"},
    {"master-addr", 0, "ADDR",
     "Address at which rank 0 listens (default: the first host; 127.0.0.1 if all ranks are on "
     "this host)",
     args_text, AT(master_addr)},
    {"master-port", 0, "PORT",
     "Port at which rank 0 listens (default: 29500; a free one if all ranks are on this host)",
     args_whole, AT(master_port), .least = 1, .most = PORT_MAX},
    {"export", 'x', "NAME[=VALUE]", "Give this variable to every rank, on every host",
     .take = take_export},
    {"nccl", 0, NULL,
     "Let the ranks use libring in place of NCCL: preload libring's libnccl.so.2 (docs/nccl.md)",
     args_flag, AT(nccl)},
    {"bind-to", 0, "core|none|auto",
     "core: bind each rank to the core of its slot; auto (default): bind the ranks of a host to "
     "equal shares of its cores, if a share has a core for each thread of a rank",
     args_name, AT(binding), .names = bindings},
    {"kill-wait", 0, "SECONDS",
     "Time for ranks to end after Ctrl-C or SIGTERM, which is passed on to them; then they are "
     "killed (default 10)",
     args_whole, AT(kill_wait), .most = KILL_WAIT_MAX},
    {.help = "Output:"},
    {"dry-run", 0, NULL, "Print the commands that would be started, and start nothing", args_flag,
     AT(dry_run)},
    {"tag-output", 0, NULL, "Begin rank 0's lines with [0], too", args_flag, AT(tag_output)},
    {"enable-each-rank-log", 0, "DIR", "Also write each rank's output to DIR/rank_N.log", args_text,
     AT(log_dir)},
    {.help = "Options of other launchers:"},
    {"config_file", 0, "FILE",
     "Take ranks and hosts from accelerate's configuration (num_processes, num_machines, …)",
     args_text, AT(config_file)},
    {"module", 0, "NAME", NULL, refuse_module, HIDDEN},
    {"launcher", 0, "ssh", "Only ssh is supported", .take = take_launcher},
    {"standalone", 0, NULL, "Use only this host, like -H localhost", .take = take_standalone},
    {"no-ssh", 0, NULL, "No effect; needs --node-rank, with which ssh is not used", args_flag,
     AT(no_ssh)},
    {"bind-cores-to-rank", 0, NULL, "The same as --bind-to core", args_flag, AT(binding),
     .most = BIND_CORE},
    {"no-local-rank", 0, NULL, "No effect: ringrun adds no argument to those of the program",
     .take = NULL},
    {"save-pid", 0, NULL, "No effect, and no file: send signals to the process of ringrun",
     .take = NULL},
    {"force-multi", 0, NULL, "No effect: another host is reached by ssh in any case", .take = NULL},
    {"elastic-training", 0, NULL, "No effect but a notice: the number of ranks is fixed",
     .take = note_elastic},
    {"min-elastic-nodes", 0, "N", NULL, .take = note_elastic, HIDDEN},
    {"max-elastic-nodes", 0, "N", NULL, .take = note_elastic, HIDDEN},
    {"no-python", 0, NULL, "No effect: the program is run as it is", .take = NULL},
    {0},
};

static const char doc[] =
    "Starts N ranks of PROGRAM, here or on several hosts, and stops them all if one fails."
    "\vRank 0's output is passed on unchanged; the lines of other ranks begin with [rank]. "
    "Standard "
    "input goes to rank 0. When a rank fails, the others have 1 second to report errors, then they "
    "are stopped; one message names the rank, its host and how it ended. Ctrl-C and SIGTERM are "
    "passed on, and ranks have 10 seconds to end (--kill-wait); a second signal kills them. A "
    "signal after all ranks have ended discards the output that is not written yet.\n"
    "\n"
    "Each rank gets RING_RANK, RING_SIZE, RING_LOCAL_RANK, RING_LOCAL_SIZE, and the same values as "
    "RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE; MASTER_ADDR and MASTER_PORT; and a new secret "
    "by which ranks authenticate each other (never on a command line or in the environment). "
    "OMP_NUM_THREADS and OPENBLAS_NUM_THREADS are 1 unless they are set. These variables, "
    "MKL_NUM_THREADS, RING_* and NCCL_* are passed to all hosts, and so are the lines NAME=VALUE "
    "of "
    ".deepspeed_env in the current folder or the home folder (DS_ENV_FILE names another file); -x "
    "passes other variables.\n"
    "\n"
    "Without -H or --hostfile, the hosts are taken from DLTS_HOSTFILE, PBS_NODEFILE, "
    "SLURM_JOB_NODELIST, LSB_HOSTS or /job/hostfile; if there are none of these, only this host is "
    "used. Other hosts need ssh without a password, and libring under the same path; they have "
    "RING_INIT_TIMEOUT (60 seconds) to answer.\n"
    "\n"
    "PROGRAM is looked for in PATH, then in the folder of ringrun. Options may be written with '_' "
    "instead of '-', as for torchrun and deepspeed.\n"
    "\n"
    "Examples:\n"
    "  ringrun -n 4 ringperf all_reduce -b 8 -e 64M -f 2 -c 1\n"
    "  ringrun -n 2 ringtrain --deepspeed_config deeps.json --data mnist\n"
    "  ringrun -H node1:2,node2:2 -x LD_LIBRARY_PATH ./my_program\n"
    "  ringrun --hostfile hosts --include node1:0,1@node2 ./my_program\n"
    "  ringrun -n 2 --dry-run ./my_program --its-option\n"
    "\n"
    "Exit status: 0 if all ranks ended with 0, else the status of the first rank that did not (128 "
    "+ signal if it was killed); 2 for a wrong command line, 3 for an error on this host (also if "
    "output could not be written), 127 if the program was not found, 130 after Ctrl-C (143 after "
    "SIGTERM), 255 if a host was lost or did not answer.";

/* ---- The command line ---------------------------------------------------------------------- */

/* Explains an option such as "--localhost:0,2", with which "--include localhost:0,2" is meant. */
static void guess_include(const char *word)
{
    const char *colon = strchr(word, ':');
    if (colon != NULL && colon > word && colon[1] != '\0' &&
        strspn(colon + 1, "0123456789,") == strlen(colon + 1))
        args_fail("unknown option '--%s'; did you mean '--include %s'?", word, word);
}

static int take_program(char **words, int count, void *out)
{
    options *o = out;
    o->program = words;
    if (*words[0] == '\0')
        args_fail("the program's name is empty");
    return count;
}

static void check_together(const options *o)
{
    char room[4096], why[512];
    if (o->program == NULL)
        args_fail("the program is missing; write ringrun -n N PROGRAM [ARGS...]");
    /* A command line of another launcher, with a script as its program, is reported first. */
    if (o->hosts == NULL && o->hostfile == NULL && command_is_python(o->program[0]) &&
        !command_find(o->program[0], room, sizeof room)) {
        command_describe_error(o->program[0], errno, why, sizeof why);
        args_fail("%s", why);
    }
    if (o->hostfile != NULL && o->hosts != NULL)
        args_fail("--hostfile and -H both name the hosts; give one");
    if (o->include != NULL && o->exclude != NULL)
        args_fail("--include and --exclude cannot be given together");
    if ((o->include != NULL || o->exclude != NULL) && (o->nodes > 0 || o->per_node > 0))
        args_fail("--include and --exclude choose hosts and ranks; leave out --nnodes and "
                  "--nproc-per-node");
    if (o->node_rank < 0 && o->no_ssh)
        args_fail("--no-ssh needs --node-rank: start ringrun on every node, each with its number");
    if (o->node_rank < 0)
        return;
    if (o->hostfile != NULL || o->hosts != NULL || o->include != NULL || o->exclude != NULL)
        args_fail("--node-rank starts ranks on this host only; leave out the list of hosts");
    if (o->nodes == 0 || o->node_rank >= o->nodes)
        args_fail("--node-rank %d needs --nnodes N with N greater than %d", o->node_rank,
                  o->node_rank);
    if (o->nodes > 1 && o->master_addr == NULL)
        args_fail("--node-rank needs --master-addr: the address of node 0, the same on every node");
}

void options_parse(int argc, char **argv, options *out)
{
    static const args_program ringrun = {"ringrun",    rows,         "PROGRAM [ARGS...]",     doc,
                                         take_program, .rest = true, .unknown = guess_include};
    *out = (options){.node_rank = -1, .binding = BIND_AUTO, .kill_wait = KILL_WAIT};
    args_parse(&ringrun, argc, argv, out);
    options_take_accelerate(out);
    options_take_platform(out);
    options_take_node_variables(out);
    check_together(out);
}

void options_free(options *o)
{
    texts_free(&o->exports);
    free(o->config);
}

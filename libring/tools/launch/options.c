/* SPDX-License-Identifier: Apache-2.0
 * ringrun's command line. */
#include "options.h"

#include "about.h"
#include "job.h"

#include <argp.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CODE_USAGE = 2, PORT_MAX = 65535 };

enum key {
    KEY_PER_NODE = 1000, KEY_NODES, KEY_NODE_RANK, KEY_MASTER_ADDR, KEY_MASTER_PORT,
    KEY_INCLUDE, KEY_EXCLUDE, KEY_SSH_PORT, KEY_LAUNCHER, KEY_REMOTE_RINGRUN, KEY_BIND,
    KEY_LOGS, KEY_TAG, KEY_DRY_RUN, KEY_MEANT_ANYWAY, KEY_HOSTFILE,
    KEY_STANDALONE, KEY_NO_SSH, KEY_BIND_CORES
};

#define HIDDEN OPTION_HIDDEN
static const struct argp_option option_table[] = {
    {NULL, 0, NULL, 0, "How many ranks:", 1},
    {"np", 'n', "N", 0, "N ranks in all (also -np N)", 1},
    {"nproc-per-node", KEY_PER_NODE, "N", 0,
     "N ranks on each host; \"auto\": one a core of this host (also --num_gpus)", 1},
    {"nproc_per_node", KEY_PER_NODE, "N", HIDDEN, NULL, 1},
    {"num_gpus", KEY_PER_NODE, "N", HIDDEN, NULL, 1},
    {"num-gpus", KEY_PER_NODE, "N", HIDDEN, NULL, 1},
    {"nnodes", KEY_NODES, "N", 0, "Use the first N hosts (also --num_nodes)", 1},
    {"num_nodes", KEY_NODES, "N", HIDDEN, NULL, 1},
    {"num-nodes", KEY_NODES, "N", HIDDEN, NULL, 1},

    {NULL, 0, NULL, 0, "Where:", 2},
    {"host", 'H', "A,B:SLOTS", 0, "Hosts, reached by ssh; a slot takes a rank (default 1)", 2},
    {"hostfile", KEY_HOSTFILE, "FILE", 0, "Hosts, a line each: NAME slots=N", 2},
    {"include", KEY_INCLUDE, "NODE:SLOT,...@...", 0, "Of the hosts, only these (also -i)", 2},
    {NULL, 'i', "NODE", HIDDEN, NULL, 2},
    {"exclude", KEY_EXCLUDE, "NODE:SLOT,...@...", 0, "All hosts but these (also -e)", 2},
    {NULL, 'e', "NODE", HIDDEN, NULL, 2},
    {"ssh-port", KEY_SSH_PORT, "PORT", 0, "Port of ssh on the other hosts", 2},
    {"ssh_port", KEY_SSH_PORT, "PORT", HIDDEN, NULL, 2},
    {"remote-ringrun", KEY_REMOTE_RINGRUN, "PATH", 0,
     "Where ringrun is on the other hosts (default: where it is here)", 2},
    {"node-rank", KEY_NODE_RANK, "R", 0,
     "Start only the ranks of node R, here; the other nodes are started in the same way. Needs "
     "--nnodes, --master-addr, and the same RING_SECRET_FILE everywhere", 2},
    {"node_rank", KEY_NODE_RANK, "R", HIDDEN, NULL, 2},

    {NULL, 0, NULL, 0, "How ranks meet and run:", 3},
    {"master-addr", KEY_MASTER_ADDR, "ADDR", 0,
     "Where rank 0 listens (default: the first host; 127.0.0.1 if all ranks are here)", 3},
    {"master_addr", KEY_MASTER_ADDR, "ADDR", HIDDEN, NULL, 3},
    {"master-port", KEY_MASTER_PORT, "PORT", 0,
     "Its port (default: 29500; a free one if all ranks are here)", 3},
    {"master_port", KEY_MASTER_PORT, "PORT", HIDDEN, NULL, 3},
    {"export", 'x', "NAME[=VALUE]", 0, "Give this variable to every rank, on every host", 3},
    {"bind-to", KEY_BIND, "core|none|auto", 0,
     "Tie each rank to the core of its slot (default auto: if a host's ranks have a core and one "
     "thread each)", 3},
    {"bind_to", KEY_BIND, "core|none|auto", HIDDEN, NULL, 3},

    {NULL, 0, NULL, 0, "What you see:", 4},
    {"dry-run", KEY_DRY_RUN, NULL, 0, "Print what would be started, start nothing", 4},
    {"tag-output", KEY_TAG, NULL, 0, "Begin rank 0's lines with its number too", 4},
    {"tag_output", KEY_TAG, NULL, HIDDEN, NULL, 4},
    {"enable_each_rank_log", KEY_LOGS, "DIR", 0,
     "Also write each rank's output to DIR/rank_N.log", 4},
    {"enable-each-rank-log", KEY_LOGS, "DIR", HIDDEN, NULL, 4},

    {NULL, 0, NULL, 0, "Understood from other launchers:", 5},
    {"launcher", KEY_LAUNCHER, "ssh", 0, "Other hosts are reached by plain ssh", 5},
    {"standalone", KEY_STANDALONE, NULL, 0, "This host only, as -H localhost", 5},
    {"no_ssh", KEY_NO_SSH, NULL, 0, "With --node-rank: nobody is reached by ssh", 5},
    {"no-ssh", KEY_NO_SSH, NULL, HIDDEN, NULL, 5},
    {"bind_cores_to_rank", KEY_BIND_CORES, NULL, 0, "As --bind-to core", 5},
    {"no_local_rank", KEY_MEANT_ANYWAY, NULL, 0,
     "Nothing is added to the program's arguments", 5},
    {"no-local-rank", KEY_MEANT_ANYWAY, NULL, HIDDEN, NULL, 5},
    {"no_python", KEY_MEANT_ANYWAY, NULL, 0, "The program is run as it is", 5},
    {"no-python", KEY_MEANT_ANYWAY, NULL, HIDDEN, NULL, 5},
    {NULL, 0, NULL, 0, "Help:", -1},
    {0},
};

static const char doc[] =
    "Starts N ranks of PROGRAM, here or on several hosts, and stops them all if one fails."
    "\vRank 0's output passes as it is; the other ranks' lines begin with [rank]. Standard "
    "input goes to rank 0. When a rank dies, the others get 1 second to report, then are "
    "stopped; one message names the rank, its host and how it ended.\n"
    "\n"
    "Each rank gets RING_RANK, RING_SIZE, RING_LOCAL_RANK, RING_LOCAL_SIZE, and the same as "
    "RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE; MASTER_ADDR, MASTER_PORT; and a fresh "
    "secret by which ranks know each other (never on a command line or in the environment). "
    "OMP_NUM_THREADS and OPENBLAS_NUM_THREADS are 1 unless set. Variables RING_* and NCCL_* "
    "go to all hosts, others with -x.\n"
    "\n"
    "Without -H or --hostfile the hosts are those of DLTS_HOSTFILE, PBS_NODEFILE, "
    "SLURM_JOB_NODELIST, LSB_HOSTS or /job/hostfile if there is one, else this one. "
    "Other hosts need ssh without a password, and libring under the same path.\n"
    "\n"
    "PROGRAM is looked for in PATH, then beside ringrun.\n"
    "\n"
    "Examples:\n"
    "  ringrun -n 4 ringperf all_reduce -b 8 -e 64M -f 2 -c 1\n"
    "  ringrun -n 2 ringtrain --deepspeed_config deeps.json --data mnist\n"
    "  ringrun -H node1:2,node2:2 -x LD_LIBRARY_PATH ./my_program\n"
    "  ringrun --hostfile hosts --include node1:0,1@node2 ./my_program\n"
    "  ringrun -n 2 --dry-run ./my_program --its-option\n"
    "\n"
    "Exit status: 0 if all ranks ended with 0, else that of the first rank that did not "
    "(128 + signal if it was killed); 2 wrong use, 3 trouble on this host, 127 the program "
    "was not found, 130 interrupted, 255 a host was lost.";

static _Noreturn void wrong(const char *format, ...) RING_PRINTF(1, 2);
static _Noreturn void wrong(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("ringrun: ", stderr);
    vfprintf(stderr, format, args);
    fputs("\nTry 'ringrun --help'.\n", stderr);
    va_end(args);
    exit(CODE_USAGE);
}

static int number(const char *option, const char *text, int low, int high)
{
    int value;
    const char *at = text;
    if (!hosts_number(&at, low, high, &value) || *at != '\0')
        wrong("%s '%s': expected a whole number from %d to %d", option, text, low, high);
    return value;
}

/* ---- Words that are no option --------------------------------------------------------- */

static const struct argp_option *find_long(const char *name, size_t length)
{
    const struct argp_option *found = NULL;
    for (const struct argp_option *o = option_table; o->name || o->key || o->doc; o++) {
        if (o->name == NULL || strncmp(o->name, name, length) != 0)
            continue;
        if (o->name[length] == '\0')
            return o;
        found = o; /* getopt takes the beginning of a name too */
    }
    return found;
}

static const struct argp_option *find_short(int key)
{
    for (const struct argp_option *o = option_table; o->name || o->key || o->doc; o++) {
        if (o->key == key)
            return o;
    }
    return NULL;
}

/* "--localhost:0,2" was meant as "--include localhost:0,2". */
static bool looks_like_include(const char *word)
{
    const char *colon = strchr(word, ':');
    return colon != NULL && colon > word && colon[1] != '\0' &&
           strspn(colon + 1, "0123456789,") == strlen(colon + 1);
}

static _Noreturn void unknown(const char *word, size_t length)
{
    static const char *const builtin[] = {"help", "usage", "version"};
    const char *names[sizeof option_table / sizeof option_table[0] + 3];
    size_t count = 0;
    char *name = memory_text(word, length);
    for (const struct argp_option *o = option_table; o->name || o->key || o->doc; o++) {
        if (o->name != NULL)
            names[count++] = o->name;
    }
    for (size_t i = 0; i < 3; i++)
        names[count++] = builtin[i];
    if (looks_like_include(word))
        wrong("unknown option '--%s'; did you mean '--include %s'?", word, word);
    const char *near = text_nearest(name, names, count);
    if (near != NULL)
        wrong("unknown option '--%s'; did you mean '--%s'?", name, near);
    wrong("unknown option '--%s'; the program's own options come after its name", name);
}

/* Looks at the words before the program, so that unknown ones get a good answer. */
static void check_words(int argc, char **argv)
{
    for (int i = 1; i < argc && argv[i][0] == '-' && strcmp(argv[i], "--") != 0; i++) {
        const char *word = argv[i] + 1;
        const struct argp_option *o;
        bool has_value;
        if (*word == '-') {
            word++;
            const size_t length = strcspn(word, "=");
            o = find_long(word, length);
            has_value = word[length] == '=';
            if (o == NULL && strncmp("help", word, length) != 0 &&
                strncmp("version", word, length) != 0 && strncmp("usage", word, length) != 0)
                unknown(word, length);
        } else {
            o = find_short(*word);
            has_value = word[0] != '\0' && word[1] != '\0' && strcmp(word, "np") != 0;
        }
        i += o != NULL && o->arg != NULL && !has_value;
    }
}

/* ---- Options --------------------------------------------------------------------------- */

static int per_node(const char *text)
{
    if (strcmp(text, "auto") == 0 || strcmp(text, "cpu") == 0) {
        const long cores = sysconf(_SC_NPROCESSORS_ONLN);
        return cores > 0 ? (int)cores : 1;
    }
    if (strcmp(text, "gpu") == 0)
        wrong("--nproc-per-node gpu: this version runs on CPUs; give a number or \"auto\"");
    return number("--nproc-per-node", text, 1, RANKS_MAX);
}

static int nodes(const char *text)
{
    if (strchr(text, ':') != NULL)
        wrong("--nnodes '%s': the number of hosts is fixed here; give one number", text);
    return number("--nnodes", text, 1, HOSTS_MAX);
}

static void add_export(options *o, const char *text)
{
    const size_t length = strcspn(text, "=");
    char *name = memory_text(text, length);
    bool good = length > 0 && !isdigit((unsigned char)*name);
    for (const char *at = name; *at != '\0'; at++)
        good = good && (isalnum((unsigned char)*at) || *at == '_');
    if (!good)
        wrong("-x '%s': expected NAME or NAME=VALUE", text);
    if (job_sets(name))
        wrong("-x %s: ringrun sets this variable itself, for each rank", name);
    const char *value = text[length] == '=' ? text + length + 1 : getenv(name);
    if (value == NULL)
        wrong("-x %s: the variable is not set here; set it, or give -x %s=VALUE", name, name);
    texts_set(&o->exports, name, "%s", value);
    free(name);
}

static job_binding binding(const char *text)
{
    if (strcmp(text, "core") == 0)
        return BIND_CORE;
    if (strcmp(text, "none") == 0)
        return BIND_NONE;
    if (strcmp(text, "auto") != 0)
        wrong("--bind-to '%s': expected core or none or auto", text);
    return BIND_AUTO;
}

static const char *not_empty(const char *option, const char *text)
{
    if (*text == '\0')
        wrong("%s: the value is empty", option);
    return text;
}

static error_t parse_how(int key, const char *arg, options *o)
{
    switch (key) {
    case KEY_MASTER_ADDR: o->master_addr = not_empty("--master-addr", arg); break;
    case KEY_MASTER_PORT: o->master_port = number("--master-port", arg, 1, PORT_MAX); break;
    case 'x': add_export(o, arg); break;
    case KEY_BIND: o->binding = binding(arg); break;
    case KEY_BIND_CORES: o->binding = BIND_CORE; break;
    case KEY_NO_SSH: o->no_ssh = true; break;
    case KEY_SSH_PORT: o->ssh_port = number("--ssh-port", arg, 1, PORT_MAX); break;
    case KEY_REMOTE_RINGRUN: o->remote_ringrun = not_empty("--remote-ringrun", arg); break;
    case KEY_DRY_RUN: o->dry_run = true; break;
    case KEY_TAG: o->tag_output = true; break;
    case KEY_LOGS: o->log_dir = not_empty("--enable_each_rank_log", arg); break;
    case KEY_MEANT_ANYWAY: break;
    case KEY_LAUNCHER:
        if (strcmp(arg, "ssh") != 0)
            wrong("--launcher '%s': other hosts are reached by ssh; leave the option out", arg);
        break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

/* "-np 4" reaches us as -n with the value "p". */
static const char *value_of_n(const char *arg, struct argp_state *state)
{
    if (strcmp(arg, "p") != 0)
        return arg;
    if (state->next == state->argc)
        wrong("-np: how many?");
    return state->argv[state->next++];
}

static void take_program(options *o, struct argp_state *state)
{
    o->program = &state->argv[state->next - 1];
    not_empty("the program's name", o->program[0]);
    state->next = state->argc;
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    options *o = state->input;
    switch (key) {
    case 'n': o->ranks = number("-n", value_of_n(arg, state), 1, RANKS_MAX); break;
    case KEY_PER_NODE: o->per_node = per_node(arg); break;
    case KEY_NODES: o->nodes = nodes(arg); break;
    case KEY_NODE_RANK: o->node_rank = number("--node-rank", arg, 0, HOSTS_MAX - 1); break;
    case 'H': o->hosts = not_empty("-H", arg); break;
    case KEY_STANDALONE: o->hosts = "localhost"; break;
    case KEY_HOSTFILE: o->hostfile = not_empty("--hostfile", arg); break;
    case 'i':
    case KEY_INCLUDE: o->include = not_empty("--include", arg); break;
    case 'e':
    case KEY_EXCLUDE: o->exclude = not_empty("--exclude", arg); break;
    case ARGP_KEY_ARG: take_program(o, state); break;
    case ARGP_KEY_NO_ARGS: wrong("which program? ringrun -n N PROGRAM [ARGS...]");
    default: return parse_how(key, arg, o);
    }
    return 0;
}

static void check_together(const options *o)
{
    if (o->hostfile != NULL && o->hosts != NULL)
        wrong("--hostfile and -H both name the hosts; give one");
    if (o->include != NULL && o->exclude != NULL)
        wrong("--include and --exclude cannot be given together");
    if ((o->include != NULL || o->exclude != NULL) && (o->nodes > 0 || o->per_node > 0))
        wrong("--include and --exclude choose hosts and ranks; leave out the number of nodes and "
              "of ranks on each");
    if (o->node_rank < 0 && o->no_ssh)
        wrong("--no_ssh needs --node-rank: start ringrun on every node, each with its number");
    if (o->node_rank < 0)
        return;
    if (o->hostfile != NULL || o->hosts != NULL || o->include != NULL || o->exclude != NULL)
        wrong("--node-rank starts ranks on this host only; leave out the list of hosts");
    if (o->nodes == 0 || o->node_rank >= o->nodes)
        wrong("--node-rank %d needs --nnodes N with N greater than it", o->node_rank);
    if (o->nodes > 1 && o->master_addr == NULL)
        wrong("--node-rank needs --master-addr: the address of node 0, the same on every node");
}

static void print_version(FILE *out, struct argp_state *state)
{
    (void)state;
    about_print(out, "ringrun");
}

void options_parse(int argc, char **argv, options *out)
{
    static const struct argp argp = {option_table, parse_option, "PROGRAM [ARGS...]", doc,
                                     NULL, NULL, NULL};
    *out = (options){.node_rank = -1, .binding = BIND_AUTO};
    argp_program_version_hook = print_version;
    argp_err_exit_status = CODE_USAGE;
    check_words(argc, argv);
    argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, out);
    options_take_node_variables(out);
    check_together(out);
}

void options_free(options *o)
{
    texts_free(&o->exports);
}

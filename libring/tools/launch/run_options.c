/* SPDX-License-Identifier: Apache-2.0
 * ringrun's command line. */
#include "run_options.h"

#include "about.h"
#include "job.h"
#include "run_options_table.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CODE_USAGE = 2, PORT_MAX = 65535, KILL_WAIT = 10, KILL_WAIT_MAX = 86400 };

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
    for (const struct argp_option *o = options_table; o->name || o->key || o->doc; o++) {
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
    for (const struct argp_option *o = options_table; o->name || o->key || o->doc; o++) {
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

static void list_names(texts *out)
{
    for (const struct argp_option *o = options_table; o->name || o->key || o->doc; o++) {
        if (o->name != NULL)
            texts_add(out, "%s", o->name);
    }
    texts_add(out, "help");
    texts_add(out, "usage");
    texts_add(out, "version");
}

static _Noreturn void unknown(const char *word, size_t length)
{
    char *name = memory_text(word, length);
    texts names = {0};
    list_names(&names);
    const char *near = text_nearest(name, (const char *const *)names.items, names.count);
    if (looks_like_include(word))
        wrong("unknown option '--%s'; did you mean '--include %s'?", word, word);
    if (near != NULL)
        wrong("unknown option '--%s'; did you mean '--%s'?", name, near);
    wrong("unknown option '--%s'; the program's own options come after its name", name);
}

/* torchrun and deepspeed spell options either way: --nproc_per_node is --nproc-per-node. */
static void use_dashes(char *word, size_t length)
{
    for (size_t i = 0; i < length && memchr(word, ':', length) == NULL; i++)
        word[i] = word[i] == '_' ? '-' : word[i];
}

/* Looks at the words before the program, so that unknown ones get a good answer. */
static void check_words(int argc, char **argv)
{
    for (int i = 1; i < argc && argv[i][0] == '-' && strcmp(argv[i], "--") != 0; i++) {
        char *word = argv[i] + 1;
        const struct argp_option *o;
        bool has_value;
        if (*word == '-') {
            word++;
            const size_t length = strcspn(word, "=");
            use_dashes(word, length);
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
    const char *decided = job_decides(name);
    if (decided != NULL)
        wrong("-x %s: %s; leave it out", name, decided);
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
    case KEY_MASTER_ADDR:
        o->master_addr = not_empty("--master-addr", arg);
        break;
    case KEY_MASTER_PORT:
        o->master_port = number("--master-port", arg, 1, PORT_MAX);
        break;
    case 'x':
        add_export(o, arg);
        break;
    case KEY_BIND:
        o->binding = binding(arg);
        break;
    case KEY_BIND_CORES:
        o->binding = BIND_CORE;
        break;
    case KEY_KILL_WAIT:
        o->kill_wait = number("--kill-wait", arg, 0, KILL_WAIT_MAX);
        break;
    case KEY_NO_SSH:
        o->no_ssh = true;
        break;
    case KEY_SSH_PORT:
        o->ssh_port = number("--ssh-port", arg, 1, PORT_MAX);
        break;
    case KEY_REMOTE_RINGRUN:
        o->remote_ringrun = not_empty("--remote-ringrun", arg);
        break;
    case KEY_DRY_RUN:
        o->dry_run = true;
        break;
    case KEY_TAG:
        o->tag_output = true;
        break;
    case KEY_LOGS:
        o->log_dir = not_empty("--enable-each-rank-log", arg);
        break;
    case KEY_MEANT_ANYWAY:
        break;
    case KEY_LAUNCHER:
        if (strcmp(arg, "ssh") != 0)
            wrong("--launcher '%s': other hosts are reached by ssh; leave the option out", arg);
        break;
    default:
        return ARGP_ERR_UNKNOWN;
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
    case 'n':
        o->ranks = number("-n", value_of_n(arg, state), 1, RANKS_MAX);
        break;
    case KEY_PER_NODE:
        o->per_node = per_node(arg);
        break;
    case KEY_NODES:
        o->nodes = nodes(arg);
        break;
    case KEY_NODE_RANK:
        o->node_rank = number("--node-rank", arg, 0, HOSTS_MAX - 1);
        break;
    case 'H':
        o->hosts = not_empty("-H", arg);
        break;
    case KEY_STANDALONE:
        o->hosts = "localhost";
        break;
    case KEY_HOSTFILE:
        o->hostfile = not_empty("--hostfile", arg);
        break;
    case 'i':
    case KEY_INCLUDE:
        o->include = not_empty("--include", arg);
        break;
    case 'e':
    case KEY_EXCLUDE:
        o->exclude = not_empty("--exclude", arg);
        break;
    case ARGP_KEY_ARG:
        take_program(o, state);
        break;
    case ARGP_KEY_NO_ARGS:
        wrong("which program? ringrun -n N PROGRAM [ARGS...]");
    default:
        return parse_how(key, arg, o);
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
        wrong("--no-ssh needs --node-rank: start ringrun on every node, each with its number");
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
    static const struct argp argp = {options_table, parse_option, "PROGRAM [ARGS...]",
                                     options_doc,   NULL,         NULL,
                                     NULL};
    *out = (options){.node_rank = -1, .binding = BIND_AUTO, .kill_wait = KILL_WAIT};
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

/* SPDX-License-Identifier: Apache-2.0
 *
 * ringtrain: trains from a DeepSpeed configuration file. Start one process a rank with
 * ringrun, torchrun, mpirun or srun; alone it trains with one rank.
 */
#include <argp.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "config.h"
#include "train_output.h"
#include "training.h"

enum {
    KEY_CONFIG = 256,
    KEY_DEEPSPEED,
    KEY_DATA,
    KEY_MODEL,
    KEY_LOSS,
    KEY_EPOCHS,
    KEY_MAX_STEPS,
    KEY_SEED,
    KEY_METRICS,
    KEY_DUMP,
    KEY_COMPAT,
    KEY_UNKNOWN,
    KEY_LOCAL_RANK,
    KEY_CONFIG_KEYS
};

enum { CODE_USAGE = 2 };

#define TEXT_OF(value) #value
#define VERSION_TEXT(major, minor, patch) \
    "ringtrain " TEXT_OF(major) "." TEXT_OF(minor) "." TEXT_OF(patch)

/* argp, in libc, looks for it. */
__attribute__((visibility("default")))
const char *argp_program_version = VERSION_TEXT(RING_VERSION_MAJOR, RING_VERSION_MINOR,
                                                RING_VERSION_PATCH);

static const struct argp_option options[] = {
    {"deepspeed_config", KEY_CONFIG, "FILE", 0, "DeepSpeed configuration (JSON)", 1},
    {"deepscale_config", KEY_CONFIG, "FILE", OPTION_ALIAS, NULL, 1},
    {"data", KEY_DATA, "DIR", 0, "folder of MNIST's four files, raw or .gz (RING_DATA)", 1},
    {"model", KEY_MODEL, "NAME", 0, "mlp: 784-256-64-10 with ReLU (default)", 1},
    {"loss", KEY_LOSS, "NAME", 0, "mse on one-hot targets (default) or cross_entropy", 1},
    {"epochs", KEY_EPOCHS, "N", 0,
     "passes over the training set (default 1, or as many as --max-steps takes)", 1},
    {"max-steps", KEY_MAX_STEPS, "N", 0,
     "stop after N updates, or at the end of --epochs if that is given and comes first", 1},
    {"seed", KEY_SEED, "S", 0, "of the initial parameters and the sample order (default 0)", 1},
    {"metrics", KEY_METRICS, "FILE", 0, "write one JSON line an update (rank 0)", 2},
    {"dump-params", KEY_DUMP, "FILE", 0,
     "write the parameters to FILE.RANK at the end, as safetensors", 2},
    {"config-keys", KEY_CONFIG_KEYS, NULL, 0, "print every known configuration key", 2},
    {"compat", KEY_COMPAT, "ds-0.13", 0,
     "DeepSpeed 0.13's ways: no clipping by default, the first update at the optimizer's own rate, "
     "the same sample order in every epoch",
     3},
    {"unknown-keys", KEY_UNKNOWN, "warn|error", 0, "what an unknown key is (default error)", 3},
    {"deepspeed", KEY_DEEPSPEED, "FILE", OPTION_ARG_OPTIONAL,
     "accepted; with FILE as --deepspeed_config", 3},
    {"deepscale", KEY_DEEPSPEED, "FILE", OPTION_ARG_OPTIONAL | OPTION_ALIAS, NULL, 3},
    {"local_rank", KEY_LOCAL_RANK, "N", OPTION_ARG_OPTIONAL, "accepted, no effect", 3},
    {"local-rank", KEY_LOCAL_RANK, "N", OPTION_ARG_OPTIONAL | OPTION_ALIAS, NULL, 3},
    {0},
};

/* Options without their value's "=", whose value may follow as a word of its own. */
typedef struct parse_state {
    run_options run;
    bool config_may_follow, rank_may_follow;
} parse_state;

static unsigned long parse_number(struct argp_state *state, const char *name, const char *text,
                                  unsigned long least, unsigned long most)
{
    char *end;
    errno = 0;
    const unsigned long value = strtoul(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || value < least ||
        value > most)
        argp_error(state, "--%s must be a whole number from %lu to %lu, not %s", name, least, most,
                   text);
    return value;
}

static void parse_loss(struct argp_state *state, const char *name, run_options *run_to)
{
    if (!loss_parse(name, &run_to->loss))
        argp_error(state, "--loss %s is not supported yet: mse or cross_entropy", name);
}

static void require(struct argp_state *state, const char *option, const char *value,
                    const char *only)
{
    if (strcmp(value, only) != 0)
        argp_error(state, "--%s %s is not supported yet: %s", option, value, only);
}

static void parse_unknown(struct argp_state *state, const char *value, run_options *run_to)
{
    run_to->warn_unknown = strcmp(value, "warn") == 0;
    if (!run_to->warn_unknown && strcmp(value, "error") != 0)
        argp_error(state, "--unknown-keys must be warn or error, not %s", value);
}

static void check_local_rank(struct argp_state *state, const char *text)
{
    parse_number(state, "local_rank", text, 0, INT_MAX);
}

/* "--deepspeed FILE" and "--local_rank N", written as two words. */
static error_t parse_word(struct argp_state *state, char *word, parse_state *parse)
{
    if (parse->config_may_follow && parse->run.config_path == NULL)
        parse->run.config_path = word;
    else if (parse->rank_may_follow)
        check_local_rank(state, word);
    else
        argp_error(state, "what is \"%s\"? Everything is given by options", word);
    parse->config_may_follow = parse->rank_may_follow = false;
    return 0;
}

static void check_complete(struct argp_state *state, run_options *run_to)
{
    if (run_to->config_path == NULL)
        argp_error(state, "no configuration: give --deepspeed_config FILE");
    if (run_to->data == NULL)
        run_to->data = getenv("RING_DATA");
    if (run_to->data == NULL || run_to->data[0] == '\0')
        argp_error(state, "no data: give --data DIR or set RING_DATA");
}

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    parse_state *parse = state->input;
    run_options *run_to = &parse->run;
    switch (key) {
    case KEY_CONFIG:
        run_to->config_path = text;
        break;
    case KEY_DEEPSPEED:
        run_to->deepspeed_given = true;
        parse->config_may_follow = text == NULL;
        run_to->config_path = text != NULL ? text : run_to->config_path;
        break;
    case KEY_LOCAL_RANK:
        run_to->local_rank_given = true;
        parse->rank_may_follow = text == NULL;
        if (text != NULL)
            check_local_rank(state, text);
        break;
    case KEY_DATA:
        run_to->data = text;
        break;
    case KEY_MODEL:
        require(state, "model", text, "mlp");
        break;
    case KEY_LOSS:
        parse_loss(state, text, run_to);
        break;
    case KEY_EPOCHS:
        run_to->epochs = (int)parse_number(state, "epochs", text, 1, 1000000);
        break;
    case KEY_MAX_STEPS:
        run_to->max_steps = (long)parse_number(state, "max-steps", text, 1, INT_MAX);
        break;
    case KEY_SEED:
        run_to->seed = parse_number(state, "seed", text, 0, UINT32_MAX);
        break;
    case KEY_METRICS:
        run_to->metrics_path = text;
        break;
    case KEY_DUMP:
        run_to->dump_path = text;
        break;
    case KEY_COMPAT:
        require(state, "compat", text, "ds-0.13");
        run_to->compat_ds_0_13 = true;
        break;
    case KEY_UNKNOWN:
        parse_unknown(state, text, run_to);
        break;
    case KEY_CONFIG_KEYS:
        config_print_keys(stdout);
        exit(EXIT_SUCCESS);
    case ARGP_KEY_ARG:
        return parse_word(state, text, parse);
    case ARGP_KEY_END:
        check_complete(state, run_to);
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

int main(int argc, char **argv)
{
    static const struct argp argp = {
        options,
        parse_option,
        NULL,
        "Trains a network on MNIST as a DeepSpeed configuration says, on as many ranks as the "
        "launcher started: ringrun -n 2 ringtrain --deepspeed_config FILE --data DIR"
        "\vExit status: 0 trained and everything written, 1 failed (configuration, data, training, "
        "output), 2 wrong use.",
        NULL,
        NULL,
        NULL};
    parse_state parse = {.run = {.loss = LOSS_MSE, .started = train_now()}};
    output_check_at_exit();
    argp_err_exit_status = CODE_USAGE;
    argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &parse);
    return run(&parse.run);
}

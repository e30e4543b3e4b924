/* SPDX-License-Identifier: Apache-2.0
 * Holds a table of the options of other trainers' scripts and launchers, each with the advice that
 * ringtrain prints for it. */
#include "foreign.h"

#include <string.h>
#include <strings.h>

#include "args.h"

#define COMMAND "ringrun -n 2 ringtrain --deepspeed_config FILE --data DIR"
#define LAUNCHER "ringrun starts the ranks: "
#define PLATFORM "it is an option of a platform for jobs; start ranks with ringrun"
#define IN_FILE "set it in the configuration: "

static const struct {
    const char *name, *instead;
} options[] = {
    {"module", "ringtrain is a program and does not run Python modules; write " COMMAND},
    {"num-gpus", LAUNCHER "ringrun --num_gpus N ringtrain …"},
    {"num-nodes", LAUNCHER "ringrun --num_nodes N ringtrain …"},
    {"nproc-per-node", LAUNCHER "ringrun --nproc_per_node N ringtrain …"},
    {"nnodes", LAUNCHER "ringrun --nnodes N ringtrain …"},
    {"hostfile", LAUNCHER "ringrun --hostfile FILE ringtrain …"},
    {"include", LAUNCHER "ringrun --include HOST:SLOTS ringtrain …"},
    {"exclude", LAUNCHER "ringrun --exclude HOST:SLOTS ringtrain …"},
    {"master-addr", LAUNCHER "ringrun --master_addr ADDR ringtrain …"},
    {"master-port", LAUNCHER "ringrun --master_port PORT ringtrain …"},
    {"no-local-rank", LAUNCHER "ringrun --no_local_rank ringtrain …"},
    {"no-python", LAUNCHER "ringrun --no_python ringtrain …"},
    {"lr", IN_FILE "optimizer.params.lr"},
    {"momentum", IN_FILE "optimizer.params.momentum"},
    {"weight-decay", IN_FILE "optimizer.params.weight_decay"},
    {"wd", IN_FILE "optimizer.params.weight_decay"},
    {"gradient-accumulation-steps", IN_FILE "gradient_accumulation_steps"},
    {"accum-iter", IN_FILE "gradient_accumulation_steps"},
    {"stage", IN_FILE "zero_optimization.stage"},
    {"log-interval", IN_FILE "steps_per_print"},
    {"name", PLATFORM},
    {"file", PLATFORM},
    {"queue-time", PLATFORM},
    {"nohup", PLATFORM},
    {"with-cuda", "ranks run on CPUs; leave it out"},
    {"use-ema", "ringtrain keeps no moving average of the parameters; leave it out"},
};

/* @return true if @p word, up to its "=", is @p name. A "_" in the word matches a "-". */
static bool is_called(const char *word, const char *name)
{
    while (*name != '\0' && (*word == *name || (*word == '_' && *name == '-'))) {
        word++;
        name++;
    }
    return *name == '\0' && (*word == '\0' || *word == '=');
}

void foreign_option(const char *word)
{
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        if (is_called(word, options[i].name))
            args_fail("unknown option '--%s'; %s", word, options[i].instead);
    }
}

static bool ends_in(const char *word, const char *end)
{
    const size_t length = strlen(word), tail = strlen(end);
    return length > tail && strcasecmp(word + length - tail, end) == 0;
}

static bool is_yaml(const char *word)
{
    return ends_in(word, ".yml") || ends_in(word, ".yaml");
}

void foreign_word(const char *word)
{
    if (ends_in(word, ".py"))
        args_fail("%s is a Python script, but ringtrain does not run scripts; write " COMMAND,
                  word);
    if (is_yaml(word))
        args_fail("%s: ringtrain does not read the files of gpt-neox; give a DeepSpeed file with "
                  "--deepspeed_config or accelerate's YAML file with --config_file, and a network "
                  "with --model",
                  word);
}

void foreign_config(const char *option, const char *path)
{
    if (is_yaml(path))
        args_fail("%s %s: a DeepSpeed file is JSON, not YAML; give accelerate's YAML file with "
                  "--config_file, and replace a gpt-neox file by a DeepSpeed file and a network "
                  "(--model)",
                  option, path);
}

/* SPDX-License-Identifier: Apache-2.0
 * A table of the options that scripts and launchers have. */
#include "foreign.h"

#include <string.h>
#include <strings.h>

#include "args.h"

#define COMMAND "ringrun -n 2 ringtrain --deepspeed_config FILE --data DIR"
#define LAUNCHER "how many ranks run where is ringrun's: "
#define PLATFORM "it is the platform's; start ranks by ringrun"
#define IN_FILE "set it in the configuration: "

static const struct {
    const char *name, *instead;
} options[] = {
    {"module", "ringtrain is a program, and Python modules do not run in it; write " COMMAND},
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
    {"use-ema", "no average of the parameters is kept; leave it out"},
};

static bool same_letter(char a, char b)
{
    return a == b || (a == '_' && b == '-');
}

static bool is_called(const char *word, const char *name)
{
    while (*name != '\0' && same_letter(*word, *name)) {
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
        args_fail("%s is a Python script, and ringtrain trains by itself; write " COMMAND, word);
    if (is_yaml(word))
        args_fail("%s: gpt-neox's model family is not here; give a DeepSpeed file by "
                  "--deepspeed_config, accelerate's YAML by --config_file, a network by --model",
                  word);
}

void foreign_config(const char *option, const char *path)
{
    if (is_yaml(path))
        args_fail("%s %s: YAML is no DeepSpeed file; accelerate's is given by --config_file, "
                  "gpt-neox's is of a model family that is not here: give a DeepSpeed file and a "
                  "network by --model",
                  option, path);
}

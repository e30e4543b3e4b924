/* SPDX-License-Identifier: Apache-2.0
 * The grammar of configuration files, every kind of error with its exact text, the notes. */
#include "check.h"
#include "parsing.h"

#include <errors.h>
#include <keys.h>
#include <stdio.h>
#include <stdlib.h>

#define SGD "\"optimizer\": {\"type\": \"SGD\"}"

static void a_seed_configuration_is_read_as_it_stands(void **state)
{
    (void)state;
    static const char text[] =
        "{\n  \"train_micro_batch_size_per_gpu\": 64,\n  \"gradient_accumulation_steps\": 1,\n"
        "  \"optimizer\": {\"type\": \"SGD\", \"params\": {\"lr\": 0.01}},\n"
        "  \"scheduler\": {\"type\": \"WarmupDecayLR\", \"params\": {\"total_num_steps\": 9000,\n"
        "    \"warmup_min_lr\": 0.0001, \"warmup_max_lr\": 0.1, \"warmup_num_steps\": 1000,\n"
        "    \"warmup_type\": \"linear\", \"last_batch_iteration\": -1}},\n"
        "  \"steps_per_print\": 100,\n  \"fp16\": {\"enabled\": false}\n}\n";
    const parsed got = parse(text);
    assert_int_equal(got.status, RING_OK);
    assert_string_equal(got.notes, "");
    assert_int_equal(got.config.micro_batch, 64);
    assert_int_equal(got.config.accumulation, 1);
    assert_int_equal(got.config.optimizer.kind, OPTIMIZER_SGD);
    assert_near(got.config.optimizer.lr, 0.01, 0, 0);
    assert_int_equal(got.config.schedule.kind, SCHEDULE_WARMUP_DECAY);
    assert_int_equal(got.config.schedule.total_steps, 9000);
    assert_int_equal(got.config.schedule.warmup_steps, 1000);
    assert_true(got.config.schedule.linear);
    assert_near(got.config.schedule.max_lr, 0.1, 0, 0);
    assert_int_equal(got.config.steps_per_print, 100);
    assert_near(got.config.gradient_clipping, 1.0, 0, 0);
}

static void absent_keys_take_deepspeeds_defaults(void **state)
{
    (void)state;
    const parsed got = parse(
        "{\"optimizer\": {\"type\": \"AdamW\"}, \"scheduler\": {\"type\": \"WarmupLR\"}}");
    assert_int_equal(got.status, RING_OK);
    assert_near(got.config.optimizer.lr, 1e-3, 0, 0);
    assert_near(got.config.optimizer.betas[0], 0.9, 0, 0);
    assert_near(got.config.optimizer.betas[1], 0.999, 0, 0);
    assert_near(got.config.optimizer.eps, 1e-8, 0, 0);
    assert_near(got.config.optimizer.weight_decay, 0, 0, 0);
    assert_true(got.config.optimizer.bias_correction);
    assert_near(got.config.schedule.min_lr, 0, 0, 0);
    assert_near(got.config.schedule.max_lr, 1e-3, 0, 0);
    assert_int_equal(got.config.schedule.warmup_steps, 1000);
    assert_false(got.config.schedule.linear);
    assert_int_equal(got.config.schedule.last_iteration, -1);
    assert_int_equal(got.config.steps_per_print, 0); /* four times an epoch */
}

/* As Hugging Face's users write it. */
static void auto_is_what_front_ends_fill_in(void **state)
{
    (void)state;
    const parsed got = parse("{\"fp16\": {\"enabled\": \"auto\", \"loss_scale\": 0},\n"
                             "\"gradient_accumulation_steps\": \"auto\",\n"
                             "\"gradient_clipping\": \"auto\",\n\"train_batch_size\": \"auto\",\n"
                             "\"train_micro_batch_size_per_gpu\": 2}");
    assert_int_equal(got.status, RING_OK);
    assert_int_equal(got.config.micro_batch, 2);
    assert_int_equal(got.config.accumulation, 1);
    assert_int_equal(got.config.train_batch, 0);
    assert_near(got.config.gradient_clipping, 1, 0, 0);
    assert_int_equal(got.config.optimizer.kind, OPTIMIZER_ADAMW);
    assert_near(got.config.optimizer.lr, 2e-4, 0, 0);
    assert_near(got.config.optimizer.betas[1], 0.99, 0, 0);
    assert_int_equal(got.config.schedule.kind, SCHEDULE_CONSTANT);
    static const char *const notes[] = {
        "fp16.enabled: auto -> false\n", "gradient_accumulation_steps: auto -> 1\n",
        "gradient_clipping: auto -> 1.0\n",
        "no optimizer, in a file with \"auto\": AdamW with lr 2e-4, betas 0.9 and 0.99, no weight "
        "decay, no schedule\n"};
    for (size_t i = 0; i < COUNT_OF(notes); i++)
        assert_non_null(strstr(got.notes, notes[i]));
    const parsed own = parse("{" SGD ", \"train_batch_size\": \"auto\"}");
    assert_int_equal(own.status, RING_OK);
    assert_int_equal(own.config.optimizer.kind, OPTIMIZER_SGD);
}

/* Values that depend on ranks, network and data; the network's hidden size is 256. */
static void auto_is_filled_in_when_more_is_known(void **state)
{
    (void)state;
    parsed got = parse("{\"zero_optimization\": {\"reduce_bucket_size\": \"auto\", "
                       "\"stage3_prefetch_bucket_size\": \"auto\", "
                       "\"stage3_param_persistence_threshold\": \"auto\"}, "
                       "\"scheduler\": {\"type\": \"WarmupDecayLR\", \"params\": "
                       "{\"total_num_steps\": \"auto\"}}, " SGD ", "
                       "\"train_micro_batch_size_per_gpu\": 2, \"train_batch_size\": \"auto\"}");
    assert_int_equal(got.status, RING_OK);
    assert_string_equal(got.notes, "");
    assert_int_equal(config_resolve_batch(&got.config, 3, "ringrun", BATCH_EXACT), RING_OK);
    config_fill_automatic(&got.config, &(automatic_facts){.width = 256}, keep_note, &got);
    assert_string_equal(got.notes,
                        "train_batch_size: auto -> 6\n"
                        "zero_optimization.reduce_bucket_size: auto -> 65536\n"
                        "zero_optimization.stage3_prefetch_bucket_size: auto -> 58982\n"
                        "zero_optimization.stage3_param_persistence_threshold: auto -> 2560\n");
    assert_int_equal(got.config.reduce_bucket_size, 65536);
    assert_string_equal(config_open_automatic(&got.config), "scheduler.params.total_num_steps");
    got.notes[0] = '\0';
    config_fill_automatic(&got.config, &(automatic_facts){.width = 256, .updates = 70}, keep_note,
                          &got);
    assert_string_equal(got.notes, "scheduler.params.total_num_steps: auto -> 70\n");
    assert_int_equal(got.config.schedule.total_steps, 70);
    assert_null(config_open_automatic(&got.config));
}

#define WARMUP(params) "\"scheduler\": {\"type\": \"WarmupLR\", \"params\": {" params "}}"

/* Hugging Face's Trainer has one rate for both; DeepSpeed's schedules warm up for 2 updates at
 * least. */
static void an_automatic_schedule_follows_the_optimizer(void **state)
{
    (void)state;
    static const char schedule[] = WARMUP("\"warmup_min_lr\": \"auto\", "
                                          "\"warmup_max_lr\": \"auto\", \"warmup_type\": \"auto\", "
                                          "\"warmup_num_steps\": \"auto\"");
    static const struct {
        const char *optimizer;
        double rate;
    } cases[] = {
        {"\"optimizer\": {\"type\": \"SGD\", \"params\": {\"lr\": 0.25}}", 0.25},
        {"\"optimizer\": {\"type\": \"AdamW\", \"params\": {\"lr\": \"auto\"}}", 2e-4},
        {"\"optimizer\": {\"type\": \"AdamW\"}", 1e-3},
        {"\"steps_per_print\": 1", 2e-4},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char text[400];
        snprintf(text, sizeof text, "{%s, %s}", schedule, cases[i].optimizer);
        const parsed got = parse(text);
        assert_int_equal(got.status, RING_OK);
        assert_near(got.config.schedule.max_lr, cases[i].rate, 0, 0);
        assert_near(got.config.schedule.min_lr, 0, 0, 0);
        assert_int_equal(got.config.schedule.warmup_steps, 2);
        assert_false(got.config.schedule.linear);
        assert_non_null(strstr(got.notes, "scheduler.params.warmup_type: auto -> log\n"));
        assert_non_null(strstr(got.notes, "scheduler.params.warmup_max_lr: auto -> "));
    }
    assert_int_equal(parse("{" SGD ", \"scheduler\": {\"type\": \"OneCycle\", \"params\": "
                           "{\"cycle_min_lr\": 1, \"cycle_max_lr\": 2, "
                           "\"warmup_max_lr\": \"auto\"}}}")
                         .status,
                     RING_ERR_CONFIG);
    assert_non_null(strstr(train_error(), "OneCycle has no parameter \"warmup_max_lr\""));
}

/* DeepSpeed leaves such keys out. */
static void auto_in_some_sections_is_the_default(void **state)
{
    (void)state;
    const parsed got = parse(
        "{" SGD ", \"zero_optimization\": {\"stage\": \"auto\", \"overlap_comm\": \"auto\", "
        "\"offload_param\": {\"device\": \"auto\", \"nvme_path\": \"auto\"}, "
        "\"zero_quantized_weights\": \"auto\", \"sub_group_size\": \"auto\", "
        "\"round_robin_gradients\": \"auto\"}, \"fp16\": {\"hysteresis\": \"auto\"}}");
    assert_int_equal(got.status, RING_OK);
    assert_string_equal(
        got.notes,
        "zero_optimization.stage: auto -> 0\n"
        "zero_optimization.overlap_comm: auto -> true\n"
        "zero_optimization.offload_param.device: auto -> none\n"
        "zero_optimization.offload_param.nvme_path: auto -> none\n"
        "zero_optimization.zero_quantized_weights: auto -> false\n"
        "zero_optimization.sub_group_size: auto -> 1e9\n"
        "zero_optimization.round_robin_gradients: auto -> its default, which has no effect here: "
        "every rank owns a part of each bucket\n"
        "fp16.hysteresis: auto -> 2\n");
    assert_int_equal(got.config.zero_stage, 0);
    assert_true(got.config.overlap_comm);
    assert_int_equal(got.config.precision.set.hysteresis, 2);
    const parsed own = parse("{\"data_partition\": \"auto\"}"); /* brings no optimizer */
    assert_int_equal(own.status, RING_ERR_CONFIG);
    assert_string_equal(own.notes, "data_partition: auto -> in proportion to the micro-batches\n");
}

#define TYPE(name, params) "{\"optimizer\": {\"type\": \"" name "\", \"params\": {" params "}}}"

static void optimizers_have_defaults_of_their_own(void **state)
{
    (void)state;
    const parsed lion = parse(TYPE("lion", "")), adagrad = parse(TYPE("Adagrad", "\"lr\": null"));
    assert_int_equal(lion.config.optimizer.kind, OPTIMIZER_LION);
    assert_near(lion.config.optimizer.betas[0], 0.9, 0, 0);
    assert_near(lion.config.optimizer.betas[1], 0.99, 0, 0);
    assert_int_equal(adagrad.config.optimizer.kind, OPTIMIZER_ADAGRAD);
    assert_near(adagrad.config.optimizer.lr, 0.01, 0, 0);
    assert_near(adagrad.config.optimizer.eps, 1e-10, 0, 0);
    const parsed given = parse(TYPE("Lion", "\"betas\": [0.5, 0.6]"));
    assert_near(given.config.optimizer.betas[1], 0.6, 0, 0);
    const parsed own = parse(TYPE("Adagrad", "\"lr\": 0.5, \"eps\": 1e-3, \"lr_decay\": 0.25, "
                                             "\"initial_accumulator_value\": 2"));
    assert_near(own.config.optimizer.lr, 0.5, 0, 0);
    assert_near(own.config.optimizer.eps, 1e-3, 0, 0);
    assert_near(own.config.optimizer.lr_decay, 0.25, 0, 0);
    assert_near(own.config.optimizer.first_sum, 2, 0, 0);
    assert_int_not_equal(parse(TYPE("Lion", "\"eps\": 1")).status, RING_OK);
    assert_string_equal(train_error(), "c.json:1:43: Lion has no parameter \"eps\"; leave it out");
}

static void parameter_groups_are_one_or_two(void **state)
{
    (void)state;
#define GROUPS(name) "{\"optimizer\": {\"type\": \"SGD\", \"param_groups\": \"" name "\"}}"
    const parsed none = parse("{" SGD "}");
    assert_int_equal(optimizer_groups(&none.config.optimizer), 1);
    const parsed one = parse(GROUPS("one")), two = parse(GROUPS("no_decay_embeddings"));
    assert_int_equal(optimizer_groups(&one.config.optimizer), 1);
    assert_int_equal(optimizer_groups(&two.config.optimizer), 2);
    assert_int_not_equal(parse(GROUPS("no_bias")).status, RING_OK);
    assert_string_equal(train_error(),
                        "c.json:1:31: optimizer.param_groups \"no_bias\" is not supported yet by "
                        "this version: write one of one, no_decay, no_decay_embeddings");
}

static void compat_0_13_does_not_clip_unless_told(void **state)
{
    (void)state;
    const config_options compat = {.compat_ds_0_13 = true};
    assert_near(parse_with("{" SGD "}", compat).config.gradient_clipping, 0, 0, 0);
    assert_near(
        parse_with("{" SGD ", \"gradient_clipping\": 0.5}", compat).config.gradient_clipping, 0.5,
        0, 0);
}

static void lenient_spellings_are_read(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "{" SGD ", \"train_batch_size\": 5e2}",
        "{" SGD ", // rest of line\n \"train_batch_size\": 500.0}",
        "{" SGD ", # rest of line\n \"train_batch_size\": 500,}",
        "{" SGD ", /* , } \" */ \"train_batch_size\": 500, /* last */ }",
        "{optimizer: {type: \"sgd\", params: {},}, train_batch_size: 500}",
        "\xef\xbb\xbf{" SGD ", \"train_batch_size\": 500}",
        "{" SGD ",\r\n\t\"train_batch_size\"\n:\n500\n}\n\n",
        "{" SGD ", \"train_batch_size\": 500, \"scheduler\": null}",
        /* Hjson */
        "{\n  optimizer: {\n    type: sgd  \n    params: {}\n  }\n  train_batch_size: 500\n}",
        "optimizer: {\n type: SGD\r\n}\r\ntrain_batch_size: 500 # samples\r\n",
        "# a file\n\"train_batch_size\": 500\n" SGD,
        "'train_batch_size': 500, 'optimizer': {'type': 'SGD'},",
        "{" SGD "\ntrain_batch_size: 500\nzero_optimization: {offload_optimizer: {\n"
        "nvme_path: /fast disk/'\"\\\n device: none\n}}}",
        "{" SGD ", train_batch_size: 500\ntensorboard: {job_name: 'it\\'s \"x\" \\u00e9'}}",
        "{train_batch_size: 5e2/* */, " SGD "\n, wandb: {\n team: null and void\n}}",
        "{train_batch_size: 500\n" SGD "\ndata_partition: [\n1\n2\n]}",
    };
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        const parsed got = parse(texts[i]);
        if (got.status != RING_OK)
            fail_msg("%s\n%s", texts[i], train_error());
        assert_int_equal(got.config.train_batch, 500);
        assert_int_equal(got.config.optimizer.kind, OPTIMIZER_SGD);
    }
    assert_string_equal(parse(texts[12]).config.offload.states.nvme_path, "/fast disk/'\"\\");
    assert_string_equal(parse(texts[13]).config.tensorboard.job_name, "it's \"x\" \xc3\xa9");
    assert_string_equal(parse(texts[14]).config.wandb.team, "null and void");
}

static void a_configuration_may_stand_for_its_file(void **state)
{
    (void)state;
    static const config_options options = {0};
    train_config config;
    /* {"train_batch_size": 500, "optimizer": {"type": "SGD"}, "wandb": {"team": "ÿ>?"}} */
    static const char *const words[] = {
        "eyJ0cmFpbl9iYXRjaF9zaXplIjogNTAwLCAib3B0aW1pemVyIjogeyJ0eXBlIjogIlNHRCJ9LCAid2FuZGIiOiB7"
        "InRlYW0iOiAiw78+PyJ9fQ==",
        "eyJ0cmFpbl9iYXRjaF9zaXplIjogNTAwLCAib3B0aW1pemVyIjogeyJ0eXBlIjogIlNHRCJ9LCAid2FuZGIiOiB7"
        "InRlYW0iOiAiw78-PyJ9fQ=="};
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        if (config_read(words[i], &options, NULL, NULL, &config) != RING_OK)
            fail_msg("%s", train_error());
        assert_int_equal(config.train_batch, 500);
        assert_string_equal(config.wandb.team, "\xc3\xbf>?");
    }
    /* {"lr": 1} */
    assert_int_equal(config_read("eyJsciI6IDF9", &options, NULL, NULL, &config), RING_ERR_CONFIG);
    assert_non_null(strstr(train_error(), "configuration in base64:1:2: unknown key \"lr\""));
    /* a list, and no base64 */
    assert_int_equal(config_read("WzFd", &options, NULL, NULL, &config), RING_ERR_SYSTEM);
    assert_int_equal(config_read("deeps.json", &options, NULL, NULL, &config), RING_ERR_SYSTEM);
    assert_string_equal(train_error(), "deeps.json: No such file or directory");
}

#define IGNORE " (to ignore it: --unknown-keys=warn)"

static const struct {
    const char *text, *error;
} wrong[] = {
    /* grammar, with line and column */
    {"", "c.json:1:1: the file is empty; write { … }"},
    {"[]", "c.json:1:1: the file must hold one object: { … }"},
    {"{" SGD, "c.json:1:30: the file ends too early: a } or ] is missing"},
    {"{\n  \"a\": 1 \"b\": 2\n}", "c.json:2:10: a comma is missing before this"},
    {"{\n  \"a\"\n  \"b\": 2\n}", "c.json:3:3: `\"` is not expected here"},
    {"{\"optimizer\": {\"type\": SGD, \"params\": {}}}",
     "c.json:1:24: `SGD` is no number, true, false or null; put a text in quotes"},
    {"{\"dump_state\": True,\n" SGD "}",
     "c.json:1:2: dump_state must be true or false\n"
     "c.json:1:16: `True` is no number, true, false or null; put a text in quotes\n"
     "c.json: 2 errors"},
    {"{" SGD ", wandb: {team: '''a\n'''}}",
     "c.json:1:46: no value has several lines; write it between \" and \""},
    {"{" SGD ", 'x: 1}", "c.json:1:32: this text has no closing quote on its line"},
    {" \n# nothing\n", "c.json:1:1: the file is empty; write { … }"},
    {"a: [1\n", "c.json:2:1: the file ends too early: a } or ] is missing"},
    {"a: 1\n it\n", "c.json:2:2: `i` is not expected here"},
    {"{\"a: 1, \"b\": 2}", "c.json:1:11: this text has no closing quote on its line"},
    {"{'a': 'it\\'s \"x\" \\q'}", "c.json:1:18: `\\` is not expected here"},
    {"{a: [1, [2], 3, \x1b]}", "c.json:1:17: this character is not expected here"},
    {"a: 1}", "c.json:1:5: a } too many, or the { at the start is missing"},
    {"{" SGD ", dump_state: \x1b[2J,}",
     "c.json:1:32: dump_state must be true or false\n"
     "c.json:1:44: `…` is no number, true, false or null; put a text in quotes\n"
     "c.json: 2 errors"},
    {"{\n  # note\n  b: 1 /* x */ c: 2}", "c.json:3:16: a comma is missing before this"},
    {"{\"steps_per_print\": }", "c.json:1:21: `}` is not expected here"},
    {"{\"steps_per_print: 1}", "c.json:1:2: this text has no closing quote on its line"},
    {"{} /* open", "c.json:1:4: this comment is never closed"},
    {"{\"a\": \xc3\xa9}",
     "c.json:1:2: unknown key \"a\" (to ignore it: --unknown-keys=warn)\n"
     "c.json:1:7: `…` is no number, true, false or null; put a text in quotes\n"
     "c.json: no optimizer; add \"optimizer\": {\"type\": \"SGD\", \"params\": {\"lr\": 0.01}} (or "
     "Adam, AdamW, Lion, Adagrad)\nc.json: 3 errors"},
    {"{\"a\": [\xc3\xa9]}", "c.json:1:8: this character is not expected here"},
    {"{\n\"fp16\": {\"enabled\": false},\n\"fp16\": {},\n" SGD "}",
     "c.json:3:1: \"fp16\" is given twice; keep one"},
    {"{\"optimizer\": {\"type\": \"SGD\", \"type\": \"Adam\"}}",
     "c.json:1:31: \"optimizer.type\" is given twice; keep one"},
    {"{\"zero_optimization\": {\n  \"stage\": [0|1|2|3]\n}, " SGD "}",
     "c.json:2:12: `[0|1|2|3]` is the manual's list of choices; write one of 0, 1, 2, 3"},
    {"{\"timers\": {\"device\": \"[cpu|nvme]\"}, " SGD "}",
     "c.json:1:24: `[cpu|nvme]` is the manual's list of choices; write one of cpu, nvme"},
    /* unknown keys */
    {"{" SGD ",\n \"bp16\": {\"enabled\": true, \"deeper\": {\"x\": 1}}}",
     "c.json:2:2: unknown key \"bp16\"; did you mean \"bf16\"?" IGNORE},
    {"{" SGD ", \"bf16\": {\"enable\": true}}",
     "c.json:1:41: unknown key \"bf16.enable\"; did you mean \"bf16.enabled\"?" IGNORE},
    {"{" SGD ", \"lr\": 1}",
     "c.json:1:32: unknown key \"lr\"; did you mean \"optimizer.params.lr\"?" IGNORE},
    {"{\"optimizer\": {\"type\": \"SGD\", \"params\": {\"momentun\": 0.9}}}",
     "c.json:1:42: unknown key \"optimizer.params.momentun\"; did you mean "
     "\"optimizer.params.momentum\"?" IGNORE},
    {"{" SGD ", \"completely different\": 1}",
     "c.json:1:32: unknown key \"completely different\"" IGNORE},
    {"{\"optimizer.type\": \"SGD\", " SGD "}",
     "c.json:1:2: unknown key \"optimizer.type\"; sections are nested: { … { … } }"},
    /* values */
    {"{" SGD ", \"train_batch_size\": 1.5}",
     "c.json:1:32: train_batch_size must be a whole number, not 1.5"},
    {"{" SGD ", \"train_batch_size\": 0}",
     "c.json:1:32: train_batch_size must be at least 1, not 0"},
    {"{" SGD ", \"train_batch_size\": 1e30}",
     "c.json:1:32: train_batch_size must be at most 2.14748e+09, not 1e+30"},
    {"{" SGD ", \"train_batch_size\": \"64\"}",
     "c.json:1:32: train_batch_size must be a whole number"},
    {"{" SGD ", \"train_batch_size\": [30, 20]}",
     "c.json:1:32: train_batch_size must be a whole number"},
    {"{" SGD ", \"gradient_clipping\": 1e999}", "c.json:1:32: gradient_clipping must be finite"},
    {"{" SGD ", \"dump_state\": 1}", "c.json:1:32: dump_state must be true or false"},
    {"{\"optimizer\": 3}", "c.json:1:2: optimizer must be a section: { … }"},
    {"{\"optimizer\": {\"type\": \"Adam\", \"params\": {\"betas\": [0.9, 1.0]}}}",
     "c.json:1:43: optimizer.params.betas must hold two numbers that are at least 0 and below 1"},
    {"{\"optimizer\": {\"type\": \"Adam\", \"params\": {\"betas\": [0.9]}}}",
     "c.json:1:43: optimizer.params.betas must be a list of two numbers"},
    {"{\"optimizer\": {\"type\": 7}}",
     "c.json:1:16: optimizer.type must be one of SGD, Adam, AdamW, Lion, Adagrad"},
    /* what belongs together */
    {"{}", "c.json: no optimizer; add \"optimizer\": {\"type\": \"SGD\", \"params\": {\"lr\": "
           "0.01}} (or Adam, AdamW, Lion, Adagrad)"},
    {"{\"optimizer\": {\"params\": {}}}",
     "c.json: no optimizer; add \"optimizer\": {\"type\": "
     "\"SGD\", \"params\": {\"lr\": 0.01}} (or Adam, AdamW, Lion, Adagrad)"},
    {"{\"optimizer\": {\"type\": \"SGD\", \"params\": {\"betas\": [0.9, 0.99]}}}",
     "c.json:1:42: SGD has no parameter \"betas\"; leave it out"},
    {"{\"optimizer\": {\"params\": {\"momentum\": 1}, \"type\": \"AdamW\"}}",
     "c.json:1:27: AdamW has no parameter \"momentum\"; leave it out"},
    {"{\"optimizer\": {\"type\": \"SGD\", \"params\": {\"nesterov\": true}}}",
     "c.json: nesterov needs a momentum and no dampening"},
    {"{\"optimizer\": {\"type\": \"SGD\", \"no_decay_lr\": 0.1}}",
     "c.json: optimizer.no_decay_lr is of a second group; write \"param_groups\": \"no_decay\" "
     "beside it"},
    {"{" SGD ", \"scheduler\": {}}",
     "c.json:1:32: scheduler has no type; add \"type\": \"WarmupDecayLR\" or another: "
     "--config-keys lists them"},
    {"{" SGD ", \"scheduler\": {\"type\": \"WarmupDecayLR\"}}",
     "c.json:1:32: WarmupDecayLR needs scheduler.params.total_num_steps"},
    {"{" SGD ", \"scheduler\": {\"type\": \"WarmupDecayLR\", \"params\": {\"total_num_steps\": 9, "
     "\"warmup_num_steps\": 0}}}",
     "c.json:1:104: scheduler.params.warmup_num_steps must be at least 1, not 0"},
    {"{" SGD ", \"fp16\": {\"enabled\": true}, \"bf16\": {\"enabled\": true}}",
     "c.json:1:68: bfloat16 and fp16 modes cannot be simultaneously enabled"},
    /* good in DeepSpeed, not here yet */
    {"{" SGD ", \"zero_optimization\": {\"stage\": 4}}",
     "c.json:1:54: zero_optimization.stage must be at most 3, not 4"},
    {"{" SGD ", \"pipeline\": {\"stages\": 4, \"params\": {\"num_stages\": 2}}}",
     "c.json:1:69: pipeline.params.num_stages is 2, but pipeline.stages 4; leave one out"},
    {"{" SGD ", \"pipeline\": {\"partition\": \"profile\"}}",
     "c.json:1:45: pipeline.partition \"profile\" is not supported yet by this version: write one "
     "of parameters, uniform, type:REGEX"},
    {"{" SGD ", \"pipeline\": {\"partition\": 2}}",
     "c.json:1:45: pipeline.partition must be a text"},
    {"{" SGD ", \"pipeline\": {\"activation_checkpoint_interval\": -1}}",
     "c.json:1:45: pipeline.activation_checkpoint_interval must be at least 0, not -1"},
    {"{" SGD ", \"zero_optimization\": {\"zero_quantized_weights\": true}}",
     "c.json:1:54: zero_optimization.zero_quantized_weights = true is not supported yet by this "
     "version: set it to false: communication_data_type has 16 bits, no fewer"},
    {"{" SGD ", \"zero_optimization\": {\"mics_shard_size\": 2}}",
     "c.json:1:54: zero_optimization.mics_shard_size = 2 is not supported yet by this version: set "
     "it to -1"},
    {"{" SGD ", \"gradient_allreduce_op\": \"sum\"}",
     "c.json:1:32: gradient_allreduce_op = sum is not supported yet by this version: gradients are "
     "averaged"},
    {"{" SGD ", \"steps_per_print\": \"auto\"}",
     "c.json:1:32: steps_per_print = auto: no front end fills that in; write a value"},
    {"{\"optimizer\": {\"type\": \"fusedadam\"}}",
     "c.json:1:16: optimizer.type \"fusedadam\" is a class of DeepSpeed's; write Adam"},
    {"{\"optimizer\": {\"type\": \"DeepSpeedCPUAdagrad\"}}",
     "c.json:1:16: optimizer.type \"DeepSpeedCPUAdagrad\" is a class of DeepSpeed's; write "
     "Adagrad"},
    {"{\"optimizer\": {\"type\": \"Lamb\"}}",
     "c.json:1:16: optimizer.type \"Lamb\" is not supported yet by this version: write one of SGD, "
     "Adam, AdamW, Lion, Adagrad"},
    {"{\"optimizer\": {\"type\": \"Adam\", \"params\": {\"max_grad_norm\": 1}}}",
     "c.json:1:43: optimizer.params.max_grad_norm = 1 is not supported yet by this version: as in "
     "DeepSpeed, clip by the key gradient_clipping"},
    {"{\"\\u001b[2J\\u009b\\n\": 1, " SGD "}",
     "c.json:1:2: unknown key \"?[2J???\" (to ignore it: --unknown-keys=warn)"},
};

static void what_is_wrong_is_named_with_its_place(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        assert_int_not_equal(parse(wrong[i].text).status, RING_OK);
        assert_string_equal(train_error(), wrong[i].error);
    }
}

static void arguments_of_the_sampler_are_keys(void **state)
{
    (void)state;
    const parsed none = parse("{" SGD "}");
    assert_true(none.config.sampler_shuffle);
    assert_false(none.config.sampler_drop_last);
    const parsed both = parse("{" SGD ", sampler_shuffle: false, sampler_drop_last: true}");
    assert_false(both.config.sampler_shuffle);
    assert_true(both.config.sampler_drop_last);
    assert_string_equal(both.notes, "");
    const parsed shares = parse("{" SGD ", sampler_drop_last: true, data_split: \"contiguous\"}");
    assert_string_equal(shares.notes,
                        "sampler_drop_last has no effect here: no sample is repeated where ranks "
                        "have shares of their own\n");
}

/* The block of a tutorial, whose number DeepSpeed would not read. */
static void stages_are_taken_from_the_parameters_too(void **state)
{
    (void)state;
    const parsed simple = parse("{" SGD ", pipeline: {type: \"simple\", params: {num_stages: 2}}}");
    assert_int_equal(simple.status, RING_OK);
    assert_int_equal(simple.config.pipeline.stages, 2);
    assert_string_equal(simple.notes,
                        "pipeline.type has no effect here: there is one kind of pipeline\n"
                        "pipeline.params.num_stages is taken as pipeline.stages; DeepSpeed ignores "
                        "it\n");
    const parsed none = parse("{" SGD "}");
    assert_int_equal(none.config.pipeline.stages, 1);
    assert_string_equal(none.config.pipeline.partition, "best");
    const parsed automatic = parse("{" SGD ", pipeline: {stages: \"auto\", partition: "
                                   "\"type:conv|linear\"}}");
    assert_int_equal(automatic.status, RING_OK);
    assert_int_equal(automatic.config.pipeline.stages, 1);
    assert_string_equal(automatic.config.pipeline.partition, "type:conv|linear");
}

static void stages_must_go_with_ranks_and_zero(void **state)
{
    (void)state;
    parsed got = parse("{" SGD ", pipeline: {stages: 2}}");
    assert_int_equal(config_resolve_stages(&got.config, 0, 4, "ringrun"), RING_OK);
    assert_int_equal(config_resolve_stages(&got.config, 0, 3, "ringrun"), RING_ERR_CONFIG);
    assert_string_equal(train_error(),
                        "2 pipeline stages do not divide 3 ranks (from ringrun); start 2 or 4 "
                        "ranks, or take other stages (pipeline.stages, --pipeline-parallel-size)");
    assert_int_equal(config_resolve_stages(&got.config, 3, 3, "ringrun"), RING_OK);
    assert_int_equal(got.config.pipeline.stages, 3);
    parsed zero = parse("{" SGD ", zero_optimization: {stage: 2}}");
    assert_int_equal(config_resolve_stages(&zero.config, 0, 2, "ringrun"), RING_OK);
    assert_int_equal(config_resolve_stages(&zero.config, 2, 2, "ringrun"), RING_ERR_CONFIG);
    assert_string_equal(train_error(), "ZeRO-2 and ZeRO-3 are incompatible with pipeline "
                                       "parallelism; set zero_optimization.stage to 1");
    parsed half = parse("{" SGD ", bf16: {enabled: true}, pipeline: {stages: 2}}");
    assert_int_equal(config_resolve_stages(&half.config, 0, 2, "ringrun"), RING_OK);
}

/* In the order of the file, whichever pass finds them. */
static void all_errors_are_told_at_once(void **state)
{
    (void)state;
    static const char text[] = "{\n"
                               "  \"optimizer\": {\"type\": \"Sgd2\"},\n"
                               "  \"zero_optimization\": {\"stage\": [0|1]},\n"
                               "  \"bf16\": {\"enable\": true},\n"
                               "  \"bf16\": {\"x\": 1},\n"
                               "  \"train_batch_size\": 1.5\n"
                               "}\n";
    assert_int_equal(parse(text).status, RING_ERR_CONFIG);
    assert_string_equal(
        train_error(),
        "c.json:2:17: optimizer.type \"Sgd2\" is not supported yet by this version: write one of "
        "SGD, Adam, AdamW, Lion, Adagrad\n"
        "c.json:3:34: `[0|1]` is the manual's list of choices; write one of 0, 1\n"
        "c.json:4:12: unknown key \"bf16.enable\"; did you mean \"bf16.enabled\"?" IGNORE "\n"
        "c.json:5:3: \"bf16\" is given twice; keep one\n"
        "c.json:6:3: train_batch_size must be a whole number, not 1.5\n"
        "c.json: 5 errors");
}

/* The manual's schematic text, as people copy it. */
static void choices_and_a_missing_comma_are_told_together(void **state)
{
    (void)state;
    assert_int_not_equal(parse("{\"zero_optimization\": {\n"
                               "  \"stage\": [0|1|2|3],\n"
                               "  \"ignore_unused_parameters\": [true|false]\n"
                               "  \"cpu_offload\": [true|false]\n}}")
                             .status,
                         RING_OK);
    assert_string_equal(
        train_error(),
        "c.json:2:12: `[0|1|2|3]` is the manual's list of choices; write one of 0, 1, 2, 3\n"
        "c.json:3:31: `[true|false]` is the manual's list of choices; write one of true, false\n"
        "c.json:4:3: a comma is missing before this\n"
        "c.json:4:18: `[true|false]` is the manual's list of choices; write one of true, false\n"
        "c.json: no optimizer; add \"optimizer\": {\"type\": \"SGD\", \"params\": {\"lr\": 0.01}} "
        "(or Adam, AdamW, Lion, Adagrad)\n"
        "c.json: 5 errors");
}

static void so_many_errors_are_counted(void **state)
{
    (void)state;
    char text[4000] = "{" SGD;
    for (int i = 0; i < 100; i++)
        sprintf(text + strlen(text), ",\n\"k%d\": 1", i);
    strcat(text, "}");
    assert_int_equal(parse(text).status, RING_ERR_CONFIG);
    assert_non_null(strstr(train_error(), "c.json:13:1: unknown key \"k11\""));
    assert_null(strstr(train_error(), "\"k12\""));
    assert_non_null(strstr(train_error(), "\nc.json: 100 errors, the first of which are these"));
}

static void unknown_keys_may_be_notes(void **state)
{
    (void)state;
    const parsed got = parse_with(
        "{" SGD
        ", \"bf16\": {\"enable\": true}, \"x\": {\"y\": [{\"z\": 1}]}, \"steps_per_print\": 3}",
        (config_options){.warn_unknown = true});
    assert_int_equal(got.status, RING_OK);
    assert_int_equal(got.config.steps_per_print, 3);
    assert_non_null(strstr(got.notes, "bf16.enable is unknown and ignored; did you mean "
                                      "\"bf16.enabled\"?\n"));
    assert_non_null(strstr(got.notes, "\nx is unknown and ignored\n")); /* all that is in it */
    assert_null(strstr(got.notes, "x.y"));
}

static void what_a_manual_leaves_out_is_told(void **state)
{
    (void)state;
    assert_int_equal(parse("{" SGD ", \"train_batch_size\": 1,\n ...\n}").status, RING_ERR_CONFIG);
    assert_string_equal(train_error(),
                        "c.json:2:2: `...` stands for more in a manual; write it, or leave it out");
}

static void offload_to_the_host_is_a_note(void **state)
{
    (void)state;
    const parsed got = parse("{" SGD ", \"zero_optimization\": {\"stage\": 3, "
                             "\"offload_optimizer\": {\"device\": \"cpu\"}, \"offload_param\": "
                             "{\"device\": \"cpu\", \"pin_memory\": true}}}");
    assert_int_equal(got.status, RING_OK);
    assert_string_equal(got.notes,
                        "zero_optimization.offload_param.pin_memory has no effect here: no memory "
                        "is pinned\n"
                        "zero_optimization.offload_optimizer.device = cpu has no effect here: all "
                        "states lie in host memory\n"
                        "zero_optimization.offload_param.device = cpu has no effect here: all "
                        "states lie in host memory\n");
    assert_int_equal(parse("{" SGD ", \"zero_optimization\": {\"stage\": 2, \"offload_param\": "
                           "{\"device\": \"cpu\"}}}")
                         .status,
                     RING_ERR_CONFIG);
    assert_non_null(strstr(train_error(), "zero_optimization.offload_param is for stage 3, not 2"));
}

static void offload_to_a_file_needs_a_folder(void **state)
{
    (void)state;
    const parsed got = parse("{" SGD
                             ", \"zero_optimization\": {\"offload_optimizer\": {\"device\": "
                             "\"nvme\", \"nvme_path\": \"/fast\"}}, \"aio\": {\"block_size\": "
                             "65536, \"thread_count\": 2}}");
    assert_int_equal(got.status, RING_OK);
    assert_string_equal(got.config.offload.states.device, "nvme");
    assert_string_equal(got.config.offload.states.nvme_path, "/fast");
    assert_string_equal(got.config.offload.params.device, "none");
    assert_int_equal(got.config.offload.block_size, 65536);
    assert_int_equal(got.config.offload.queue_depth, 8);
    assert_non_null(strstr(got.notes, "aio.thread_count has no effect here: "));
    assert_int_equal(parse("{" SGD ", \"zero_optimization\": {\"offload_optimizer\": "
                           "{\"device\": \"nvme\"}}}")
                         .status,
                     RING_ERR_CONFIG);
    assert_non_null(strstr(train_error(),
                           "zero_optimization.offload_optimizer.device is nvme: give "
                           "zero_optimization.offload_optimizer.nvme_path"));
}

static void buckets_are_capped_and_that_is_said(void **state)
{
    (void)state;
    parsed got = parse("{" SGD ", \"zero_optimization\": {\"reduce_bucket_size\": 5e8}}");
    assert_string_equal(got.notes, "zero_optimization.reduce_bucket_size 500000000: gradients "
                                   "travel in buckets of 16384 elements here, or of one layer if "
                                   "that has more\n");
    got = parse("{" SGD ", \"zero_optimization\": {\"reduce_bucket_size\": 1e3, \"overlap_comm\": "
                "false}}");
    assert_string_equal(got.notes, "");
    assert_int_equal(got.config.reduce_bucket_size, 1000);
    assert_false(got.config.overlap_comm);
    assert_true(parse("{" SGD "}").config.overlap_comm);
}

static parsed parse_yaml(const char *text)
{
    return parse_with(text, (config_options){.accelerate = true});
}

static void accelerates_file_is_a_configuration(void **state)
{
    (void)state;
    const parsed got = parse_yaml("# of accelerate config\n"
                                  "compute_environment: LOCAL_MACHINE\n"
                                  "deepspeed_config:\n"
                                  "  gradient_accumulation_steps: 3\n"
                                  "  gradient_clipping: 0.5  # half\n"
                                  "  offload_optimizer_device: nvme\n"
                                  "  offload_optimizer_nvme_path: /fast\n"
                                  "  zero_stage: 2\n"
                                  "distributed_type: 'DEEPSPEED'\n"
                                  "mixed_precision: \"no\"\n"
                                  "num_processes: 8\n"
                                  "tpu_env: []\n");
    assert_int_equal(got.status, RING_OK);
    assert_int_equal(got.config.accumulation, 3);
    assert_near(got.config.gradient_clipping, 0.5, 0, 0);
    assert_int_equal(got.config.zero_stage, 2);
    assert_string_equal(got.config.offload.states.nvme_path, "/fast");
    assert_int_equal(got.config.processes, 8);
    assert_int_equal(got.config.micro_batch, 8);
    assert_int_equal(got.config.optimizer.kind, OPTIMIZER_ADAMW);
    assert_string_equal(got.notes,
                        "compute_environment has no effect here: the launcher's environment says "
                        "where this runs\n"
                        "tpu_env has no effect here: there is no TPU here\n"
                        "train_micro_batch_size_per_gpu: auto -> 8\n"
                        "accelerate's file leaves the optimizer to the script: AdamW with lr 2e-4, "
                        "betas 0.9 and 0.99, no weight decay, no schedule\n");
}

static void accelerates_file_is_refused_with_its_place(void **state)
{
    (void)state;
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"zero_stage: 3\n", "c.json:1:1: unknown key \"zero_stage\""},
        {"deepspeed_config:\n  zero_stag: 3\n",
         "c.json:2:3: unknown key \"zero_stag\"; did you mean \"zero_stage\"?"},
        {"deepspeed_config:\n  zero_stage: 4\n",
         "c.json:2:3: zero_optimization.stage must be at most 3, not 4"},
        {"deepspeed_config:\n  zero_stage: 'x'\n",
         "c.json:2:3: zero_optimization.stage must be a whole number"},
        {"deepspeed_config: 3\n", "c.json:1:1: deepspeed_config: expected a section"},
        {"mixed_precision: fp8\n", "c.json:1:1: mixed_precision: expected 'no', fp16 or bf16"},
        {"distributed_type: FSDP\n", "c.json:1:1: distributed_type: expected DEEPSPEED, or"},
        {"num_processes: 0\n", "c.json:1:1: num_processes: expected a whole number"},
        {"deepspeed_config:\n  deepspeed_config_file: ds.json\n",
         "c.json:2:3: the configuration is another file; give that one: ringtrain "
         "--deepspeed_config ds.json"},
        {"a: 1\na: 2\n", "c.json:2:1: \"a\" is given twice; keep one"},
        {"debug: false\n\tuse_cpu: true\n", "c.json:2:1: YAML is indented by blanks, not by tabs"},
        {"  debug: false\n", "c.json:1:3: the line is indented, but no section is open before it"},
        {"a:\n  b: 1\n   c: 2\n", "c.json:3:4: the line is indented by 3 blanks"},
        {"a: 1\n  b: 1\n", "c.json:2:3: the line is indented, but no section is open"},
        {"- a\n", "c.json:1:1: lists are not read here"},
        {"a: - b\n", "c.json:1:4: lists are not read here"},
        {"a: [1]\n", "c.json:1:4: values that begin with '[' are not read here"},
        {"a: &b\n", "c.json:1:4: values that begin with '&' are not read here"},
        {"a: 'b\n", "c.json:1:6: the quote is not closed"},
        {"a: 'b' c\n", "c.json:1:8: nothing may follow the value"},
        {"a: \"\\n\"\n", "c.json:1:5: of escapes only"},
        {"a: b: c\n", "c.json:1:5: a value that holds ':' needs quotes"},
        {"a:b\n", "c.json:1:3: a blank must follow ':'"},
        {"a\n", "c.json:1:1: expected a line \"key: value\""},
        {"{\n  \"pipe-parallel-size\": 1,\n",
         "c.json:1:1: expected a line \"key: value\", not '{'"},
        {"a: \xc3\xa4\n", "c.json:1:4: values are printable ASCII here"},
        {"pipe-parallel-size: 1\n", "a file of gpt-neox is of a model family that is not here"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_int_not_equal(parse_yaml(cases[i].text).status, RING_OK);
        if (strstr(train_error(), cases[i].error) == NULL)
            fail_msg("no \"%s\" in:\n%s", cases[i].error, train_error());
    }
}

static void quotes_and_markers_of_yaml_are_read(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "---\nmixed_precision: 'no' # comment\n",
        "mixed_precision: \"no\"\r\n",
        "\n# all\nmixed_precision: no",
        "deepspeed_config:\n    zero_stage: 3\n    gradient_clipping: null\n\ndebug: ~\n",
        "deepspeed_config:\n",
    };
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        if (parse_yaml(texts[i]).status != RING_OK)
            fail_msg("%s\n%s", texts[i], train_error());
    }
}

/* As a front end's argument and its file. */
static void a_wanted_batch_fills_what_is_open(void **state)
{
    (void)state;
    const config_options wanted = {.micro_batch = 32};
    assert_int_equal(parse_with("{" SGD "}", wanted).config.micro_batch, 32);
    assert_int_equal(parse_with("{" SGD ", \"train_micro_batch_size_per_gpu\": \"auto\"}", wanted)
                         .config.micro_batch,
                     32);
    assert_int_equal(parse_with("{" SGD ", \"train_micro_batch_size_per_gpu\": 32}", wanted).status,
                     RING_OK);
    assert_int_equal(parse_with("{" SGD ", \"train_micro_batch_size_per_gpu\": 64}", wanted).status,
                     RING_ERR_CONFIG);
    assert_non_null(strstr(train_error(), "is not the 32 samples a rank that --batch_size gives; "
                                          "leave one of them out"));
}

static void a_key_without_effect_is_one_note(void **state)
{
    (void)state;
    const parsed got = parse("{" SGD ", \"zero_optimization\": {\"stage\": 0, "
                             "\"ignore_unused_parameters\": true, \"stage3_max_reuse_distance\": "
                             "1e9}, \"wandb\": {\"enabled\": false, \"team\": \"a\"}}");
    assert_int_equal(got.status, RING_OK);
    assert_string_equal(got.notes,
                        "zero_optimization.stage3_max_reuse_distance has no effect here: "
                        "a bucket is released after each use\n");
}

/* Logging, timing and saving change no result. */
static void what_only_watches_the_run_is_noted(void **state)
{
    (void)state;
    static const char *const keys[] = {
        "activation_checkpointing",
        "checkpoint",
        "flops_profiler",
        "comms_logger",
        "comet",
        "nebula",
    };
    for (size_t i = 0; i < COUNT_OF(keys); i++) {
        char text[256], note[128];
        snprintf(text, sizeof text,
                 "{" SGD ", \"%s\": {\"enabled\": true, \"output_path\": \"x\"}}", keys[i]);
        const parsed got = parse(text);
        if (got.status != RING_OK)
            fail_msg("%s: %s", keys[i], train_error());
        snprintf(note, sizeof note, "%s", keys[i]);
        assert_ptr_equal(strstr(got.notes, note), got.notes);
        assert_non_null(strstr(got.notes, " has no effect here: "));
        assert_ptr_equal(strchr(got.notes, '\n') + 1, got.notes + strlen(got.notes)); /* one */
    }
    const parsed off = parse("{" SGD ", \"wall_clock_breakdown\": false, \"memory_breakdown\": "
                             "false, \"flops_profiler\": {\"enabled\": false}}");
    assert_int_equal(off.status, RING_OK);
    assert_string_equal(off.notes, "");
}

static void monitors_have_paths_and_names(void **state)
{
    (void)state;
    char text[600];
    parsed got = parse("{" SGD
                       ", \"csv_monitor\": {\"enabled\": true, \"output_path\": \"a/b c\"}, "
                       "\"tensorboard\": {\"job_name\": \"j\"}, \"wandb\": {\"enabled\": true, "
                       "\"team\": null, \"group\": \"2GPUs\"}}");
    assert_int_equal(got.status, RING_OK);
    assert_string_equal(got.notes, "");
    assert_true(got.config.csv.enabled && got.config.wandb.enabled);
    assert_false(got.config.tensorboard.enabled);
    assert_string_equal(got.config.csv.output_path, "a/b c");
    assert_string_equal(got.config.csv.job_name, "DeepSpeedJobName");
    assert_string_equal(got.config.tensorboard.job_name, "j");
    assert_string_equal(got.config.tensorboard.output_path, "");
    assert_string_equal(got.config.wandb.project, "deepspeed");
    assert_string_equal(got.config.wandb.team, "");
    assert_string_equal(got.config.wandb.group, "2GPUs");
    snprintf(text, sizeof text, "{" SGD ", \"wandb\": {\"group\": \"%0*d\"}}", 127, 0);
    assert_int_equal(parse(text).status, RING_OK);
    snprintf(text, sizeof text, "{" SGD ", \"wandb\": {\"group\": \"%0*d\"}}", 128, 0);
    assert_int_equal(parse(text).status, RING_ERR_CONFIG);
    assert_non_null(strstr(train_error(), "wandb.group must be shorter than 128 bytes"));
    assert_int_equal(parse("{" SGD ", \"wandb\": {\"team\": 3}}").status, RING_ERR_CONFIG);
    assert_non_null(strstr(train_error(), "wandb.team must be a text"));
    assert_int_equal(parse("{" SGD ", \"wandb\": {\"projcet\": \"a\"}}").status, RING_ERR_CONFIG);
    assert_non_null(strstr(train_error(), "did you mean \"wandb.project\"?"));
}

/* Where ZeRO is off, as DeepSpeed's own examples write it out. */
static void zeros_other_keys_are_known(void **state)
{
    (void)state;
    const parsed got = parse("{" SGD
                             ", \"zero_optimization\": {\"stage\": 0, \"cpu_offload\": false, "
                             "\"zero_hpz_partition_size\": 1, \"zero_quantized_gradients\": false, "
                             "\"mics_shard_size\": -1, \"memory_efficient_linear\": true}}");
    assert_int_equal(got.status, RING_OK);
    assert_string_equal(got.notes, "zero_optimization.cpu_offload has no effect here: everything "
                                   "lies in host memory anyway\n"
                                   "zero_optimization.memory_efficient_linear has no effect here: "
                                   "ZeRO here has no such choice\n");
}

static void an_unknown_warmup_type_falls_back_to_log(void **state)
{
    (void)state;
    const parsed got = parse(
        "{" SGD
        ", \"scheduler\": {\"type\": \"WarmupLR\", \"params\": {\"warmup_type\": \"cubic\"}}}");
    assert_int_equal(got.status, RING_OK);
    assert_false(got.config.schedule.linear);
    assert_string_equal(
        got.notes, "scheduler.params.warmup_type \"cubic\" is none of log, linear; taking log\n");
}

static void adam_with_decay_says_that_it_is_decoupled(void **state)
{
    (void)state;
    const parsed got = parse(
        "{\"optimizer\": {\"type\": \"Adam\", \"params\": {\"weight_decay\": 0.01}}}");
    assert_int_equal(got.status, RING_OK);
    assert_true(got.config.optimizer.adam_w_mode);
    assert_non_null(strstr(got.notes, "Adam decays weights apart from the gradient"));
}

/* Every beginning of a file, and the file with any byte replaced, is read or refused. */
static void damaged_files_never_do_harm(void **state)
{
    (void)state;
    static const char text[] =
        "{/*c*/optimizer: {\"type\": \"Adam\", \"params\": {\"betas\": [0.9, 0.99,], }},\n"
        "\"zero_optimization\": {\"stage\": 0}, # c\n \"a\\\"b\": [{\"x\": 1}] // c\n}";
    const config_options options = {.warn_unknown = true};
    train_config config;
    for (size_t length = 0; length < sizeof text - 1; length++) {
        char *copy = malloc(length + 1); /* exactly as large, for the sanitizer */
        assert_non_null(copy);
        memcpy(copy, text, length);
        assert_int_not_equal(config_parse("c", copy, length, &options, NULL, NULL, &config),
                             RING_OK);
        free(copy);
    }
    static const char bytes[] = "{}[]\",:#/*\\|0e-\n\x80";
    for (size_t at = 0; at < sizeof text - 1; at++) {
        for (size_t b = 0; b < sizeof bytes; b++) { /* the zero at its end too */
            char copy[sizeof text];
            memcpy(copy, text, sizeof text);
            copy[at] = bytes[b];
            (void)config_parse("c", copy, sizeof text - 1, &options, NULL, NULL, &config);
        }
    }
    static const char zero[] = "{ # \0\n}";
    assert_int_equal(config_parse("c", zero, sizeof zero - 1, &options, NULL, NULL, &config),
                     RING_ERR_CONFIG);
    assert_string_equal(train_error(), "c:1:5: a zero byte: this is not a text file");
}

static void deep_and_wide_files_are_refused(void **state)
{
    (void)state;
    const config_options options = {.warn_unknown = true};
    const size_t size = 200000;
    char *text = malloc(size + 1);
    train_config config;
    assert_non_null(text);
    memset(text, '[', size);
    assert_int_not_equal(config_parse("c", text, size, &options, NULL, NULL, &config), RING_OK);
    for (size_t i = 0; i + 4 < size; i += 4)
        memcpy(text + i, "a:{ ", 4);
    text[0] = '{';
    assert_int_not_equal(config_parse("c", text, size, &options, NULL, NULL, &config), RING_OK);
    size_t used = 1;
    for (int i = 0; used + 16 < size; i++)
        used += (size_t)sprintf(text + used, "k%d:1,", i);
    text[used++] = '}';
    assert_int_equal(config_parse("c", text, used, &options, NULL, NULL, &config), RING_ERR_CONFIG);
    assert_string_equal(train_error(), "c: more than 2000 keys");
    free(text);
}

static void files_that_are_not_there_or_no_files_are_named(void **state)
{
    (void)state;
    const config_options options = {0};
    train_config config;
    assert_int_equal(config_read("/nowhere/c.json", &options, NULL, NULL, &config),
                     RING_ERR_SYSTEM);
    assert_string_equal(train_error(), "/nowhere/c.json: No such file or directory");
    assert_int_not_equal(config_read("/", &options, NULL, NULL, &config), RING_OK);
    assert_int_equal(config_read("/dev/zero", &options, NULL, NULL, &config), RING_ERR_CONFIG);
    assert_string_equal(train_error(),
                        "/dev/zero: larger than 262144 bytes; is it a configuration?");
}

static void the_table_is_consistent(void **state)
{
    (void)state;
    for (size_t i = 0; i < config_key_count; i++) {
        const config_key *key = &config_keys[i];
        assert_ptr_equal(config_key_find(key->path), key); /* no path twice */
        assert_non_null(key->help);
        const char *dot = strrchr(key->path, '.');
        if (dot != NULL) {
            char parent[128];
            snprintf(parent, sizeof parent, "%.*s", (int)(dot - key->path), key->path);
            assert_non_null(config_key_find(parent));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_seed_configuration_is_read_as_it_stands),
        cmocka_unit_test(absent_keys_take_deepspeeds_defaults),
        cmocka_unit_test(auto_is_what_front_ends_fill_in),
        cmocka_unit_test(auto_is_filled_in_when_more_is_known),
        cmocka_unit_test(an_automatic_schedule_follows_the_optimizer),
        cmocka_unit_test(auto_in_some_sections_is_the_default),
        cmocka_unit_test(optimizers_have_defaults_of_their_own),
        cmocka_unit_test(parameter_groups_are_one_or_two),
        cmocka_unit_test(compat_0_13_does_not_clip_unless_told),
        cmocka_unit_test(lenient_spellings_are_read),
        cmocka_unit_test(a_configuration_may_stand_for_its_file),
        cmocka_unit_test(what_is_wrong_is_named_with_its_place),
        cmocka_unit_test(arguments_of_the_sampler_are_keys),
        cmocka_unit_test(stages_are_taken_from_the_parameters_too),
        cmocka_unit_test(stages_must_go_with_ranks_and_zero),
        cmocka_unit_test(all_errors_are_told_at_once),
        cmocka_unit_test(choices_and_a_missing_comma_are_told_together),
        cmocka_unit_test(so_many_errors_are_counted),
        cmocka_unit_test(unknown_keys_may_be_notes),
        cmocka_unit_test(what_a_manual_leaves_out_is_told),
        cmocka_unit_test(offload_to_the_host_is_a_note),
        cmocka_unit_test(offload_to_a_file_needs_a_folder),
        cmocka_unit_test(buckets_are_capped_and_that_is_said),
        cmocka_unit_test(accelerates_file_is_a_configuration),
        cmocka_unit_test(accelerates_file_is_refused_with_its_place),
        cmocka_unit_test(quotes_and_markers_of_yaml_are_read),
        cmocka_unit_test(a_wanted_batch_fills_what_is_open),
        cmocka_unit_test(a_key_without_effect_is_one_note),
        cmocka_unit_test(what_only_watches_the_run_is_noted),
        cmocka_unit_test(monitors_have_paths_and_names),
        cmocka_unit_test(zeros_other_keys_are_known),
        cmocka_unit_test(an_unknown_warmup_type_falls_back_to_log),
        cmocka_unit_test(adam_with_decay_says_that_it_is_decoupled),
        cmocka_unit_test(damaged_files_never_do_harm),
        cmocka_unit_test(deep_and_wide_files_are_refused),
        cmocka_unit_test(files_that_are_not_there_or_no_files_are_named),
        cmocka_unit_test(the_table_is_consistent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

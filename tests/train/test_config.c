/* SPDX-License-Identifier: Apache-2.0
 * Reading configurations where a file of cases (config/) cannot tell: spellings of one value,
 * sizes, damage, files, fields that follow from others. */
#include "check.h"
#include "parsing.h"

#include <errors.h>
#include <keys.h>
#include <stdio.h>
#include <stdlib.h>

#define SGD "\"optimizer\": {\"type\": \"SGD\"}"

static void a_key_is_open_until_its_fact_is_known(void **state)
{
    parsed got = parse("{\"scheduler\": {\"type\": \"WarmupDecayLR\", \"params\": "
                       "{\"total_num_steps\": \"auto\"}}, " SGD "}");
    assert_string_equal(got.notes, "");
    config_fill_automatic(&got.config, &(automatic_facts){.width = 256}, keep_note, &got);
    assert_string_equal(got.notes, "");
    assert_string_equal(config_open_automatic(&got.config), "scheduler.params.total_num_steps");
    config_fill_automatic(&got.config, &(automatic_facts){.width = 256, .updates = 70}, keep_note,
                          &got);
    assert_null(config_open_automatic(&got.config));
}

/* Of the fields that follow from a text. */
static void types_are_numbered(void **state)
{
    static const struct {
        const char *text;
        optimizer_kind optimizer;
        schedule_kind schedule;
        bool linear;
    } cases[] = {
        {"{" SGD "}", OPTIMIZER_SGD, SCHEDULE_CONSTANT, false},
        {"{optimizer: {type: \"lion\"}}", OPTIMIZER_LION, SCHEDULE_CONSTANT, false},
        {"{optimizer: {type: \"Adagrad\"}}", OPTIMIZER_ADAGRAD, SCHEDULE_CONSTANT, false},
        {"{train_batch_size: \"auto\"}", OPTIMIZER_ADAMW, SCHEDULE_CONSTANT, false},
        {"{" SGD ", scheduler: {type: \"WarmupDecayLR\", params: {total_num_steps: 9, "
         "warmup_num_steps: 2, warmup_type: \"linear\"}}}",
         OPTIMIZER_SGD, SCHEDULE_WARMUP_DECAY, true},
        {"{" SGD ", scheduler: {type: \"WarmupLR\"}}", OPTIMIZER_SGD, SCHEDULE_WARMUP, false},
        {"{" SGD ", scheduler: {type: \"WarmupLR\", params: {warmup_type: \"cubic\"}}}",
         OPTIMIZER_SGD, SCHEDULE_WARMUP, false},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const parsed got = parse(cases[i].text);
        if (got.status != RING_OK)
            fail_msg("%s: %s", cases[i].text, train_error());
        assert_int_equal(got.config.optimizer.kind, cases[i].optimizer);
        assert_int_equal(got.config.schedule.kind, cases[i].schedule);
        assert_int_equal(got.config.schedule.linear, cases[i].linear);
    }
    assert_true(parse("{optimizer: {type: \"Adam\", params: {weight_decay: 0.01}}}")
                    .config.optimizer.adam_w_mode);
}

static void accelerates_file_tells_the_processes(void **state)
{
    const config_options yaml = {.accelerate = true};
    assert_int_equal(parse_with("num_processes: 8\n", yaml).config.processes, 8);
}

static void parameter_groups_are_one_or_two(void **state)
{
#define GROUPS(name) "{\"optimizer\": {\"type\": \"SGD\", \"param_groups\": \"" name "\"}}"
    const parsed none = parse("{" SGD "}");
    assert_int_equal(optimizer_groups(&none.config.optimizer), 1);
    const parsed one = parse(GROUPS("one")), two = parse(GROUPS("no_decay_embeddings"));
    assert_int_equal(optimizer_groups(&one.config.optimizer), 1);
    assert_int_equal(optimizer_groups(&two.config.optimizer), 2);
}

static void lenient_spellings_are_read(void **state)
{
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

static void so_many_errors_are_counted(void **state)
{
    char text[4000] = "{" SGD;
    for (int i = 0; i < 100; i++)
        sprintf(text + strlen(text), ",\n\"k%d\": 1", i);
    strcat(text, "}");
    assert_int_equal(parse(text).status, RING_ERR_CONFIG);
    assert_non_null(strstr(train_error(), "c.json:13:1: unknown key \"k11\""));
    assert_null(strstr(train_error(), "\"k12\""));
    assert_non_null(strstr(train_error(), "\nc.json: 100 errors; these are the first ones found"));
}

/* In the lines at the start; the list, which runs are compared by, has the first of the names. */
static void a_setting_has_one_line_under_the_name_of_the_file(void **state)
{
    static const struct {
        const char *text, *line, *without, *setting;
    } cases[] = {
        {"bf16: {enabled: true}", "\n  bf16.enabled .", "bfloat16.enabled", "\nbf16.enabled=true"},
        {"bfloat16: {enabled: true}", "\n  bfloat16.enabled .", " bf16.enabled",
         "\nbf16.enabled=true"},
        {"pipeline: {stages: 2}", "\n  pipeline.stages .", "num_stages", "\npipeline.stages=2"},
        {"pipeline: {params: {num_stages: 2}}", "\n  pipeline.params.num_stages .",
         "pipeline.stages", "\npipeline.stages=2"},
    };
    for (size_t i = 0; i < 2 * COUNT_OF(cases); i++) {
        char text[128], *lines, *list;
        size_t bytes, list_bytes;
        snprintf(text, sizeof text, "{" SGD ", %s}", cases[i / 2].text);
        const parsed got = parse(text);
        FILE *out = open_memstream(&lines, &bytes), *settings = open_memstream(&list, &list_bytes);
        assert_true(out != NULL && settings != NULL);
        config_print(&got.config, i % 2 == 1, out);
        config_list(&got.config, settings);
        assert_int_equal(fclose(out), 0);
        assert_int_equal(fclose(settings), 0);
        assert_non_null(strstr(lines, cases[i / 2].line));
        assert_null(strstr(lines, cases[i / 2].without));
        assert_non_null(strstr(list, cases[i / 2].setting));
        assert_null(strstr(list, "bfloat16.enabled"));
        assert_null(strstr(list, "num_stages"));
        free(lines);
        free(list);
    }
}

static void texts_have_a_longest_length(void **state)
{
    char text[600];
    snprintf(text, sizeof text, "{" SGD ", \"wandb\": {\"group\": \"%0*d\"}}", 127, 0);
    assert_int_equal(parse(text).status, RING_OK);
    snprintf(text, sizeof text, "{" SGD ", \"wandb\": {\"group\": \"%0*d\"}}", 128, 0);
    assert_int_equal(parse(text).status, RING_ERR_CONFIG);
    assert_non_null(strstr(train_error(), "wandb.group must be shorter than 128 bytes"));
}

/* Every beginning of a file, and the file with any byte replaced, is read or refused. */
static void damaged_files_never_do_harm(void **state)
{
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
    assert_string_equal(train_error(), "c:1:5: the file has a zero byte, so it is not a text file");
}

static void deep_and_wide_files_are_refused(void **state)
{
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
    assert_string_equal(
        train_error(),
        "c: the file has more than 2000 keys, so it is probably not a configuration");
    free(text);
}

static void files_that_are_not_there_or_no_files_are_named(void **state)
{
    const config_options options = {0};
    train_config config;
    assert_int_equal(config_read("/nowhere/c.json", &options, NULL, NULL, &config),
                     RING_ERR_SYSTEM);
    assert_string_equal(train_error(), "/nowhere/c.json: No such file or directory");
    assert_int_not_equal(config_read("/", &options, NULL, NULL, &config), RING_OK);
    assert_int_equal(config_read("/dev/zero", &options, NULL, NULL, &config), RING_ERR_CONFIG);
    assert_string_equal(
        train_error(),
        "/dev/zero: the file has more than 262144 bytes, so it is probably not a configuration");
}

static void the_table_is_consistent(void **state)
{
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
        cmocka_unit_test(a_key_is_open_until_its_fact_is_known),
        cmocka_unit_test(types_are_numbered),
        cmocka_unit_test(accelerates_file_tells_the_processes),
        cmocka_unit_test(parameter_groups_are_one_or_two),
        cmocka_unit_test(lenient_spellings_are_read),
        cmocka_unit_test(a_configuration_may_stand_for_its_file),
        cmocka_unit_test(so_many_errors_are_counted),
        cmocka_unit_test(a_setting_has_one_line_under_the_name_of_the_file),
        cmocka_unit_test(texts_have_a_longest_length),
        cmocka_unit_test(damaged_files_never_do_harm),
        cmocka_unit_test(deep_and_wide_files_are_refused),
        cmocka_unit_test(files_that_are_not_there_or_no_files_are_named),
        cmocka_unit_test(the_table_is_consistent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

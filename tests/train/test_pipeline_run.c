/* SPDX-License-Identifier: Apache-2.0
 * Pipelines as users start them: a tutorial's block, the option, and the messages about both.
 * Arguments: folder of the programs, docs/examples/mnist, folder with seeds/. */
#include "check.h"
#include "files.h"
#include "programs.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int set_up(void **state)
{
    files_folder();
    files_dataset(1000, 300);
    return 0;
}

/* The number in front of @p text in the last line but one. */
static double percent_before(const programs_run *run, const char *text)
{
    const char *line = strstr(run->output, "\npipeline: idle ");
    const char *at = line != NULL ? strstr(line, text) : NULL;
    if (at == NULL)
        fail_msg("no \"%s\" in:\n%s", text, run->output);
    while (at[-1] != ' ')
        at--;
    return strtod(at, NULL);
}

/* @return the document's next block between ```json and ```, whose end is cut off there. */
static char *next_block(char **document)
{
    char *start = strstr(*document, "```json\n");
    assert_non_null(start);
    start += strlen("```json\n");
    char *end = strstr(start, "```");
    assert_non_null(end);
    *end = '\0';
    *document = end + 1;
    return start;
}

/* "Just add an entry": the second block goes into the first one. */
static void the_documents_block_runs_on_two_ranks(void **state)
{
    char *document = programs_document("000"), *rest = document, config[4096];
    const char *first = next_block(&rest), *entry = next_block(&rest);
    snprintf(config, sizeof config, "%.*s, %s}", (int)(strrchr(first, '}') - first), first, entry);
    programs_run *alone = programs_train_config(0, first, "");
    programs_run *run = programs_train_config(2, config, "");
    programs_expect_success(alone);
    programs_expect_success(run);
    programs_expect_output(run, "NOTE pipeline.type has no effect here");
    programs_expect_output(run,
                           "NOTE pipeline.params.num_stages is used as pipeline.stages; DeepSpeed "
                           "ignores it\n");
    programs_expect_output(
        run, "  stage 0: layers 0 to 1, 200960 parameters (92 %), 1607680 bytes of model "
             "state, ");
    programs_expect_output(
        run, "  stage 1: layers 2 to 4, 17098 parameters (8 %), 136784 bytes of model "
             "state, ");
    programs_expect_output(run, " of activations; rank 1\n");
    programs_expect_output(run, "NOTE unbalanced pipeline: stage 0 has 92 % of the parameters");
    programs_expect_output(run, "NOTE the pipeline's bubble is 50 % of the time; "
                                "gradient_accumulation_steps 8 would reduce it to 11 %\n");
    assert_int_equal(run->steps, 16);
    assert_memory_equal(run->loss, alone->loss, sizeof run->loss);
    programs_expect_same_params(2);
    programs_free(run);
    programs_free(alone);
    free(document);
}

static void the_option_makes_a_grid(void **state)
{
    static const char config[] = "{train_batch_size: 64, gradient_accumulation_steps: 4, "
                                 "optimizer: {type: \"Adam\"}, zero_optimization: {stage: 1}}";
    programs_run *data = programs_train_config(2, config, "--max-steps 12 --model lenet5");
    programs_run *grid = programs_train_config(4, config, "--max-steps 12 --model lenet5 -p 2");
    programs_expect_success(data);
    programs_expect_success(grid);
    assert_memory_equal(grid->loss, data->loss, sizeof grid->loss);
    programs_expect_same_params(4);
    programs_expect_output(grid, "pipeline of 2 stages of 2 ranks; 4 micro-batches an update");
    programs_expect_output(grid, " of activations; ranks 2 to 3\n");
    programs_free(grid);
    programs_free(data);
}

/* Stages of a share compute the same samples, and so do its tensor ranks. */
static void a_hosts_batch_is_divided_by_its_shares(void **state)
{
    static const struct {
        const char *options, *micro, *batch;
    } cases[] = {{"-b 96", "24", "96"},
                 {"-b 96 -p 2", "48", "96"},
                 {"-b 96 -p 2 --tp 2", "96", "96"},
                 {"-b 96 --tp 2 --check=8", "24", "96"}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char options[80], line[160];
        snprintf(options, sizeof options, "--check %s", cases[i].options);
        snprintf(line, sizeof line,
                 "  train_batch_size .......................... %s\n"
                 "  train_micro_batch_size_per_gpu ............ %s\n",
                 cases[i].batch, cases[i].micro);
        programs_run *run = programs_train_config(4, "{optimizer: {type: \"SGD\"}}", options);
        programs_expect_success(run);
        programs_expect_output(run, line);
        programs_free(run);
    }
    programs_run *run = programs_train_config(4,
                                              "{optimizer: {type: \"SGD\"}, pipeline: {stages: 2}}",
                                              "--check -b 97");
    programs_expect_output(run, "which divide the data into 2 parts; give a multiple of 2");
    programs_free(run);
}

/* @return the number of that index in the list of lists. */
static double pass_at(const cJSON *table, int stage, int micro, int index)
{
    const cJSON *row = cJSON_GetArrayItem(cJSON_GetArrayItem(table, stage), micro);
    const cJSON *number = cJSON_GetArrayItem(row, index);
    assert_true(cJSON_IsNumber(number));
    return number->valuedouble;
}

/* Forward passes go on from stage to stage and backward ones back, on one clock; times are rounded
 * to 1e-7 s. */
static void expect_passes(const cJSON *table, int stages, int micros)
{
    for (int m = 0; m < micros; m++) {
        for (int s = 0; s < stages; s++) {
            assert_true(pass_at(table, s, m, 0) <= pass_at(table, s, m, 1));
            assert_true(pass_at(table, s, m, 1) <= pass_at(table, s, m, 2) + 2e-7);
            assert_true(pass_at(table, s, m, 2) <= pass_at(table, s, m, 3));
            if (s == 0)
                continue;
            assert_true(pass_at(table, s - 1, m, 1) <= pass_at(table, s, m, 0) + 2e-7);
            assert_true(pass_at(table, s, m, 3) <= pass_at(table, s - 1, m, 2) + 2e-7);
        }
    }
}

/* Of each epoch's latest update with all five micro-batches; its last one has fewer. */
static void expect_update(const cJSON *pipeline, int epoch)
{
    const cJSON *predicted = cJSON_GetObjectItem(pipeline, "predicted");
    assert_int_equal(cJSON_GetObjectItem(pipeline, "step")->valueint, 7 * epoch - 1);
    assert_int_equal(cJSON_GetObjectItem(pipeline, "micro_batches")->valueint, 5);
    expect_passes(cJSON_GetObjectItem(pipeline, "measured"), 2, 5);
    assert_near(pass_at(predicted, 0, 4, 1), 12, 0, 0);
}

static void the_metrics_have_the_passes(void **state)
{
    programs_run *run = programs_train_config(
        4,
        "{train_micro_batch_size_per_gpu: 16, gradient_accumulation_steps: 5, optimizer: {type: "
        "\"SGD\"}}",
        "--epochs 2 --model lenet5 -p 2");
    programs_expect_success(run);
    size_t bytes;
    int epochs = 0;
    char *text = files_read(files_path("metrics"), &bytes), *rest = text, *line;
    while ((line = strsep(&rest, "\n")) != NULL) {
        cJSON *object = cJSON_Parse(line);
        const cJSON *pipeline = cJSON_GetObjectItem(object, "pipeline");
        if (pipeline != NULL)
            expect_update(pipeline, ++epochs);
        cJSON_Delete(object);
    }
    assert_int_equal(epochs, 2);
    free(text);
    programs_free(run);
}

/* The sum of the numbers of the line "time (%)", and the bubble's. */
static double sum_of_shares(const programs_run *run, double *bubble)
{
    const char *at = strstr(run->output, "time (%) | ");
    char name[32];
    double sum = 0.0, share;
    int used;
    assert_non_null(at);
    at += strlen("time (%)");
    for (; sscanf(at, " | %31[a-z_]: %lf%n", name, &share, &used) == 2; at += used) {
        sum += share;
        if (strcmp(name, "bubble_wait") == 0)
            *bubble = share;
    }
    return sum;
}

/* Measured bubbles depend on the machine, counted ones do not. */
static void the_bubble_is_told_at_the_end(void **state)
{
    static const struct {
        int stages, least; /* percent */
        const char *counted;
    } cases[] = {{2, 15, "20.0"}, {4, 30, "42.9"}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char options[80], line[160];
        double bubble = 0.0;
        snprintf(options, sizeof options,
                 "--max-steps 12 --model lenet5 --pipeline-parallel-size %d", cases[i].stages);
        snprintf(line, sizeof line,
                 " %s %% of the schedule's slots; (p-1)/(m+p-1) predicts %s %%\ntest accuracy ",
                 cases[i].counted, cases[i].counted);
        programs_run *run = programs_train_config(
            cases[i].stages,
            "{train_batch_size: 64, gradient_accumulation_steps: 4, optimizer: {type: \"SGD\"}, "
            "wall_clock_breakdown: true, steps_per_print: 12}",
            options);
        programs_expect_success(run);
        programs_expect_output(run, line);
        assert_in_range((int)percent_before(run, " % of the passes' time"), cases[i].least, 99);
        assert_near(sum_of_shares(run, &bubble), 100.0, 1e-9, 0);
        assert_true(bubble > 0.0);
        programs_free(run);
    }
}

/* @return milliseconds of one of gpt-neox's timers, in the run's last line of them. */
static double timer_of(const programs_run *run, const char *name)
{
    char field[64];
    const char *line = run->output, *next;
    snprintf(field, sizeof field, " | %s: ", name);
    while ((next = strstr(line + 1, "rank=0 time (ms)")) != NULL)
        line = next;
    const char *at = strstr(line, field);
    if (at == NULL)
        fail_msg("no timer %s in:\n%s", name, line);
    return strtod(at + strlen(field), NULL);
}

/* As in gpt-neox, transfers between stages and shared parameters are parts of comms, and a step has
 * three parts. Each is rounded to a hundredth. */
static void neoxs_timers_are_parts_of_each_other(void **state)
{
    static const char layers[] =
        "{input: [784], layers: [{type: \"linear\", features: 16}, {type: \"linear\", features: "
        "16, name: \"a\"}, {type: \"relu\"}, {type: \"relu\"}, {type: \"linear\", features: 16, "
        "tie: \"a\"}, {type: \"linear\", features: 10}]}";
    char options[200];
    files_write("tied.json", layers, strlen(layers));
    snprintf(options, sizeof options, "--max-steps 12 --log-style neox --model %s",
             files_path("tied.json"));
    programs_run *run = programs_train_config(
        2,
        "{train_batch_size: 64, gradient_accumulation_steps: 4, optimizer: {type: \"SGD\"}, "
        "wall_clock_breakdown: true, steps_per_print: 12, pipeline: {stages: 2, partition: "
        "\"uniform\"}}",
        options);
    programs_expect_success(run);
    const double ties = timer_of(run, "reduce_tied_grads"), step = timer_of(run, "step"),
                 of_stages = timer_of(run, "pipe_send_output") + timer_of(run, "pipe_recv_grad"),
                 of_step = timer_of(run, "_step_clipping") + timer_of(run, "_step_step") +
                           timer_of(run, "_step_check_overflow");
    assert_true(ties > 0.0 && of_stages > 0.0);
    assert_near(of_step, step, 0, 0.021);
    assert_true(of_stages + ties <= timer_of(run, "comms") + 0.021);
    assert_true(timer_of(run, "reduce_grads") >= 0.0);
    programs_free(run);
}

static void what_cannot_be_is_refused_once(void **state)
{
    static const struct {
        const char *config, *options, *error;
    } cases[] = {
        {"{train_batch_size: 64, optimizer: {type: \"SGD\"}}", "-p 3",
         "2 ranks (from ringrun) cannot be divided into 3 pipeline stages"},
        {"{train_batch_size: 64, optimizer: {type: \"SGD\"}, zero_optimization: {stage: 2}}",
         "-p 2",
         "ZeRO-2 and ZeRO-3 are incompatible with pipeline parallelism; set "
         "zero_optimization.stage to 1"},
        {"{train_batch_size: 64, train_micro_batch_size_per_gpu: 24, optimizer: {type: \"SGD\"}}",
         "-p 2", "the number of ranks is 1, from ringrun: 2 in 2 stages"},
        {"{train_batch_size: 64, gradient_clipping: 0, optimizer: {type: \"SGD\", params: {lr: "
         "1e30}}}",
         "-p 2", "in update 2; lower the learning rate or set gradient_clipping"},
        {"{train_batch_size: 64, optimizer: {type: \"SGD\"}, pipeline: {partition: \"type:x\"}}",
         "-p 2", "pipeline.partition type:x: no layer of mlp"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        programs_run *run = programs_train_config(2, cases[i].config, cases[i].options);
        assert_int_equal(run->status, 1);
        programs_expect_output(run, cases[i].error);
        const char *first = strstr(run->output, "ringtrain: ");
        assert_non_null(first);
        assert_null(strstr(first + 1, "ringtrain: "));
        programs_free(run);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, files_tear_down)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(the_documents_block_runs_on_two_ranks),
        TEST(the_option_makes_a_grid),
        TEST(a_hosts_batch_is_divided_by_its_shares),
        TEST(the_bubble_is_told_at_the_end),
        TEST(the_metrics_have_the_passes),
        TEST(neoxs_timers_are_parts_of_each_other),
        TEST(what_cannot_be_is_refused_once),
    };
    if (argc != 4)
        return 2;
    programs = (programs_paths){.bin = argv[1], .examples = argv[2], .shared = argv[3]};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

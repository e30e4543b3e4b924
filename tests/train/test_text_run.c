/* SPDX-License-Identifier: Apache-2.0
 * The program on text, as its users start it.
 * Arguments: folder of the programs, docs/examples/mnist, folder with seeds/. */
#include "check.h"
#include "files.h"
#include "programs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_BYTES = 2278 };

/* Has something to learn: of each letter one or the other of two follows. */
static int set_up(void **state)
{
    char text[TEXT_BYTES];
    uint32_t random = 1;
    for (size_t i = 0; i < sizeof text; i++) {
        random = random * 1664525U + 1013904223U;
        text[i] = (char)(i == 0 ? 'a' : 'a' + (text[i - 1] - 'a' + 1 + (random >> 31)) % 26);
    }
    files_folder();
    files_write("input.txt", text, sizeof text);
    return 0;
}

static const char small[] =
    "{name: \"g\", gpt: {n_layer: 1, n_head: 2, n_embd: 32, block_size: 16, "
    "vocab_size: 128, tie_word_embeddings: %s, dropout: %s}}";

static programs_run *train(int ranks, const char *config, const char *tied, const char *dropout,
                           const char *options)
{
    char model[sizeof small + 32];
    snprintf(model, sizeof model, small, tied, dropout);
    files_write("g.json", model, strlen(model));
    files_write("config.json", config, strlen(config));
    return programs_train(ranks, "--deepspeed_config %s --data %s --model %s %s",
                          files_path("config.json"), files_path("."), files_path("g.json"),
                          options);
}

#define ADAM(rest) \
    "{train_batch_size: 16, optimizer: {type: \"AdamW\", params: {lr: 0.01}}" rest "}"

/* With dropout, whose choice goes by sample and place; accumulation on one rank is the other's. */
static void any_number_of_ranks_takes_the_same_steps(void **state)
{
    programs_run *alone = train(0, ADAM(", gradient_accumulation_steps: 2"), "true", "0.1",
                                "--epochs 10 --max-steps 60");
    programs_expect_success(alone);
    programs_expect_output(alone, "loss cross_entropy) on 128 samples, testing on 14");
    programs_expect_output(alone, "epoch 1: validation loss ");
    assert_int_equal(alone->steps, 60);
    assert_near(alone->loss[0], 4.852, 0.02, 0); /* ln 128: nothing is known */
    assert_true(alone->loss[59] < 2.0);          /* most of what there is to know */
    programs_run *two = train(2, ADAM(""), "true", "0.1", "--epochs 10 --max-steps 60");
    programs_expect_success(two);
    programs_expect_same_params(2);
    for (size_t i = 0; i < 60; i++)
        assert_near(two->loss[i], alone->loss[i], 1e-3, 0);
    programs_free(alone);
    programs_free(two);
}

static void expect_same_in_all_stages(const char *tied)
{
    programs_run *runs[4];
    for (int s = 0; s < 4; s++) {
        char config[256];
        snprintf(config, sizeof config,
                 "{train_batch_size: 16, steps_per_print: 6, zero_optimization: {stage: %d}, "
                 "optimizer: {type: "
                 "\"Lion\", params: {lr: 0.003, weight_decay: 0.3}, param_groups: \"no_decay\"}}",
                 s);
        runs[s] = train(2, config, tied, "0.0", "--max-steps 6");
        programs_expect_success(runs[s]);
        programs_expect_output(runs[s], "lr=[0.003, 0.003], mom=[[0.9, 0.99], [0.9, 0.99]]");
        for (size_t i = 0; i < 6; i++)
            assert_true(runs[s]->loss[i] == runs[0]->loss[i]);
    }
    for (int s = 0; s < 4; s++)
        programs_free(runs[s]);
}

static void zero_stages_are_the_same_bit_for_bit(void **state)
{
    expect_same_in_all_stages("false");
    expect_same_in_all_stages("true");
}

static void refused(const char *data, const char *model, const char *error)
{
    programs_run *run =
        programs_shell("%s/ringtrain --deepspeed_config %s --data %s --model %s 2>&1", programs.bin,
                       files_path("config.json"), files_path(data), model);
    assert_int_equal(run->status, 1);
    programs_expect_output(run, error);
    programs_free(run);
}

static void models_and_data_that_do_not_fit_are_refused(void **state)
{
    const char *config = ADAM(""), *narrow = "{gpt: {n_layer: 1, vocab_size: 100}}",
               *classes =
                   "{input: [8], layers: [{type: \"embedding\", vocabulary: 128, features: 4},"
                   "{type: \"flatten\"}, {type: \"linear\", features: 10}]}";
    files_write("config.json", config, strlen(config));
    files_write("narrow.json", narrow, strlen(narrow));
    files_write("classes.json", classes, strlen(classes));
    refused(".", "mlp",
            "has a text, but the model mlp 784-256-64-10 takes images; give --model gpt");
    refused(".", files_path("narrow.json"), "has a vocabulary of 100 words; set \"vocab_size\"");
    refused(".", files_path("classes.json"),
            "outputs [10] for a sample, but a text needs [8, 128]: its last layer must be linear");
    assert_int_equal(remove(files_path("input.txt")), 0);
    files_dataset(20, 10);
    refused(".", "gpt",
            "has images, but the model gpt takes a text; give a folder with train.bin and val.bin");
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { LIMITS_WORK = 0 }; /* sanitizers reserve terabytes */
#else
enum { LIMITS_WORK = 1 };
#endif

static const char sized[] = "{gpt: {n_layer: 2, n_head: 2, n_embd: 64, block_size: %d, "
                            "vocab_size: 128}}";

/* @return what --check says a rank of two takes: "1.40 GiB". */
static const char *checked(const char *keys, int tokens, char text[32])
{
    char config[256], model[sizeof sized + 16];
    snprintf(config, sizeof config, "{%s, optimizer: {type: \"AdamW\"}}", keys);
    snprintf(model, sizeof model, sized, tokens);
    files_write("config.json", config, strlen(config));
    files_write("g.json", model, strlen(model));
    programs_run *run = programs_shell("%s/ringtrain --check=2 --deepspeed_config %s --model %s | "
                                       "sed -n 's/^\\*.* //p'",
                                       programs.bin, files_path("config.json"),
                                       files_path("g.json"));
    programs_expect_success(run);
    snprintf(text, 32, "%.2f GiB", strtod(run->output, NULL) / 0x1p30);
    programs_free(run);
    return text;
}

/* Activations take 6 GB, and a process may have 5. What the message promises is what --check
 * counts with the other keys. */
static void a_model_too_large_for_memory_says_what_makes_it_smaller(void **state)
{
    enum { BYTES = 700000 };
    static const struct {
        const char *keys, *before;
        int tokens;
    } ways[] = {
        {"train_micro_batch_size_per_gpu: 2048", "; a rank needs ", 128},
        {"train_micro_batch_size_per_gpu: 1024", "train_micro_batch_size_per_gpu 1024: ", 128},
        {"train_micro_batch_size_per_gpu: 2048", "block_size of the model 64: ", 64},
        {"train_micro_batch_size_per_gpu: 2048, pipeline: {activation_checkpoint_interval: 4}",
         "pipeline.activation_checkpoint_interval 4: ", 128},
        {"train_micro_batch_size_per_gpu: 2048, zero_optimization: {stage: 3}",
         "zero_optimization.stage 3: ", 128},
    };
    char amount[32], want[128], *text = malloc(BYTES);
    if (!LIMITS_WORK)
        skip();
    assert_non_null(text);
    memset(text, 'a', BYTES);
    files_write("input.txt", text, BYTES);
    free(text);
    checked(ways[0].keys, ways[0].tokens, amount);
    programs_run *run = programs_shell(
        "ulimit -v 5000000; %s/ringrun -n 2 %s/ringtrain --deepspeed_config %s --data %s --model "
        "%s 2>&1",
        programs.bin, programs.bin, files_path("config.json"), files_path("."),
        files_path("g.json"));
    assert_int_equal(run->status, 1);
    programs_expect_output(run, "ringtrain: no memory for activations (");
    for (size_t i = 0; i < COUNT_OF(ways); i++) {
        snprintf(want, sizeof want, "%s%s", ways[i].before,
                 checked(ways[i].keys, ways[i].tokens, amount));
        programs_expect_output(run, want);
    }
    programs_free(run);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, files_tear_down)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(any_number_of_ranks_takes_the_same_steps),
        TEST(zero_stages_are_the_same_bit_for_bit),
        TEST(models_and_data_that_do_not_fit_are_refused),
        TEST(a_model_too_large_for_memory_says_what_makes_it_smaller),
    };
    if (argc != 4)
        return 2;
    programs = (programs_paths){.bin = argv[1], .examples = argv[2], .shared = argv[3]};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

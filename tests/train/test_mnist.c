/* SPDX-License-Identifier: Apache-2.0
 * Runs on the real MNIST, against PyTorch's losses and known accuracies; skipped without the
 * data. Arguments: folder of the programs, docs/examples/mnist, folder with data/mnist, test. Those
 * called mlp and lenet5 take minutes and are long runs. */
#include "check.h"
#include "files.h"
#include "programs.h"
#include "vectors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SKIPPED = 77 };

/* Global batch 128, whatever the number of ranks. */
static void the_first_100_losses_are_pytorchs_on_1_2_and_4_ranks(void **state)
{
    static double alone[100];
    const double *torch = vector_doubles("training/mnist_losses", 100);
    for (int ranks = 1; ranks <= 4; ranks *= 2) {
        size_t bytes;
        char path[4096];
        snprintf(path, sizeof path, "%s/deeps.json", programs.examples);
        char *config = files_read(path, &bytes);
        assert_non_null(config);
        char *micro = strstr(config, "64"), number[8];
        assert_non_null(micro);
        snprintf(number, sizeof number, "%3d", 128 / ranks);
        memcpy(micro - 1, number, 3); /* the blank before it holds the hundreds */
        files_write("deeps.json", config, bytes);
        free(config);
        programs_run *run = programs_train(ranks, "--deepspeed_config %s --data %s --max-steps 100",
                                           files_path("deeps.json"), programs_mnist());
        programs_expect_success(run);
        assert_int_equal(run->steps, 100);
        for (size_t i = 0; i < 100; i++) {
            alone[i] = ranks == 1 ? run->loss[i] : alone[i];
            assert_near(run->loss[i], alone[i], 1e-6, 0);
            assert_near(run->loss[i], torch[i], 1e-5, 0);
        }
        programs_expect_same_params(ranks);
        programs_free(run);
    }
}

/* PyTorch gets 90.4 to 90.5 % after 5 epochs. */
static void the_recipe_reaches_its_accuracy_with_3_seeds(void **state)
{
    for (int seed = 0; seed < 3; seed++) {
        programs_run *run =
            programs_train(2, "--deepspeed_config %s/deeps.json --data %s --epochs 5 --seed %d",
                           programs.examples, programs_mnist(), seed);
        programs_expect_success(run);
        const double accuracy = programs_accuracy(run);
        if (!(accuracy >= 0.895 && accuracy <= 0.915))
            fail_msg("seed %d: test accuracy %.4f is not within 0.895 and 0.915", seed, accuracy);
        programs_free(run);
    }
}

static void adam_with_cross_entropy_reaches_97_5_percent(void **state)
{
    programs_run *run = programs_train(
        2, "--deepspeed_config %s/adam.json --data %s --epochs 5 --loss cross_entropy",
        programs.examples, programs_mnist());
    programs_expect_success(run);
    if (!(programs_accuracy(run) >= 0.975))
        fail_msg("test accuracy %.4f is below 0.975", programs_accuracy(run));
    programs_free(run);
}

/* Prints what the accuracies are, and fails if their mean is below @p least. */
static void check_seeds(const char *model, double least)
{
    enum { SEEDS = 5 };
    double got[SEEDS], mean = 0.0, squares = 0.0;
    for (int seed = 0; seed < SEEDS; seed++) {
        programs_run *run = programs_shell("%s/ringtrain --deepspeed_config %s/cosine.json --data "
                                           "%s --epochs 12 --seed %d --model %s "
                                           "--loss cross_entropy --eval-every 12 2>&1",
                                           programs.bin, programs.examples, programs_mnist(), seed,
                                           model);
        programs_expect_success(run);
        got[seed] = programs_accuracy(run);
        mean += got[seed] / SEEDS;
        programs_free(run);
    }
    for (int seed = 0; seed < SEEDS; seed++)
        squares += (got[seed] - mean) * (got[seed] - mean);
    printf("%s: test accuracy %.2f ± %.2f %% (", model, 100.0 * mean,
           100.0 * sqrt(squares / (SEEDS - 1)));
    for (int seed = 0; seed < SEEDS; seed++)
        printf(seed < SEEDS - 1 ? "%.2f, " : "%.2f)\n", 100.0 * got[seed]);
    if (!(mean >= least))
        fail_msg("%s: the mean is below %g %%", model, 100.0 * least);
}

/* One seed of PyTorch: 98.24 and 99.31 %. */
static void the_mlp_reaches_98_2_percent_in_12_epochs(void **state)
{
    check_seeds("mlp", 0.982);
}

static void lenet5_reaches_99_2_percent_in_12_epochs(void **state)
{
    check_seeds("lenet5", 0.992);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        struct CMUnitTest test;
    } tests[] = {
        {"first_100",
         cmocka_unit_test_setup_teardown(the_first_100_losses_are_pytorchs_on_1_2_and_4_ranks,
                                         files_set_up, files_tear_down)},
        {"recipe", cmocka_unit_test_setup_teardown(the_recipe_reaches_its_accuracy_with_3_seeds,
                                                   files_set_up, files_tear_down)},
        {"adam", cmocka_unit_test_setup_teardown(adam_with_cross_entropy_reaches_97_5_percent,
                                                 files_set_up, files_tear_down)},
        {"mlp", cmocka_unit_test_setup_teardown(the_mlp_reaches_98_2_percent_in_12_epochs,
                                                files_set_up, files_tear_down)},
        {"lenet5", cmocka_unit_test_setup_teardown(lenet5_reaches_99_2_percent_in_12_epochs,
                                                   files_set_up, files_tear_down)},
    };
    if (argc != 5)
        return 2;
    programs = (programs_paths){.bin = argv[1], .examples = argv[2], .shared = argv[3]};
    if (programs_mnist() == NULL) {
        printf("SKIPPED: no MNIST; set RING_DATA to the folder of its files\n");
        return SKIPPED;
    }
    for (size_t i = 0; i < COUNT_OF(tests); i++) {
        if (strcmp(argv[4], tests[i].name) == 0) {
            const struct CMUnitTest one[] = {tests[i].test};
            return cmocka_run_group_tests(one, NULL, NULL);
        }
    }
    return 2;
}

/* SPDX-License-Identifier: Apache-2.0
 * Parameter groups: an optimiser that is given ranges, cut anywhere, does to each tensor what the
 * kernel does with its group's weight decay. */
#include "check.h"

#include <errors.h>
#include <kernels.h>
#include <optimizer.h>
#include <stdlib.h>
#include <string.h>

enum { TENSORS = 5, ELEMENTS = 64, UPDATES = 3 };

/* Offsets as a partition gives them: a gap of padding in front of the fourth. */
static const struct {
    tensor_group group;
    size_t offset, count;
} laid[TENSORS] = {{GROUP_EMBEDDING, 0, 13},
                   {GROUP_DECAY, 13, 11},
                   {GROUP_NO_DECAY, 24, 7},
                   {GROUP_NO_DECAY, 33, 5},
                   {GROUP_DECAY, 38, 26}};

static tensor_table make_table(train_tensor list[TENSORS + 1])
{
    for (int t = 0; t < TENSORS; t++)
        list[t] = (train_tensor){.group = laid[t].group,
                                 .offset = laid[t].offset,
                                 .count = laid[t].count,
                                 .tie = -1};
    list[TENSORS] = list[0]; /* tied: at the table's end, with an offset at its beginning */
    list[TENSORS].tie = 0;
    return (tensor_table){.list = list, .count = TENSORS + 1, .elements = ELEMENTS};
}

static optimizer_config config_of(optimizer_kind kind, const char *groups)
{
    optimizer_config config = {.kind = kind,
                               .lr = 0.1,
                               .momentum = 0.9,
                               .weight_decay = 0.3,
                               .eps = 1e-8,
                               .betas = {0.9, 0.99},
                               .bias_correction = true,
                               .first_sum = 0.1,
                               .lr_decay = 0.5};
    strcpy(config.param_groups, groups);
    return config;
}

static void fill(float *values, uint32_t seed)
{
    for (uint32_t i = 0; i < ELEMENTS; i++)
        values[i] = (float)((double)((i + seed) * 2654435761U) / 0x1p31 - 1.0);
}

/* Some updates, the range cut into pieces of @p piece; states lie where they are told to. */
static void train(const optimizer_config *config, size_t piece, float params[ELEMENTS])
{
    train_tensor list[TENSORS + 1];
    const tensor_table table = make_table(list);
    train_optimizer optimizer;
    float grads[ELEMENTS];
    fill(params, 1);
    assert_int_equal(optimizer_create(&optimizer, config, ELEMENTS), RING_OK);
    assert_int_equal(optimizer_group(&optimizer, &table), RING_OK);
    for (uint32_t update = 0; update < UPDATES; update++) {
        fill(grads, 100 * update + 50);
        optimizer_begin(&optimizer);
        for (size_t at = 0; at < ELEMENTS; at += piece)
            optimizer_step(&optimizer,
                           &(optimizer_range){.offset = at,
                                              .at = at,
                                              .count = ELEMENTS - at < piece ? ELEMENTS - at
                                                                             : piece,
                                              .params = params + at,
                                              .grads = grads + at},
                           config->lr, 0.5);
    }
    optimizer_destroy(&optimizer);
}

static const optimizer_kind kinds[] = {OPTIMIZER_SGD, OPTIMIZER_ADAM, OPTIMIZER_ADAMW,
                                       OPTIMIZER_LION, OPTIMIZER_ADAGRAD};

/* An element is as with one group that decays, or as with one that does not. */
static void each_tensor_is_updated_as_its_group(void **state)
{
    (void)state;
    static const char *const names[] = {"", "no_decay", "no_decay_embeddings"};
    for (size_t k = 0; k < COUNT_OF(kinds); k++) {
        float with[ELEMENTS], without[ELEMENTS], got[ELEMENTS];
        optimizer_config none = config_of(kinds[k], "");
        train(&none, ELEMENTS, with);
        none.weight_decay = 0.0;
        train(&none, ELEMENTS, without);
        assert_memory_not_equal(with, without, sizeof with);
        for (int n = 0; n < 3; n++) {
            const optimizer_config config = config_of(kinds[k], names[n]);
            train(&config, ELEMENTS, got);
            for (int t = 0; t < TENSORS; t++) {
                const bool decays = n == 0 || laid[t].group == GROUP_DECAY ||
                                    (n == 1 && laid[t].group == GROUP_EMBEDDING);
                assert_memory_equal(got + laid[t].offset,
                                    (decays ? with : without) + laid[t].offset,
                                    laid[t].count * sizeof(float));
            }
        }
    }
}

static void ranges_may_be_cut_anywhere(void **state)
{
    (void)state;
    for (size_t k = 0; k < COUNT_OF(kinds); k++) {
        const optimizer_config config = config_of(kinds[k], "no_decay");
        float whole[ELEMENTS], pieces[ELEMENTS];
        train(&config, ELEMENTS, whole);
        for (size_t piece = 1; piece < ELEMENTS; piece++) {
            train(&config, piece, pieces);
            assert_memory_equal(whole, pieces, sizeof whole);
        }
    }
}

/* Rank 1 of two: its states begin at 0, its parameters in the middle. */
static void states_lie_apart_from_parameters(void **state)
{
    (void)state;
    enum { HALF = ELEMENTS / 2 };
    const optimizer_config config = config_of(OPTIMIZER_ADAMW, "no_decay");
    train_tensor list[TENSORS + 1];
    const tensor_table table = make_table(list);
    train_optimizer optimizer;
    float whole[ELEMENTS], params[ELEMENTS], grads[ELEMENTS];
    train(&config, ELEMENTS, whole);
    fill(params, 1);
    assert_int_equal(optimizer_create(&optimizer, &config, HALF), RING_OK);
    assert_int_equal(optimizer_bytes(&optimizer), ELEMENTS * sizeof(float));
    assert_int_equal(optimizer_group(&optimizer, &table), RING_OK);
    for (uint32_t update = 0; update < UPDATES; update++) {
        fill(grads, 100 * update + 50);
        optimizer_begin(&optimizer);
        optimizer_step(&optimizer, &(optimizer_range){HALF, 0, HALF, params + HALF, grads + HALF},
                       config.lr, 0.5);
    }
    assert_memory_equal(params + HALF, whole + HALF, HALF * sizeof(float));
    optimizer_destroy(&optimizer);
}

static void adagrads_sum_starts_where_it_is_told(void **state)
{
    (void)state;
    optimizer_config config = config_of(OPTIMIZER_ADAGRAD, "");
    train_optimizer optimizer;
    config.first_sum = 0.25;
    assert_int_equal(optimizer_create(&optimizer, &config, 3), RING_OK);
    assert_true(optimizer.first[0] == 0.25F && optimizer.first[2] == 0.25F);
    assert_null(optimizer.second);
    optimizer_destroy(&optimizer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_tensor_is_updated_as_its_group),
        cmocka_unit_test(ranges_may_be_cut_anywhere),
        cmocka_unit_test(states_lie_apart_from_parameters),
        cmocka_unit_test(adagrads_sum_starts_where_it_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

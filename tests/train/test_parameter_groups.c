/* SPDX-License-Identifier: Apache-2.0
 * Parameter groups: an optimiser that is given ranges, cut anywhere, does to each tensor what the
 * kernel does with its group's weight decay; what else an optimiser hands to the kernels. */
#include "check.h"
#include "parsing.h"
#include "vectors.h"

#include <errors.h>
#include <kernels.h>
#include <optimizer.h>
#include <schedule.h>
#include <stdlib.h>
#include <string.h>

enum { TENSORS = 5, ELEMENTS = 64, UPDATES = 3 };

/* Offsets as a partition assigns them: not in the table's order, and with a gap of padding after
 * the tensor that ends at 31. */
static const struct {
    tensor_group group;
    size_t offset, count;
} laid[TENSORS] = {{GROUP_EMBEDDING, 0, 13},
                   {GROUP_DECAY, 13, 11},
                   {GROUP_NO_DECAY, 33, 5},
                   {GROUP_DECAY, 38, 26},
                   {GROUP_NO_DECAY, 24, 7}};

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

static optimizer_config config_of(optimizer_kind kind, param_groups groups)
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
    config.groups = groups;
    return config;
}

static void fill(float *values, uint32_t seed)
{
    for (uint32_t i = 0; i < ELEMENTS; i++)
        values[i] = (float)((double)((i + seed) * 2654435761U) / 0x1p31 - 1.0);
}

/* Makes some updates, with the range cut into pieces of @p piece elements. */
static void train(const optimizer_config *config, size_t piece, float params[ELEMENTS])
{
    train_tensor list[TENSORS + 1];
    const tensor_table table = make_table(list);
    train_optimizer optimizer;
    float grads[ELEMENTS];
    fill(params, 1);
    assert_int_equal(optimizer_create(&optimizer, &place_host, config, ELEMENTS), RING_OK);
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
                           &config->lr, &(double){0.5});
    }
    optimizer_destroy(&optimizer);
}

static const optimizer_kind kinds[] = {OPTIMIZER_SGD, OPTIMIZER_ADAM, OPTIMIZER_ADAMW,
                                       OPTIMIZER_LION, OPTIMIZER_ADAGRAD};

/* An element is as with one group that decays, or as with one that does not. */
static void each_tensor_is_updated_as_its_group(void **state)
{
    for (size_t k = 0; k < COUNT_OF(kinds); k++) {
        float with[ELEMENTS], without[ELEMENTS], got[ELEMENTS];
        optimizer_config none = config_of(kinds[k], GROUPS_ONE);
        train(&none, ELEMENTS, with);
        none.weight_decay = 0.0;
        train(&none, ELEMENTS, without);
        assert_memory_not_equal(with, without, sizeof with);
        for (int n = 0; n < 3; n++) {
            const optimizer_config config = config_of(kinds[k], (param_groups)(GROUPS_ONE + n));
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
    for (size_t k = 0; k < COUNT_OF(kinds); k++) {
        const optimizer_config config = config_of(kinds[k], GROUPS_NO_DECAY);
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
    enum { HALF = ELEMENTS / 2 };
    const optimizer_config config = config_of(OPTIMIZER_ADAMW, GROUPS_NO_DECAY);
    train_tensor list[TENSORS + 1];
    const tensor_table table = make_table(list);
    train_optimizer optimizer;
    float whole[ELEMENTS], params[ELEMENTS], grads[ELEMENTS];
    train(&config, ELEMENTS, whole);
    fill(params, 1);
    assert_int_equal(optimizer_create(&optimizer, &place_host, &config, HALF), RING_OK);
    assert_int_equal(optimizer_bytes(&optimizer), ELEMENTS * sizeof(float));
    assert_int_equal(optimizer_group(&optimizer, &table), RING_OK);
    for (uint32_t update = 0; update < UPDATES; update++) {
        fill(grads, 100 * update + 50);
        optimizer_begin(&optimizer);
        optimizer_step(&optimizer, &(optimizer_range){HALF, 0, HALF, params + HALF, grads + HALF},
                       &config.lr, &(double){0.5});
    }
    assert_memory_equal(params + HALF, whole + HALF, HALF * sizeof(float));
    optimizer_destroy(&optimizer);
}

static void adagrads_sum_starts_where_it_is_told(void **state)
{
    optimizer_config config = config_of(OPTIMIZER_ADAGRAD, GROUPS_ONE);
    train_optimizer optimizer;
    config.first_sum = 0.25;
    assert_int_equal(optimizer_create(&optimizer, &place_host, &config, 3), RING_OK);
    assert_true(optimizer.first[0] == 0.25F && optimizer.first[2] == 0.25F);
    assert_null(optimizer.second);
    optimizer_destroy(&optimizer);
}

/* As in PyTorch: the first gradient is the momentum, whatever the dampening. */
static void the_first_gradient_is_not_dampened(void **state)
{
    optimizer_config config = config_of(OPTIMIZER_SGD, GROUPS_ONE);
    train_optimizer optimizer;
    float param = 1.0F;
    const float grad = 0.5F, after[] = {0.95F, 0.87F}; /* less 0.1 * 0.5, less 0.1 * 0.8 */
    config.dampening = 0.3;
    config.weight_decay = 0.0;
    assert_int_equal(optimizer_create(&optimizer, &place_host, &config, 1), RING_OK);
    for (size_t update = 0; update < COUNT_OF(after); update++) {
        optimizer_begin(&optimizer);
        optimizer_step(&optimizer, &(optimizer_range){0, 0, 1, &param, &grad}, &config.lr,
                       &(double){1.0});
        assert_near(param, after[update], 1e-6, 0);
    }
    optimizer_destroy(&optimizer);
}

/* torch.nn.utils.clip_grad_norm_: most / (norm + 1e-6), at most 1. */
static void clipping_is_pytorchs(void **state)
{
    assert_near(optimizer_clip(1e-6, 1e-6), 0.5, 1e-12, 0);
    assert_near(optimizer_clip(2.0, 1.0), 1.0 / 2.000001, 1e-12, 0);
    assert_near(optimizer_clip(1.0, 1.0), 1.0 / 1.000001, 1e-12, 0);
    assert_true(optimizer_clip(0.5, 1.0) == 1.0);
    assert_true(optimizer_clip(0.0, 1.0) == 1.0);
    assert_true(optimizer_clip(100.0, 0.0) == 1.0); /* off */
}

/* ---- A rate of each group ------------------------------------------------------------------- */

static void train_as_configured(const char *text, long updates, float params[ELEMENTS])
{
    const parsed got = parse(text);
    if (got.status != RING_OK)
        fail_msg("%s: %s", text, train_error());
    const optimizer_config *config = &got.config.optimizer;
    train_tensor list[TENSORS + 1];
    const tensor_table table = make_table(list);
    train_optimizer optimizer;
    float grads[ELEMENTS];
    fill(params, 1);
    assert_int_equal(optimizer_create(&optimizer, &place_host, config, ELEMENTS), RING_OK);
    assert_int_equal(optimizer_group(&optimizer, &table), RING_OK);
    for (long update = 1; update <= updates; update++) {
        const schedule_config *schedule = &got.config.schedule;
        fill(grads, 100 * (uint32_t)update - 50);
        optimizer_begin(&optimizer);
        optimizer.no_decay_lr = schedule_lr(schedule, optimizer_no_decay_lr(config), update, false);
        const double lr = schedule_lr(schedule, config->lr, update, false);
        optimizer_step(&optimizer, &(optimizer_range){0, 0, ELEMENTS, params, grads}, &lr,
                       &(double){1.0});
    }
    optimizer_destroy(&optimizer);
}

#define TWO_GROUPS(type, more) \
    "{optimizer: {type: \"" type \
    "\", param_groups: \"no_decay\", no_decay_lr: 0.02, params: {lr: 0.1, weight_decay: 0.3" more \
    "}}"

static bool is_padding(size_t offset)
{
    bool is_laid = false;
    for (int t = 0; t < TENSORS; t++)
        is_laid |= offset >= laid[t].offset && offset < laid[t].offset + laid[t].count;
    return !is_laid;
}

static void each_group_has_the_rate_that_pytorch_gives_it(void **state)
{
    enum { STORED_UPDATES = 6, LAID_ELEMENTS = 62 };
    static const struct {
        const char *text;
        const char *end; /* by offset, without the padding */
    } runs[] = {
        {TWO_GROUPS("SGD", ", momentum: 0.9") "}", "groups/groups_constant"},
        {TWO_GROUPS("AdamW", "") ", scheduler: {type: \"CosineAnnealingLR\", params: "
                                 "{T_max: 4, eta_min: 0.01}}}",
         "groups/groups_annealing"},
        {TWO_GROUPS("SGD", "") ", scheduler: {type: \"StepLR\", params: "
                               "{step_size: 2, gamma: 0.5}}}",
         "groups/groups_stairs"},
        {TWO_GROUPS("AdamW", "") ", scheduler: {type: \"WarmupCosineLR\", params: "
                                 "{warmup_num_steps: 2, total_num_steps: 6, cos_min_ratio: 0.1, "
                                 "warmup_type: \"linear\"}}}",
         "groups/groups_cosine"},
    };
    for (size_t r = 0; r < COUNT_OF(runs); r++) {
        float got[ELEMENTS];
        const float *want = vector_floats(runs[r].end, LAID_ELEMENTS);
        train_as_configured(runs[r].text, STORED_UPDATES, got);
        for (size_t i = 0; i < ELEMENTS; i++) {
            if (!is_padding(i))
                assert_near(got[i], *want++, 1e-6, 1e-6);
        }
    }
}

static void schedulers_with_rates_of_their_own_set_both_groups(void **state)
{
    float with[ELEMENTS], without[ELEMENTS];
#define WARMUP ", scheduler: {type: \"WarmupLR\", params: {warmup_num_steps: 2}}}"
    train_as_configured(TWO_GROUPS("SGD", "") WARMUP, 4, with);
    train_as_configured("{optimizer: {type: \"SGD\", param_groups: \"no_decay\", params: {lr: 0.1, "
                        "weight_decay: 0.3}}" WARMUP,
                        4, without);
    assert_memory_equal(with, without, sizeof with);
    assert_string_equal(parse(TWO_GROUPS("SGD", "") WARMUP).notes,
                        "optimizer.no_decay_lr has no effect: as in DeepSpeed, WarmupLR sets one "
                        "rate for all groups\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_tensor_is_updated_as_its_group),
        cmocka_unit_test(ranges_may_be_cut_anywhere),
        cmocka_unit_test(states_lie_apart_from_parameters),
        cmocka_unit_test(adagrads_sum_starts_where_it_is_told),
        cmocka_unit_test(the_first_gradient_is_not_dampened),
        cmocka_unit_test(clipping_is_pytorchs),
        cmocka_unit_test(each_group_has_the_rate_that_pytorch_gives_it),
        cmocka_unit_test(schedulers_with_rates_of_their_own_set_both_groups),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

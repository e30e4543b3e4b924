/* SPDX-License-Identifier: Apache-2.0
 * The learning rate of every update against values computed by hand and by DeepSpeed's code. */
#include "check.h"

#include <schedule.h>

static const schedule_config recipe = {
    .kind = SCHEDULE_WARMUP_DECAY,
    .min_lr = 1e-4,
    .max_lr = 0.1,
    .warmup_steps = 1000,
    .total_steps = 9000,
    .linear = true,
    .last_iteration = -1,
};

static void warmup_decay_goes_up_and_down(void **state)
{
    static const struct {
        long iteration;
        double lr;
    } vectors[] = {{0, 1e-4},    {1, 1.999e-4},   {500, 0.05005},        {999, 0.0999001},
                   {1000, 0.1},  {5000, 0.05005}, {8999, 1.12487500e-4}, {9000, 1e-4},
                   {9001, 1e-4}, {100000, 1e-4}};
    for (size_t i = 0; i < COUNT_OF(vectors); i++)
        assert_near(schedule_at(&recipe, 0.01, vectors[i].iteration), vectors[i].lr, 1e-12, 0);
}

static void the_first_update_uses_the_constructors_rate(void **state)
{
    assert_near(schedule_lr(&recipe, 0.01, 1, false), 1e-4, 0, 0);
    assert_near(schedule_lr(&recipe, 0.01, 2, false), 1e-4, 0, 0); /* iteration 0 */
    assert_near(schedule_lr(&recipe, 0.01, 3, false), 1.999e-4, 1e-12, 0);
    assert_near(schedule_lr(&recipe, 0.01, 1002, false), 0.1, 1e-12, 0);
}

static void compat_0_13_starts_at_the_optimizers_rate(void **state)
{
    assert_near(schedule_lr(&recipe, 0.01, 1, true), 0.01, 0, 0);
    assert_near(schedule_lr(&recipe, 0.01, 2, true), 1e-4, 0, 0);
}

static void a_continued_schedule_goes_on(void **state)
{
    schedule_config later = recipe;
    later.last_iteration = 998;
    assert_near(schedule_lr(&later, 0.01, 1, false), 0.01, 0, 0);
    assert_near(schedule_lr(&later, 0.01, 2, false), 0.0999001, 1e-12, 0);
    assert_near(schedule_lr(&later, 0.01, 3, false), 0.1, 1e-12, 0);
}

static void log_warmup_follows_the_logarithm(void **state)
{
    const schedule_config schedule = {.kind = SCHEDULE_WARMUP,
                                      .min_lr = 0.5,
                                      .max_lr = 1.5,
                                      .warmup_steps = 100,
                                      .last_iteration = -1};
    assert_near(schedule_at(&schedule, 0.01, 0), 0.5, 1e-15, 0);
    assert_near(schedule_at(&schedule, 0.01, 9), 1.0, 1e-12, 0); /* ln 10 / ln 100 */
    assert_near(schedule_at(&schedule, 0.01, 99), 1.5, 1e-12, 0);
    assert_near(schedule_at(&schedule, 0.01, 100), 1.5, 0, 0);
    assert_near(schedule_at(&schedule, 0.01, 1000000), 1.5, 0, 0);
}

static void a_warmup_of_one_step_counts_as_two(void **state)
{
    schedule_config schedule = recipe;
    schedule.warmup_steps = 1;
    assert_near(schedule_at(&schedule, 0.01, 1), 1e-4 + 0.0999 / 2, 1e-12, 0);
    assert_near(schedule_at(&schedule, 0.01, 2), 0.1, 1e-12, 0);
}

static void a_total_below_the_warmup_drops_to_the_minimum(void **state)
{
    schedule_config schedule = recipe;
    schedule.total_steps = 500;
    assert_near(schedule_at(&schedule, 0.01, 999), 0.0999001, 1e-12, 0);
    assert_near(schedule_at(&schedule, 0.01, 1000), 1e-4, 0, 0);
}

static void without_a_scheduler_the_rate_is_constant(void **state)
{
    const schedule_config none = {.kind = SCHEDULE_CONSTANT};
    assert_near(schedule_lr(&none, 0.01, 1, false), 0.01, 0, 0);
    assert_near(schedule_lr(&none, 0.01, 5000, true), 0.01, 0, 0);
}

typedef struct vector {
    long update;
    double lr, beta;
} vector;

/* Of DeepSpeed 0.19.8: what its schedulers have put into an Adam before each update. */
static void compare(const schedule_config *schedule, double base_lr, const vector *vectors,
                    size_t count)
{
    const optimizer_config adam = {.lr = base_lr, .no_decay_lr = -1.0, .betas = {0.9, 0.999}};
    for (size_t i = 0; i < count; i++) {
        const vector *v = &vectors[i];
        const schedule_rates rates = schedule_rates_of(schedule, &adam, v->update, false);
        assert_near(rates.lr, v->lr, 1e-12, 1e-15);
        assert_near(rates.no_decay_lr, v->lr, 1e-12, 1e-15);
        assert_near(rates.betas[0], v->beta, 1e-12, 0);
        assert_near(rates.betas[1], schedule->cycle.momentum ? 0.99 : 0.999, 0, 0);
    }
}

static void warmup_cosine_follows_deepspeed(void **state)
{
    static const vector linear[] = {{1, 0, 0.9},
                                    {2, 0, 0.9},
                                    {3, 1e-7, 0.9},
                                    {502, 5e-05, 0.9},
                                    {1002, 9.999999981231199e-05, 0.9},
                                    {19129, 5.0005e-05, 0.9},
                                    {37257, 1e-08, 0.9},
                                    {40002, 1e-08, 0.9}};
    static const vector logarithmic[] = {{1, 0.0, 0.9},
                                         {2, 0.0001, 0.9},
                                         {3, 0.00037092699609758304, 0.9},
                                         {11, 0.0009999999999999998, 0.9},
                                         {12, 0.0009938447858805393, 0.9},
                                         {20, 0.0005782594107968635, 0.9},
                                         {25, 0.0002061867631163781, 0.9},
                                         {40, 1.0000000000000001e-07, 0.9}};
    schedule_config s = {.kind = SCHEDULE_WARMUP_COSINE,
                         .cos_min_ratio = 1e-4,
                         .warmup_steps = 1000,
                         .total_steps = 37256,
                         .linear = true,
                         .last_iteration = -1};
    compare(&s, 1e-4, linear, COUNT_OF(linear));
    s.unclamped = true;
    assert_near(schedule_at(&s, 1e-4, 40000), 1.4176e-6, 1e-4, 0);
    assert_near(schedule_lr(&s, 1e-4, 1, true), 1e-4, 0, 0);
    s = (schedule_config){.kind = SCHEDULE_WARMUP_COSINE,
                          .warmup_min_ratio = 0.1,
                          .cos_min_ratio = 1e-4,
                          .warmup_steps = 10,
                          .total_steps = 30,
                          .last_iteration = -1};
    compare(&s, 1e-3, logarithmic, COUNT_OF(logarithmic));
}

static void one_cycle_follows_deepspeed(void **state)
{
    static const vector decaying[] = {{1, 0.001, 0.8},
                                      {2, 0.0019, 0.89},
                                      {11, 0.01, 0.8},
                                      {12, 0.0097, 0.8033333333333333},
                                      {30, 0.0043, 0.8633333333333334},
                                      {42, 0.0009090909090909091, 0.9018},
                                      {43, 0.0008333333333333334, 0.9036},
                                      {80, 0.0002040816326530612, 0.9702}};
    static const vector stairs[] = {{1, 0.001, 0.8},     {2, 0.001, 0.9},      {5, 0.00325, 0.875},
                                    {9, 0.00775, 0.825}, {10, 0.00775, 0.825}, {11, 0.01, 0.8},
                                    {15, 0.0055, 0.85},  {20, 0.001, 0.9},     {21, 0.001, 0.9},
                                    {40, 0.001, 0.9}};
    schedule_config s = {.kind = SCHEDULE_ONE_CYCLE, .last_iteration = -1};
    s.cycle = (cycle_config){.min_lr = 0.001,
                             .max_lr = 0.01,
                             .min_momentum = 0.8,
                             .max_momentum = 0.9,
                             .first_steps = 10,
                             .second_steps = 30,
                             .second_stairs = -1,
                             .decay_steps = 5,
                             .decay_lr_rate = 0.5,
                             .decay_momentum_rate = 0.01,
                             .momentum = true};
    compare(&s, 0.01, decaying, COUNT_OF(decaying));
    s.cycle.second_steps = s.cycle.decay_steps = 0;
    s.cycle.first_stairs = 4;
    compare(&s, 0.01, stairs, COUNT_OF(stairs));
}

static void the_range_test_follows_deepspeed(void **state)
{
    static const vector rising[] = {
        {1, 1e-4, 0.9}, {2, 1.5e-4, 0.9}, {10, 5.5e-4, 0.9}, {11, 6e-4, 0.9}, {30, 1.55e-3, 0.9}};
    static const vector stairs[] = {{1, 1e-4, 0.9},  {10, 1e-4, 0.9},   {11, 6e-4, 0.9},
                                    {20, 6e-4, 0.9}, {21, 1.1e-3, 0.9}, {30, 1.1e-3, 0.9}};
    schedule_config s = {.kind = SCHEDULE_RANGE_TEST,
                         .range_min_lr = 1e-4,
                         .range_steps = 10,
                         .range_rate = 5,
                         .last_iteration = -1};
    compare(&s, 0.01, rising, COUNT_OF(rising));
    s.range_staircase = true;
    compare(&s, 0.01, stairs, COUNT_OF(stairs));
}

/* They count from 0 at the first update, and go on for ever. */
static void pytorchs_schedulers_count_updates(void **state)
{
    static const vector cosine[] = {{1, 2e-4, 0.9},
                                    {26, 1.70857125e-4, 0.9},
                                    {51, 1.005e-4, 0.9},
                                    {101, 1e-6, 0.9},
                                    {201, 2e-4, 0.9}};
    static const vector stairs[] = {{1, 0.5, 0.9},
                                    {30, 0.5, 0.9},
                                    {31, 0.05, 0.9},
                                    {91, 5e-4, 0.9}};
    schedule_config s = {.kind = SCHEDULE_COSINE_ANNEALING,
                         .annealing_steps = 100,
                         .annealing_min_lr = 1e-6,
                         .last_iteration = -1};
    for (size_t i = 0; i < COUNT_OF(cosine); i++)
        assert_near(schedule_lr(&s, 2e-4, cosine[i].update, true), cosine[i].lr, 1e-8, 0);
    s = (schedule_config){.kind = SCHEDULE_STEPS,
                          .stair_steps = 30,
                          .stair_gamma = 0.1,
                          .last_iteration = -1};
    compare(&s, 0.5, stairs, COUNT_OF(stairs));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(warmup_decay_goes_up_and_down),
        cmocka_unit_test(the_first_update_uses_the_constructors_rate),
        cmocka_unit_test(compat_0_13_starts_at_the_optimizers_rate),
        cmocka_unit_test(a_continued_schedule_goes_on),
        cmocka_unit_test(log_warmup_follows_the_logarithm),
        cmocka_unit_test(a_warmup_of_one_step_counts_as_two),
        cmocka_unit_test(a_total_below_the_warmup_drops_to_the_minimum),
        cmocka_unit_test(without_a_scheduler_the_rate_is_constant),
        cmocka_unit_test(warmup_cosine_follows_deepspeed),
        cmocka_unit_test(one_cycle_follows_deepspeed),
        cmocka_unit_test(the_range_test_follows_deepspeed),
        cmocka_unit_test(pytorchs_schedulers_count_updates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

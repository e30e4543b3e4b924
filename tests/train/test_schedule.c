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
    (void)state;
    static const struct {
        long iteration;
        double lr;
    } vectors[] = {{0, 1e-4},    {1, 1.999e-4},   {500, 0.05005},        {999, 0.0999001},
                   {1000, 0.1},  {5000, 0.05005}, {8999, 1.12487500e-4}, {9000, 1e-4},
                   {9001, 1e-4}, {100000, 1e-4}};
    for (size_t i = 0; i < COUNT_OF(vectors); i++)
        assert_near(schedule_at(&recipe, vectors[i].iteration), vectors[i].lr, 1e-12, 0);
}

static void the_first_update_uses_the_constructors_rate(void **state)
{
    (void)state;
    assert_near(schedule_lr(&recipe, 0.01, 1, false), 1e-4, 0, 0);
    assert_near(schedule_lr(&recipe, 0.01, 2, false), 1e-4, 0, 0); /* iteration 0 */
    assert_near(schedule_lr(&recipe, 0.01, 3, false), 1.999e-4, 1e-12, 0);
    assert_near(schedule_lr(&recipe, 0.01, 1002, false), 0.1, 1e-12, 0);
}

static void compat_0_13_starts_at_the_optimizers_rate(void **state)
{
    (void)state;
    assert_near(schedule_lr(&recipe, 0.01, 1, true), 0.01, 0, 0);
    assert_near(schedule_lr(&recipe, 0.01, 2, true), 1e-4, 0, 0);
}

static void a_continued_schedule_goes_on(void **state)
{
    (void)state;
    schedule_config later = recipe;
    later.last_iteration = 998;
    assert_near(schedule_lr(&later, 0.01, 1, false), 0.01, 0, 0);
    assert_near(schedule_lr(&later, 0.01, 2, false), 0.0999001, 1e-12, 0);
    assert_near(schedule_lr(&later, 0.01, 3, false), 0.1, 1e-12, 0);
}

static void log_warmup_follows_the_logarithm(void **state)
{
    (void)state;
    const schedule_config schedule = {.kind = SCHEDULE_WARMUP,
                                      .min_lr = 0.5,
                                      .max_lr = 1.5,
                                      .warmup_steps = 100,
                                      .last_iteration = -1};
    assert_near(schedule_at(&schedule, 0), 0.5, 1e-15, 0);
    assert_near(schedule_at(&schedule, 9), 1.0, 1e-12, 0); /* ln 10 / ln 100 */
    assert_near(schedule_at(&schedule, 99), 1.5, 1e-12, 0);
    assert_near(schedule_at(&schedule, 100), 1.5, 0, 0);
    assert_near(schedule_at(&schedule, 1000000), 1.5, 0, 0);
}

static void a_warmup_of_one_step_counts_as_two(void **state)
{
    (void)state;
    schedule_config schedule = recipe;
    schedule.warmup_steps = 1;
    assert_near(schedule_at(&schedule, 1), 1e-4 + 0.0999 / 2, 1e-12, 0);
    assert_near(schedule_at(&schedule, 2), 0.1, 1e-12, 0);
}

static void a_total_below_the_warmup_drops_to_the_minimum(void **state)
{
    (void)state;
    schedule_config schedule = recipe;
    schedule.total_steps = 500;
    assert_near(schedule_at(&schedule, 999), 0.0999001, 1e-12, 0);
    assert_near(schedule_at(&schedule, 1000), 1e-4, 0, 0);
}

static void without_a_scheduler_the_rate_is_constant(void **state)
{
    (void)state;
    const schedule_config none = {.kind = SCHEDULE_CONSTANT};
    assert_near(schedule_lr(&none, 0.01, 1, false), 0.01, 0, 0);
    assert_near(schedule_lr(&none, 0.01, 5000, true), 0.01, 0, 0);
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

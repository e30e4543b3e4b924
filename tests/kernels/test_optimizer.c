/* SPDX-License-Identifier: Apache-2.0
 *
 * Optimisers: against steps that PyTorch took (stored_optimizer.h), and bit by bit against
 * the documented operations done one at a time. The sum of squares: its order. */

#include "unit_test.h"

#include "kernel_oracle.h"
#include "kernels.h"
#include "simd_level.h"
#include "stored_optimizer.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { N = 300 };

/* ---- PyTorch ---- */

static void take_steps(const stored_case *c, float *p)
{
    float m[STORED_COUNT] = {0}, v[STORED_COUNT] = {0};
    memcpy(p, stored_start, sizeof stored_start);
    for (int step = 0; step < STORED_STEPS; step++) {
        kernel_sgd sgd = c->sgd;
        kernel_adam adam = c->adam;
        kernel_adagrad adagrad = c->adagrad;
        sgd.first = step == 0;
        adam.step = adagrad.step = step + 1;
        if (c->is_lion)
            kernel_lion_step(p, stored_grads[step], m, STORED_COUNT, &c->lion);
        else if (c->is_adagrad)
            kernel_adagrad_step(p, stored_grads[step], v, STORED_COUNT, &adagrad);
        else if (c->is_sgd)
            kernel_sgd_step(p, stored_grads[step], sgd.momentum != 0 ? m : NULL, STORED_COUNT,
                            &sgd);
        else
            kernel_adam_step(p, stored_grads[step], m, v, STORED_COUNT, &adam);
    }
}

/* PyTorch fuses some products into sums, so the last bits of a step may differ. */
static void test_steps_equal_pytorchs(void **state)
{
    for (size_t c = 0; c < sizeof stored_cases / sizeof *stored_cases; c++) {
        float p[STORED_COUNT];
        take_steps(&stored_cases[c], p);
        for (int i = 0; i < STORED_COUNT; i++) {
            const float want = stored_cases[c].end[i], moved = want - stored_start[i];
            const float tolerance = 3 * FLT_EPSILON * fabsf(stored_start[i]) + 1e-6f * fabsf(moved);
            if (!(fabsf(p[i] - want) <= tolerance))
                fail_msg("case %zu, parameter %d: %.9g, PyTorch %.9g", c, i, (double)p[i],
                         (double)want);
        }
    }
}

/* ---- One operation at a time ---- */

typedef volatile float single; /* rounds each result */

static void sgd_by_hand(float *p, float grad, float *buf, const kernel_sgd *args)
{
    single g = (float)args->scale * grad;
    if (args->weight_decay != 0) {
        single decay = (float)args->weight_decay * *p;
        g = g + decay;
    }
    if (args->momentum != 0) {
        single kept = (float)args->momentum * *buf, added = (float)(1 - args->dampening) * g;
        single sum = kept + added;
        *buf = args->first ? g : sum;
        single ahead = (float)args->momentum * *buf, nesterov = g + ahead;
        g = args->nesterov ? nesterov : *buf;
    }
    single change = (float)args->lr * g;
    *p = *p - change;
}

static void adam_by_hand(float *p, float grad, float *m, float *v, const kernel_adam *args)
{
    const double unbias1 = args->bias_correction ? 1 - pow(args->beta1, (double)args->step) : 1;
    const double unbias2 = args->bias_correction ? 1 - pow(args->beta2, (double)args->step) : 1;
    single g = (float)args->scale * grad;
    single decayed = *p;
    if (args->decoupled) {
        decayed = (float)(1 - args->lr * args->weight_decay) * *p;
    } else if (args->weight_decay != 0) {
        single decay = (float)args->weight_decay * *p;
        g = g + decay;
    }
    single difference = g - *m, blended = (float)(1 - args->beta1) * difference;
    *m = *m + blended;
    single kept = (float)args->beta2 * *v, half = (float)(1 - args->beta2) * g, square = half * g;
    *v = kept + square;
    single root = (float)sqrt((double)*v), corrected = root / (float)sqrt(unbias2);
    single below = corrected + (float)args->eps, above = (float)(args->lr / unbias1) * *m;
    single change = above / below;
    *p = decayed - change;
}

static void lion_by_hand(float *p, float grad, float *m, const kernel_lion *args)
{
    single g = (float)args->scale * grad;
    single kept = (float)args->beta1 * *m, added = (float)(1 - args->beta1) * g, way = kept + added;
    single decayed = (float)(1 - args->lr * args->weight_decay) * *p;
    single change = (float)args->lr * (way > 0 ? 1.0f : way < 0 ? -1.0f : 0.0f);
    single held = (float)args->beta2 * *m, blended = (float)(1 - args->beta2) * g;
    *p = decayed - change;
    *m = held + blended;
}

static void adagrad_by_hand(float *p, float grad, float *sum, const kernel_adagrad *args)
{
    single g = (float)args->scale * grad;
    if (args->weight_decay != 0) {
        single decay = (float)args->weight_decay * *p;
        g = g + decay;
    }
    single square = g * g;
    *sum = *sum + square;
    single root = (float)sqrt((double)*sum), below = root + (float)args->eps;
    single above = (float)(args->lr / (1 + (double)(args->step - 1) * args->lr_decay)) * g;
    single change = above / below;
    *p = *p - change;
}

typedef struct arrays {
    float p[N + 16], grad[N + 16], m[N + 16], v[N + 16];
} arrays;

static void fill(arrays *a, uint64_t *state)
{
    for (int i = 0; i < N + 16; i++) {
        const uint64_t r = oracle_random(state);
        a->p[i] = (float)(int16_t)r / 4096;
        a->grad[i] = ldexpf((float)(int16_t)(r >> 16), -16 - (int)(r >> 60));
        a->m[i] = (float)(int16_t)(r >> 32) / 65536;
        a->v[i] = (float)(uint16_t)(r >> 44) / 1e6f;
    }
}

static void check_equal(const arrays *got, const arrays *want, const char *what, size_t count)
{
    if (memcmp(got, want, sizeof *got) != 0)
        fail_msg("%s of %zu elements differs", what, count);
}

static void check_sgd(const kernel_sgd *args, uint64_t *state)
{
    for (size_t count = 0; count <= N; count += count < 70 ? 1 : 115) {
        arrays got, want;
        const size_t at = count % 9;
        fill(&got, state);
        want = got;
        kernel_sgd_step(got.p + at, got.grad + at, got.m + at, count, args);
        for (size_t i = at; i < at + count; i++)
            sgd_by_hand(&want.p[i], want.grad[i], &want.m[i], args);
        check_equal(&got, &want, "sgd step", count);
    }
}

static void check_adam(const kernel_adam *args, uint64_t *state)
{
    for (size_t count = 0; count <= N; count += count < 70 ? 1 : 115) {
        arrays got, want;
        const size_t at = count % 9;
        fill(&got, state);
        want = got;
        kernel_adam_step(got.p + at, got.grad + at, got.m + at, got.v + at, count, args);
        for (size_t i = at; i < at + count; i++)
            adam_by_hand(&want.p[i], want.grad[i], &want.m[i], &want.v[i], args);
        check_equal(&got, &want, "adam step", count);
    }
}

static void check_lion(const kernel_lion *args, uint64_t *state)
{
    for (size_t count = 0; count <= N; count += count < 70 ? 1 : 115) {
        arrays got, want;
        const size_t at = count % 9;
        fill(&got, state);
        got.m[at] = got.grad[at] = 0;
        want = got;
        kernel_lion_step(got.p + at, got.grad + at, got.m + at, count, args);
        for (size_t i = at; i < at + count; i++)
            lion_by_hand(&want.p[i], want.grad[i], &want.m[i], args);
        check_equal(&got, &want, "lion step", count);
    }
}

static void check_adagrad(const kernel_adagrad *args, uint64_t *state)
{
    for (size_t count = 0; count <= N; count += count < 70 ? 1 : 115) {
        arrays got, want;
        const size_t at = count % 9;
        fill(&got, state);
        want = got;
        kernel_adagrad_step(got.p + at, got.grad + at, got.v + at, count, args);
        for (size_t i = at; i < at + count; i++)
            adagrad_by_hand(&want.p[i], want.grad[i], &want.v[i], args);
        check_equal(&got, &want, "adagrad step", count);
    }
}

static void test_lion_does_the_documented_operations(void **cmocka_state)
{
    uint64_t state = 15;
    for (int bits = 0; bits < 4; bits++) {
        const kernel_lion args = {.lr = 1e-3,
                                  .beta1 = 0.9,
                                  .beta2 = 0.99,
                                  .scale = bits & 1 ? 1 : 1.0 / 7,
                                  .weight_decay = bits & 2 ? 0.05 : 0};
        check_lion(&args, &state);
    }
}

static void test_adagrad_does_the_documented_operations(void **cmocka_state)
{
    uint64_t state = 16;
    for (int bits = 0; bits < 16; bits++) {
        const kernel_adagrad args = {.lr = 1e-2,
                                     .eps = 1e-10,
                                     .scale = bits & 1 ? 1 : 1.0 / 7,
                                     .weight_decay = bits & 2 ? 0.05 : 0,
                                     .lr_decay = bits & 4 ? 0.1 : 0,
                                     .step = bits & 8 ? 1 : 12345};
        check_adagrad(&args, &state);
    }
}

static void test_sgd_does_the_documented_operations(void **cmocka_state)
{
    uint64_t state = 11;
    for (int bits = 0; bits < 64; bits++) {
        const kernel_sgd args = {
            .lr = 0.03,
            .scale = bits & 1 ? 1 : 1.0 / 3,
            .weight_decay = bits & 2 ? 0.01 : 0,
            .momentum = bits & 4 ? 0.9 : 0,
            .dampening = bits & 8 ? 0.3 : 0,
            .nesterov = bits & 16,
            .first = bits & 32,
        };
        check_sgd(&args, &state);
    }
}

static void test_adam_does_the_documented_operations(void **cmocka_state)
{
    uint64_t state = 12;
    for (int bits = 0; bits < 32; bits++) {
        const kernel_adam args = {
            .lr = 1e-3,
            .beta1 = 0.9,
            .beta2 = 0.999,
            .eps = 1e-8,
            .scale = bits & 1 ? 1 : 1.0 / 7,
            .weight_decay = bits & 2 ? 0.05 : 0,
            .decoupled = bits & 4,
            .bias_correction = bits & 8,
            .step = bits & 16 ? 1 : 12345,
        };
        check_adam(&args, &state);
    }
}

/* Each step divides by another number. */
static void test_adam_divides_as_a_division_in_all_steps(void **cmocka_state)
{
    uint64_t state = 17;
    kernel_adam args = {.lr = 1, .beta1 = 0.9, .beta2 = 0.999, .scale = 1, .bias_correction = true};
    for (args.step = 1; args.step <= 3000; args.step++) {
        arrays got, want;
        fill(&got, &state);
        got.v[0] = 0;
        got.v[1] = INFINITY;
        got.v[2] = NAN;
        got.v[3] = 1e-44F;
        got.m[3] = 1e-30F;
        got.grad[3] = 0;
        args.eps = args.step % 2 == 0 ? 0 : 1e-8;
        want = got;
        kernel_adam_step(got.p, got.grad, got.m, got.v, N, &args);
        for (size_t i = 0; i < N; i++)
            adam_by_hand(&want.p[i], want.grad[i], &want.m[i], &want.v[i], &args);
        check_equal(&got, &want, "adam step", N);
    }
}

static void test_first_momentum_step_ignores_what_the_buffer_held(void **cmocka_state)
{
    float p[20], grad[20], buf[20];
    for (int i = 0; i < 20; i++) {
        p[i] = 1;
        grad[i] = 2;
        buf[i] = NAN;
    }
    kernel_sgd_step(p, grad, buf, 20,
                    &(kernel_sgd){.lr = 0.5, .momentum = 0.9, .scale = 1, .first = true});
    for (int i = 0; i < 20; i++) {
        assert_true(p[i] == 0);
        assert_true(buf[i] == 2);
    }
}

static void test_sgd_without_momentum_needs_no_buffer(void **cmocka_state)
{
    float p[3] = {1, 2, 3};
    const float grad[3] = {1, 1, 1};
    kernel_sgd_step(p, grad, NULL, 3, &(kernel_sgd){.lr = 0.5, .scale = 1});
    assert_true(p[0] == 0.5f && p[1] == 1.5f && p[2] == 2.5f);
}

static void test_a_nan_gradient_spoils_only_its_own_parameter(void **cmocka_state)
{
    uint64_t state = 13;
    arrays a;
    fill(&a, &state);
    a.grad[17] = NAN;
    kernel_adam_step(a.p, a.grad, a.m, a.v, N,
                     &(kernel_adam){.lr = 1e-3,
                                    .beta1 = 0.9,
                                    .beta2 = 0.999,
                                    .eps = 1e-8,
                                    .scale = 1,
                                    .bias_correction = true,
                                    .step = 1});
    for (int i = 0; i < N; i++)
        assert_int_equal(isnan(a.p[i]) != 0, i == 17);
}

/* ---- Sum of squares ---- */

/* The definition, lane by lane: 32 strided sums, then halves onto halves. */
static double squares_by_hand(const float *x, size_t count)
{
    volatile double lane[32];
    for (size_t l = 0; l < 32; l++) {
        lane[l] = 0;
        for (size_t i = l; i < count; i += 32)
            lane[l] = lane[l] + (double)x[i] * (double)x[i];
    }
    for (size_t half = 16; half > 0; half /= 2)
        for (size_t l = 0; l < half; l++)
            lane[l] = lane[l] + lane[l + half];
    return lane[0];
}

static void test_sum_of_squares_has_the_bits_of_its_definition(void **cmocka_state)
{
    static float x[5000];
    uint64_t state = 14;
    for (size_t i = 0; i < 5000; i++)
        x[i] = ldexpf((float)(int32_t)oracle_random(&state), -20 - (int)(i % 37));
    for (size_t count = 0; count <= 5000; count += count < 70 ? 1 : 493) {
        const float *from = x + count % 5;
        const size_t n = count - (count % 5 < count ? count % 5 : count);
        const double got = kernel_sum_squares(from, n), want = squares_by_hand(from, n);
        if (memcmp(&got, &want, sizeof got) != 0)
            fail_msg("%zu elements: %a, not %a", n, got, want);
    }
}

static void test_sum_of_squares_is_in_double_precision(void **cmocka_state)
{
    float x[100];
    for (int i = 0; i < 100; i++)
        x[i] = i == 0 ? 1e6f : 1e-3f;
    const long double tiny = (long double)1e-3f;
    const long double exact = 1e12L + 99 * tiny * tiny;
    assert_true(fabsl((long double)kernel_sum_squares(x, 100) - exact) < 1e-2L);
    assert_true(isinf(kernel_sum_squares((float[]){INFINITY, 1}, 2)));
    assert_true(isnan(kernel_sum_squares((float[]){NAN, 1}, 2)));
    assert_true(isfinite(kernel_sum_squares((float[]){FLT_MAX, FLT_MAX}, 2)));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps_equal_pytorchs),
        cmocka_unit_test(test_sgd_does_the_documented_operations),
        cmocka_unit_test(test_adam_does_the_documented_operations),
        cmocka_unit_test(test_adam_divides_as_a_division_in_all_steps),
        cmocka_unit_test(test_lion_does_the_documented_operations),
        cmocka_unit_test(test_adagrad_does_the_documented_operations),
        cmocka_unit_test(test_first_momentum_step_ignores_what_the_buffer_held),
        cmocka_unit_test(test_sgd_without_momentum_needs_no_buffer),
        cmocka_unit_test(test_a_nan_gradient_spoils_only_its_own_parameter),
        cmocka_unit_test(test_sum_of_squares_has_the_bits_of_its_definition),
        cmocka_unit_test(test_sum_of_squares_is_in_double_precision),
    };
    level_from_arguments(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

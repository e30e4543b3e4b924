/* SPDX-License-Identifier: Apache-2.0
 *
 * optimizer.cu against the host's steps, bit by bit; halves as gradients
 * against steps with the same gradients in float32, rounded parameters against the host's casts. */

#include "unit_test.h"

#include "gpu_launch.h"
#include "kernel_args.h"
#include "kernel_oracle.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST = 2500, ARRAYS = 5, ROOM = 4 * MOST + 16 + 2 * GPU_GUARD };
enum { P, GRAD, M, V, ROUNDED };
typedef enum grad_kind { GRAD_F32, GRAD_F16, GRAD_BF16, GRAD_KINDS } grad_kind;

static const char *const grad_names[] = {"f32", "f16", "bf16"};

/* Arrays of the host: its parameters and moments are the expected ones after the step. */
typedef struct arrays {
    float p[MOST], grad[MOST], m[MOST], v[MOST];
} arrays;

static arrays host;
static uint16_t grad_halves[MOST], rounded[MOST];
static unsigned char (*rooms)[ROOM]; /* [ARRAYS] */

/* A step of the host, and the launch of the same. */
typedef struct step {
    const char *rule;
    void (*take)(size_t count, uint64_t *state);
} step;

/* The argument of the kernel; all begin with the arrays. */
static union {
    cuda_step_arrays arrays;
    cuda_sgd_args sgd;
    cuda_adam_args adam;
    cuda_lion_args lion;
    cuda_adagrad_args adagrad;
} args;
static size_t args_bytes;

static bool toss(uint64_t *state)
{
    return test_draw(state, 2) == 1;
}

static double draw_scale(uint64_t *state)
{
    return toss(state) ? 1 : 1.0 / 7;
}

static double draw_decay(uint64_t *state)
{
    return toss(state) ? 0 : 0.05;
}

static void take_momentum(size_t count, uint64_t *state)
{
    const kernel_sgd by = {.lr = 0.03,
                           .scale = draw_scale(state),
                           .weight_decay = draw_decay(state),
                           .momentum = 0.9,
                           .dampening = toss(state) ? 0.3 : 0,
                           .nesterov = toss(state),
                           .first = toss(state)};
    args.sgd.by = sgd_factors_of(&by);
    args_bytes = sizeof args.sgd;
    kernel_sgd_step(host.p, host.grad, host.m, count, &by);
}

static void take_sgd(size_t count, uint64_t *state)
{
    const kernel_sgd by = {.lr = 0.03,
                           .scale = draw_scale(state),
                           .weight_decay = draw_decay(state)};
    args.sgd.by = sgd_factors_of(&by);
    args_bytes = sizeof args.sgd;
    kernel_sgd_step(host.p, host.grad, NULL, count, &by);
}

static void take_adam(size_t count, uint64_t *state)
{
    const kernel_adam by = {.lr = 1e-3,
                            .beta1 = 0.9,
                            .beta2 = 0.999,
                            .eps = 1e-8,
                            .scale = draw_scale(state),
                            .weight_decay = draw_decay(state),
                            .decoupled = toss(state),
                            .bias_correction = toss(state),
                            .step = toss(state) ? 1 : 1234};
    args.adam.by = adam_factors_of(&by);
    args_bytes = sizeof args.adam;
    kernel_adam_step(host.p, host.grad, host.m, host.v, count, &by);
}

static void take_lion(size_t count, uint64_t *state)
{
    const kernel_lion by = {.lr = 1e-3,
                            .beta1 = 0.9,
                            .beta2 = 0.99,
                            .scale = draw_scale(state),
                            .weight_decay = draw_decay(state)};
    args.lion.by = lion_factors_of(&by);
    args_bytes = sizeof args.lion;
    kernel_lion_step(host.p, host.grad, host.m, count, &by);
}

static void take_adagrad(size_t count, uint64_t *state)
{
    const kernel_adagrad by = {.lr = 1e-2,
                               .eps = 1e-10,
                               .scale = draw_scale(state),
                               .weight_decay = draw_decay(state),
                               .lr_decay = toss(state) ? 0.1 : 0,
                               .step = toss(state) ? 1 : 12345};
    args.adagrad.by = adagrad_factors_of(&by);
    args_bytes = sizeof args.adagrad;
    kernel_adagrad_step(host.p, host.grad, host.v, count, &by);
}

static const step steps[] = {{"sgd", take_sgd},
                             {"momentum", take_momentum},
                             {"adam", take_adam},
                             {"lion", take_lion},
                             {"adagrad", take_adagrad}};

static void fill(size_t count, grad_kind kind, uint64_t *state)
{
    for (size_t i = 0; i < count; i++) {
        const uint64_t r = oracle_random(state);
        host.p[i] = (float)(int16_t)r / 4096;
        host.grad[i] = ldexpf((float)(int16_t)(r >> 16), -16 - (int)(r >> 60));
        host.m[i] = (float)(int16_t)(r >> 32) / 65536;
        host.v[i] = (float)(uint16_t)(r >> 44) / 1e6F;
    }
    for (size_t i = 0; i + 8 < count; i += 97) { /* of no length, and beyond all */
        static const float few[] = {0, -0.0F, INFINITY, -INFINITY, 1e-45F, 3e38F};
        host.grad[i] = few[i % 6];
        host.m[i] = i % 2 == 0 ? 0 : host.m[i];
    }
    if (kind == GRAD_F16) {
        kernel_f32_to_f16(grad_halves, host.grad, count);
        kernel_f16_to_f32(host.grad, grad_halves, count);
    } else if (kind == GRAD_BF16) {
        kernel_f32_to_bf16(grad_halves, host.grad, count);
        kernel_bf16_to_f32(host.grad, grad_halves, count);
    }
}

/* @param shift  in elements. */
static void *place(int array, const void *data, size_t count, size_t size, unsigned shift)
{
    unsigned char *at = gpu_place(rooms[array], count * size, shift * (unsigned)size);
    return data != NULL ? memcpy(at, data, count * size) : at;
}

static void place_arrays(size_t count, grad_kind kind, bool alike, uint64_t *state)
{
    unsigned shifts[ARRAYS];
    const unsigned all = test_draw(state, 4);
    for (int k = 0; k < ARRAYS; k++)
        shifts[k] = alike ? all : test_draw(state, 4);
    const bool halves = kind != GRAD_F32;
    args.arrays = (cuda_step_arrays){
        .p = place(P, host.p, count, 4, shifts[P]),
        .grad = place(GRAD, halves ? (const void *)grad_halves : host.grad, count, halves ? 2 : 4,
                      shifts[GRAD]),
        .m = place(M, host.m, count, 4, shifts[M]),
        .v = place(V, host.v, count, 4, shifts[V]),
        .p_rounded = place(ROUNDED, NULL, count, 2, shifts[ROUNDED]),
        .count = count,
        .rounded = test_draw(state, CUDA_ROUNDED_BF16 + 1),
    };
}

/* Equal, or both NaN: the payload is not kept. */
static void check_floats(const char *kernel, const char *what, const float *got, const float *want,
                         size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (memcmp(got + i, want + i, sizeof *got) != 0 && !(isnan(got[i]) && isnan(want[i])))
            fail_msg("%s of %zu: %s[%zu] is %a, not %a", kernel, count, what, i, (double)got[i],
                     (double)want[i]);
    if (!gpu_is_guarded((const unsigned char *)got, count * sizeof *got))
        fail_msg("%s of %zu wrote outside of %s", kernel, count, what);
}

static void check_rounded(const char *kernel, size_t count)
{
    const uint16_t *got = args.arrays.p_rounded;
    if (args.arrays.rounded == CUDA_ROUNDED_F16)
        kernel_f32_to_f16(rounded, args.arrays.p, count);
    else if (args.arrays.rounded == CUDA_ROUNDED_BF16)
        kernel_f32_to_bf16(rounded, args.arrays.p, count);
    else
        memset(rounded, GPU_GUARD_BYTE, sizeof rounded);
    for (size_t i = 0; i < count; i++)
        if (got[i] != rounded[i])
            fail_msg("%s of %zu: %g is rounded to %04x, not %04x", kernel, count,
                     (double)args.arrays.p[i], got[i], rounded[i]);
    assert_true(gpu_is_guarded((const unsigned char *)got, count * sizeof *got));
}

static void check_step(const step *s, grad_kind kind, size_t count, bool alike, uint64_t *state)
{
    char kernel[32];
    snprintf(kernel, sizeof kernel, "%s_%s", s->rule, grad_names[kind]);
    fill(count, kind, state);
    place_arrays(count, kind, alike, state);
    s->take(count, state);
    gpu_launch(kernel, &args, args_bytes, gpu_draw_tiles(state, count, CAST_GROUP));
    check_floats(kernel, "p", args.arrays.p, host.p, count);
    check_floats(kernel, "m", args.arrays.m, host.m, count);
    check_floats(kernel, "v", args.arrays.v, host.v, count);
    check_rounded(kernel, count);
}

static void test_steps_are_those_of_the_host(void **cmocka_state)
{
    uint64_t state = test_seed();
    for (size_t s = 0; s < sizeof steps / sizeof *steps; s++)
        for (grad_kind kind = 0; kind < GRAD_KINDS; kind++) {
            for (size_t count = 0; count < 71; count += GPU_ONE_CASE_OF)
                check_step(&steps[s], kind, count, count % 3 != 0, &state);
            for (int n = 0; n < 40; n += GPU_ONE_CASE_OF)
                check_step(&steps[s], kind, test_draw(&state, MOST), n % 3 != 0, &state);
        }
}

static int make_rooms(void **cmocka_state)
{
    rooms = gpu_room(ARRAYS * sizeof *rooms);
    return 0;
}

static int free_rooms(void **cmocka_state)
{
    gpu_rooms_free();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps_are_those_of_the_host),
    };
    return cmocka_run_group_tests(tests, make_rooms, free_rooms);
}

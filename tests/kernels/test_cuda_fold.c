/* SPDX-License-Identifier: Apache-2.0
 *
 * fold.cu against kernel_fold(), bit by bit: types, operations, numbers of
 * arrays, places in memory, counts, accumulators, outputs that are inputs, divisors, specials.
 * RING_TEST_LONG: the whole product of types, operations, 1..16 inputs, places and counts; else a
 * sample that RING_TEST_SEED draws. */

#include "unit_test.h"

#include "gpu_launch.h"
#include "kernel_args.h"
#include "kernel_oracle.h"

#include <stdio.h>
#include <string.h>

enum {
    MOST = KERNEL_MAX_INPUTS,
    COUNT = 4200,
    BYTES = 8 * COUNT,
    ROOM = BYTES + 16 + 2 * GPU_GUARD,
    PLACES = 17, /* 0..15: of every array; 16: each has its own */
    SMALL = 71,  /* counts below it are all tried */
};

typedef enum alias { ALIAS_NONE, ALIAS_EACH, ALIAS_LAST, ALIAS_KINDS } alias;

typedef struct fold_case {
    ring_dtype dtype;
    ring_op op;
    int in_count, out_count, divisor;
    uint64_t ins_wide, outs_wide; /* bit k */
    size_t count;
    unsigned place;
    alias alias;
    gpu_shape shape;
} fold_case;

/* Arrays of the host, and of the GPU. */
static _Alignas(64) unsigned char given[MOST][BYTES], expected[2][BYTES];
static unsigned char (*ins)[ROOM], (*outs)[ROOM];

static const char *kernels[RING_DTYPE_COUNT] = {
#define ROW(name) "fold_" #name,
    CUDA_FOLD_TYPES(ROW)
#undef ROW
};

static const char *few_kernels[RING_DTYPE_COUNT] = {
#define ROW(name) "fold_few_" #name,
    CUDA_FOLD_TYPES(ROW)
#undef ROW
};

static const char *describe(const fold_case *c)
{
    static char text[240];
    snprintf(text, sizeof text,
             "%s op %d ins %d (wide %llx) outs %d (wide %llx) divisor %d count %zu place %u "
             "alias %d grid %u block %u order %u",
             kernels[c->dtype], c->op, c->in_count, (unsigned long long)c->ins_wide, c->out_count,
             (unsigned long long)c->outs_wide, c->divisor, c->count, c->place, c->alias,
             c->shape.grid, c->shape.block, c->shape.order);
    return text;
}

static bool in_is_wide(const fold_case *c, int k)
{
    return c->ins_wide >> k & 1;
}

static bool out_is_wide(const fold_case *c, int k)
{
    return c->outs_wide >> k & 1;
}

/* Inputs, and what the host makes of them in the call's type and in the accumulator's. A copy keeps
 * payloads of NaNs, to outputs of its own type alone: one fold has outputs of one kind here. */
static void make_expected(const fold_case *c, uint64_t *state)
{
    kernel_operand from[MOST];
    for (int k = 0; k < c->in_count; k++) {
        from[k] = (kernel_operand){.data = given[k], .accumulator = in_is_wide(c, k)};
        oracle_fill(given[k], c->count, c->dtype, in_is_wide(c, k), state);
    }
    kernel_operand to[2] = {{.data = expected[0]}, {.data = expected[1], .accumulator = true}};
    const uint64_t all = ~(uint64_t)0 >> (64 - c->out_count), wide = c->outs_wide & all;
    if (wide != 0 && wide != all) {
        kernel_fold(to, 2, from, c->in_count, c->count, c->dtype, c->op, c->divisor);
        return;
    }
    kernel_fold(&to[wide != 0], 1, from, c->in_count, c->count, c->dtype, c->op, c->divisor);
}

/* The input that output @p k is, or -1. */
static int aliased_input(const fold_case *c, int k)
{
    int in = -1;
    if (c->alias == ALIAS_EACH && k < c->in_count)
        in = k;
    if (c->alias == ALIAS_LAST && k == 0)
        in = c->in_count - 1;
    return in >= 0 && in_is_wide(c, in) == out_is_wide(c, k) ? in : -1;
}

static unsigned shift_of(const fold_case *c, uint64_t *state)
{
    return c->place < 16 ? c->place : test_draw(state, 16);
}

static void make_args(const fold_case *c, cuda_fold_args *args, uint64_t *state)
{
    *args = (cuda_fold_args){.ins_wide = c->ins_wide,
                             .outs_wide = c->outs_wide,
                             .count = c->count,
                             .in_count = (uint32_t)c->in_count,
                             .out_count = (uint32_t)c->out_count,
                             .op = (int32_t)c->op,
                             .divisor = c->divisor};
    for (int k = 0; k < c->in_count; k++) {
        const size_t bytes = c->count * oracle_size(c->dtype, in_is_wide(c, k));
        unsigned char *at = gpu_place(ins[k], bytes, shift_of(c, state));
        args->ins[k] = memcpy(at, given[k], bytes);
    }
    for (int k = 0; k < c->out_count; k++) {
        const size_t bytes = c->count * oracle_size(c->dtype, out_is_wide(c, k));
        const int same = aliased_input(c, k);
        args->outs[k] = same < 0 ? gpu_place(outs[k], bytes, shift_of(c, state))
                                 : (void *)(uintptr_t)args->ins[same];
    }
}

static unsigned vector_of(const fold_case *c)
{
    return 16 / (unsigned)oracle_size(c->dtype, false);
}

static void check_outputs(const fold_case *c, const char *kernel, const cuda_fold_args *args)
{
    for (int k = 0; k < c->out_count; k++) {
        const bool wide = out_is_wide(c, k);
        const size_t bytes = c->count * oracle_size(c->dtype, wide);
        const size_t size = oracle_size(c->dtype, wide);
        for (size_t i = 0; i < bytes; i += size)
            if (memcmp((unsigned char *)args->outs[k] + i, expected[wide] + i, size) != 0)
                fail_msg("%s, output %d differs from element %zu on: %s", kernel, k, i / size,
                         describe(c));
        if (!gpu_is_guarded(args->outs[k], bytes))
            fail_msg("%s wrote outside of output %d: %s", kernel, k, describe(c));
    }
}

/* The elements before the first place where vectors of all operands may begin; -1: nowhere. */
static int lead_of(const fold_case *c, const cuda_fold_args *args)
{
    for (unsigned lead = 0; lead < vector_of(c); lead++) {
        bool all = true;
        for (int k = 0; k < c->in_count; k++)
            all = all &&
                  ((uintptr_t)args->ins[k] + lead * oracle_size(c->dtype, in_is_wide(c, k))) % 16 ==
                      0;
        for (int k = 0; k < c->out_count; k++)
            all = all &&
                  ((uintptr_t)args->outs[k] + lead * oracle_size(c->dtype, out_is_wide(c, k))) %
                          16 ==
                      0;
        if (all)
            return (int)lead;
    }
    return -1;
}

/* Whether fold_few_NAME takes these operands (kernel_args.h). */
static bool is_few(const fold_case *c)
{
    const bool adds = c->op == RING_SUM || c->op == RING_AVG || c->op == RING_PREMUL_SUM;
    const bool is_logical = c->op == RING_LAND || c->op == RING_LOR || c->op == RING_LXOR;
    if (c->in_count > 2 || c->out_count > 2)
        return false;
    return c->in_count == 1 ? c->divisor == 0 && !is_logical
                            : c->divisor == 0 || (adds && oracle_is_float(c->dtype));
}

/* @return whether it was run: the arrays may not allow it. */
static bool run_few(const fold_case *c, uint64_t *state)
{
    cuda_fold_args args;
    make_args(c, &args, state);
    const int lead = lead_of(c, &args);
    if (!is_few(c) || lead < 0)
        return false;
    const cuda_fold_few_args few = {.ins = {args.ins[0], args.ins[1]},
                                    .outs = {args.outs[0], args.outs[1]},
                                    .count = c->count,
                                    .lead = (uint64_t)lead,
                                    .ins_wide = (uint32_t)c->ins_wide,
                                    .outs_wide = (uint32_t)c->outs_wide,
                                    .in_count = args.in_count,
                                    .out_count = args.out_count,
                                    .op = args.op,
                                    .divisor = args.divisor};
    gpu_launch(few_kernels[c->dtype], &few, sizeof few, c->shape);
    check_outputs(c, few_kernels[c->dtype], &args);
    return true;
}

static bool run_case(const fold_case *c, uint64_t *state)
{
    cuda_fold_args args;
    make_expected(c, state);
    make_args(c, &args, state);
    gpu_launch(kernels[c->dtype], &args, sizeof args, c->shape);
    check_outputs(c, kernels[c->dtype], &args);
    return run_few(c, state);
}

/* ---- Cases ---------------------------------------------------------------------------------- */

/* All that the caller has not set. */
static void draw_rest(fold_case *c, uint64_t *state)
{
    static const int divisors[] = {1, 2, 3, 4, 7, 300};
    const bool divides = c->op == RING_AVG || test_draw(state, 8) == 0;
    c->divisor = divides ? divisors[test_draw(state, 6)] : 0;
    c->out_count = 1 + (int)test_draw(state, test_draw(state, 4) == 0 ? 5 : 1);
    c->alias = (alias)test_draw(state, ALIAS_KINDS);
    c->ins_wide = c->outs_wide = 0;
    if (test_draw(state, 2) == 0) { /* flags are ignored for other types */
        static const uint64_t masks[] = {0, 1, 2, ~1ull, 0x5555555555555555, ~0ull};
        c->ins_wide = masks[test_draw(state, 6)];
        c->outs_wide = masks[test_draw(state, 6)];
    }
    c->shape = gpu_draw_tiles(state, c->count, vector_of(c));
}

/* A few about the bounds of vectors, rounds and blocks. */
static size_t draw_bound(const fold_case *c, uint64_t *state)
{
    const size_t vector = 16 / oracle_size(c->dtype, false), threads = 32u << test_draw(state, 4);
    const size_t rounds = 1 + test_draw(state, 9);
    const size_t bound = vector * threads * rounds + test_draw(state, 2 * (uint32_t)vector);
    return bound % COUNT;
}

static int draw_inputs(uint64_t *state)
{
    static const int many[] = {17, 33, MOST};
    return test_draw(state, 16) == 0 ? many[test_draw(state, 3)] : 1 + (int)test_draw(state, 16);
}

static void each_place(fold_case c, uint64_t *state)
{
    for (c.place = 0; c.place < PLACES; c.place++)
        for (size_t k = 0; k < SMALL + 4; k++) {
            c.count = k < SMALL ? k : draw_bound(&c, state);
            draw_rest(&c, state);
            run_case(&c, state);
        }
}

static void sample(fold_case c, uint64_t *state)
{
    for (int n = 0; n < 24; n += GPU_ONE_CASE_OF) {
        c.in_count = draw_inputs(state);
        c.place = test_draw(state, PLACES);
        c.place = test_draw(state, 4) == 0 ? 0 : c.place;
        c.count = test_draw(state, 4) == 0 ? draw_bound(&c, state) : test_draw(state, SMALL);
        draw_rest(&c, state);
        run_case(&c, state);
    }
}

static void test_every_type_and_operation_gives_the_hosts_bits(void **cmocka_state)
{
    uint64_t state = test_seed();
    for (ring_dtype dtype = 0; dtype < RING_DTYPE_COUNT; dtype++)
        for (ring_op op = 0; op < RING_OP_COUNT; op++) {
            fold_case c = {.dtype = dtype, .op = op};
            if (ring_op_serves(op, dtype))
                sample(c, &state);
            for (c.in_count = 1; test_is_long() && c.in_count <= 16; c.in_count++)
                if (ring_op_serves(op, dtype))
                    each_place(c, &state);
        }
}

/* One and two operands, whose vectors begin together or, if one is wide, at times. */
static void test_few_operands_are_folded_by_tiles(void **cmocka_state)
{
    uint64_t state = test_seed();
    for (ring_dtype dtype = 0; dtype < RING_DTYPE_COUNT; dtype++)
        for (ring_op op = 0; op < RING_OP_COUNT; op++) {
            int run = 0;
            for (int n = 0; n < 48 && ring_op_serves(op, dtype); n += GPU_ONE_CASE_OF) {
                fold_case c = {.dtype = dtype, .op = op};
                c.in_count = 1 + (int)test_draw(&state, 2);
                c.place = n % 3 == 0 ? 0 : test_draw(&state, 16);
                c.count = n % 4 == 0 ? draw_bound(&c, &state) : test_draw(&state, SMALL);
                draw_rest(&c, &state);
                c.out_count = 1 + (int)test_draw(&state, 2);
                run += run_case(&c, &state);
            }
            const bool never = op == RING_AVG && !oracle_is_float(dtype); /* a divided integer */
            if (ring_op_serves(op, dtype) && !never && GPU_ONE_CASE_OF == 1)
                assert_true(run > 0);
        }
}

/* Every pair of bits of a float of 8 bits, every bits of one of 16 with those that matter. */
static void test_narrow_floats_are_right_everywhere(void **cmocka_state)
{
    uint64_t state = test_seed();
    static const ring_dtype dtypes[] = {RING_FLOAT16, RING_BFLOAT16, RING_FLOAT8_E4M3,
                                        RING_FLOAT8_E5M2};
    for (size_t d = 0; d < 4; d++)
        for (int op = RING_SUM; op <= RING_MIN; op++)
            for (unsigned from = 0; from < 65536; from += GPU_ONE_CASE_OF * COUNT) {
                fold_case c = {.dtype = dtypes[d],
                               .op = (ring_op)op,
                               .in_count = 2,
                               .out_count = 1,
                               .count = COUNT};
                cuda_fold_args args;
                make_expected(&c, &state); /* random seconds for the 16 bits */
                for (unsigned i = 0; i < COUNT; i++) {
                    const uint16_t bits = (uint16_t)(from + i);
                    if (oracle_size(c.dtype, false) == 2) {
                        memcpy(given[0] + 2 * i, &bits, 2);
                    } else {
                        given[0][i] = (unsigned char)bits;
                        given[1][i] = (unsigned char)(bits >> 8);
                    }
                }
                kernel_fold(&(kernel_operand){.data = expected[0]}, 1,
                            (kernel_operand[]){{.data = given[0]}, {.data = given[1]}}, 2, COUNT,
                            c.dtype, c.op, 0);
                make_args(&c, &args, &state);
                c.shape = gpu_draw_tiles(&state, COUNT, vector_of(&c));
                gpu_launch(kernels[c.dtype], &args, sizeof args, c.shape);
                if (memcmp(args.outs[0], expected[0], COUNT * oracle_size(c.dtype, false)) != 0)
                    fail_msg("bits from %u on: %s", from, describe(&c));
            }
}

static void test_most_arrays_fold_in_one_pass(void **cmocka_state)
{
    uint64_t state = test_seed();
    for (int n = 0; n < 3; n++) {
        fold_case c = {.dtype = RING_BFLOAT16,
                       .op = RING_SUM,
                       .in_count = MOST,
                       .out_count = MOST,
                       .ins_wide = 0xff00ff00ff00ff00,
                       .count = 700,
                       .place = 16 * (unsigned)(n == 2),
                       .alias = (alias)n,
                       .shape = {10, 64, EMULATED_RANDOM, 7}};
        run_case(&c, &state);
        c.dtype = RING_FLOAT32;
        run_case(&c, &state);
    }
}

static int make_rooms(void **cmocka_state)
{
    ins = gpu_room(MOST * sizeof *ins);
    outs = gpu_room(MOST * sizeof *outs);
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
        cmocka_unit_test(test_every_type_and_operation_gives_the_hosts_bits),
        cmocka_unit_test(test_few_operands_are_folded_by_tiles),
        cmocka_unit_test(test_narrow_floats_are_right_everywhere),
        cmocka_unit_test(test_most_arrays_fold_in_one_pass),
    };
    return cmocka_run_group_tests(tests, make_rooms, free_rooms);
}

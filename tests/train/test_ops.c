/* SPDX-License-Identifier: Apache-2.0
 * Compares every op with finite differences and with its reference in plain loops, on odd and prime
 * shapes, and tests properties that only some of them have. Usage: test_train.ops [cuda]; with
 * `cuda`, the ops that GPUs have are computed on GPU 0. */
#include "check.h"
#include "op_mirror.h"
#include "op_references.h"

#include <conv.h>
#include <errors.h>
#include <gemm.h>
#include <math.h>
#include <philox.h>
#include <random.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One use of one op. */
typedef struct op_case {
    const nn_op *op;
    op_settings settings;
    op_shape in;
    size_t batch;
} op_case;

#define IMAGE(c, y, x) \
    { \
        .dim = {(c), (y), (x)}, .dims = 3 \
    }
#define ROW(n) \
    { \
        .dim = {(n)}, .dims = 1 \
    }
#define TEXT(t, f) \
    { \
        .dim = {(t), (f)}, .dims = 2 \
    }
#define WINDOW(size, step, pad) .kernel = (size), .stride = (step), .padding = (pad)

static const op_case cases[] = {
    {&op_linear, {.outputs = 1}, ROW(1), 1},
    {&op_linear, {.outputs = 7}, ROW(13), 5},
    {&op_linear, {.outputs = 17}, ROW(3), 11},
    {&op_linear, {.outputs = 7, .no_bias = true}, ROW(13), 5},
    {&op_linear, {.outputs = 5}, TEXT(3, 7), 2},
    {&op_conv2d, {.outputs = 1, WINDOW(1, 1, 0)}, IMAGE(1, 1, 1), 1},
    {&op_conv2d, {.outputs = 5, WINDOW(3, 1, 0)}, IMAGE(3, 7, 5), 2},
    {&op_conv2d, {.outputs = 7, WINDOW(3, 2, 1)}, IMAGE(5, 7, 11), 3},
    {&op_conv2d, {.outputs = 2, WINDOW(5, 3, 2)}, IMAGE(1, 13, 9), 2},
    {&op_conv2d, {.outputs = 17, WINDOW(3, 1, 1)}, IMAGE(19, 5, 3), 1},
    {&op_conv2d, {.outputs = 3, WINDOW(2, 2, 1)}, IMAGE(2, 3, 4), 5},
    {&op_conv2d, {.outputs = 6, WINDOW(5, 1, 2)}, IMAGE(1, 11, 11), 3},
    {&op_max_pool2d, {WINDOW(2, 2, 0)}, IMAGE(3, 7, 5), 2},
    {&op_max_pool2d, {WINDOW(3, 2, 1)}, IMAGE(2, 7, 9), 3},
    {&op_max_pool2d, {WINDOW(3, 1, 0)}, IMAGE(1, 5, 5), 1},
    {&op_max_pool2d, {WINDOW(1, 1, 0)}, IMAGE(2, 3, 3), 1},
    {&op_avg_pool2d, {WINDOW(2, 2, 0)}, IMAGE(3, 7, 5), 2},
    {&op_avg_pool2d, {WINDOW(3, 2, 1)}, IMAGE(2, 5, 7), 3},
    {&op_relu, {0}, ROW(13), 7},
    {&op_relu, {0}, IMAGE(3, 5, 7), 2},
    {&op_tanh, {0}, ROW(13), 7},
    {&op_flatten, {0}, IMAGE(3, 5, 7), 2},
    {&op_dropout, {.probability = 0.3}, ROW(37), 11},
    {&op_dropout, {.probability = 0.0}, ROW(5), 3},
    {&op_add, {0}, IMAGE(3, 5, 7), 2},
    {&op_gelu, {0}, ROW(37), 3},
    {&op_gelu, {.by_tanh = true}, TEXT(3, 7), 2},
    {&op_layer_norm, {0}, ROW(13), 5},
    {&op_layer_norm, {0}, TEXT(3, 37), 2},
    {&op_embedding, {.words = 11, .outputs = 3}, ROW(7), 2},
    {&op_position_embedding, {0}, TEXT(3, 5), 3},
    {&op_attention, {.heads = 1}, TEXT(1, 3), 2},
    {&op_attention, {.heads = 1}, TEXT(7, 15), 1},
    {&op_attention, {.heads = 3}, TEXT(5, 27), 2},
    {&op_attention, {.heads = 2, .probability = 0.4}, TEXT(9, 12), 3},
};

/* A use with its memory: operands, and two sets of results. */
typedef struct op_bench {
    op_use use;
    op_run run;
    float *in[OP_INPUTS_MAX], *params[OP_TENSORS_MAX], *out_grad;
    size_t in_count, out_count, param_count[OP_TENSORS_MAX];
    void *all[32];
    int all_count;
} op_bench;

static void *room(op_bench *bench, size_t bytes)
{
    void *memory;
    assert_int_equal(train_alloc(&memory, bytes, "a test"), RING_OK);
    assert_true(bench->all_count < (int)COUNT_OF(bench->all));
    bench->all[bench->all_count++] = memory;
    return memory;
}

static float *draw(op_bench *bench, size_t count, train_random *random)
{
    float *values = room(bench, count * sizeof *values);
    for (size_t i = 0; i < count; i++)
        values[i] = random_uniform(random, -1, 1);
    return values;
}

/* Distinct values, none near zero: a small step leads over no kink and changes no maximum. */
static float *draw_apart(op_bench *bench, size_t count, train_random *random)
{
    float *values = room(bench, count * sizeof *values);
    for (size_t i = 0; i < count; i++)
        values[i] = ((float)i - (float)count / 2 + 0.25F) * 2.0F / (float)count;
    for (size_t i = count; i > 1; i--) {
        const size_t other = random_u32(random) % i;
        const float value = values[i - 1];
        values[i - 1] = values[other];
        values[other] = value;
    }
    return values;
}

/* Words, from whose middle a small step leads to no other. */
static float *draw_words(op_bench *bench, size_t count, train_random *random)
{
    float *values = room(bench, count * sizeof *values);
    for (size_t i = 0; i < count; i++)
        values[i] = (float)(random_u32(random) % bench->use.settings.words) + 0.5F;
    return values;
}

/* New results: outputs, what forward keeps, gradients that hold @p start. */
static void fresh_results(op_bench *bench, float start)
{
    op_run *run = &bench->run;
    run->out = room(bench, bench->out_count * sizeof(float));
    run->saved = room(bench, run->batch * bench->use.saved_bytes);
    for (int k = 0; k < bench->use.op->inputs; k++)
        run->in_grad[k] = room(bench, bench->in_count * sizeof(float));
    for (int t = 0; t < bench->use.tensor_count; t++) {
        run->grads[t] = room(bench, bench->param_count[t] * sizeof(float));
        for (size_t i = 0; i < bench->param_count[t]; i++)
            run->grads[t][i] = start;
    }
}

static void bench_open(op_bench *bench, const op_case *from)
{
    train_random random;
    random_seed(&random, 17);
    *bench = (op_bench){.use = {.op = from->op, .settings = from->settings, .number = 3}};
    op_use *use = &bench->use;
    use->in[0] = use->in[1] = from->in;
    if (from->op->shape(use) != RING_OK)
        fail_msg("%s: %s", from->op->name, train_error());
    if (from->op->prepare != NULL)
        assert_int_equal(from->op->prepare(use, from->batch), RING_OK);
    bench->in_count = from->batch * shape_count(&use->in[0]);
    bench->out_count = from->batch * shape_count(&use->out);
    bench->run = (op_run){.use = use, .batch = from->batch, .training = true};
    bench->run.random.seed = 5;
    for (int k = 0; k < from->op->inputs; k++)
        bench->run.in[k] = bench->in[k] = from->op == &op_embedding
                                              ? draw_words(bench, bench->in_count, &random)
                                              : draw_apart(bench, bench->in_count, &random);
    for (int t = 0; t < use->tensor_count; t++) {
        bench->param_count[t] = 1;
        for (int d = 0; d < use->tensors[t].dims; d++)
            bench->param_count[t] *= use->tensors[t].shape[d];
        bench->run.params[t] = bench->params[t] = draw(bench, bench->param_count[t], &random);
    }
    bench->run.out_grad = bench->out_grad = draw(bench, bench->out_count, &random);
    bench->run.scratch = room(bench, use->scratch_bytes);
    fresh_results(bench, 0.0F);
}

static void bench_close(op_bench *bench)
{
    if (bench->use.op->release != NULL)
        bench->use.op->release(&bench->use);
    while (bench->all_count > 0)
        free(bench->all[--bench->all_count]);
}

static void run_all(op_bench *bench, const op_functions *functions)
{
    functions->forward(&bench->run);
    if (functions->params != NULL)
        functions->params(&bench->run);
    functions->inputs(&bench->run);
}

/* ---- Finite differences -------------------------------------------------------------------- */

/* sum of out · out_grad, whose gradients are those that backward computes. */
static double weighed(op_bench *bench)
{
    double sum = 0.0;
    op_mirror(bench->use.op)->forward(&bench->run);
    for (size_t i = 0; i < bench->out_count; i++)
        sum += (double)bench->run.out[i] * (double)bench->out_grad[i];
    return sum;
}

static void check_slopes(op_bench *bench, float *values, size_t count, const float *slopes)
{
    const float h = 0x1p-9F;
    const size_t step = op_mirror_is_open() ? 1 + count / 16 : 1; /* a run takes milliseconds */
    for (size_t i = 0; i < count; i += step) {
        const float kept = values[i];
        values[i] = kept + h;
        const double above = weighed(bench);
        values[i] = kept - h;
        const double below = weighed(bench);
        values[i] = kept;
        const double want = (above - below) / (2.0 * (double)h);
        if (!(fabs((double)slopes[i] - want) <= 2e-3 * fabs(want) + 1e-3))
            fail_msg("%s: element %zu of %zu: gradient %g, finite difference %g",
                     bench->use.op->name, i, count, (double)slopes[i], want);
    }
}

static void gradients_equal_finite_differences(void **state)
{
    for (size_t c = 0; c < COUNT_OF(cases); c++) {
        op_bench bench;
        if (!op_mirror_has(cases[c].op))
            continue;
        bench_open(&bench, &cases[c]);
        run_all(&bench, op_mirror(bench.use.op));
        const op_run first = bench.run;
        fresh_results(&bench, 0.0F); /* whose outputs the steps change */
        for (int k = 0; k < bench.use.op->inputs; k++)
            check_slopes(&bench, bench.in[k], bench.in_count, first.in_grad[k]);
        for (int t = 0; t < bench.use.tensor_count; t++)
            check_slopes(&bench, bench.params[t], bench.param_count[t], first.grads[t]);
        bench_close(&bench);
    }
}

/* ---- Fast and plain ------------------------------------------------------------------------ */

static double largest(const float *values, size_t count)
{
    double most = 0.0;
    for (size_t i = 0; i < count; i++)
        most = fmax(most, fabs((double)values[i]));
    return most;
}

static void check_same(const char *what, size_t number, const float *got, const float *want,
                       size_t count)
{
    const double allowed = 1e-5 * largest(want, count);
    for (size_t i = 0; i < count; i++) {
        if (!(fabs((double)got[i] - (double)want[i]) <= allowed))
            fail_msg("case %zu, %s, element %zu of %zu: got %g, want %g", number, what, i, count,
                     (double)got[i], (double)want[i]);
    }
}

static void compare(size_t number, op_bench *bench, const op_functions *functions, bool add)
{
    op_run *run = &bench->run;
    run->add[0] = run->add[1] = add;
    fresh_results(bench, 0.5F);
    const op_functions reference = op_reference(bench->use.op);
    run_all(bench, &reference);
    const op_run want = *run;
    fresh_results(bench, 0.5F);
    run_all(bench, functions);
    check_same("output", number, run->out, want.out, bench->out_count);
    for (int k = 0; k < bench->use.op->inputs; k++)
        check_same("input gradient", number, run->in_grad[k], want.in_grad[k], bench->in_count);
    for (int t = 0; t < bench->use.tensor_count; t++)
        check_same(bench->use.tensors[t].name, number, run->grads[t], want.grads[t],
                   bench->param_count[t]);
}

static void what_runs_equals_the_reference(void **state)
{
    static const op_functions by_gemm = {conv_gemm_forward, conv_gemm_params, conv_gemm_inputs};
    for (size_t c = 0; c < COUNT_OF(cases); c++) {
        for (int add = 0; add < 2 && op_mirror_has(cases[c].op); add++) {
            op_bench bench;
            bench_open(&bench, &cases[c]);
            compare(c, &bench, op_mirror(cases[c].op), add == 1);
            bench_close(&bench);
            if (cases[c].op != &op_conv2d || op_mirror_is_open())
                continue;
            bench_open(&bench, &cases[c]);
            bench.run.scratch = room(&bench, conv_gemm_scratch_bytes(&bench.use));
            compare(c, &bench, &by_gemm, add == 1);
            bench_close(&bench);
        }
    }
}

/* A second batch size, and the first one again. */
static void batches_may_differ_in_size(void **state)
{
    const op_case from = {&op_conv2d, {.outputs = 5, WINDOW(3, 1, 1)}, IMAGE(3, 7, 5), 9};
    op_bench bench;
    bench_open(&bench, &from);
    for (size_t batch = 9; batch > 0; batch--) {
        bench.run.batch = batch % 2 == 0 ? batch : 9;
        bench.out_count = bench.run.batch * shape_count(&bench.use.out);
        bench.in_count = bench.run.batch * shape_count(&bench.use.in[0]);
        while (bench.all_count > 5) /* in, weight, bias, out_grad, scratch */
            free(bench.all[--bench.all_count]);
        assert_int_equal(op_conv2d.prepare(&bench.use, bench.run.batch), RING_OK);
        compare(batch, &bench, op_mirror(&op_conv2d), false);
    }
    bench_close(&bench);
}

static void in_place_is_the_same(void **state)
{
    for (size_t c = 0; c < COUNT_OF(cases); c++) {
        op_bench bench;
        if (!cases[c].op->in_place || !op_mirror_has(cases[c].op))
            continue;
        bench_open(&bench, &cases[c]);
        op_run *run = &bench.run;
        run_all(&bench, op_mirror(cases[c].op));
        const op_run want = *run;
        run->out = bench.in[0];
        run->in_grad[0] = bench.out_grad;
        run_all(&bench, op_mirror(cases[c].op));
        assert_memory_equal(run->out, want.out, bench.out_count * sizeof(float));
        assert_memory_equal(run->in_grad[0], want.in_grad[0], bench.in_count * sizeof(float));
        bench_close(&bench);
    }
}

/* The host's bits, but for products and tanh. */
static void gpus_compute_the_hosts_bits(void **state)
{
    if (!op_mirror_is_open())
        skip_because("for GPUs");
    for (size_t c = 0; c < COUNT_OF(cases); c++) {
        const nn_op *op = cases[c].op;
        op_bench bench;
        if (!op_mirror_has(op) || op == &op_linear || op == &op_conv2d || op == &op_tanh)
            continue;
        bench_open(&bench, &cases[c]);
        run_all(&bench, &op->fast);
        const op_run want = bench.run;
        fresh_results(&bench, 0.0F);
        run_all(&bench, op_mirror(op));
        assert_memory_equal(bench.run.out, want.out, bench.out_count * sizeof(float));
        assert_memory_equal(bench.run.saved, want.saved, want.batch * bench.use.saved_bytes);
        assert_memory_equal(bench.run.in_grad[0], want.in_grad[0], bench.in_count * sizeof(float));
        bench_close(&bench);
    }
}

/* ---- Pooling ------------------------------------------------------------------------------- */

static void the_first_maximum_gets_the_gradient_and_nan_wins(void **state)
{
    const op_case from = {&op_max_pool2d, {WINDOW(2, 2, 0)}, IMAGE(1, 2, 6), 1};
    const float in[] = {1, 3, 3, -1, 0, 1, 3, 2, -INFINITY, 3, NAN, 2}, one[] = {1, 1, 1};
    for (int plain = 0; plain < 2; plain++) {
        const op_functions functions = plain ? op_reference(&op_max_pool2d)
                                             : *op_mirror(&op_max_pool2d);
        op_bench bench;
        bench_open(&bench, &from);
        memcpy(bench.in[0], in, sizeof in);
        memcpy(bench.out_grad, one, sizeof one);
        run_all(&bench, &functions);
        const float want[] = {0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0};
        assert_memory_equal(bench.run.out, ((const float[]){3, 3}), 2 * sizeof(float));
        assert_true(isnan(bench.run.out[2]));
        assert_memory_equal(bench.run.in_grad[0], want, sizeof want);
        bench_close(&bench);
    }
}

static void padding_counts_in_means_as_zeros(void **state)
{
    const op_case from = {&op_avg_pool2d, {WINDOW(2, 2, 1)}, IMAGE(1, 2, 2), 1};
    op_bench bench;
    bench_open(&bench, &from);
    memcpy(bench.in[0], (const float[]){4, 8, 12, 16}, 4 * sizeof(float));
    run_all(&bench, op_mirror(&op_avg_pool2d));
    assert_memory_equal(bench.run.out, ((const float[]){1, 2, 3, 4}), 4 * sizeof(float));
    bench_close(&bench);
}

/* ---- Dropout ------------------------------------------------------------------------------- */

/* The known answers of the paper's authors. */
static void philox_gives_its_known_answers(void **state)
{
    static const struct {
        uint32_t counter[4], key[2], bits[4];
    } known[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < COUNT_OF(known); i++) {
        uint32_t bits[4];
        philox(known[i].counter, known[i].key, bits);
        assert_memory_equal(bits, known[i].bits, sizeof bits);
    }
}

static void dropout_keeps_its_share_and_the_mean(void **state)
{
    const op_case from = {&op_dropout, {.probability = 0.25}, ROW(1000), 40};
    op_bench bench;
    bench_open(&bench, &from);
    size_t kept = 0;
    for (size_t i = 0; i < bench.in_count; i++)
        bench.in[0][i] = 3.0F;
    run_all(&bench, op_mirror(&op_dropout));
    for (size_t i = 0; i < bench.out_count; i++) {
        assert_true(bench.run.out[i] == 0.0F || bench.run.out[i] == 4.0F);
        kept += bench.run.out[i] != 0.0F;
    }
    assert_near(kept, 30000, 0, 500); /* more than five standard deviations */
    bench.run.training = false;
    op_mirror(&op_dropout)->forward(&bench.run);
    assert_memory_equal(bench.run.out, bench.in[0], bench.out_count * sizeof(float));
    bench_close(&bench);
}

/* The same samples one by one, in another order: each has its own elements dropped. */
static void dropout_goes_by_sample_update_node_and_seed(void **state)
{
    enum { WIDTH = 101, BATCH = 4 };
    const op_case from = {&op_dropout, {.probability = 0.5}, ROW(WIDTH), BATCH};
    const uint32_t samples[BATCH] = {70, 3, 12, 9};
    uint8_t kept[BATCH * WIDTH];
    op_bench bench;
    bench_open(&bench, &from);
    bench.run.random.samples = samples;
    op_mirror(&op_dropout)->forward(&bench.run);
    memcpy(kept, bench.run.saved, sizeof kept);
    assert_memory_not_equal(kept, kept + WIDTH, WIDTH);
    bench.run.batch = 1;
    for (size_t i = 0; i < BATCH; i++) {
        bench.run.random.samples = &samples[BATCH - 1 - i];
        op_mirror(&op_dropout)->forward(&bench.run);
        assert_memory_equal(bench.run.saved, kept + (BATCH - 1 - i) * WIDTH, WIDTH);
    }
    for (int other = 0; other < 3; other++) { /* now at the first sample */
        bench.run.random.seed = other == 0 ? 6 : 5;
        bench.run.random.step = other == 1;
        bench.use.number = other == 2 ? 4 : 3;
        op_mirror(&op_dropout)->forward(&bench.run);
        assert_memory_not_equal(bench.run.saved, kept, WIDTH);
    }
    bench_close(&bench);
}

/* Values of 1: what comes out is the sum of the weights that are kept, over 1 - probability. */
static void attention_drops_weights_not_values(void **state)
{
    if (!op_mirror_has(&op_attention))
        skip_because("GPUs do not have this op");
    enum { TOKENS = 16, WIDTH = 4, HEADS = 2, BATCH = 20, WEIGHTS = HEADS * TOKENS * TOKENS };
    const op_case from = {&op_attention,
                          {.heads = HEADS, .probability = 0.25},
                          TEXT(TOKENS, 3 * WIDTH),
                          BATCH};
    const uint32_t last = BATCH - 1;
    float first_time[TOKENS * WIDTH];
    size_t dropped = 0;
    double mean = 0.0;
    op_bench bench;
    bench_open(&bench, &from);
    for (size_t i = 0; i < bench.in_count; i++)
        bench.in[0][i] = i % (3 * WIDTH) < 2 * WIDTH ? bench.in[0][i] : 1.0F;
    op_mirror(&op_attention)->forward(&bench.run);
    const float *softmax = (const float *)(const void *)bench.run.saved;
    for (size_t row = 0; row < BATCH * HEADS * TOKENS; row++, softmax += TOKENS) {
        const size_t token = row % TOKENS, head = row / TOKENS % HEADS;
        const size_t sample = row / TOKENS / HEADS;
        const float out = bench.run.out[(sample * TOKENS + token) * WIDTH + head * WIDTH / HEADS];
        double sum = 0.0;
        for (size_t j = 0; j <= token; j++) {
            dropped += signbit(softmax[j]) != 0;
            sum += signbit(softmax[j]) ? 0.0 : (double)softmax[j] / 0.75;
        }
        assert_near(out, sum, 1e-5, 1e-6);
        mean += (double)out / (BATCH * HEADS * TOKENS);
    }
    assert_near(dropped, BATCH * HEADS * TOKENS * (TOKENS + 1) / 2 / 4, 0, 170); /* 5 deviations */
    assert_near(mean, 1.0, 0, 0.1);
    /* a sample alone, elsewhere in a batch; then without training */
    memcpy(first_time, bench.run.out + (BATCH - 1) * TOKENS * WIDTH, sizeof first_time);
    bench.run.batch = 1;
    bench.run.in[0] += (BATCH - 1) * TOKENS * 3 * WIDTH;
    bench.run.random.samples = &last;
    op_mirror(&op_attention)->forward(&bench.run);
    assert_memory_equal(bench.run.out, first_time, sizeof first_time);
    bench.run.random.step++;
    op_mirror(&op_attention)->forward(&bench.run);
    assert_memory_not_equal(bench.run.out, first_time, sizeof first_time);
    bench.run.training = false;
    op_mirror(&op_attention)->forward(&bench.run);
    for (size_t i = 0; i < TOKENS * WIDTH; i++)
        assert_near(bench.run.out[i], 1.0, 1e-6, 0);
    bench_close(&bench);
}

/* ---- Refusals ------------------------------------------------------------------------------ */

static void what_does_not_fit_is_refused(void **state)
{
    static const struct {
        op_case from;
        const char *error;
    } wrong[] = {
        {{&op_linear, {.outputs = 3}, IMAGE(1, 2, 2), 1}, "linear takes [features]"},
        {{&op_conv2d, {.outputs = 3, WINDOW(3, 1, 0)}, ROW(9), 1},
         "conv2d takes [channels, rows, columns], not [9]"},
        {{&op_conv2d, {.outputs = 3, WINDOW(5, 1, 1)}, IMAGE(1, 2, 9), 1},
         "a kernel of 5 is larger than its input [1, 2, 9]"},
        {{&op_conv2d, {.outputs = 3, WINDOW(3, 0, 0)}, IMAGE(1, 9, 9), 1}, "at least 1"},
        {{&op_conv2d, {.outputs = 3, WINDOW(3, 1, 3)}, IMAGE(1, 9, 9), 1}, "a padding of 3"},
        {{&op_max_pool2d, {WINDOW(3, 1, 2)}, IMAGE(1, 9, 9), 1}, "more than half the kernel"},
        {{&op_avg_pool2d, {WINDOW(3, 1, 2)}, IMAGE(1, 9, 9), 1}, "more than half the kernel"},
        {{&op_dropout, {.probability = 1.0}, ROW(3), 1}, "from 0 to below 1"},
    };
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        op_use use = {.op = wrong[i].from.op, .settings = wrong[i].from.settings};
        use.in[0] = wrong[i].from.in;
        assert_int_equal(use.op->shape(&use), RING_ERR_CONFIG);
        if (strstr(train_error(), wrong[i].error) == NULL)
            fail_msg("\"%s\" is not in \"%s\"", wrong[i].error, train_error());
    }
    op_use add = {.op = &op_add, .in = {ROW(3), ROW(4)}};
    assert_int_equal(add.op->shape(&add), RING_ERR_CONFIG);
    assert_string_equal(train_error(), "cannot add [3] and [4]");
}

int main(int argc, char **argv)
{
    gemm_set_threads(1);
    if (argc > 1 && !op_mirror_open()) {
        fprintf(stderr, "%s\n", train_error());
        return 1;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_equal_finite_differences),
        cmocka_unit_test(what_runs_equals_the_reference),
        cmocka_unit_test(batches_may_differ_in_size),
        cmocka_unit_test(in_place_is_the_same),
        cmocka_unit_test(gpus_compute_the_hosts_bits),
        cmocka_unit_test(the_first_maximum_gets_the_gradient_and_nan_wins),
        cmocka_unit_test(padding_counts_in_means_as_zeros),
        cmocka_unit_test(philox_gives_its_known_answers),
        cmocka_unit_test(dropout_keeps_its_share_and_the_mean),
        cmocka_unit_test(dropout_goes_by_sample_update_node_and_seed),
        cmocka_unit_test(attention_drops_weights_not_values),
        cmocka_unit_test(what_does_not_fit_is_refused),
    };
    const int failures = cmocka_run_group_tests(tests, NULL, NULL);
    if (op_mirror_is_open())
        op_mirror_close();
    return failures;
}

/* SPDX-License-Identifier: Apache-2.0
 * Layers and losses against PyTorch, against finite differences, and against themselves cut
 * into micro-batches. */
#include "check.h"
#include "vectors.h"

#include <builtin.h>
#include <errors.h>
#include <gemm.h>
#include <loss.h>
#include <model.h>
#include <random.h>
#include <stdlib.h>
#include <string.h>

enum { SMALL_LAYERS = 3, SMALL_NODES = 5, SMALL_BATCH = 7, SMALL_IN = 6, SMALL_OUT = 3 };

/* The network of make_vectors.py: 6-5-4-3, seed 3, inputs drawn after the parameters. */
typedef struct small_network {
    model_spec spec;
    train_model model;
    float *params, *grads;
    float images[SMALL_BATCH * SMALL_IN];
    uint32_t labels[SMALL_BATCH];
} small_network;

static void small_open(small_network *net)
{
    static const size_t widths[] = {SMALL_IN, 5, 4, SMALL_OUT};
    assert_int_equal(model_build_mlp(&net->spec, "small", widths, SMALL_LAYERS), RING_OK);
    assert_int_equal(model_create(&net->model, &net->spec, SMALL_BATCH, 1), RING_OK);
    assert_int_equal(net->model.node_count, SMALL_NODES);
    const size_t count = net->model.tensors.elements;
    assert_int_equal(train_alloc((void **)&net->params, count * sizeof(float), "p"), RING_OK);
    assert_int_equal(train_alloc((void **)&net->grads, count * sizeof(float), "g"), RING_OK);
    model_bind(&net->model, net->params, net->grads);
    model_init(&net->model, 3);
    train_random random;
    random_seed(&random, 3);
    for (size_t i = 0; i < count; i++)
        random_u32(&random);
    for (size_t i = 0; i < SMALL_BATCH * SMALL_IN; i++)
        net->images[i] = random_uniform(&random, -1, 1);
    for (size_t i = 0; i < SMALL_BATCH; i++)
        net->labels[i] = (uint32_t)(i % SMALL_OUT);
}

static void small_close(small_network *net)
{
    free(net->params);
    free(net->grads);
    model_destroy(&net->model);
    model_spec_free(&net->spec);
}

/* @return the output of a batch. */
static const float *small_forward(small_network *net, const float *images, size_t batch)
{
    train_model *model = &net->model;
    const model_batch load = {.input = images, .rows = batch, .training = true};
    assert_int_equal(model_load(model, 0, &load), RING_OK);
    model_forward(model, 0, 0, SMALL_NODES);
    return model_output(model, 0);
}

static float *small_output_grad(const small_network *net)
{
    return model_value_grad(&net->model, 0, SMALL_NODES - 1);
}

static void small_backward(small_network *net, bool accumulate)
{
    model_backward(&net->model, 0, 0, SMALL_NODES, accumulate);
}

static double small_loss(small_network *net, loss_kind kind)
{
    const float *output = small_forward(net, net->images, SMALL_BATCH);
    return loss_sum(kind, output, net->labels, SMALL_BATCH, SMALL_OUT, 1.0 / SMALL_BATCH,
                    small_output_grad(net)) /
           SMALL_BATCH;
}

static void initial_parameters_equal_pytorchs_bit_for_bit(void **state)
{
    model_spec spec;
    train_model model;
    assert_int_equal(model_build(&spec, "mlp"), RING_OK);
    assert_int_equal(model_create(&model, &spec, 1, 1), RING_OK);
    assert_int_equal(model.tensors.elements, 218058);
    float *params;
    assert_int_equal(train_alloc((void **)&params, 218058 * sizeof(float), "p"), RING_OK);
    model_bind(&model, params, params);
    model_init(&model, 7);
    assert_int_equal(fnv1a(params, 218058 * sizeof(float)), vector_hash("training/initial_hash"));
    free(params);
    model_destroy(&model);
    model_spec_free(&spec);
}

#define CHECK_NETWORK(kind, name) \
    check_network(kind, vector_floats("training/" name "_output", SMALL_BATCH *SMALL_OUT), \
                  vector_number("training/" name "_loss"), "training/" name "_grads")
static void check_network(loss_kind kind, const float *output, double loss, const char *stored)
{
    small_network net;
    small_open(&net);
    const float *grads = vector_floats(stored, net.model.tensors.elements);
    assert_near(small_loss(&net, kind), loss, 1e-6, 0);
    const float *got = model_output(&net.model, 0);
    for (size_t i = 0; i < SMALL_BATCH * SMALL_OUT; i++)
        assert_near(got[i], output[i], 1e-5, 1e-7);
    small_backward(&net, false);
    for (size_t i = 0; i < net.model.tensors.elements; i++)
        assert_near(net.grads[i], grads[i], 1e-5, 1e-8);
    small_close(&net);
}

static void mse_network_equals_pytorchs(void **state)
{
    CHECK_NETWORK(LOSS_MSE, "mse");
}

static void cross_entropy_network_equals_pytorchs(void **state)
{
    CHECK_NETWORK(LOSS_CROSS_ENTROPY, "cross_entropy");
}

/* (loss(p + h) - loss(p - h)) / 2h, where float32 leaves about three digits. */
static void gradients_equal_finite_differences(void **state)
{
    small_network net;
    small_open(&net);
    for (int kind = LOSS_MSE; kind <= LOSS_CROSS_ENTROPY; kind++) {
        small_loss(&net, (loss_kind)kind);
        small_backward(&net, false);
        for (size_t i = 0; i < net.model.tensors.elements; i++) {
            const float kept = net.params[i], h = 4e-3F;
            net.params[i] = kept + h;
            const double above = small_loss(&net, (loss_kind)kind);
            net.params[i] = kept - h;
            const double below = small_loss(&net, (loss_kind)kind);
            net.params[i] = kept;
            assert_near(net.grads[i], (above - below) / (2.0 * (double)h), 1e-2, 2e-4);
        }
    }
    small_close(&net);
}

static void gradients_of_parts_add_up(void **state)
{
    small_network net;
    small_open(&net);
    for (size_t at = 0; at < SMALL_BATCH; at += 3) {
        const size_t batch = SMALL_BATCH - at < 3 ? SMALL_BATCH - at : 3;
        const float *output = small_forward(&net, net.images + at * SMALL_IN, batch);
        loss_sum(LOSS_MSE, output, net.labels + at, batch, SMALL_OUT, 1.0 / SMALL_BATCH,
                 small_output_grad(&net));
        small_backward(&net, at > 0);
    }
    const float *grads = vector_floats("training/mse_grads", net.model.tensors.elements);
    for (size_t i = 0; i < net.model.tensors.elements; i++)
        assert_near(net.grads[i], grads[i], 1e-5, 1e-8);
    small_close(&net);
}

static void gemm_equals_the_sum_over_k(void **state)
{
    static const size_t sizes[][3] = {{1, 1, 1}, {3, 5, 7}, {64, 10, 64}, {17, 33, 100}};
    static float a[6400], b[6400], c[6400];
    train_random random;
    random_seed(&random, 1);
    for (size_t i = 0; i < 6400; i++) {
        a[i] = random_uniform(&random, -1, 1);
        b[i] = random_uniform(&random, -1, 1);
    }
    for (size_t s = 0; s < COUNT_OF(sizes); s++) {
        const size_t m = sizes[s][0], n = sizes[s][1], k = sizes[s][2];
        for (int ways = 0; ways < 8; ways++) {
            const bool ta = ways & 1, tb = ways & 2, add = ways & 4;
            for (size_t i = 0; i < m * n; i++)
                c[i] = 1.0F;
            gemm(ta, tb, m, n, k, a, b, add, c);
            for (size_t i = 0; i < m * n; i++) {
                double want = add ? 1.0 : 0.0;
                for (size_t p = 0; p < k; p++)
                    want += (double)a[ta ? p * m + i / n : i / n * k + p] *
                            (double)b[tb ? i % n * k + p : p * n + i % n];
                assert_near(c[i], want, 1e-5, 1e-5);
            }
        }
    }
}

static void tensors_follow_each_other_without_gaps(void **state)
{
    small_network net;
    small_open(&net);
    const tensor_table *tensors = &net.model.tensors;
    assert_int_equal(tensors->count, 6);
    size_t offset = 0;
    for (int i = 0; i < 6; i++) {
        assert_int_equal(tensors->list[i].offset, offset);
        assert_int_equal(tensors->list[i].group, i % 2 == 0 ? GROUP_DECAY : GROUP_NO_DECAY);
        offset += tensors->list[i].count;
    }
    assert_int_equal(offset, tensors->elements);
    assert_string_equal(tensors->list[0].name, "0.weight");
    assert_string_equal(tensors->list[5].name, "4.bias");
    small_close(&net);
}

static void what_is_not_finite_stays_visible(void **state)
{
    const uint32_t label = 1;
    float output_grad[3];
    const float bad[][3] = {{NAN, 0, 0}, {0, 0, NAN}, {INFINITY, 0, 0}, {0, -INFINITY, 0}};
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        for (int kind = LOSS_MSE; kind <= LOSS_CROSS_ENTROPY; kind++)
            assert_false(
                isfinite(loss_sum((loss_kind)kind, bad[i], &label, 1, 3, 1.0, output_grad)));
    const float large[] = {1000, 900, -1000}; /* exp() of these alone would overflow */
    assert_near(loss_sum(LOSS_CROSS_ENTROPY, large, &label, 1, 3, 1.0, output_grad), 100, 1e-6, 0);
}

static void a_hit_is_the_first_maximum(void **state)
{
    const float output[] = {0, 2, 2, 5, 1, 1, -1, -3, -2};
    const uint32_t first[] = {1, 0, 0}, second[] = {2, 1, 2};
    assert_int_equal(loss_correct(output, first, 3, 3), 3);
    assert_int_equal(loss_correct(output, second, 3, 3), 0);
}

/* As many classes as GPT-2 has tokens: against float64, and the gradients add up to 0. */
static void many_classes_lose_no_accuracy(void **state)
{
    enum { CLASSES = 50257, LABEL = 12345 };
    const uint32_t label = LABEL;
    float *output = malloc(CLASSES * sizeof *output),
          *output_grad = malloc(CLASSES * sizeof *output_grad);
    assert_non_null(output);
    assert_non_null(output_grad);
    train_random random;
    random_seed(&random, 3);
    double sum = 0.0, output_grads = 0.0;
    for (size_t j = 0; j < CLASSES; j++) {
        output[j] = random_uniform(&random, -2.0, 2.0);
        sum += exp((double)output[j]);
    }
    assert_near(loss_sum(LOSS_CROSS_ENTROPY, output, &label, 1, CLASSES, 1.0, output_grad),
                log(sum) - (double)output[LABEL], 1e-8, 0);
    for (size_t j = 0; j < CLASSES; j++) {
        const double want = exp((double)output[j]) / sum - (j == LABEL ? 1.0 : 0.0);
        assert_near(output_grad[j], want, 1e-6, 0);
        output_grads += (double)output_grad[j];
    }
    assert_near(output_grads, 0, 0, 5e-7);
    free(output);
    free(output_grad);
}

int main(void)
{
    gemm_set_threads(1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(initial_parameters_equal_pytorchs_bit_for_bit),
        cmocka_unit_test(mse_network_equals_pytorchs),
        cmocka_unit_test(cross_entropy_network_equals_pytorchs),
        cmocka_unit_test(gradients_equal_finite_differences),
        cmocka_unit_test(gradients_of_parts_add_up),
        cmocka_unit_test(gemm_equals_the_sum_over_k),
        cmocka_unit_test(tensors_follow_each_other_without_gaps),
        cmocka_unit_test(what_is_not_finite_stays_visible),
        cmocka_unit_test(many_classes_lose_no_accuracy),
        cmocka_unit_test(a_hit_is_the_first_maximum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 * Layers and losses against PyTorch, against finite differences, and against themselves cut
 * into micro-batches. */
#include "check.h"
#include "vectors.h"

#include <errors.h>
#include <gemm.h>
#include <loss.h>
#include <model.h>
#include <random.h>
#include <stdlib.h>
#include <string.h>

enum { SMALL_LAYERS = 3, SMALL_BATCH = 7, SMALL_IN = 6, SMALL_OUT = 3 };

/* The network of vectors.h: 6-5-4-3, seed 3, inputs drawn after the parameters. */
typedef struct small_network {
    train_model model;
    float *params, *grads;
    float images[SMALL_BATCH * SMALL_IN];
    uint8_t labels[SMALL_BATCH];
} small_network;

static void small_open(small_network *net)
{
    static const size_t widths[] = {SMALL_IN, 5, 4, SMALL_OUT};
    assert_int_equal(model_create(&net->model, widths, SMALL_LAYERS, SMALL_BATCH), RING_OK);
    const size_t count = net->model.param_count;
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
        net->labels[i] = (uint8_t)(i % SMALL_OUT);
}

static void small_close(small_network *net)
{
    free(net->params);
    free(net->grads);
    model_destroy(&net->model);
}

static double small_loss(small_network *net, loss_kind kind)
{
    const float *output = model_forward(&net->model, net->images, SMALL_BATCH);
    return loss_sum(kind, output, net->labels, SMALL_BATCH, SMALL_OUT, 1.0 / SMALL_BATCH,
                    net->model.layers[SMALL_LAYERS - 1].delta) /
           SMALL_BATCH;
}

static void initial_parameters_equal_pytorchs_bit_for_bit(void **state)
{
    (void)state;
    static const size_t widths[] = {784, 256, 64, 10};
    train_model model;
    assert_int_equal(model_create(&model, widths, 3, 1), RING_OK);
    assert_int_equal(model.param_count, 218058);
    float *params;
    assert_int_equal(train_alloc((void **)&params, 218058 * sizeof(float), "p"), RING_OK);
    model_bind(&model, params, params);
    model_init(&model, 7);
    assert_int_equal(fnv1a(params, 218058 * sizeof(float)), initial_hash);
    free(params);
    model_destroy(&model);
}

static void check_network(loss_kind kind, const float *output, double loss, const float *grads)
{
    small_network net;
    small_open(&net);
    assert_near(small_loss(&net, kind), loss, 1e-6, 0);
    const float *got = net.model.layers[SMALL_LAYERS - 1].output;
    for (size_t i = 0; i < SMALL_BATCH * SMALL_OUT; i++)
        assert_near(got[i], output[i], 1e-5, 1e-7);
    assert_int_equal(model_backward(&net.model, false, NULL, NULL), RING_OK);
    for (size_t i = 0; i < net.model.param_count; i++)
        assert_near(net.grads[i], grads[i], 1e-5, 1e-8);
    small_close(&net);
}

static void mse_network_equals_pytorchs(void **state)
{
    (void)state;
    check_network(LOSS_MSE, mse_output, mse_loss[0], mse_grads);
}

static void cross_entropy_network_equals_pytorchs(void **state)
{
    (void)state;
    check_network(LOSS_CROSS_ENTROPY, cross_entropy_output, cross_entropy_loss[0],
                  cross_entropy_grads);
}

/* (loss(p + h) - loss(p - h)) / 2h, where float32 leaves about three digits. */
static void gradients_equal_finite_differences(void **state)
{
    (void)state;
    small_network net;
    small_open(&net);
    for (int kind = LOSS_MSE; kind <= LOSS_CROSS_ENTROPY; kind++) {
        small_loss(&net, (loss_kind)kind);
        assert_int_equal(model_backward(&net.model, false, NULL, NULL), RING_OK);
        for (size_t i = 0; i < net.model.param_count; i++) {
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
    (void)state;
    small_network net;
    small_open(&net);
    train_model *model = &net.model;
    float *delta = model->layers[SMALL_LAYERS - 1].delta;
    for (size_t at = 0; at < SMALL_BATCH; at += 3) {
        const size_t batch = SMALL_BATCH - at < 3 ? SMALL_BATCH - at : 3;
        const float *output = model_forward(model, net.images + at * SMALL_IN, batch);
        loss_sum(LOSS_MSE, output, net.labels + at, batch, SMALL_OUT, 1.0 / SMALL_BATCH, delta);
        assert_int_equal(model_backward(model, at > 0, NULL, NULL), RING_OK);
    }
    for (size_t i = 0; i < model->param_count; i++)
        assert_near(net.grads[i], mse_grads[i], 1e-5, 1e-8);
    small_close(&net);
}

static ring_status note_layer(void *context, int layer)
{
    int *layers = context;
    layers[++layers[0]] = layer;
    return layer == 1 && layers[4] ? RING_ERR_ABORTED : RING_OK;
}

static void layers_are_reported_from_last_to_first(void **state)
{
    (void)state;
    small_network net;
    int layers[5] = {0};
    small_open(&net);
    small_loss(&net, LOSS_MSE);
    assert_int_equal(model_backward(&net.model, false, note_layer, layers), RING_OK);
    const int want[5] = {3, 2, 1, 0, 0};
    assert_memory_equal(layers, want, sizeof want);
    layers[0] = 0;
    layers[4] = 1; /* now the callback fails at layer 1 */
    assert_int_equal(model_backward(&net.model, false, note_layer, layers), RING_ERR_ABORTED);
    assert_int_equal(layers[0], 2);
    small_close(&net);
}

static void gemm_equals_the_sum_over_k(void **state)
{
    (void)state;
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
    (void)state;
    small_network net;
    model_tensor tensors[2 * MODEL_LAYERS_MAX];
    small_open(&net);
    assert_int_equal(model_tensors(&net.model, tensors), 6);
    size_t offset = 0;
    for (int i = 0; i < 6; i++) {
        assert_int_equal(tensors[i].offset, offset);
        offset += tensors[i].count;
    }
    assert_int_equal(offset, net.model.param_count);
    assert_string_equal(tensors[0].name, "0.weight");
    assert_string_equal(tensors[5].name, "4.bias");
    assert_ptr_equal(net.params + tensors[2].offset, net.model.layers[1].weight);
    assert_ptr_equal(net.grads + tensors[3].offset, net.model.layers[1].bias_grad);
    small_close(&net);
}

static void what_is_not_finite_stays_visible(void **state)
{
    (void)state;
    const uint8_t label = 1;
    float delta[3];
    const float bad[][3] = {{NAN, 0, 0}, {0, 0, NAN}, {INFINITY, 0, 0}, {0, -INFINITY, 0}};
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        for (int kind = LOSS_MSE; kind <= LOSS_CROSS_ENTROPY; kind++)
            assert_false(isfinite(loss_sum((loss_kind)kind, bad[i], &label, 1, 3, 1.0, delta)));
    const float large[] = {1000, 900, -1000}; /* exp() of these alone would overflow */
    assert_near(loss_sum(LOSS_CROSS_ENTROPY, large, &label, 1, 3, 1.0, delta), 100, 1e-6, 0);
}

static void a_hit_is_the_first_maximum(void **state)
{
    (void)state;
    const float output[] = {0, 2, 2, 5, 1, 1, -1, -3, -2};
    const uint8_t first[] = {1, 0, 0}, second[] = {2, 1, 2};
    assert_int_equal(loss_correct(output, first, 3, 3), 3);
    assert_int_equal(loss_correct(output, second, 3, 3), 0);
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
        cmocka_unit_test(layers_are_reported_from_last_to_first),
        cmocka_unit_test(gemm_equals_the_sum_over_k),
        cmocka_unit_test(tensors_follow_each_other_without_gaps),
        cmocka_unit_test(what_is_not_finite_stays_visible),
        cmocka_unit_test(a_hit_is_the_first_maximum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

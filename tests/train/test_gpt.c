/* SPDX-License-Identifier: Apache-2.0
 * The ops of a GPT and a small one against PyTorch, from inputs that are a formula of their place
 * (make_gpt_vectors.py); its parameters' names, groups and sharing. */
#include "check.h"
#include "descent.h"
#include "op_references.h"
#include "vectors.h"

#include <errors.h>
#include <exponential.h>
#include <gemm.h>
#include <gpt.h>
#include <layer_list.h>
#include <loss.h>
#include <model.h>
#include <stdlib.h>
#include <string.h>

static uint32_t hashed(uint64_t i)
{
    return (uint32_t)(i * 2654435761U);
}

/* Between -1 and 1, in no order. */
/* As in make_gpt_vectors.py. */
enum {
    STORED_STEPS = 50,
    STORED_PICKED = 8,
    STORED_BATCH = 4,
    STORED_LAYERS = 2,
    STORED_HEADS = 2,
    STORED_WIDTH = 36,
    STORED_TOKENS = 16,
    STORED_WORDS = 50
};

static float scattered(size_t i)
{
    return (float)((double)hashed(i) / 0x1p31 - 1.0);
}

static uint32_t word(size_t i)
{
    return (uint32_t)((hashed(i) >> 16) % STORED_WORDS);
}

/* ---- Ops ----------------------------------------------------------------------------------- */

enum { RESULTS_MAX = 1024, BATCH = 2 };

/* An op, its input's scale (0: words), and what PyTorch made of it: the output, the gradient by the
 * input unless that is words, and those by the parameters. */
typedef struct known_op {
    const nn_op *op;
    op_settings settings;
    op_shape in; /* of one of BATCH samples */
    float scale;
    const char *results;
} known_op;

#define TEXT(t, f) \
    { \
        .dim = {(t), (f)}, .dims = 2 \
    }

/* Compares with the next of the stored values. */
static void check_next(const known_op *known, size_t *at, const float *got, size_t count)
{
    const float *want = vector_floats(known->results, 0) + *at;
    double most = 0.0;
    *at += count;
    assert_true(*at <= vector_count(known->results));
    for (size_t i = 0; i < count; i++)
        most = fmax(most, fabs((double)want[i]));
    for (size_t i = 0; i < count; i++) {
        if (!(fabs((double)got[i] - (double)want[i]) <= 2e-6 * most))
            fail_msg("%s, result %zu: got %.9g, want %.9g", known->op->name, i, (double)got[i],
                     (double)want[i]);
    }
}

static void run_known(const known_op *known, const op_functions *functions, op_use *use)
{
    static float in[RESULTS_MAX], out[RESULTS_MAX], out_grad[RESULTS_MAX], in_grad[RESULTS_MAX];
    static float params[OP_TENSORS_MAX][RESULTS_MAX], grads[OP_TENSORS_MAX][RESULTS_MAX];
    static _Alignas(64) uint8_t saved[RESULTS_MAX], scratch[RESULTS_MAX];
    const size_t in_count = BATCH * shape_count(&use->in[0]);
    const size_t out_count = BATCH * shape_count(&use->out);
    op_run run = {.use = use,
                  .batch = BATCH,
                  .training = true,
                  .in = {in},
                  .out = out,
                  .saved = saved,
                  .scratch = scratch,
                  .params = {params[0], params[1]},
                  .grads = {grads[0], grads[1]},
                  .out_grad = out_grad,
                  .in_grad = {in_grad}};
    size_t at = 0;
    assert_true(BATCH * use->saved_bytes <= sizeof saved && use->scratch_bytes <= sizeof scratch);
    for (size_t i = 0; i < RESULTS_MAX; i++) {
        in[i] = known->scale > 0.0F ? known->scale * scattered(i) : (float)word(i);
        out_grad[i] = scattered(5000 + i);
        params[0][i] = scattered(1000 + i);
        params[1][i] = scattered(2000 + i);
    }
    functions->forward(&run);
    if (functions->params != NULL)
        functions->params(&run);
    functions->inputs(&run);
    check_next(known, &at, out, out_count);
    if (known->scale > 0.0F)
        check_next(known, &at, in_grad, in_count);
    for (int t = 0; t < use->tensor_count; t++) {
        size_t count = 1;
        for (int d = 0; d < use->tensors[t].dims; d++)
            count *= use->tensors[t].shape[d];
        check_next(known, &at, grads[t], count);
    }
    assert_int_equal(at, vector_count(known->results));
}

/* Both what runs and the plain loops. */
static void ops_compute_what_pytorchs_do(void **state)
{
    static const known_op known[] = {
        {&op_gelu, {0}, TEXT(11, 1), 4, "gpt/gelu_results"},
        {&op_gelu, {.by_tanh = true}, TEXT(11, 1), 4, "gpt/gelu_tanh_results"},
        {&op_layer_norm, {0}, TEXT(3, 19), 1, "gpt/layer_norm_results"},
        {&op_attention, {.heads = 3}, TEXT(5, 18), 3, "gpt/attention_results"},
        {&op_embedding,
         {.words = STORED_WORDS, .outputs = 3},
         {.dim = {4}, .dims = 1},
         0,
         "gpt/embedding_results"},
        {&op_position_embedding, {0}, TEXT(3, 5), 1, "gpt/position_embedding_results"},
        {&op_linear, {.outputs = 4}, TEXT(3, 5), 1, "gpt/token_linear_results"},
    };
    for (size_t k = 0; k < COUNT_OF(known); k++) {
        op_use use = {.op = known[k].op, .settings = known[k].settings, .in = {known[k].in}};
        assert_int_equal(use.op->shape(&use), RING_OK);
        run_known(&known[k], &use.op->fast, &use);
        const op_functions reference = op_reference(use.op);
        run_known(&known[k], &reference, &use);
    }
}

static void the_exponential_is_near_the_librarys(void **state)
{
    for (int i = -87000; i <= 88000; i += 7) {
        const float x = (float)i / 1000.0F;
        assert_near(exponential(x), exp((double)x), 2e-7 + 1e-7 * fabs((double)x), 0);
    }
    assert_true(exponential(0.0F) == 1.0F);
    assert_true(exponential(-1e30F) < 2e-38F && exponential(-INFINITY) >= 0.0F);
    assert_true(isfinite(exponential(1e30F)) && isnan(exponential(NAN)));
}

/* Far from zero, where the two ways of computing it part first. */
static void gelu_holds_far_from_zero(void **state)
{
    const float in[] = {-100, -13, -6, -3, -0.0F, 1e-30F, 3, 6, 13, 100};
    const op_use use = {.op = &op_gelu, .out = {.dim = {COUNT_OF(in)}, .dims = 1}};
    float got[2][COUNT_OF(in)], slopes[2][COUNT_OF(in)], ones[COUNT_OF(in)];
    for (size_t i = 0; i < COUNT_OF(in); i++)
        ones[i] = 1.0F;
    for (int plain = 0; plain < 2; plain++) {
        const op_functions functions = plain ? op_reference(&op_gelu) : op_gelu.fast;
        const op_run run = {.use = &use,
                            .batch = 1,
                            .in = {in},
                            .out = got[plain],
                            .out_grad = ones,
                            .in_grad = {slopes[plain]}};
        functions.forward(&run);
        functions.inputs(&run);
    }
    for (size_t i = 0; i < COUNT_OF(in); i++) {
        assert_near(got[0][i], got[1][i], 1e-6, 1e-6);
        assert_near(slopes[0][i], slopes[1][i], 1e-6, 1e-6);
    }
}

/* A token sees itself and those before it: what comes later changes nothing. */
static void attention_looks_back_only(void **state)
{
    enum {
        TOKENS = 6,
        WIDTH = 4,
        INPUTS = TOKENS * 3 * WIDTH,
        OUTPUTS = TOKENS * WIDTH,
        KEPT = 4 * WIDTH
    };
    float in[INPUTS], out[2][OUTPUTS], softmax[2 * TOKENS * TOKENS];
    op_use use = {.op = &op_attention,
                  .settings = {.heads = 2},
                  .in = {TEXT(TOKENS, (size_t)3 * WIDTH)}};
    assert_int_equal(op_attention.shape(&use), RING_OK);
    for (size_t i = 0; i < COUNT_OF(in); i++)
        in[i] = scattered(i);
    for (int later = 0; later < 2; later++) {
        const op_run run = {
            .use = &use, .batch = 1, .in = {in}, .out = out[later], .saved = (void *)softmax};
        for (size_t i = (size_t)3 * KEPT; i < COUNT_OF(in); i++)
            in[i] += (float)later;
        op_attention.fast.forward(&run);
    }
    assert_memory_equal(out[0], out[1], KEPT * sizeof(float));
    assert_memory_not_equal(out[0] + KEPT, out[1] + KEPT, (OUTPUTS - KEPT) * sizeof(float));
}

/* No access beyond the table. */
static void what_is_no_word_gives_nan(void **state)
{
    const float in[] = {1, -1, 3, NAN, 1e30F}, table[] = {1, 2, 3};
    float out[5], grad[3] = {0};
    op_use use = {.op = &op_embedding,
                  .settings = {.words = 3, .outputs = 1},
                  .in = {{.dim = {5}, .dims = 1}}};
    assert_int_equal(op_embedding.shape(&use), RING_OK);
    const op_run run = {.use = &use,
                        .batch = 1,
                        .in = {in},
                        .out = out,
                        .params = {table},
                        .grads = {grad},
                        .out_grad = (const float[]){1, 1, 1, 1, 1}};
    op_embedding.fast.forward(&run);
    op_embedding.fast.params(&run);
    assert_true(out[0] == 2.0F);
    for (int i = 1; i < 5; i++)
        assert_true(isnan(out[i]));
    assert_true(grad[0] == 0.0F && grad[1] == 1.0F && grad[2] == 0.0F);
}

/* ---- A GPT --------------------------------------------------------------------------------- */

static const gpt_sizes sizes = {.layers = STORED_LAYERS,
                                .heads = STORED_HEADS,
                                .width = STORED_WIDTH,
                                .tokens = STORED_TOKENS,
                                .words = STORED_WORDS,
                                .tied = true};

/* A model with its flat buffers. */
typedef struct network {
    model_spec spec;
    train_model model;
    float *params, *grads;
} network;

static void network_open(network *net, const gpt_sizes *of)
{
    assert_int_equal(model_build_gpt(&net->spec, "gpt", of), RING_OK);
    assert_int_equal(net->spec.count, gpt_layers(of));
    if (model_create(&net->model, &net->spec, STORED_BATCH, 1) != RING_OK)
        fail_msg("%s", train_error());
    const size_t bytes = net->model.tensors.elements * sizeof(float);
    assert_int_equal(train_alloc((void **)&net->params, bytes, "p"), RING_OK);
    assert_int_equal(train_alloc((void **)&net->grads, bytes, "g"), RING_OK);
    model_bind(&net->model, net->params, net->grads);
    model_init(&net->model, 7);
}

static void network_close(network *net)
{
    free(net->params);
    free(net->grads);
    model_destroy(&net->model);
    model_spec_free(&net->spec);
}

/* Forward and backward of one batch of the text. @return its loss. */
static double pass(network *net, size_t begin)
{
    enum { LABELS = STORED_BATCH * STORED_TOKENS };
    float in[LABELS];
    uint32_t labels[LABELS];
    train_model *model = &net->model;
    const int nodes = model->node_count;
    for (size_t i = 0; i < LABELS; i++) {
        const size_t at = begin + i / STORED_TOKENS * (STORED_TOKENS + 1) + i % STORED_TOKENS;
        in[i] = (float)word(at);
        labels[i] = word(at + 1);
    }
    const model_batch batch = {.input = in, .rows = STORED_BATCH, .training = true};
    assert_int_equal(model_load(model, 0, &batch), RING_OK);
    model_forward(model, 0, 0, nodes);
    const double sum = loss_sum(LOSS_CROSS_ENTROPY, model_output(model, 0), labels, LABELS,
                                STORED_WORDS, 1.0 / LABELS, model_value_grad(model, 0, nodes - 1));
    model_backward(model, 0, 0, nodes, false);
    return sum / LABELS;
}

/* Some values of each tensor with memory of its own, within a share of @p largest of each. */
static void check_picked(const network *net, const float *values, const float *want,
                         const double *largest, double share)
{
    for (int t = 0; t < net->model.tensors.count; t++) {
        const train_tensor *tensor = &net->model.tensors.list[t];
        for (size_t i = 0; i < STORED_PICKED && tensor->tie < 0; i++, want++) {
            const size_t at = i * (tensor->count - 1) / (STORED_PICKED - 1);
            const double got = (double)values[tensor->offset + at];
            if (!(fabs(got - (double)*want) <= share * (largest != NULL ? largest[t] : 1.0)))
                fail_msg("%s[%zu]: got %.9g, want %.9g", tensor->name, at, got, (double)*want);
        }
    }
}

static void check_sums(const network *net)
{
    const double *sums = vector_doubles("gpt/gpt_sums", 0);
    const double *largest = vector_doubles("gpt/gpt_largest", 0);
    for (int t = 0; t < net->model.tensors.count; t++) {
        const train_tensor *tensor = &net->model.tensors.list[t];
        double sum = 0.0;
        for (size_t i = 0; i < tensor->count && tensor->tie < 0; i++)
            sum += (double)net->grads[tensor->offset + i] * ((double)hashed(i) / 0x1p31 - 1.0);
        if (tensor->tie < 0)
            assert_near(sum, sums[t], 0, 1e-5 * largest[t] * sqrt((double)tensor->count));
    }
}

static void train_by_sgd(network *net)
{
    train_optimizer sgd;
    const double *losses = vector_doubles("gpt/gpt_losses", STORED_STEPS);
    descent_open(&sgd, "{optimizer: {type: \"SGD\"}}", net->model.tensors.elements);
    for (size_t step = 0; step < STORED_STEPS; step++) {
        assert_near(pass(net, step * 1000), losses[step], 1e-5, 0);
        if (step == 0) {
            check_picked(net, net->grads, vector_floats("gpt/gpt_picked", 0),
                         vector_doubles("gpt/gpt_largest", 0), 1e-5);
            check_sums(net);
        }
        descent_step(&sgd, net->params, net->grads, 0.01);
    }
    optimizer_destroy(&sgd);
}

static void train_by_adam(network *net)
{
    const known_adam known = KNOWN_ADAM("gpt/gpt", STORED_STEPS);
    train_optimizer adam;
    descent_open(&adam, "{optimizer: {type: \"Adam\"}}", net->model.tensors.elements);
    for (size_t step = 0; step < STORED_STEPS; step++) {
        assert_near(pass(net, step * 1000), known.losses[step], 0, DRIFT_ALLOWED * known.drift);
        descent_step(&adam, net->params, net->grads, known.rate);
    }
    optimizer_destroy(&adam);
}

/* From the first parameters to those that PyTorch ends with. */
static void check_moved(void (*train)(network *), const float *want, const double *limits,
                        double share)
{
    network net = {0};
    float *moved;
    network_open(&net, &sizes);
    const size_t count = net.model.tensors.elements, bytes = count * sizeof(float);
    assert_int_equal(train_alloc((void **)&moved, bytes, "moved"), RING_OK);
    memcpy(moved, net.params, bytes);
    check_picked(&net, net.params, vector_floats("gpt/gpt_initial", 0), NULL, 1e-7);
    train(&net);
    for (size_t i = 0; i < count; i++)
        moved[i] = net.params[i] - moved[i];
    check_picked(&net, moved, want, limits, share);
    free(moved);
    network_close(&net);
}

static void a_gpt_trains_as_pytorchs(void **state)
{
    check_moved(train_by_sgd, vector_floats("gpt/gpt_moved", 0),
                vector_doubles("gpt/gpt_most_moved", 0), 1e-3);
    const known_adam known = KNOWN_ADAM("gpt/gpt", STORED_STEPS);
    check_moved(train_by_adam, known.moved, known.drifts, DRIFT_ALLOWED);
}

static const train_tensor *find_tensor(const network *net, const char *name)
{
    for (int t = 0; t < net->model.tensors.count; t++) {
        if (strcmp(net->model.tensors.list[t].name, name) == 0)
            return &net->model.tensors.list[t];
    }
    fail_msg("no tensor is called %s", name);
    return NULL;
}

static void tensors_have_nanogpts_names_and_their_groups(void **state)
{
    gpt_sizes own = sizes;
    network net = {0};
    network_open(&net, &sizes);
    const train_tensor *words = find_tensor(&net, "transformer.wte.weight");
    assert_int_equal(words->group, GROUP_EMBEDDING);
    assert_int_equal(find_tensor(&net, "lm_head.weight")->offset, words->offset);
    assert_int_equal(find_tensor(&net, "transformer.wpe.weight")->group, GROUP_EMBEDDING);
    assert_int_equal(find_tensor(&net, "transformer.h.1.attn.c_attn.weight")->group, GROUP_DECAY);
    assert_int_equal(find_tensor(&net, "transformer.h.1.mlp.c_proj.bias")->group, GROUP_NO_DECAY);
    assert_int_equal(find_tensor(&net, "transformer.h.0.ln_2.weight")->group, GROUP_NO_DECAY);
    assert_int_equal(find_tensor(&net, "transformer.ln_f.bias")->group, GROUP_NO_DECAY);
    const size_t shared = model_parameters(&net.model);
    network_close(&net);
    own.tied = false;
    own.dropout = 0.1;
    own.attention_dropout = 0.2;
    network_open(&net, &own);
    assert_int_equal(model_parameters(&net.model), shared + (size_t)STORED_WORDS * STORED_WIDTH);
    network_close(&net);
}

/* ---- Files --------------------------------------------------------------------------------- */

static void a_file_gives_the_sizes(void **state)
{
    static const char text[] =
        "{name: \"g\", gpt: {n_layer: 2, n_head: 2, n_embd: 36, block_size: 16, vocab_size: 50}}";
    model_spec file, built;
    if (layer_list_parse(&file, NULL, "g.json", text, sizeof text - 1) != RING_OK)
        fail_msg("%s", train_error());
    assert_int_equal(model_build_gpt(&built, "g", &sizes), RING_OK);
    assert_int_equal(model_spec_hash(&file), model_spec_hash(&built));
    assert_string_equal(file.name, "g");
    assert_int_equal(model_spec_words(&file), 50);
    model_spec_free(&file);
    model_spec_free(&built);
}

static double dropout_of(const char *text, const nn_op *op)
{
    model_spec spec;
    double found = -1.0;
    if (layer_list_parse(&spec, NULL, "g.json", text, strlen(text)) != RING_OK)
        fail_msg("%s", train_error());
    for (int n = 0; n < spec.count; n++) {
        if (spec.nodes[n].op == op)
            found = spec.nodes[n].settings.probability;
    }
    model_spec_free(&spec);
    return found;
}

static void dropout_of_attention_has_its_own_key(void **state)
{
    assert_true(dropout_of("{gpt: {attn_pdrop: 0.25}}", &op_attention) == 0.25);
    assert_true(dropout_of("{gpt: {attn_pdrop: 0.25}}", &op_dropout) == -1.0);
    assert_true(dropout_of("{gpt: {dropout: 0.25}}", &op_attention) == 0.0);
    assert_true(dropout_of("{input: [4], layers: [{type: \"embedding\", vocabulary: 9, features: "
                           "6}, {type: \"attention\", heads: 1, dropout: 0.5}]}",
                           &op_attention) == 0.5);
}

static void what_is_wrong_with_sizes_is_told(void **state)
{
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"{gpt: 3}", "m.json:1:2: expected a section"},
        {"{gpt: {layers: 3}}", "m.json:1:8: gpt has no setting \"layers\""},
        {"{gpt: {n_layer: 0}}", "m.json:1:8: expected a whole number from 1"},
        {"{gpt: {n_head: 3}}", "m.json:1:2: layer transformer.h.0.attn (attention): 128 features "
                               "cannot be split among 3 heads"},
        {"{gpt: {attn_pdrop: 1}}", "m.json:1:8: expected a number that is at least 0 and below 1"},
        {"{gpt: {n_layer: 1000}}", "m.json:1:2: the GPT has more than 1024 nodes"},
        {"{gpt: {block_size: 1000000}}",
         "m.json:1:2: layer transformer.h.0.attn (attention): attention of 4 heads over 1000000 "
         "tokens is too large"},
        {"{gpt: {}, layers: []}", "m.json:1:11: \"gpt\" replaces"},
        {"{input: [3], gpt: {}}", "m.json:1:14: \"gpt\" replaces"},
        {"{gpt: {approximate: \"erf\"}}", "m.json:1:8: expected \"none\" or \"tanh\""},
        {"{gpt: {tie_word_embeddings: 1}}", "m.json:1:8: expected true or false"},
        {"{input: [3], layers: [{type: \"embedding\", features: 3}]}",
         "m.json:1:24: embedding needs \"vocabulary\""},
        {"{input: [3], layers: [{type: \"attention\"}]}", "m.json:1:24: attention needs \"heads\""},
        {"{input: [3], layers: [{type: \"attention\", heads: 1}]}",
         "m.json:1:24: layer 0 (attention): attention takes [tokens, 3 * features], not [3]"},
        {"{input: [3], layers: [{type: \"linear\", features: 3, init_std: 0}]}",
         "m.json:1:53: expected a number that is above 0"},
        {"{input: [1, 2, 3], layers: [{type: \"embedding\", features: 3, vocabulary: 3}]}",
         "m.json:1:30: layer 0 (embedding): embedding takes [tokens], not [1, 2, 3]"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        model_spec spec;
        assert_int_equal(layer_list_parse(&spec, NULL, "m.json", cases[i].text,
                                          strlen(cases[i].text)),
                         RING_ERR_CONFIG);
        if (strncmp(train_error(), cases[i].error, strlen(cases[i].error)) != 0)
            fail_msg("got  %s\nwant %s", train_error(), cases[i].error);
        model_spec_free(&spec);
    }
}

int main(void)
{
    gemm_set_threads(1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ops_compute_what_pytorchs_do),
        cmocka_unit_test(the_exponential_is_near_the_librarys),
        cmocka_unit_test(gelu_holds_far_from_zero),
        cmocka_unit_test(attention_looks_back_only),
        cmocka_unit_test(what_is_no_word_gives_nan),
        cmocka_unit_test(a_gpt_trains_as_pytorchs),
        cmocka_unit_test(tensors_have_nanogpts_names_and_their_groups),
        cmocka_unit_test(a_file_gives_the_sizes),
        cmocka_unit_test(dropout_of_attention_has_its_own_key),
        cmocka_unit_test(what_is_wrong_with_sizes_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

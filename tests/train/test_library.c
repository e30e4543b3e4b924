/* SPDX-License-Identifier: Apache-2.0
 * The public API on one rank: layers, losses, rates and batches of the caller's, and misuse. */
#include "comma_locale.h"
#include "library_calls.h"

#include <stdbool.h>
#include <stdlib.h>

enum { FEATURES = 5, CLASSES = 3, SAMPLES = 8 };

static float number(uint32_t i, uint32_t j)
{
    uint32_t h = i * 2654435761U ^ (j + 1) * 2246822519U;
    h = (h ^ h >> 15) * 3266489917U;
    return (float)(h >> 8) / 8388608.0F - 1.0F;
}

typedef struct source {
    uint32_t wrong; /* added to labels */
    int fails;
} source;

static int take(void *context, const uint32_t *samples, size_t rows, float *inputs,
                uint32_t *labels)
{
    const source *from = context;
    for (size_t i = 0; i < rows; i++) {
        for (uint32_t f = 0; f < FEATURES && inputs != NULL; f++)
            inputs[i * FEATURES + f] = number(samples[i], f);
        labels[i] = (uint32_t)(samples[i] % CLASSES + from->wrong);
    }
    return from->fails;
}

/* out = weight · tanh(in) + in, with a parameter a feature. */
static int bend_shape(void *context, const ring_train_shape *in, ring_train_shape *out,
                      ring_train_param params[RING_TRAIN_OP_PARAMS], int *count)
{
    if (in->dims != 1)
        return 1;
    *out = *in;
    *count = 1;
    params[0].name = "weight";
    params[0].dim[0] = in->dim[0];
    params[0].dims = 1;
    params[0].start = RING_TRAIN_UNIFORM;
    params[0].fan_in = 4;
    return 0;
}

static void bend_forward(const ring_train_pass *pass)
{
    const size_t width = pass->in_shape->dim[0];
    for (size_t i = 0; i < pass->rows * width; i++)
        pass->out[i] = pass->params[0][i % width] * tanhf(pass->in[i]) + pass->in[i];
}

static void bend_params(const ring_train_pass *pass)
{
    const size_t width = pass->in_shape->dim[0];
    for (size_t i = 0; i < pass->rows * width; i++)
        pass->grads[0][i % width] += pass->out_grad[i] * tanhf(pass->in[i]);
}

static void bend_inputs(const ring_train_pass *pass)
{
    const size_t width = pass->in_shape->dim[0];
    for (size_t i = 0; i < pass->rows * width; i++) {
        const float t = tanhf(pass->in[i]);
        pass->in_grad[i] = pass->out_grad[i] * (1.0F + pass->params[0][i % width] * (1.0F - t * t));
    }
}

static const ring_train_op bend = {sizeof bend, "bend",      bend_shape, bend_forward,
                                   bend_params, bend_inputs, NULL};

#define SGD(micro, steps) \
    "{train_micro_batch_size_per_gpu: " micro ", gradient_accumulation_steps: " steps \
    ", optimizer: {type: \"SGD\", params: {lr: 1}}}"
#define NO_DECAY \
    "{train_micro_batch_size_per_gpu: 8, optimizer: {type: \"AdamW\", params: {lr: 0.1}, " \
    "param_groups: \"no_decay\"}, scheduler: {type: \"WarmupLR\", params: " \
    "{warmup_min_lr: 0, warmup_max_lr: 0.1, warmup_num_steps: 10}}}"
#define BENT \
    "{input: [5], layers: [{type: \"linear\", features: 4}, {type: \"bend\", name: \"bent\"}, " \
    "{type: \"linear\", features: 3}]}"

typedef struct lone_rank {
    ring_comm *comm;
    ring_train *engine;
    source source;
} lone_rank;

static ring_train_options options_of(lone_rank *alone, const char *config)
{
    ring_train_options options = RING_TRAIN_OPTIONS_INIT;
    options.config_text = config;
    options.layers = BENT;
    options.ops = &bend;
    options.op_count = 1;
    options.loss = "cross_entropy";
    options.train.count = options.test.count = SAMPLES;
    options.train.take = options.test.take = take;
    options.train.context = options.test.context = &alone->source;
    options.seed = 1;
    return options;
}

static void start(lone_rank *alone, const char *config)
{
    *alone = (lone_rank){0};
    const ring_train_options options = options_of(alone, config);
    assert_int_equal(ring_comm_init_env(&alone->comm), RING_OK);
    must(ring_train_create(&alone->engine, alone->comm, &options));
}

static void end(lone_rank *alone)
{
    ring_train_destroy(alone->engine);
    ring_comm_destroy(alone->comm);
}

/* The loss on all samples, which leaves the parameters as they are. */
static double loss_at(ring_train *engine)
{
    double loss;
    must(ring_train_evaluate(engine, &loss, NULL));
    return loss;
}

static double slope_at(ring_train *engine, const char *name, float *values, size_t count, size_t i)
{
    const float eps = 1e-2F, value = values[i];
    values[i] = value + eps;
    must(ring_train_set_tensor(engine, name, values, count));
    const double above = loss_at(engine);
    values[i] = value - eps;
    must(ring_train_set_tensor(engine, name, values, count));
    const double below = loss_at(engine);
    values[i] = value;
    must(ring_train_set_tensor(engine, name, values, count));
    return (above - below) / (2.0 * (double)eps);
}

/* A step of SGD at rate 1 moves parameters by their gradients: those of the layer, and those that
 * come through it. */
static void gradients_of_own_layers_are_finite_differences(void **state)
{
    static const struct {
        const char *name;
        size_t count;
    } tensors[] = {{"bent.weight", 4}, {"0.weight", 20}, {"2.bias", 3}};
    float before[3][20], after[20];
    double slopes[3][20];
    lone_rank alone;
    start(&alone, SGD("2", "4"));
    for (size_t t = 0; t < COUNT_OF(tensors); t++) {
        must(ring_train_get_tensor(alone.engine, tensors[t].name, before[t], tensors[t].count));
        for (size_t i = 0; i < tensors[t].count; i++)
            slopes[t][i] = slope_at(alone.engine, tensors[t].name, before[t], tensors[t].count, i);
    }
    must(ring_train_set_lr(alone.engine, 0.0)); /* leaves gradients that are to be replaced */
    must(ring_train_train_batch(alone.engine, NULL));
    must(ring_train_set_lr(alone.engine, -1.0));
    must(ring_train_train_batch(alone.engine, NULL));
    for (size_t t = 0; t < COUNT_OF(tensors); t++) {
        must(ring_train_get_tensor(alone.engine, tensors[t].name, after, tensors[t].count));
        for (size_t i = 0; i < tensors[t].count; i++)
            assert_near(before[t][i] - after[i], slopes[t][i], 1e-2, 2e-4);
    }
    end(&alone);
}

/* ---- Batches and losses of the caller's ---------------------------------------------------- */

static ring_train_batch own_batch(const float *inputs, const uint32_t *samples, size_t rows)
{
    ring_train_batch batch = RING_TRAIN_BATCH_INIT;
    batch.rows = rows;
    batch.inputs = inputs;
    batch.samples = samples;
    return batch;
}

/* Mean over rows of the squared error, as the built-in loss has it. */
static double square(const float *outputs, const uint32_t *labels, size_t rows, float *gradient)
{
    double loss = 0;
    for (size_t i = 0; i < rows * CLASSES; i++) {
        const float error = outputs[i] - (i % CLASSES == labels[i / CLASSES] ? 1.0F : 0.0F);
        loss += (double)(error * error) / (double)(rows * CLASSES);
        gradient[i] = 2.0F * error / (float)(rows * CLASSES);
    }
    return loss;
}

/* Samples 0 to 7 in micro-batches of 4, by the one loss or the other. */
typedef enum whose_loss { BUILT_IN, OWN, OWN_DIVIDED } whose_loss;

/* As `loss /= accum_iter` before backward does. */
static void divide(double *loss, float *gradient, size_t count)
{
    *loss /= 2.0;
    for (size_t i = 0; i < count; i++)
        gradient[i] /= 2.0F;
}

static double train_own(whose_loss whose, size_t rows, float weights[12])
{
    double mean = 0.0;
    float inputs[SAMPLES * FEATURES], gradient[SAMPLES * CLASSES];
    uint32_t labels[SAMPLES];
    uint32_t samples[SAMPLES];
    lone_rank alone = {0};
    ring_train_options options = options_of(&alone, SGD("4", "2"));
    options.loss = "mse";
    options.loss_is_scaled = whose == OWN_DIVIDED;
    options.train.count = options.test.count = 0;
    assert_int_equal(ring_comm_init_env(&alone.comm), RING_OK);
    must(ring_train_create(&alone.engine, alone.comm, &options));
    for (uint32_t i = 0; i < SAMPLES; i++)
        samples[i] = i;
    take(&alone.source, samples, SAMPLES, inputs, labels);
    for (size_t m = 0; m < 2; m++) {
        const float *outputs;
        double loss = 0.0;
        const ring_train_batch batch = own_batch(inputs + m * rows * FEATURES, NULL, rows);
        must(ring_train_forward(alone.engine, &batch, &outputs));
        if (whose != BUILT_IN) {
            double told = loss = square(outputs, labels + m * rows, rows, gradient);
            if (whose == OWN_DIVIDED)
                divide(&told, gradient, rows * CLASSES);
            must(ring_train_own_loss(alone.engine, told, gradient));
        } else {
            must(ring_train_loss(alone.engine, labels + m * rows, &loss));
        }
        mean += loss / 2.0;
        must(ring_train_backward(alone.engine));
        must(ring_train_step(alone.engine));
    }
    ring_train_info info = {.size = sizeof info};
    must(ring_train_get_info(alone.engine, &info));
    assert_int_equal(info.step, 1);
    assert_int_equal(info.micro_steps, 2);
    assert_near(info.loss, mean, 1e-12, 0);
    must(ring_train_get_tensor(alone.engine, "2.weight", weights, 12));
    end(&alone);
    return info.loss;
}

/* Short micro-batches of the caller's count as whole ones: the same mean, with fewer samples. */
static void a_loss_of_the_callers_trains_as_the_built_in_one(void **state)
{
    for (size_t rows = 3; rows <= 4; rows++) {
        float own[12], divided[12], built_in[12];
        const double own_loss = train_own(OWN, rows, own);
        const double loss = train_own(BUILT_IN, rows, built_in);
        assert_near(own_loss, loss, 1e-6, 0);
        assert_true(train_own(OWN_DIVIDED, rows, divided) == own_loss);
        assert_memory_equal(divided, own, sizeof own);
        for (size_t i = 0; i < 12; i++)
            assert_near(own[i], built_in[i], 1e-5, 1e-6);
    }
}

#define DROPPED \
    "{input: [5], layers: [{type: \"linear\", features: 40}, {type: \"dropout\"}, " \
    "{type: \"linear\", features: 3}]}"

/* Each micro-batch draws its own, and an output that is asked for alone draws none. */
static void dropout_is_drawn_anew_for_each_micro_batch(void **state)
{
    float inputs[FEATURES] = {1, -1, 1, -1, 1}, trained[2][CLASSES], tested[2][CLASSES];
    const uint32_t label = 1;
    lone_rank alone = {0};
    ring_train_options options = options_of(&alone, SGD("1", "2"));
    const ring_train_batch batch = own_batch(inputs, NULL, 1);
    options.layers = DROPPED;
    assert_int_equal(ring_comm_init_env(&alone.comm), RING_OK);
    must(ring_train_create(&alone.engine, alone.comm, &options));
    must(ring_train_predict(alone.engine, inputs, 1, tested[0]));
    must(ring_train_predict(alone.engine, NULL, 0, NULL));
    must(ring_train_predict(alone.engine, inputs, 1, tested[1]));
    assert_memory_equal(tested[0], tested[1], sizeof tested[0]);
    for (int m = 0; m < 2; m++) {
        const float *outputs;
        must(ring_train_forward(alone.engine, &batch, &outputs));
        memcpy(trained[m], outputs, sizeof trained[m]);
        must(ring_train_loss(alone.engine, &label, NULL));
        must(ring_train_backward(alone.engine));
        must(ring_train_step(alone.engine));
    }
    assert_memory_not_equal(trained[0], tested[0], sizeof trained[0]);
    assert_memory_not_equal(trained[0], trained[1], sizeof trained[0]);
    end(&alone);
}

/* ---- Read ahead ---------------------------------------------------------------------------- */

enum { TOKENS = 4, WORDS = 6 };

static int take_text(void *context, const uint32_t *samples, size_t rows, float *inputs,
                     uint32_t *labels)
{
    const uint32_t fails = *(const uint32_t *)context;
    for (size_t i = 0; i < rows; i++) {
        for (uint32_t t = 0; t < TOKENS; t++) {
            if (inputs != NULL)
                inputs[i * TOKENS + t] = (float)((samples[i] * 5 + t * t) % WORDS);
            labels[i * TOKENS + t] = (uint32_t)((samples[i] * 5 + (t + 1) * (t + 1)) % WORDS);
        }
        if (samples[i] == fails)
            return 1;
    }
    return 0;
}

static void train_given(ring_train *engine, const ring_train_batch *batch)
{
    must(ring_train_forward(engine, batch, NULL));
    must(ring_train_loss(engine, batch->labels, NULL));
    must(ring_train_backward(engine));
    must(ring_train_step(engine));
}

/* @param[out] losses  [8] of two epochs. @return what ended the training. */
static ring_status train_text(int workers, bool pieces, uint32_t fails, double losses[8])
{
    lone_rank alone = {0};
    ring_train_options options = RING_TRAIN_OPTIONS_INIT;
    ring_status status = RING_OK;
    int more = 0;
    options.config_text = SGD("5", "1");
    options.layers = "{input: [4], layers: [{type: \"embedding\", vocabulary: 6, features: 8}, "
                     "{type: \"linear\", features: 6}]}";
    options.train = (ring_train_data){18, take_text, &fails};
    options.workers = workers;
    assert_int_equal(ring_comm_init_env(&alone.comm), RING_OK);
    must(ring_train_create(&alone.engine, alone.comm, &options));
    assert_int_equal(info_of(alone.engine).updates_per_epoch, 4);
    for (int u = 0; u < 8 && status == RING_OK; u++) {
        ring_train_batch batch = RING_TRAIN_BATCH_INIT;
        while (pieces && !more && status == RING_OK)
            status = ring_train_next(alone.engine, &batch, &more);
        if (pieces && status == RING_OK) {
            train_given(alone.engine, &batch);
        } else if (status == RING_OK) {
            status = ring_train_train_batch(alone.engine, NULL);
        }
        more = 0;
        losses[u] = info_of(alone.engine).loss;
    }
    end(&alone);
    return status;
}

static void samples_read_ahead_are_the_same(void **state)
{
    double want[8], got[8];
    assert_int_equal(train_text(0, false, 99, want), RING_OK);
    for (int way = 0; way < 4; way++) {
        assert_int_equal(train_text(way % 2 == 0 ? 0 : 3, way / 2 == 0, 99, got), RING_OK);
        assert_memory_equal(want, got, sizeof want);
    }
    assert_int_equal(train_text(3, false, 7, got), RING_ERR_USAGE);
    assert_non_null(strstr(ring_train_error(), "returned 1"));
    assert_int_equal(train_text(3, true, 7, got), RING_ERR_USAGE);
}

/* ---- Rates --------------------------------------------------------------------------------- */

static double staircase(void *context, long update)
{
    const double *rate = context;
    return *rate * (double)update;
}

static void a_rate_is_the_schedules_or_the_callers(void **state)
{
    double rate = 0.25, loss;
    float before[3], after[3];
    lone_rank alone = {0};
    ring_train_options options = options_of(&alone, SGD("8", "1"));
    options.schedule = staircase;
    options.schedule_context = &rate;
    assert_int_equal(ring_comm_init_env(&alone.comm), RING_OK);
    must(ring_train_create(&alone.engine, alone.comm, &options));
    assert_true(info_of(alone.engine).lr == 0.25);
    must(ring_train_train_batch(alone.engine, &loss));
    assert_true(info_of(alone.engine).lr == 0.5);
    must(ring_train_set_lr(alone.engine, 0.0));
    must(ring_train_get_tensor(alone.engine, "2.bias", before, 3));
    must(ring_train_train_batch(alone.engine, &loss));
    must(ring_train_get_tensor(alone.engine, "2.bias", after, 3));
    assert_memory_equal(before, after, sizeof before);
    must(ring_train_set_lr(alone.engine, -1.0));
    assert_true(info_of(alone.engine).lr == 0.75);
    refused(ring_train_set_lr(alone.engine, (double)NAN), RING_ERR_ARGUMENT, "finite");
    end(&alone);
}

/* Both parameter groups begin as the compatibility asks: with the rate of the optimiser. */
static void biases_begin_with_the_rate_of_the_weights(void **state)
{
    static const struct {
        const char *name;
        size_t count;
    } biases[] = {{"0.bias", 4}, {"2.bias", 3}};
    for (int compat = 0; compat < 2; compat++) {
        float before[2][4], after[4];
        lone_rank alone = {0};
        ring_train_options options = options_of(&alone, NO_DECAY);
        options.compat_ds_0_13 = compat;
        assert_int_equal(ring_comm_init_env(&alone.comm), RING_OK);
        must(ring_train_create(&alone.engine, alone.comm, &options));
        int moved = 0;
        for (size_t b = 0; b < COUNT_OF(biases); b++)
            must(ring_train_get_tensor(alone.engine, biases[b].name, before[b], biases[b].count));
        must(ring_train_train_batch(alone.engine, NULL));
        for (size_t b = 0; b < COUNT_OF(biases); b++) {
            must(ring_train_get_tensor(alone.engine, biases[b].name, after, biases[b].count));
            for (size_t i = 0; i < biases[b].count; i++)
                moved += after[i] != before[b][i];
        }
        if (moved != (compat ? 7 : 0))
            fail_msg("compat %d: %d of 7 biases moved in update 1", compat, moved);
        end(&alone);
    }
}

/* Of the run only the caller knows how long it is. */
static void auto_is_filled_in_as_far_as_is_known(void **state)
{
    static const char open[] =
        "{train_batch_size: 8, optimizer: {type: \"SGD\"}, scheduler: {type: \"WarmupDecayLR\", "
        "params: {total_num_steps: \"auto\"}}}";
    static const char filled[] = "{train_batch_size: \"auto\", train_micro_batch_size_per_gpu: 8, "
                                 "optimizer: {type: \"SGD\"}, zero_optimization: "
                                 "{reduce_bucket_size: \"auto\", "
                                 "stage3_prefetch_bucket_size: \"auto\"}}";
    lone_rank alone = {0};
    ring_train_options options = options_of(&alone, open);
    assert_int_equal(ring_comm_init_env(&alone.comm), RING_OK);
    refused(ring_train_create(&alone.engine, alone.comm, &options), RING_ERR_CONFIG,
            "scheduler.params.total_num_steps = auto: the library cannot derive it; write a value");
    options.config_text = filled;
    must(ring_train_create(&alone.engine, alone.comm, &options));
    end(&alone);
}

/* ---- Misuse -------------------------------------------------------------------------------- */

static void refuse_out_of_order(ring_train *engine, ring_train_batch *batch, bool has_output)
{
    ring_train_batch none = RING_TRAIN_BATCH_INIT;
    float values[3];
    int more;
    refused(ring_train_step(engine), RING_ERR_USAGE, "backward");
    refused(ring_train_next(engine, &none, &more), RING_ERR_USAGE, "the previous batch");
    refused(ring_train_train_batch(engine, NULL), RING_ERR_USAGE, "within an update");
    refused(ring_train_evaluate(engine, NULL, NULL), RING_ERR_USAGE, "within an update");
    refused(ring_train_predict(engine, values, 0, values), RING_ERR_USAGE, "within an update");
    refused(ring_train_save(engine, "x"), RING_ERR_USAGE, "within an update");
    refused(ring_train_load(engine, "x"), RING_ERR_USAGE, "within an update");
    refused(ring_train_resume(engine, "x", &more), RING_ERR_USAGE, "within an update");
    refused(ring_train_save_params(engine, "x"), RING_ERR_USAGE, "within an update");
    refused(ring_train_load_params(engine, "x"), RING_ERR_USAGE, "within an update");
    refused(ring_train_get_tensor(engine, "2.bias", values, 3), RING_ERR_USAGE, "within an update");
    refused(ring_train_backward(engine), RING_ERR_USAGE, "first");
    if (has_output)
        refused(ring_train_forward(engine, batch, NULL), RING_ERR_USAGE, "still needs a loss");
    else
        refused(ring_train_loss(engine, batch->labels, NULL), RING_ERR_USAGE, "ring_train_forward");
}

/* @param misused  each call that is out of order is tried on the way. */
static void train_micro(ring_train *engine, bool misused)
{
    ring_train_batch batch = RING_TRAIN_BATCH_INIT;
    const uint32_t wrong[] = {0, CLASSES};
    int more;
    must(ring_train_next(engine, &batch, &more));
    assert_int_equal(more, 1);
    if (misused) {
        const float inputs[FEATURES] = {0};
        const ring_train_batch other = own_batch(inputs, NULL, 1);
        ring_train_batch longer = batch;
        longer.rows++;
        refused(ring_train_forward(engine, &other, NULL), RING_ERR_USAGE, "first pass");
        refused(ring_train_forward(engine, &longer, NULL), RING_ERR_ARGUMENT, "3 samples");
        refuse_out_of_order(engine, &batch, false);
    }
    must(ring_train_forward(engine, &batch, NULL));
    if (misused) {
        refused(ring_train_loss(engine, NULL, NULL), RING_ERR_ARGUMENT, "labels is NULL");
        refused(ring_train_loss(engine, wrong, NULL), RING_ERR_ARGUMENT, "label 3");
        refused(ring_train_own_loss(engine, 0.0, NULL), RING_ERR_ARGUMENT, "gradient is NULL");
        refuse_out_of_order(engine, &batch, true);
    }
    must(ring_train_loss(engine, batch.labels, NULL));
    must(ring_train_loss(engine, batch.labels, NULL)); /* the last one counts */
    must(ring_train_backward(engine));
    if (misused) {
        refused(ring_train_backward(engine), RING_ERR_USAGE, "first");
        refused(ring_train_forward(engine, &batch, NULL), RING_ERR_USAGE, "must follow");
    }
    must(ring_train_step(engine));
    if (misused)
        refused(ring_train_forward(engine, &batch, NULL), RING_ERR_USAGE, "already used");
}

static void misuse_is_refused_and_changes_nothing(void **state)
{
    float weights[2][12];
    double losses[2];
    for (int misused = 0; misused < 2; misused++) {
        lone_rank alone;
        ring_train_info info = {.size = sizeof info};
        start(&alone, SGD("2", "2"));
        for (int m = 0; m < 4; m++) {
            must(ring_train_get_info(alone.engine, &info));
            assert_int_equal(info.at_boundary, m % 2);
            assert_int_equal(info.micro_steps, m);
            train_micro(alone.engine, misused);
        }
        must(ring_train_get_info(alone.engine, &info));
        losses[misused] = info.loss;
        assert_int_equal(info.step, 2);
        assert_int_equal(info.applied, 1);
        must(ring_train_get_tensor(alone.engine, "2.weight", weights[misused], 12));
        end(&alone);
    }
    assert_memory_equal(weights[0], weights[1], sizeof weights[0]);
    assert_true(losses[0] == losses[1]);
}

/* A folder that does not exist yet means a new run; a file is an error. */
static void only_an_empty_folder_is_begun_with(void **state)
{
    lone_rank alone;
    int found = -1;
    start(&alone, SGD("8", "1"));
    must(ring_train_resume(alone.engine, "/dev/null-is-no-folder", &found));
    assert_int_equal(found, 0);
    refused(ring_train_resume(alone.engine, "/dev/null", &found), RING_ERR_SYSTEM, "/dev/null");
    end(&alone);
}

static void samples_are_told(ring_train *engine)
{
    const uint32_t samples[] = {7, 2, 8};
    const ring_train_info info = info_of(engine);
    float inputs[2 * FEATURES];
    uint32_t labels[2];
    assert_int_equal(info.train_samples, SAMPLES);
    assert_int_equal(info.test_samples, SAMPLES);
    assert_int_equal(info.labels, 1);
    must(ring_train_samples(engine, RING_TRAIN_SET_TRAIN, samples, 2, inputs, labels));
    assert_true(inputs[FEATURES + 1] == number(2, 1));
    assert_int_equal(labels[0], 7 % CLASSES);
    must(ring_train_samples(engine, RING_TRAIN_SET_TEST, samples, 2, NULL, labels));
    refused(ring_train_samples(engine, RING_TRAIN_SET_TEST, samples, 3, NULL, labels),
            RING_ERR_ARGUMENT, "samples[2] is 8");
    refused(ring_train_samples(engine, (ring_train_set)2, samples, 1, NULL, labels),
            RING_ERR_ARGUMENT, "no such set");
}

static void wrong_arguments_are_told(void **state)
{
    lone_rank alone;
    float inputs[9 * FEATURES] = {0}, values[3];
    int dims;
    size_t dim[RING_TRAIN_PARAM_DIMS], count;
    const char *name;
    start(&alone, SGD("8", "1"));
    ring_train *engine = alone.engine;
    ring_train_batch batch = own_batch(inputs, NULL, 9);
    refused(ring_train_forward(engine, &batch, NULL), RING_ERR_ARGUMENT, "1 to 8");
    batch = own_batch(NULL, NULL, 1);
    refused(ring_train_forward(engine, &batch, NULL), RING_ERR_ARGUMENT, "inputs is NULL");
    refused(ring_train_forward(engine, NULL, NULL), RING_ERR_ARGUMENT, "batch is NULL");
    refused(ring_train_forward(NULL, &batch, NULL), RING_ERR_ARGUMENT, "NULL");
    refused(ring_train_step(NULL), RING_ERR_ARGUMENT, "NULL");
    refused(ring_train_get_info(engine, NULL), RING_ERR_ARGUMENT, "NULL");
    refused(ring_train_get_tensor(engine, "3.bias", values, 3), RING_ERR_ARGUMENT, "3.bias");
    refused(ring_train_get_tensor(engine, "2.bias", values, 4), RING_ERR_ARGUMENT, "of 4 values");
    refused(ring_train_tensor(engine, 5, NULL, NULL, NULL, NULL), RING_ERR_ARGUMENT, "tensor 5");
    refused(ring_train_predict(engine, NULL, 1, values), RING_ERR_ARGUMENT, "NULL");
    refused(ring_train_resume(engine, "/nowhere", NULL), RING_ERR_ARGUMENT, "found is NULL");
    refused(ring_train_save_params(engine, NULL), RING_ERR_ARGUMENT, "the path is NULL");
    refused(ring_train_save_params(engine, "/nowhere/p"), RING_ERR_SYSTEM, "/nowhere/p");
    refused(ring_train_load_params(engine, "/nowhere/p"), RING_ERR_SYSTEM, "/nowhere/p");
    refused(ring_train_drop(NULL), RING_ERR_ARGUMENT, "NULL");
    refused(ring_train_no_sync(NULL, 1), RING_ERR_ARGUMENT, "NULL");
    refused(ring_train_mean(NULL, NULL, 0, 1.0), RING_ERR_ARGUMENT, "NULL");
    must(ring_train_drop(engine));
    samples_are_told(engine);
    must(ring_train_tensor(engine, 2, &name, dim, &dims, &count));
    assert_string_equal(name, "bent.weight");
    assert_int_equal(dims, 1);
    assert_int_equal(dim[0], 4);
    assert_int_equal(count, 4);
    end(&alone);
}

/* ---- no_sync() ----------------------------------------------------------------------------- */

/* Forward and loss of the next micro-batch. */
static void begin_micro(ring_train *engine)
{
    ring_train_batch batch = RING_TRAIN_BATCH_INIT;
    int more;
    must(ring_train_next(engine, &batch, &more));
    must(ring_train_forward(engine, &batch, NULL));
    must(ring_train_loss(engine, batch.labels, NULL));
}

static void an_update_does_not_end_without_an_exchange(void **state)
{
    float weights[2][12];
    for (int without = 0; without < 2; without++) {
        lone_rank alone;
        start(&alone, SGD("2", "2"));
        must(ring_train_no_sync(alone.engine, without));
        begin_micro(alone.engine);
        must(ring_train_backward(alone.engine));
        must(ring_train_step(alone.engine));
        begin_micro(alone.engine);
        if (without)
            refused(ring_train_backward(alone.engine), RING_ERR_USAGE,
                    "the gradients of update 1 would never be exchanged");
        must(ring_train_no_sync(alone.engine, 0));
        must(ring_train_backward(alone.engine));
        must(ring_train_step(alone.engine));
        must(ring_train_get_tensor(alone.engine, "2.weight", weights[without], 12));
        assert_int_equal(info_of(alone.engine).step, 1);
        must(ring_train_no_sync(alone.engine, 1));
        refused(ring_train_train_batch(alone.engine, NULL), RING_ERR_USAGE, "ring_train_no_sync(");
        end(&alone);
    }
    assert_memory_equal(weights[0], weights[1], sizeof weights[0]);
}

static void stages_that_send_each_micro_batch_have_no_such_mode(void **state)
{
    lone_rank alone;
    start(&alone, "{train_micro_batch_size_per_gpu: 2, optimizer: {type: \"SGD\"}, "
                  "zero_optimization: {stage: 2}}");
    refused(ring_train_no_sync(alone.engine, 1), RING_ERR_USAGE, "stage 2");
    must(ring_train_no_sync(alone.engine, 0));
    must(ring_train_train_batch(alone.engine, NULL));
    end(&alone);
}

static void refuse_options(const ring_train_options *options, ring_status status, const char *text)
{
    ring_comm *comm;
    ring_train *engine = (ring_train *)1;
    assert_int_equal(ring_comm_init_env(&comm), RING_OK);
    refused(ring_train_create(&engine, comm, options), status, text);
    assert_null(engine);
    ring_comm_destroy(comm);
}

static void keep_notes(void *context, const char *text)
{
    char *notes = context;
    strncat(notes, text, 511 - strlen(notes));
}

/* Trains an epoch that takes each sample in its place. */
static void expect_stored_order(ring_train *engine)
{
    uint32_t next = 0;
    for (int more = 1; more != 0;) {
        ring_train_batch batch = RING_TRAIN_BATCH_INIT;
        must(ring_train_next(engine, &batch, &more));
        for (size_t i = 0; more != 0 && i < batch.rows; i++)
            assert_int_equal(batch.samples[i], next++);
        if (more != 0)
            train_given(engine, &batch);
    }
    assert_int_equal(next, SAMPLES);
}

/* DistributedSampler(shuffle = False), in each epoch. */
static void samples_may_come_as_they_are_stored(void **state)
{
    lone_rank alone;
    start(&alone, "{train_batch_size: 3, sampler_shuffle: false, optimizer: {type: \"SGD\"}}");
    expect_stored_order(alone.engine);
    expect_stored_order(alone.engine);
    end(&alone);
}

/* Keys without effect on an engine are reported; members beyond a shorter struct are not read. */
static void notes_name_what_has_no_effect(void **state)
{
    char notes[512] = "";
    lone_rank alone = {0};
    ring_train_options options =
        options_of(&alone, "{train_batch_size: 8, optimizer: {type: \"SGD\"}, steps_per_print: 5, "
                           "colour: 1, wall_clock_breakdown: true}");
    options.note = keep_notes;
    options.note_context = notes;
    options.tf32 = 1;
    options.warn_unknown = 1;
    assert_int_equal(ring_comm_init_env(&alone.comm), RING_OK);
    must(ring_train_create(&alone.engine, alone.comm, &options));
    assert_non_null(strstr(notes, "steps_per_print has no effect here"));
    assert_non_null(strstr(notes, "wall_clock_breakdown has no effect here"));
    assert_non_null(strstr(notes, "colour"));
    assert_non_null(strstr(notes, "TF32 has no effect"));
    assert_null(strstr(notes, "tensorboard"));
    ring_train_destroy(alone.engine);
    options.size = offsetof(ring_train_options, normalize);
    options.normalize = "no norm";
    options.workers = -1;
    refused(ring_train_create(&alone.engine, alone.comm, &options), RING_ERR_CONFIG, "colour");
    ring_comm_destroy(alone.comm);
}

/* A loop that steps the scheduler after each step, as loops of some DeepSpeed users do. */
static void a_second_step_of_the_scheduler_is_told_once_and_ignored(void **state)
{
    static const char *const configs[] = {SGD("8", "1"), NO_DECAY};
    refused(ring_train_scheduler_step(NULL), RING_ERR_ARGUMENT, "engine is NULL");
    for (size_t i = 0; i < COUNT_OF(configs); i++) {
        char notes[512] = "";
        lone_rank alone = {0}, once;
        ring_train_options options = options_of(&alone, configs[i]);
        options.note = keep_notes;
        options.note_context = notes;
        start(&once, configs[i]);
        assert_int_equal(ring_comm_init_env(&alone.comm), RING_OK);
        must(ring_train_create(&alone.engine, alone.comm, &options));
        for (int u = 0; u < 3; u++) {
            must(ring_train_train_batch(alone.engine, NULL));
            must(ring_train_scheduler_step(alone.engine));
            must(ring_train_train_batch(once.engine, NULL));
            assert_true(info_of(alone.engine).lr == info_of(once.engine).lr);
            assert_true(info_of(alone.engine).loss == info_of(once.engine).loss);
        }
        assert_string_equal(notes,
                            i == 0 ? ""
                                   : "the scheduler is stepped twice after update 1: "
                                     "ring_train_step() has stepped it already, so "
                                     "ring_train_scheduler_step() has no effect; in DeepSpeed the "
                                     "schedule would advance twice as fast");
        end(&once);
        end(&alone);
    }
}

static void wrong_options_are_told(void **state)
{
    lone_rank alone = {0};
    const ring_train_options good = options_of(&alone, SGD("8", "1"));
    ring_train_options options = good;
    ring_train_op ops[2] = {bend, bend};
    options.config_text = "{train_micro_batch_size_per_gpu: 8, colour: 1}";
    refuse_options(&options, RING_ERR_CONFIG, "unknown key \"colour\"");
    options = good;
    options.config = "file";
    refuse_options(&options, RING_ERR_ARGUMENT, "config, a file, and config_text");
    options = good;
    options.data = "folder";
    refuse_options(&options, RING_ERR_ARGUMENT, "set either data");
    options = good;
    options.normalize = "0.5/0.5";
    refuse_options(&options, RING_ERR_ARGUMENT, "images in data");
    options.train.count = options.test.count = 0;
    options.data = "folder";
    options.normalize = "0.5/0";
    refuse_options(&options, RING_ERR_ARGUMENT, "deviation above 0");
    options = good;
    options.workers = 257;
    refuse_options(&options, RING_ERR_ARGUMENT, "0 to 256");
    options = good;
    options.keep = -1;
    refuse_options(&options, RING_ERR_ARGUMENT, "keep is -1");
    options = good;
    options.loss = "hinge";
    refuse_options(&options, RING_ERR_ARGUMENT, "no loss hinge");
    options = good;
    options.op_count = 0;
    refuse_options(&options, RING_ERR_CONFIG, "no type \"bend\" of layers");
    options = good;
    options.ops = ops;
    options.op_count = 2;
    refuse_options(&options, RING_ERR_ARGUMENT, "no other layer has");
    ops[1].name = "linear";
    refuse_options(&options, RING_ERR_ARGUMENT, "no other layer has");
    options = good;
    options.layers = "{input: [1, 2, 3], layers: [{type: \"bend\"}]}";
    refuse_options(&options, RING_ERR_CONFIG, "it does not accept inputs of [1, 2, 3]");
    refuse_options(NULL, RING_ERR_ARGUMENT, "RING_TRAIN_OPTIONS_INIT");
}

/* No other rank can know of it: the communicator ends. */
static void a_callback_that_fails_ends_the_communicator(void **state)
{
    for (int fails = 0; fails < 2; fails++) {
        lone_rank alone;
        start(&alone, SGD("8", "1"));
        ring_train_batch batch = RING_TRAIN_BATCH_INIT;
        int more;
        alone.source = (source){.wrong = fails ? 0 : 1, .fails = fails};
        refused(ring_train_next(alone.engine, &batch, &more),
                fails ? RING_ERR_USAGE : RING_ERR_ARGUMENT, fails ? "returned 1" : "label 3");
        assert_int_equal(ring_comm_status(alone.comm), RING_ERR_ABORTED);
        end(&alone);
    }
}

/* All ranks receive the error, and nothing has changed. */
static void a_callback_that_fails_drops_the_update(void **state)
{
    lone_rank alone;
    start(&alone, SGD("8", "1"));
    const double before = loss_at(alone.engine);
    ring_train_info info = {.size = sizeof info};
    alone.source.fails = 1;
    refused(ring_train_train_batch(alone.engine, NULL), RING_ERR_USAGE, "returned 1");
    must(ring_train_get_info(alone.engine, &info));
    assert_int_equal(info.micro_steps + info.step, 0);
    refused(ring_train_evaluate(alone.engine, NULL, NULL), RING_ERR_USAGE, "returned 1");
    alone.source.fails = 0;
    assert_int_equal(ring_comm_status(alone.comm), RING_OK);
    assert_true(loss_at(alone.engine) == before);
    must(ring_train_train_batch(alone.engine, NULL));
    assert_true(loss_at(alone.engine) != before);
    end(&alone);
}

/* ---- Locales ------------------------------------------------------------------------------- */

#define FRACTIONS \
    "{train_micro_batch_size_per_gpu: 8, gradient_clipping: 0.5, steps_per_print: 10, optimizer: " \
    "{type: \"Adam\", params: {lr: 0.0015, betas: [0.9, 0.95], eps: 1.5e-8}}}"

static bool german, callbacks_see_the_programs;

static void note_in_locale(void *context, const char *text)
{
    keep_notes(context, text);
    callbacks_see_the_programs &= comma_locale_is_on() == german;
}

static int take_in_locale(void *context, const uint32_t *samples, size_t rows, float *inputs,
                          uint32_t *labels)
{
    callbacks_see_the_programs &= comma_locale_is_on() == german;
    return take(context, samples, rows, inputs, labels);
}

/* Makes an engine in the locale that there is, and trains one update from, or to, a folder. */
static void use_folder(const char *folder, bool resumes, char *notes)
{
    lone_rank alone = {0};
    int found = 0;
    ring_train_options options = options_of(&alone, FRACTIONS);
    options.train.take = options.test.take = take_in_locale;
    options.note = note_in_locale;
    options.note_context = notes;
    assert_int_equal(ring_comm_init_env(&alone.comm), RING_OK);
    must(ring_train_create(&alone.engine, alone.comm, &options));
    if (resumes)
        must(ring_train_resume(alone.engine, folder, &found));
    must(ring_train_train_batch(alone.engine, NULL));
    if (!resumes)
        must(ring_train_save(alone.engine, folder));
    assert_int_equal(found, resumes);
    end(&alone);
}

static void refuse_fractions(void)
{
    lone_rank alone = {0};
    ring_train_options options = options_of(&alone, "{train_batch_size: 1.5}");
    assert_int_equal(ring_comm_init_env(&alone.comm), RING_OK);
    refused(ring_train_create(&alone.engine, alone.comm, &options), RING_ERR_CONFIG, "not 1.5");
    options = options_of(&alone, FRACTIONS);
    options.train.count = options.test.count = 0;
    options.data = "/nonexistent";
    options.normalize = "0.1307/0.3081";
    assert_int_not_equal(ring_train_create(&alone.engine, alone.comm, &options), RING_OK);
    assert_null(strstr(ring_train_error(), "normalize"));
    ring_comm_destroy(alone.comm);
}

/* A checkpoint has the same texts in both locales, and callbacks see the program's locale. */
static void numbers_have_a_point_in_every_locale(void **state)
{
    char folder[] = "/tmp/ring-library-XXXXXX", command[64], notes[512] = "";
    assert_non_null(mkdtemp(folder));
    callbacks_see_the_programs = true;
    german = comma_locale_begin();
    use_folder(folder, false, notes);
    refuse_fractions();
    assert_int_equal(comma_locale_is_on(), german);
    const bool skips = !german;
    comma_locale_end();
    german = false;
    use_folder(folder, true, notes);
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
    assert_true(callbacks_see_the_programs);
    assert_non_null(strstr(notes, "steps_per_print"));
    assert_null(strstr(notes, " was "));
    if (skips)
        skip();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_of_own_layers_are_finite_differences),
        cmocka_unit_test(a_loss_of_the_callers_trains_as_the_built_in_one),
        cmocka_unit_test(a_rate_is_the_schedules_or_the_callers),
        cmocka_unit_test(biases_begin_with_the_rate_of_the_weights),
        cmocka_unit_test(auto_is_filled_in_as_far_as_is_known),
        cmocka_unit_test(misuse_is_refused_and_changes_nothing),
        cmocka_unit_test(only_an_empty_folder_is_begun_with),
        cmocka_unit_test(wrong_arguments_are_told),
        cmocka_unit_test(an_update_does_not_end_without_an_exchange),
        cmocka_unit_test(stages_that_send_each_micro_batch_have_no_such_mode),
        cmocka_unit_test(dropout_is_drawn_anew_for_each_micro_batch),
        cmocka_unit_test(samples_read_ahead_are_the_same),
        cmocka_unit_test(samples_may_come_as_they_are_stored),
        cmocka_unit_test(notes_name_what_has_no_effect),
        cmocka_unit_test(a_second_step_of_the_scheduler_is_told_once_and_ignored),
        cmocka_unit_test(wrong_options_are_told),
        cmocka_unit_test(a_callback_that_fails_ends_the_communicator),
        cmocka_unit_test(a_callback_that_fails_drops_the_update),
        cmocka_unit_test(numbers_have_a_point_in_every_locale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

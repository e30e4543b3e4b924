/* SPDX-License-Identifier: Apache-2.0
 * Trains a network to decide whether a point is within a circle. The program defines its own layer,
 * schedule and data.
 *     ringrun -n 2 own_layer */
#include <math.h>
#include <ring/train.h>
#include <stdio.h>
#include <stdlib.h>

enum { SAMPLES = 2048, UPDATES = 200 };

static void check(ring_status status)
{
    if (status == RING_OK)
        return;
    fprintf(stderr, "own_layer: %s: %s\n", ring_status_string(status), ring_train_error());
    exit(1);
}

/* Data: a function of the sample's number, so that ranks need no files. */
static float coordinate(uint32_t sample, uint32_t axis)
{
    uint32_t h = sample * 2654435761u ^ (axis + 1) * 2246822519u;
    h = (h ^ h >> 15) * 3266489917u;
    return (float)((h ^ h >> 16) >> 8) / 8388608.0f - 1.0f;
}

static int take(void *context, const uint32_t *samples, size_t rows, float *inputs,
                uint32_t *labels)
{
    const uint32_t *first = context;
    for (size_t i = 0; i < rows; i++) {
        const float x[2] = {coordinate(*first + samples[i], 0), coordinate(*first + samples[i], 1)};
        for (size_t axis = 0; axis < 2 && inputs != NULL; axis++)
            inputs[2 * i + axis] = x[axis];
        labels[i] = x[0] * x[0] + x[1] * x[1] < 0.5f;
    }
    return 0;
}

/* A layer: out = in / (1 + e^(-slope in)), with a slope that is learned. */
static int swish_shape(void *context, const ring_train_shape *in, ring_train_shape *out,
                       ring_train_param params[RING_TRAIN_OP_PARAMS], int *count)
{
    (void)context;
    *out = *in;
    *count = 1;
    params[0] = (ring_train_param){
        .name = "slope", .dim = {1}, .dims = 1, .start = RING_TRAIN_ONES, .no_decay = 1};
    return in->dims != 1; /* [features] alone */
}

static float share(const ring_train_pass *pass, size_t i)
{
    return 1.0f / (1.0f + expf(-pass->params[0][0] * pass->in[i]));
}

static void swish_forward(const ring_train_pass *pass)
{
    for (size_t i = 0; i < pass->rows * pass->in_shape->dim[0]; i++)
        pass->out[i] = pass->in[i] * share(pass, i);
}

static void swish_params(const ring_train_pass *pass)
{
    for (size_t i = 0; i < pass->rows * pass->in_shape->dim[0]; i++) {
        const float s = share(pass, i);
        pass->grads[0][0] += pass->out_grad[i] * pass->in[i] * pass->in[i] * s * (1.0f - s);
    }
}

static void swish_inputs(const ring_train_pass *pass)
{
    for (size_t i = 0; i < pass->rows * pass->in_shape->dim[0]; i++) {
        const float s = share(pass, i), x = pass->params[0][0] * pass->in[i];
        pass->in_grad[i] = pass->out_grad[i] * (s + x * s * (1.0f - s));
    }
}

static const ring_train_op swish = {sizeof swish, "swish",      swish_shape, swish_forward,
                                    swish_params, swish_inputs, NULL};

/* A schedule: half a cosine. */
static double cosine(void *context, long update)
{
    const double done = (double)(update - 1) / UPDATES;
    return *(const double *)context * 0.5 * (1.0 + cos(3.14159265358979 * done));
}

int main(void)
{
    ring_comm *comm;
    ring_train *engine;
    uint32_t first = 0, first_test = SAMPLES;
    double top = 0.05, loss, accuracy;
    float slope;
    ring_train_options options = RING_TRAIN_OPTIONS_INIT;
    options.config_text = "{train_batch_size: 64, optimizer: {type: \"Adam\"}}";
    options.layers = "{input: [2], layers: [{type: \"linear\", features: 16}, {type: \"swish\", "
                     "name: \"own\"}, {type: \"linear\", features: 2}]}";
    options.ops = &swish;
    options.op_count = 1;
    options.loss = "cross_entropy";
    options.train = (ring_train_data){SAMPLES, take, &first};
    options.test = (ring_train_data){SAMPLES / 4, take, &first_test};
    options.schedule = cosine;
    options.schedule_context = &top;
    if (ring_comm_init_env(&comm) != RING_OK)
        return 1; /* the reason was printed */
    check(ring_train_create(&engine, comm, &options));
    for (int u = 0; u < UPDATES; u++)
        check(ring_train_train_batch(engine, &loss));
    check(ring_train_evaluate(engine, NULL, &accuracy));
    check(ring_train_get_tensor(engine, "own.slope", &slope, 1));
    if (ring_comm_rank(comm) == 0)
        printf("loss %.2f, accuracy %.2f, slope %.1f\n", loss, accuracy, (double)slope);
    ring_train_destroy(engine);
    ring_comm_destroy(comm);
    return 0;
}

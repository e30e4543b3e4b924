/* SPDX-License-Identifier: Apache-2.0
 * Networks of several ops: the built-in ones against PyTorch from the same initial parameters,
 * branches, ties and residual connections against finite differences, passes in pieces and slots
 * against whole ones, and lists of layers. Argument: docs/examples/models. */
#include "check.h"
#include "descent.h"
#include "vectors.h"

#include <builtin.h>
#include <errors.h>
#include <gemm.h>
#include <layer_list.h>
#include <loss.h>
#include <model.h>
#include <random.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CLASSES = 10, BATCH_MAX = 16 };

static const char *examples;

/* A model with its flat buffers. */
typedef struct network {
    model_spec spec;
    train_model model;
    float *params, *grads;
} network;

/* Takes over the network's spec. */
static void network_open(network *net, size_t max_batch, int slots, uint64_t seed)
{
    if (model_create(&net->model, &net->spec, max_batch, slots) != RING_OK)
        fail_msg("%s", train_error());
    const size_t bytes = net->model.tensors.elements * sizeof(float);
    assert_int_equal(train_alloc((void **)&net->params, bytes, "p"), RING_OK);
    assert_int_equal(train_alloc((void **)&net->grads, bytes, "g"), RING_OK);
    model_bind(&net->model, net->params, net->grads);
    model_init(&net->model, seed);
}

static void network_close(network *net)
{
    free(net->params);
    free(net->grads);
    model_destroy(&net->model);
    model_spec_free(&net->spec);
}

static void load(network *net, int slot, const float *images, size_t rows)
{
    const model_batch batch = {.input = images, .rows = rows, .training = true};
    assert_int_equal(model_load(&net->model, slot, &batch), RING_OK);
}

static void forward(network *net, int slot)
{
    model_forward(&net->model, slot, 0, net->model.node_count);
}

static void backward(network *net, int slot, bool accumulate)
{
    model_backward(&net->model, slot, 0, net->model.node_count, accumulate);
}

/* @return the mean cross-entropy of the slot's batch, whose gradient is put where backward begins.
 */
static double mean_loss(network *net, int slot, const uint32_t *labels, size_t rows)
{
    float *output_grad = model_value_grad(&net->model, slot, net->model.node_count - 1);
    return loss_sum(LOSS_CROSS_ENTROPY, model_output(&net->model, slot), labels, rows, CLASSES,
                    1.0 / (double)rows, output_grad) /
           (double)rows;
}

/* ---- PyTorch ------------------------------------------------------------------------------- */

enum { STORED_STEPS = 50, STORED_PICKED = 16 }; /* as in make_model_vectors.py */

/* Values of a network stored by make_model_vectors.py; lists have PICKED values or one a tensor. */
typedef struct known_run {
    uint64_t initial;
    const double *losses, *largest, *sums, *most_moved;
    const float *picked, *moved;
    known_adam adam;
    size_t batch, channels, side; /* of the images */
} known_run;

static uint64_t hash_words(const float *values, size_t count)
{
    uint64_t hash = 0xcbf29ce484222325U;
    for (size_t i = 0; i < count; i++) {
        uint32_t word;
        memcpy(&word, &values[i], sizeof word);
        hash = (hash ^ word) * 0x100000001b3U;
    }
    return hash;
}

static double weighted_sum(const float *values, size_t count)
{
    double sum = 0.0;
    for (uint64_t i = 0; i < count; i++)
        sum += (double)values[i] * ((double)(uint32_t)(i * 2654435761U) / 0x1p31 - 1.0);
    return sum;
}

static void check_picked(const train_tensor *tensor, const float *got, const float *want,
                         double allowed)
{
    for (size_t i = 0; i < STORED_PICKED; i++) {
        const size_t at = i * (tensor->count - 1) / (STORED_PICKED - 1);
        if (!(fabs((double)got[at] - (double)want[i]) <= allowed))
            fail_msg("%s[%zu]: got %.9g, want %.9g within %g", tensor->name, at, (double)got[at],
                     (double)want[i], allowed);
    }
}

static void check_gradients(const network *net, const known_run *known)
{
    for (int t = 0; t < net->model.tensors.count; t++) {
        const train_tensor *tensor = &net->model.tensors.list[t];
        const float *grads = net->grads + tensor->offset;
        const double allowed = 1e-5 * known->largest[t];
        check_picked(tensor, grads, known->picked + (size_t)t * STORED_PICKED, allowed);
        assert_near(weighted_sum(grads, tensor->count), known->sums[t], 0,
                    allowed * sqrt((double)tensor->count));
    }
}

static void draw_batch(train_random *random, const known_run *known, float *images,
                       uint32_t *labels)
{
    const size_t plane = known->side * known->side, planes = known->batch * known->channels;
    for (size_t i = 0; i < planes * plane; i++)
        images[i] = random_uniform(random, 0, 1);
    for (size_t i = 0; i < known->batch; i++)
        labels[i] = (uint32_t)random_uniform(random, 0, CLASSES);
    for (size_t p = 0; p < planes; p++) { /* three rows, to have something to learn */
        float *row = images + p * plane + 2U * labels[p / known->channels] * known->side;
        for (size_t i = 0; i < 3 * known->side; i++)
            row[i] += 4.0F;
    }
}

/* The generator's state after torch.manual_seed(7) and drawing the parameters. */
static train_random generator_after(size_t drawn)
{
    train_random random;
    random_seed(&random, 7);
    for (size_t i = 0; i < drawn; i++)
        random_u32(&random);
    return random;
}

/* Loss and gradients of the next batch. */
static double next_pass(network *net, const known_run *known, train_random *random, float *images)
{
    uint32_t labels[BATCH_MAX];
    draw_batch(random, known, images, labels);
    load(net, 0, images, known->batch);
    forward(net, 0);
    const double loss = mean_loss(net, 0, labels, known->batch);
    backward(net, 0, false);
    return loss;
}

static void train_by_sgd(network *net, const known_run *known, float *images)
{
    train_random random = generator_after(net->model.tensors.elements);
    train_optimizer sgd;
    descent_open(&sgd, "{optimizer: {type: \"SGD\"}}", net->model.tensors.elements);
    for (int step = 0; step < STORED_STEPS; step++) {
        assert_near(next_pass(net, known, &random, images), known->losses[step], 1e-5, 0);
        if (step == 0)
            check_gradients(net, known);
        descent_step(&sgd, net->params, net->grads, 0.01);
    }
    optimizer_destroy(&sgd);
}

static void train_by_adam(network *net, const known_run *known, float *images)
{
    train_random random = generator_after(net->model.tensors.elements);
    train_optimizer adam;
    descent_open(&adam, "{optimizer: {type: \"Adam\"}}", net->model.tensors.elements);
    for (size_t step = 0; step < STORED_STEPS; step++) {
        assert_near(next_pass(net, known, &random, images), known->adam.losses[step], 0,
                    DRIFT_ALLOWED * known->adam.drift);
        descent_step(&adam, net->params, net->grads, known->adam.rate);
    }
    optimizer_destroy(&adam);
}

/* From the first parameters to those that PyTorch ends with.
 * @param want, limits  of each tensor some movements, and their largest difference */
static void check_moved(network *net, const known_run *known,
                        void (*train)(network *, const known_run *, float *), const float *want,
                        const double *limits, double share)
{
    const size_t count = net->model.tensors.elements;
    float *moved, *images;
    assert_int_equal(train_alloc((void **)&moved, count * sizeof(float), "moved"), RING_OK);
    assert_int_equal(train_alloc((void **)&images,
                                 known->batch * shape_count(&net->model.input) * sizeof(float),
                                 "images"),
                     RING_OK);
    model_init(&net->model, 7);
    assert_int_equal(hash_words(net->params, count), known->initial);
    memcpy(moved, net->params, count * sizeof(float));
    train(net, known, images);
    for (size_t i = 0; i < count; i++)
        moved[i] = net->params[i] - moved[i];
    for (int t = 0; t < net->model.tensors.count; t++)
        check_picked(&net->model.tensors.list[t], moved + net->model.tensors.list[t].offset,
                     want + (size_t)t * STORED_PICKED, share * limits[t]);
    free(moved);
    free(images);
}

static void check_network(network *net, const known_run *known)
{
    network_open(net, known->batch, 1, 7);
    check_moved(net, known, train_by_sgd, known->moved, known->most_moved, 1e-3);
    check_moved(net, known, train_by_adam, known->adam.moved, known->adam.drifts, DRIFT_ALLOWED);
    network_close(net);
}

#define KNOWN(name, samples, planes, rows) \
    { \
        .initial = vector_hash("models/" name "_initial"), \
        .losses = vector_doubles("models/" name "_losses", STORED_STEPS), \
        .largest = vector_doubles("models/" name "_largest", 0), \
        .sums = vector_doubles("models/" name "_sums", 0), \
        .most_moved = vector_doubles("models/" name "_most_moved", 0), \
        .picked = vector_floats("models/" name "_picked", 0), \
        .moved = vector_floats("models/" name "_moved", 0), \
        .adam = KNOWN_ADAM("models/" name, STORED_STEPS), .batch = (samples), \
        .channels = (planes), .side = (rows) \
    }

static void the_mlp_trains_as_pytorch(void **state)
{
    const known_run known = KNOWN("mlp", 16, 1, 28);
    network net = {0};
    assert_int_equal(model_build(&net.spec, "mlp"), RING_OK);
    check_network(&net, &known);
}

static void lenet5_trains_as_pytorch(void **state)
{
    const known_run known = KNOWN("lenet5", 16, 1, 28);
    network net = {0};
    assert_int_equal(model_build(&net.spec, "lenet5"), RING_OK);
    check_network(&net, &known);
}

static void alexnet_without_dropout_trains_as_pytorch(void **state)
{
    const known_run known = KNOWN("alexnet", 4, 3, 32);
    network net = {0};
    assert_int_equal(model_build(&net.spec, "alexnet"), RING_OK);
    for (int n = 0; n < net.spec.count; n++) {
        if (net.spec.nodes[n].op == &op_dropout)
            net.spec.nodes[n].settings.probability = 0.0;
    }
    check_network(&net, &known);
}

/* ---- Branches, ties, residual connections -------------------------------------------------- */

/* An output used three times, one of them twice by the same layer; two pairs of tied layers; a view
 * of an output that others use, too; tanh and ReLU in place and not. */
static const char branches[] =
    "{input: [2, 5, 5], layers: ["
    "{type: 'conv2d', channels: 3, kernel: 3, padding: 1, name: 'a'},"
    "{type: 'tanh', name: 'b'},"
    "{type: 'conv2d', channels: 3, kernel: 3, padding: 1, name: 'c'},"
    "{type: 'add', input: ['c', 'a'], name: 'd'},"
    "{type: 'add', input: ['b', 'b'], name: 'e'},"
    "{type: 'conv2d', channels: 3, kernel: 3, padding: 1, name: 'f', tie: 'c'},"
    "{type: 'add', input: ['d', 'f'], name: 'g'},"
    "{type: 'flatten', name: 'h'},"
    "{type: 'flatten', input: 'd', name: 'i'},"
    "{type: 'add', input: ['h', 'i']},"
    "{type: 'linear', features: 10, name: 'j'},"
    "{type: 'linear', features: 10, name: 'k'},"
    "{type: 'tanh'},"
    "{type: 'linear', features: 10, name: 'l', tie: 'k'},"
    "{type: 'add', input: ['j', 'l']}]}";

static void parse_layers(model_spec *spec, const char *text)
{
    char json[4096];
    snprintf(json, sizeof json, "%s", text);
    for (char *c = json; *c != '\0'; c++)
        *c = *c == '\'' ? '"' : *c;
    if (layer_list_parse(spec, NULL, "m.json", json, strlen(json)) != RING_OK)
        fail_msg("%s", train_error());
}

static void draw_images(float *images, size_t count)
{
    train_random random;
    random_seed(&random, 23);
    for (size_t i = 0; i < count; i++)
        images[i] = random_uniform(&random, -1, 1);
}

static void gradients_of_branches_are_summed(void **state)
{
    enum { ROWS = 3, PIXELS = 50 };
    const uint32_t labels[ROWS] = {3, 0, 7};
    float images[ROWS * PIXELS];
    network net = {0};
    parse_layers(&net.spec, branches);
    network_open(&net, ROWS, 1, 5);
    assert_int_equal(net.model.tensors.own_count, 8);
    draw_images(images, ROWS * PIXELS);
    load(&net, 0, images, ROWS);
    forward(&net, 0);
    mean_loss(&net, 0, labels, ROWS);
    backward(&net, 0, false);
    for (size_t i = 0; i < net.model.tensors.elements; i++) {
        const float kept = net.params[i], h = 4e-3F;
        net.params[i] = kept + h;
        forward(&net, 0);
        const double above = mean_loss(&net, 0, labels, ROWS);
        net.params[i] = kept - h;
        forward(&net, 0);
        const double below = mean_loss(&net, 0, labels, ROWS);
        net.params[i] = kept;
        assert_near(net.grads[i], (above - below) / (2.0 * (double)h), 1e-2, 3e-4);
    }
    network_close(&net);
}

/* A tied gradient is the sum of those that the two layers have when each has its own tensors. */
static void tied_gradients_are_told_once_when_both_are_there(void **state)
{
    network net = {0};
    parse_layers(&net.spec, branches);
    network_open(&net, 1, 1, 5);
    const model_node *c = &net.model.nodes[2], *f = &net.model.nodes[5];
    const train_tensor *tensors = net.model.tensors.list;
    assert_string_equal(f->name, "f");
    assert_string_equal(tensors[f->tensors[0]].name, "f.weight");
    assert_int_equal(tensors[f->tensors[0]].tie, c->tensors[0]);
    assert_int_equal(tensors[f->tensors[0]].offset, tensors[c->tensors[0]].offset);
    assert_int_equal(tensors[f->tensors[0]].own, tensors[c->tensors[0]].own);
    assert_true(c->adds_grad[0]);
    assert_false(f->adds_grad[0]);
    network_close(&net);
}

/* ---- Pieces and slots ---------------------------------------------------------------------- */

static network lenet(size_t max_batch, int slots)
{
    network net = {0};
    assert_int_equal(model_build(&net.spec, "lenet5"), RING_OK);
    network_open(&net, max_batch, slots, 3);
    return net;
}

static void passes_in_pieces_are_the_whole_bit_for_bit(void **state)
{
    enum { ROWS = 5, PIXELS = 784 };
    static float images[ROWS * PIXELS];
    const uint32_t labels[ROWS] = {3, 0, 7, 1, 9};
    network whole = lenet(ROWS, 1), pieces = lenet(ROWS, 1);
    const int nodes = whole.model.node_count;
    draw_images(images, ROWS * PIXELS);
    load(&whole, 0, images, ROWS);
    forward(&whole, 0);
    const double loss = mean_loss(&whole, 0, labels, ROWS);
    backward(&whole, 0, false);
    load(&pieces, 0, images, ROWS);
    for (int n = 0; n < nodes; n += 3)
        model_forward(&pieces.model, 0, n, n + 3 < nodes ? n + 3 : nodes);
    assert_near(mean_loss(&pieces, 0, labels, ROWS), loss, 0, 0);
    for (int n = nodes; n > 0; n -= 5)
        model_backward(&pieces.model, 0, n > 5 ? n - 5 : 0, n, false);
    assert_memory_equal(pieces.grads, whole.grads, whole.model.tensors.elements * sizeof(float));
    network_close(&whole);
    network_close(&pieces);
}

/* Two batches of different sizes, both forward before either goes backward. */
static void slots_do_not_disturb_each_other(void **state)
{
    enum { ROWS = 5, PIXELS = 784 };
    static float images[2 * ROWS * PIXELS];
    const uint32_t labels[ROWS] = {3, 0, 7, 1, 9};
    network one = lenet(ROWS, 1), two = lenet(ROWS, 2);
    draw_images(images, 2 * ROWS * PIXELS);
    for (int b = 0; b < 2; b++) {
        load(&one, 0, images + b * ROWS * PIXELS, b == 0 ? ROWS : 2);
        forward(&one, 0);
        mean_loss(&one, 0, labels, b == 0 ? ROWS : 2);
        backward(&one, 0, b > 0);
    }
    for (int b = 0; b < 2; b++)
        load(&two, b, images + b * ROWS * PIXELS, b == 0 ? ROWS : 2);
    for (int b = 0; b < 2; b++) {
        forward(&two, b);
        mean_loss(&two, b, labels, b == 0 ? ROWS : 2);
    }
    for (int b = 0; b < 2; b++)
        backward(&two, b, b > 0);
    assert_memory_equal(one.grads, two.grads, one.model.tensors.elements * sizeof(float));
    network_close(&one);
    network_close(&two);
}

static void outputs_lie_in_place_where_nobody_needs_the_input(void **state)
{
    network net = lenet(1, 1);
    const int memory[] = {0, 0, 2, 3, 3, 5, 5, 7, 7, 9, 9, 11};
    for (int n = 0; n < net.model.node_count; n++)
        assert_int_equal(net.model.nodes[n].memory, memory[n]);
    network_close(&net);
    parse_layers(&net.spec, "{input: [1, 2, 2], layers: [{type: 'flatten'}, {type: 'tanh'}, {type: "
                            "'dropout'}, {type: 'linear', features: 2}]}");
    network_open(&net, 1, 1, 3);
    assert_int_equal(net.model.nodes[0].memory, MODEL_INPUT); /* a view of the input */
    assert_int_equal(net.model.nodes[1].memory, 1);           /* which nobody may write to */
    assert_int_equal(net.model.nodes[2].memory, 2);           /* tanh needs its output */
    network_close(&net);
}

/* ---- Lists of layers ----------------------------------------------------------------------- */

static void the_examples_are_the_built_in_networks(void **state)
{
    static const char *const names[] = {"lenet5", "alexnet"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        char path[4096];
        model_spec file, built;
        snprintf(path, sizeof path, "%s/%s.json", examples, names[i]);
        if (layer_list_read(&file, NULL, path) != RING_OK)
            fail_msg("%s", train_error());
        assert_int_equal(model_build(&built, names[i]), RING_OK);
        assert_string_equal(file.name, built.name);
        assert_int_equal(model_spec_hash(&file), model_spec_hash(&built));
        file.nodes[1].settings.stride++;
        assert_int_not_equal(model_spec_hash(&file), model_spec_hash(&built));
        model_spec_free(&file);
        model_spec_free(&built);
    }
}

/* Hugging Face's Trainer calls it the hidden size. */
static void a_network_has_a_width(void **state)
{
    static const struct {
        const char *name;
        size_t width;
    } cases[] = {{"mlp", 256}, {"lenet5", 120}, {"alexnet", 4096}, {"gpt", 128}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        model_spec spec;
        assert_int_equal(model_build(&spec, cases[i].name), RING_OK);
        assert_int_equal(model_spec_width(&spec), cases[i].width);
        model_spec_free(&spec);
    }
}

static void what_is_wrong_is_told_with_its_place(void **state)
{
#define LIST(layers) "{\"input\": [1, 4, 4],\n \"layers\": [" layers "]}"
#define FLAT "{\"type\": \"flatten\"},\n"
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"", "m.json:1:1: the file is empty"},
        {"[]", "m.json:1:1: the file must have one object"},
        {"{\"layers\": [{\"type\": \"relu\"}]}", "m.json:1:1: \"input\" is missing; add the shape "
                                                 "of a sample, such as \"input\": [1, 28, 28]"},
        {"{\"input\": [3]}", "m.json:1:1: \"layers\" is missing; add \"layers\": [ … ]"},
        {"{\"input\": [3, 3]}", "m.json:1:2: expected [features] or [channels, rows, columns]"},
        {"{\"input\": [0]}", "m.json:1:2: expected a whole number from 1 to 16777216"},
        {"{\"input\": [3], \"layer\": []}", "m.json:1:16: unknown key \"layer\""},
        {"{\"input\": [3], \"input\": [4]}", "m.json:1:2: \"input\" is given twice"},
        {LIST(""), "m.json:2:2: expected a list of layers"},
        {LIST("7"), "m.json:2:2: expected a layer: "},
        {LIST("{\"kernel\": 3}"),
         "m.json:2:14: the layer has no \"type\"; add one of linear, conv2d, "},
        {LIST("{\"type\": \"gru\"}"), "m.json:2:14: there is no type \"gru\" of layers"},
        {LIST("{\"type\": \"g\\u001bu\"}"), "m.json:2:14: there is no type \"g?u\" of layers"},
        {LIST("{\"type\": \"relu\", \"kernel\": 3}"),
         "m.json:2:30: relu has no setting \"kernel\""},
        {LIST("{\"type\": \"linear\", \"channels\": 3}"),
         "m.json:2:32: linear has no setting \"channels\""},
        {LIST("{\"type\": \"linear\", \"featrues\": 10}"),
         "m.json:2:32: linear has no setting \"featrues\"; did you mean \"features\"?"},
        {LIST("{\"type\": \"liner\", \"features\": 10}"),
         "m.json:2:14: there is no type \"liner\" of layers; write one of linear, conv2d, "
         "max_pool2d, "
         "avg_pool2d, relu, tanh, gelu, flatten, dropout, add, embedding, position_embedding, "
         "layer_norm, attention; did you mean \"linear\"?"},
        {"{gpt: {n_layers: 1}}",
         "m.json:1:8: gpt has no setting \"n_layers\"; did you mean \"n_layer\"?"},
        {LIST("{\"type\": \"linear\"}"), "m.json:2:14: linear needs \"features\""},
        {LIST("{\"type\": \"conv2d\", \"kernel\": 3}"), "m.json:2:14: conv2d needs \"channels\""},
        {LIST("{\"type\": \"max_pool2d\"}"), "m.json:2:14: max_pool2d needs \"kernel\""},
        {LIST("{\"type\": \"add\"}"), "m.json:2:14: add needs \"input\": [layer, layer]"},
        {LIST("{\"type\": \"add\", \"input\": \"input\"}"),
         "m.json:2:29: add takes a list of 2 layers"},
        {LIST("{\"type\": \"relu\", \"input\": \"x\"}"),
         "m.json:2:30: no earlier layer has the name \"x\""},
        {LIST("{\"type\": \"dropout\", \"probability\": 1}"),
         "m.json:2:33: expected a number that is at least 0 and below 1"},
        {LIST(FLAT "{\"type\": \"relu\", \"name\": \"0\"}"),
         "m.json:3:2: an earlier layer has the name \"0\""},
        {LIST(FLAT "{\"type\": \"relu\", \"name\": \"\"}"),
         "m.json:3:18: expected a name of 1 to 31 characters"},
        {LIST("{\"type\": \"linear\", \"features\": 3}"),
         "m.json:2:14: layer 0 (linear): linear takes [features]"},
        {LIST(FLAT "{\"type\": \"conv2d\", \"channels\": 1, \"kernel\": 1}"),
         "m.json:3:2: layer 1 (conv2d): conv2d takes [channels, rows, columns], not [16]"},
        {LIST("{\"type\": \"max_pool2d\", \"kernel\": 5}"),
         "m.json:2:14: layer 0 (max_pool2d): a kernel of 5 is larger than its input [1, 4, 4]"},
        {LIST("{\"type\": \"relu\"}, {\"type\": \"relu\", \"input\": \"input\"}"),
         "m.json:2:14: layer 0 (relu): no layer uses its output"},
        {LIST(FLAT "{\"type\": \"linear\", \"features\": 3, \"tie\": \"0\"}"),
         "m.json:3:2: layer 1 (linear): it cannot be tied to a layer without weight"},
        {LIST(FLAT "{\"type\": \"linear\", \"features\": 3, \"tie\": \"input\"}"),
         "m.json:3:35: cannot tie to \"input\", which has no parameters"},
        {LIST(FLAT "{\"type\": \"linear\", \"features\": 3}, {\"type\": \"linear\", \"features\": "
                   "3, \"tie\": \"1\"}"),
         "m.json:3:37: layer 2 (linear): 2.weight cannot be tied to 1.weight: their shapes differ"},
        {LIST(FLAT "{\"type\": \"linear\", \"features\": 16777216}, {\"type\": \"linear\", "
                   "\"features\": 16777216}"),
         "m.json:3:44: layer 2 (linear): it has too many parameters"},
        {LIST("{\"type\": \"relu\"}"), "m.json:2:14: a model needs a layer with parameters"},
        {LIST("{\"type\": \"relu\"} {\"type\": \"relu\"}"),
         "m.json:2:30: a comma is missing before this"},
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
    model_spec spec;
    assert_int_equal(layer_list_read(&spec, NULL, "/nowhere/m.json"), RING_ERR_SYSTEM);
    assert_string_equal(train_error(), "/nowhere/m.json: No such file or directory");
    assert_int_equal(model_build(&spec, "lenet"), RING_ERR_ARGUMENT);
}

int main(int argc, char **argv)
{
    gemm_set_threads(1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_mlp_trains_as_pytorch),
        cmocka_unit_test(lenet5_trains_as_pytorch),
        cmocka_unit_test(alexnet_without_dropout_trains_as_pytorch),
        cmocka_unit_test(gradients_of_branches_are_summed),
        cmocka_unit_test(tied_gradients_are_told_once_when_both_are_there),
        cmocka_unit_test(passes_in_pieces_are_the_whole_bit_for_bit),
        cmocka_unit_test(slots_do_not_disturb_each_other),
        cmocka_unit_test(outputs_lie_in_place_where_nobody_needs_the_input),
        cmocka_unit_test(the_examples_are_the_built_in_networks),
        cmocka_unit_test(a_network_has_a_width),
        cmocka_unit_test(what_is_wrong_is_told_with_its_place),
    };
    if (argc != 2)
        return 2;
    examples = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}

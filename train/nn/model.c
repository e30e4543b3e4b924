/* SPDX-License-Identifier: Apache-2.0
 * Makes a network from a list of nodes in three steps: infers shapes and lists the tensors; decides
 * which nodes share memory and which of them add to a gradient; assigns offsets and allocates. */
#include "model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "errors.h"
#include "random.h"
#include "segments.h"

enum { LINE = 64 /* bytes of a cache line */ };

/* ---- Shapes and tensors -------------------------------------------------------------------- */

/* Puts the layer's name before this thread's error text. @return @p status. */
static ring_status node_fail(train_model *model, int number, ring_status status)
{
    const model_node *node = &model->nodes[number];
    char cause[TRAIN_ERROR_MAX];
    model->failed = number;
    snprintf(cause, sizeof cause, "%s", train_error());
    return train_fail(status, "layer %s (%s): %s", node->name, node->use.op->name, cause);
}

static const op_shape *shape_of(const train_model *model, int node)
{
    return node == MODEL_INPUT ? &model->input : &model->nodes[node].use.out;
}

static ring_status take_inputs(train_model *model, int number, const node_spec *spec)
{
    model_node *node = &model->nodes[number];
    for (int k = 0; k < spec->op->inputs; k++) {
        const int input = spec->inputs[k];
        if (input < MODEL_INPUT || input >= number)
            return train_fail(RING_ERR_CONFIG, "its input is not an earlier layer");
        node->inputs[k] = input;
        node->use.in[k] = *shape_of(model, input);
        if (input != MODEL_INPUT)
            model->nodes[input].users++;
    }
    return RING_OK;
}

/* @return whether the number of elements fits an int, which the maths libraries use for sizes. */
static bool is_indexable(const size_t *shape, int dims)
{
    size_t count = 1;
    for (int d = 0; d < dims; d++) {
        if (__builtin_mul_overflow(count, shape[d], &count) || count > INT32_MAX)
            return false;
    }
    return true;
}

static ring_status check_sizes(const op_use *use)
{
    if ((use->op->takes & TAKES_OUTPUTS) != 0 && use->settings.outputs < 1)
        return train_fail(RING_ERR_CONFIG, "it needs at least one output");
    if (!is_indexable(use->out.dim, use->out.dims))
        return train_fail(RING_ERR_CONFIG, "its output is too large");
    for (int t = 0; t < use->tensor_count; t++) {
        if (!is_indexable(use->tensors[t].shape, use->tensors[t].dims))
            return train_fail(RING_ERR_CONFIG, "it has too many parameters");
    }
    return RING_OK;
}

/* Adds the node's tensors to the table. @param tie  the node whose tensors they share, or NOT_TIED
 */
static ring_status add_tensors(train_model *model, model_node *node, int tie)
{
    for (int t = 0; t < node->use.tensor_count; t++) {
        const op_tensor *from = &node->use.tensors[t];
        train_tensor tensor = {.group = from->group, .dims = from->dims, .tie = -1};
        if (tie != NOT_TIED) {
            if (t >= model->nodes[tie].use.tensor_count)
                return train_fail(RING_ERR_CONFIG, "it cannot be tied to a layer without %s",
                                  from->name);
            const int original = model->nodes[tie].tensors[t];
            const int root = model->tensors.list[original].tie;
            tensor.tie = root >= 0 ? root : original;
        }
        memcpy(tensor.shape, from->shape, sizeof tensor.shape);
        snprintf(tensor.name, sizeof tensor.name, "%s.%s", node->name, from->name);
        node->tensors[t] = model->tensors.count;
        RING_TRY(tensors_add(&model->tensors, &tensor));
    }
    return RING_OK;
}

static ring_status shape_node(train_model *model, int number, const node_spec *spec)
{
    model_node *node = &model->nodes[number];
    RING_TRY(take_inputs(model, number, spec));
    if (spec->tie != NOT_TIED && (spec->tie < 0 || spec->tie >= number))
        return train_fail(RING_ERR_CONFIG, "a layer can only be tied to an earlier one");
    RING_TRY(spec->op->shape(&node->use));
    node->functions = model->place->functions(spec->op);
    if (node->functions == NULL)
        return train_fail(RING_ERR_UNSUPPORTED, "%s cannot compute this layer", model->place->name);
    RING_TRY(check_sizes(&node->use));
    return add_tensors(model, node, spec->tie);
}

static ring_status shape_nodes(train_model *model, const model_spec *spec)
{
    for (int n = 0; n < spec->count; n++) {
        const node_spec *from = &spec->nodes[n];
        model_node *node = &model->nodes[n];
        node->use = (op_use){.op = from->op,
                             .settings = from->settings,
                             .number = (uint32_t)from->number};
        memcpy(node->name, from->name, sizeof node->name);
        const ring_status status = shape_node(model, n, from);
        if (status != RING_OK)
            return node_fail(model, n, status);
    }
    for (int n = 0; n + 1 < spec->count; n++) {
        if (model->nodes[n].users == 0) {
            train_fail(RING_ERR_CONFIG, "no layer uses its output");
            return node_fail(model, n, RING_ERR_CONFIG);
        }
    }
    return RING_OK;
}

/* ---- Gradients that are sums, and shared memory -------------------------------------------- */

/* Decides which gradients of outputs are needed, and which nodes add to them. The gradient of an
 * output is the sum of the gradients from all nodes that use it. Backward runs from the last node
 * to the first, so the last user writes the gradient and the others add to it. */
static void plan_value_grads(train_model *model)
{
    for (int n = 0; n < model->node_count; n++) {
        model_node *node = &model->nodes[n];
        node->wants_grad = node->use.tensor_count > 0 || node->use.op->is_received;
        for (int k = 0; k < node->use.op->inputs; k++)
            node->wants_grad |= node->inputs[k] != MODEL_INPUT &&
                                model->nodes[node->inputs[k]].wants_grad;
    }
    for (int n = model->node_count - 1; n >= 0; n--) {
        model_node *node = &model->nodes[n];
        for (int k = 0; k < node->use.op->inputs && node->wants_grad; k++) {
            if (node->inputs[k] == MODEL_INPUT)
                continue;
            model_node *input = &model->nodes[node->inputs[k]];
            node->adds_input_grad[k] = input->grad_begun;
            input->grad_begun = true;
        }
    }
}

/* @return the original of a tied tensor, or the tensor itself. */
static int root_of(const train_model *model, int tensor)
{
    const int tie = model->tensors.list[tensor].tie;
    return tie >= 0 ? tie : tensor;
}

/* @return whether one of nodes @p first to @p end - 1 has tensor @p root, tied or not. */
static bool shares_tensor(const train_model *model, int first, int end, int root)
{
    for (int n = first; n < end; n++) {
        for (int t = 0; t < model->nodes[n].use.tensor_count; t++) {
            if (root_of(model, model->nodes[n].tensors[t]) == root)
                return true;
        }
    }
    return false;
}

/* Decides which nodes add to the gradient of a parameter that several nodes share: all but the
 * last. */
static void plan_grads(train_model *model)
{
    for (int n = 0; n < model->node_count; n++) {
        model_node *node = &model->nodes[n];
        for (int t = 0; t < node->use.tensor_count; t++) {
            const int root = root_of(model, node->tensors[t]);
            node->adds_grad[t] = shares_tensor(model, n + 1, model->node_count, root);
        }
    }
}

/* @return whether the node's output may overwrite its input: no other node reads the input, and no
 * backward pass needs it. A view of the batch's input may share its memory, since it writes
 * nothing. */
static bool may_share_input(const train_model *model, const model_node *node)
{
    int input = node->inputs[0];
    if (!node->use.op->in_place ||
        (input != MODEL_INPUT && model->nodes[input].segment != node->segment))
        return false;
    while (input != MODEL_INPUT && model->nodes[input].users == 1 &&
           model->nodes[input].use.op->is_view)
        input = model->nodes[input].inputs[0];
    if (input == MODEL_INPUT)
        return node->use.op->is_view;
    const model_node *maker = &model->nodes[input];
    return maker->users == 1 && (node->use.op->is_view || !maker->use.op->keeps_output) &&
           maker->memory != MODEL_INPUT;
}

/* Decides in whose memory each node's output is. */
static void plan_memory(train_model *model)
{
    for (int n = 0; n < model->node_count; n++) {
        model_node *node = &model->nodes[n];
        const int input = node->inputs[0];
        node->memory = n;
        if (!may_share_input(model, node))
            continue;
        node->memory = input == MODEL_INPUT ? MODEL_INPUT : model->nodes[input].memory;
        if (node->use.op != &op_relu || input == MODEL_INPUT)
            continue;
        op_use *maker = &model->nodes[input].use;
        node->use.is_done_before = maker->has_relu = maker->op == &op_linear ||
                                                     maker->op == &op_conv2d;
    }
}

/* ---- Memory -------------------------------------------------------------------------------- */

/* Reserves bytes, rounded up to cache lines. @return their offset. */
static size_t reserve(size_t *total, size_t bytes)
{
    const size_t at = *total;
    *total += (bytes + LINE - 1) / LINE * LINE;
    return at;
}

/* Reserves a node's memory.
 * @param owns  whether the node's output has memory of its own
 * @param[in,out] shared  bytes of model->shared that the node's segment has reserved so far */
static void place_node(train_model *model, model_node *node, bool owns, size_t *shared)
{
    const size_t rows = model->max_batch,
                 bytes = rows * shape_count(&node->use.out) * sizeof(float);
    size_t *total = node->keeps_memory ? &model->slot_bytes : shared;
    if (owns) {
        node->value_at = reserve(total, bytes);
        node->grad_at = reserve(total, node->wants_grad ? bytes : 0);
    }
    node->saved_at = reserve(model->interval > 0 ? shared : &model->slot_bytes,
                             rows * node->use.saved_bytes);
    for (int k = 0; k < node->use.op->inputs; k++) {
        const size_t spare = rows * shape_count(&node->use.in[k]) * sizeof(float);
        if (node->adds_input_grad[k] && spare > model->spare_bytes[k])
            model->spare_bytes[k] = spare;
    }
    const size_t scratch = model->place->scratch_bytes(&node->use, rows);
    const size_t beside = model->place->scratch_beside(&node->use, rows);
    model->scratch_bytes = scratch > model->scratch_bytes ? scratch : model->scratch_bytes;
    model->beside_bytes = beside > model->beside_bytes ? beside : model->beside_bytes;
}

static void place_nodes(train_model *model)
{
    size_t shared = 0;
    /* The output of a segment must be kept. Its memory may belong to an earlier node. */
    for (int n = 0; n < model->node_count; n++) {
        const model_node *node = &model->nodes[n];
        if ((model->interval == 0 || node->ends_segment) && node->memory != MODEL_INPUT)
            model->nodes[node->memory].keeps_memory = true;
    }
    for (int n = 0; n < model->node_count; n++) {
        if (n > 0 && model->nodes[n].segment != model->nodes[n - 1].segment)
            shared = 0;
        place_node(model, &model->nodes[n], model->nodes[n].memory == n, &shared);
        model->shared_bytes = shared > model->shared_bytes ? shared : model->shared_bytes;
    }
}

ring_status model_allocate(train_model *model)
{
    const nn_place *place = model->place;
    const size_t pointers = (size_t)model->tensors.count * sizeof(float *);
    RING_TRY(train_alloc((void **)&model->params, pointers, "tensors"));
    RING_TRY(train_alloc((void **)&model->grads, pointers, "tensors"));
    RING_TRY(train_alloc((void **)&model->slots, (size_t)model->slot_count * sizeof *model->slots,
                         "slots"));
    for (int s = 0; s < model->slot_count; s++)
        RING_TRY(place->alloc(place, (void **)&model->slots[s].memory, model->slot_bytes,
                              "activations"));
    if (model->interval > 0)
        RING_TRY(place->alloc(place, (void **)&model->shared, model->shared_bytes, "activations"));
    for (int k = 0; k < OP_INPUTS_MAX; k++)
        RING_TRY(place->alloc(place, (void **)&model->spare[k], model->spare_bytes[k],
                              "temporary gradients"));
    RING_TRY(place->alloc(place, &model->scratch, model->scratch_bytes, "the layers' scratch"));
    return place->alloc(place, &model->scratch_beside, model->beside_bytes, "the layers' scratch");
}

ring_status model_plan(train_model *model, const model_spec *spec)
{
    memset(model, 0, sizeof *model);
    if (spec->count < 1)
        return train_fail(RING_ERR_CONFIG, "a model needs at least one layer");
    memcpy(model->name, spec->name, sizeof model->name);
    model->place = spec->place != NULL ? spec->place : &place_host;
    model->input = spec->input;
    model->node_count = spec->count;
    RING_TRY(train_alloc((void **)&model->nodes, (size_t)spec->count * sizeof *model->nodes,
                         "the layers"));
    RING_TRY(tensors_create(&model->tensors, spec->count * OP_TENSORS_MAX));
    RING_TRY(shape_nodes(model, spec));
    if (model->tensors.count == 0)
        return train_fail(RING_ERR_CONFIG, "a model needs a layer with parameters");
    model->output = *shape_of(model, spec->count - 1);
    plan_value_grads(model);
    plan_grads(model);
    segments_plan(model, spec->interval);
    plan_memory(model);
    return RING_OK;
}

ring_status model_measure(train_model *model, const model_spec *spec, size_t max_batch, int slots)
{
    RING_TRY(model_plan(model, spec));
    model->max_batch = max_batch;
    model->slot_count = slots;
    place_nodes(model);
    return RING_OK;
}

ring_status model_create(train_model *model, const model_spec *spec, size_t max_batch, int slots)
{
    RING_TRY(model_measure(model, spec, max_batch, slots));
    return model_allocate(model);
}

ring_status model_check(const model_spec *spec, int *failed)
{
    train_model model;
    const ring_status status = model_plan(&model, spec);
    *failed = model.failed;
    model_destroy(&model);
    return status;
}

void model_destroy(train_model *model)
{
    const nn_place *place = model->place != NULL ? model->place : &place_host;
    for (int n = 0; model->nodes != NULL && n < model->node_count; n++) {
        op_use *use = &model->nodes[n].use;
        if (use->op != NULL && use->op->release != NULL)
            use->op->release(use);
    }
    for (int s = 0; model->slots != NULL && s < model->slot_count; s++)
        place->release(place, model->slots[s].memory);
    free(model->slots);
    place->release(place, model->shared);
    free(model->nodes);
    for (int k = 0; k < OP_INPUTS_MAX; k++)
        place->release(place, model->spare[k]);
    place->release(place, model->scratch);
    place->release(place, model->scratch_beside);
    free(model->params);
    free(model->grads);
    tensors_free(&model->tensors);
    memset(model, 0, sizeof *model);
}

size_t model_activation_bytes(const train_model *model)
{
    return (size_t)model->slot_count * model->slot_bytes + model->shared_bytes;
}

size_t model_memory_bytes(const train_model *model)
{
    size_t bytes = model_activation_bytes(model) + model->scratch_bytes + model->beside_bytes;
    for (int k = 0; k < OP_INPUTS_MAX; k++)
        bytes += model->spare_bytes[k];
    return bytes;
}

size_t model_parameters(const train_model *model)
{
    size_t count = 0;
    for (int t = 0; t < model->tensors.count; t++)
        count += model->tensors.list[t].tie < 0 ? model->tensors.list[t].count : 0;
    return count;
}

void model_bind(train_model *model, float *params, float *grads)
{
    for (int t = 0; t < model->tensors.count; t++) {
        const size_t offset = model->tensors.list[t].offset;
        model_place(model, t, params + offset, grads + offset);
    }
}

void model_place(train_model *model, int tensor, float *param, float *grad)
{
    model->params[tensor] = param;
    model->grads[tensor] = grad;
}

/* ---- Initial parameters -------------------------------------------------------------------- */

/* @return the bound of a uniform distribution, as PyTorch computes it: for weights by
 * torch.nn.init.kaiming_uniform_(a=sqrt(5)), for biases 1/sqrt(fan_in). The two formulas are equal
 * except for rounding, so each is computed in PyTorch's steps to get the same bits. */
static double bound_of(const op_tensor *tensor)
{
    const double a = sqrt(5.0), fan_in = (double)tensor->fan_in;
    if (tensor->dims == 1)
        return 1.0 / sqrt(fan_in);
    const double gain = sqrt(2.0 / (1.0 + a * a));
    return sqrt(3.0) * (gain / sqrt(fan_in));
}

/* Draws the initial values of a tensor. @param values  NULL: only advances the generator */
static void start(train_random *random, const op_tensor *tensor, float *values, size_t count)
{
    if (tensor->start == START_NORMAL && values == NULL)
        random_skip_normal(random, count);
    else if (tensor->start == START_NORMAL)
        random_normal(random, values, count, (float)tensor->deviation);
    else if (tensor->start == START_UNIFORM) {
        const float bound = (float)bound_of(tensor);
        for (size_t i = 0; i < count; i++) {
            const float value = random_uniform(random, -bound, bound);
            if (values != NULL)
                values[i] = value;
        }
    } else {
        for (size_t i = 0; i < count && values != NULL; i++)
            values[i] = tensor->start == START_ONES ? 1.0F : 0.0F;
    }
}

void model_init(train_model *model, uint64_t seed)
{
    train_random random;
    random_seed(&random, seed);
    for (int n = 0; n < model->node_count; n++) {
        const model_node *node = &model->nodes[n];
        for (int t = 0; t < node->use.tensor_count; t++) {
            const train_tensor *tensor = &model->tensors.list[node->tensors[t]];
            if (tensor->tie < 0)
                start(&random, &node->use.tensors[t], model->params[node->tensors[t]],
                      tensor->count);
        }
    }
}

/* SPDX-License-Identifier: Apache-2.0
 * Finds the layers that form a pair, builds a rank's network, and computes its parts of the
 * tensors. */
#include "tensor_split.h"

#include <string.h>

#include "errors.h"

enum { NO_NODE = -1, THIRDS = 3 };

/* ---- Pairs --------------------------------------------------------------------------------- */

/* @return the one node that reads the output of @p node, or NO_NODE. */
static int user_of(const train_model *model, int node)
{
    if (node == NO_NODE || model->nodes[node].users != 1)
        return NO_NODE;
    for (int n = node + 1; n < model->node_count; n++) {
        for (int k = 0; k < model->nodes[n].use.op->inputs; k++) {
            if (model->nodes[n].inputs[k] == node)
                return n;
        }
    }
    return NO_NODE;
}

static bool is_op(const train_model *model, int node, const nn_op *op)
{
    return node != NO_NODE && model->nodes[node].use.op == op;
}

/* @return whether the node is elementwise. */
static bool is_elementwise(const train_model *model, int node)
{
    return is_op(model, node, &op_relu) || is_op(model, node, &op_gelu) ||
           is_op(model, node, &op_tanh) || is_op(model, node, &op_dropout);
}

/* @return whether the node is a linear layer that shares its parameters with no other node. */
static bool is_own_linear(const model_spec *spec, const train_model *model, int node)
{
    if (!is_op(model, node, &op_linear) || spec->nodes[node].tie != NOT_TIED)
        return false;
    for (int n = node + 1; n < spec->count; n++) {
        if (spec->nodes[n].tie == node)
            return false;
    }
    return true;
}

/* @return the linear layer that forms a pair with @p first, or NO_NODE. */
static int partner_of(const model_spec *spec, const train_model *model, int first)
{
    int node = user_of(model, first);
    if (is_op(model, node, &op_attention))
        node = user_of(model, node);
    while (is_elementwise(model, node))
        node = user_of(model, node);
    return is_own_linear(spec, model, node) ? node : NO_NODE;
}

/* The number of heads or features must be a multiple of the number of ranks that share them. */
static ring_status check_shares(const train_model *model, int first, int ranks)
{
    const int user = user_of(model, first);
    const bool attends = is_op(model, user, &op_attention);
    const model_node *node = &model->nodes[attends ? user : first];
    const size_t shares = attends ? node->use.settings.heads : node->use.settings.outputs;
    if (shares % (size_t)ranks == 0)
        return RING_OK;
    return train_fail(RING_ERR_CONFIG,
                      "%d tensor ranks cannot share the %zu %s of layer %s (%s) of %s evenly; set "
                      "tensor_parallel.autotp_size or --tp to a divisor of %zu",
                      ranks, shares, attends ? "heads" : "features", node->name, node->use.op->name,
                      model->name, shares);
}

ring_status tensor_split_find(tensor_cut *cuts, const model_spec *spec, const train_model *model,
                              int ranks)
{
    int pairs = 0;
    memset(cuts, 0, (size_t)spec->count * sizeof *cuts);
    for (int n = 0; n < spec->count; n++) {
        if (cuts[n] != CUT_NONE || !is_own_linear(spec, model, n))
            continue;
        const int partner = partner_of(spec, model, n);
        if (partner == NO_NODE)
            continue;
        RING_TRY(check_shares(model, n, ranks));
        cuts[n] = is_op(model, user_of(model, n), &op_attention) ? CUT_THIRDS : CUT_OUTPUTS;
        for (int between = user_of(model, n); between != partner; between = user_of(model, between))
            cuts[between] = CUT_BETWEEN;
        cuts[partner] = CUT_INPUTS;
        pairs++;
    }
    if (pairs > 0)
        return RING_OK;
    return train_fail(RING_ERR_CONFIG,
                      "%d tensor ranks cannot share the layers of %s: it has no two linear layers "
                      "with only relu, gelu, tanh, dropout or attention between them; train "
                      "without tensor_parallel.autotp_size and --tp",
                      ranks, model->name);
}

/* ---- A rank's network ---------------------------------------------------------------------- */

/* A rank's network while it is written. */
typedef struct split_writer {
    model_spec *own;          /* the rank's network */
    const model_spec *spec;   /* the whole network */
    const train_model *model; /* planned from spec */
    const tensor_cut *cuts;   /* [spec->count] */
    int ranks, rank;
    int output[NODES_MAX]; /* by node of spec: the node of own that has its output */
    int holder[NODES_MAX]; /* by node of spec: the node of own that has its parameters */
} split_writer;

static int output_of(const split_writer *w, int node)
{
    return node == MODEL_INPUT ? MODEL_INPUT : w->output[node];
}

/* Appends a node to the rank's network, with the name of node @p number of the whole network.
 * @return the node; NULL if there is no memory or the network has too many nodes. */
static node_spec *add_node(split_writer *w, int number, const nn_op *op,
                           const op_settings *settings)
{
    const node_spec *from = &w->spec->nodes[number];
    node_spec *node = model_spec_add(w->own, op, settings);
    if (node == NULL)
        return NULL;
    memcpy(node->name, from->name, sizeof node->name);
    node->number = from->number;
    return node;
}

/* @return this rank's settings of node @p number. The bias of a second layer is added by the node
 * "summed" after it, since it must be added only once. */
static op_settings settings_of(const split_writer *w, int number)
{
    const size_t ranks = (size_t)w->ranks;
    const size_t width = shape_width(&w->model->nodes[number].use.out);
    op_settings settings = w->spec->nodes[number].settings;
    const tensor_cut cut = w->cuts[number];
    if (cut == CUT_OUTPUTS || cut == CUT_THIRDS)
        settings.outputs /= ranks;
    if (cut == CUT_INPUTS)
        settings.no_bias = true;
    if (cut == CUT_BETWEEN) {
        settings.heads /= ranks;
        settings.row_width = width;
        settings.row_first = width / ranks * (size_t)w->rank;
    }
    return settings;
}

/* Writes node @p number, with a node "copied" before a first layer and "summed" after a second
 * layer.
 * @return false as add_node() returns NULL. */
static bool write_node(split_writer *w, int number)
{
    const node_spec *from = &w->spec->nodes[number];
    const tensor_cut cut = w->cuts[number];
    const op_settings settings = settings_of(w, number);
    int input = output_of(w, from->inputs[0]);
    if (cut == CUT_OUTPUTS || cut == CUT_THIRDS) {
        node_spec *copied = add_node(w, number, &op_copied, NULL);
        if (copied == NULL)
            return false;
        copied->inputs[0] = input;
        input = w->own->count - 1;
    }
    node_spec *node = add_node(w, number, from->op, &settings);
    if (node == NULL)
        return false;
    node->inputs[0] = input;
    if (from->op->inputs > 1)
        node->inputs[1] = output_of(w, from->inputs[1]);
    node->tie = from->tie == NOT_TIED ? NOT_TIED : w->holder[from->tie];
    w->holder[number] = w->own->count - 1;
    if (cut == CUT_INPUTS && add_node(w, number, &op_summed, &from->settings) == NULL)
        return false;
    w->output[number] = w->own->count - 1;
    return true;
}

ring_status tensor_split_spec(model_spec *own, const model_spec *spec, const train_model *model,
                              const tensor_cut *cuts, int ranks, int rank)
{
    split_writer w = {
        .own = own, .spec = spec, .model = model, .cuts = cuts, .ranks = ranks, .rank = rank};
    model_spec_start(own, spec->name, spec->input);
    own->any_output = spec->any_output;
    for (int n = 0; n < spec->count; n++) {
        if (!write_node(&w, n))
            return train_fail(RING_ERR_MEMORY,
                              "no memory for a tensor rank's network, or too many layers");
    }
    return RING_OK;
}

/* ---- Parts of tensors ---------------------------------------------------------------------- */

tensor_order tensor_split_order(tensor_cut cut, const op_use *use, int number, size_t count,
                                int ranks)
{
    tensor_order order = {.count = count, .parts = (size_t)ranks, .blocks = 1};
    if (cut == CUT_OUTPUTS)
        return order;
    if (cut == CUT_THIRDS)
        order.blocks = THIRDS;
    else if (cut == CUT_INPUTS && number == 0)
        order.blocks = use->tensors[0].shape[0]; /* a row of the weight */
    else
        return tensor_order_whole(count);
    return order;
}

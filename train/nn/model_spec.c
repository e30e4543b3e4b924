/* SPDX-License-Identifier: Apache-2.0
 * Grows the list of nodes as they are added, and computes a hash and a few sizes of the network. */
#include "model_spec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void model_spec_start(model_spec *spec, const char *name, op_shape input)
{
    *spec = (model_spec){.input = input};
    snprintf(spec->name, sizeof spec->name, "%s", name);
}

void model_spec_free(model_spec *spec)
{
    free(spec->nodes);
    *spec = (model_spec){0};
}

/* Makes room for one more node. @return false without memory or above NODES_MAX. */
static bool make_room(model_spec *spec)
{
    if (spec->count < spec->room)
        return true;
    const int room = spec->room > 0 ? 2 * spec->room : 16;
    node_spec *nodes = room > NODES_MAX ? NULL
                                        : realloc(spec->nodes, (size_t)room * sizeof *spec->nodes);
    if (nodes == NULL)
        return false;
    spec->nodes = nodes;
    spec->room = room;
    return true;
}

node_spec *model_spec_add(model_spec *spec, const nn_op *op, const op_settings *settings)
{
    if (!make_room(spec))
        return NULL;
    node_spec *node = &spec->nodes[spec->count];
    *node = (node_spec){.op = op,
                        .inputs = {spec->count - 1, MODEL_INPUT},
                        .tie = NOT_TIED,
                        .number = spec->count};
    if (settings != NULL)
        node->settings = *settings;
    snprintf(node->name, sizeof node->name, "%d", spec->count);
    spec->count++;
    return node;
}

size_t model_spec_words(const model_spec *spec)
{
    for (int n = 0; n < spec->count; n++) {
        if (spec->nodes[n].op == &op_embedding)
            return spec->nodes[n].settings.words;
    }
    return 0;
}

size_t model_spec_width(const model_spec *spec)
{
    size_t width = 1;
    for (int n = 0; n < spec->count; n++) {
        const size_t outputs = spec->nodes[n].settings.outputs;
        if (spec->nodes[n].op == &op_embedding)
            return outputs;
        if (outputs > width)
            width = outputs;
    }
    return width;
}

/* Continues an FNV-1a hash. */
static uint64_t absorb(uint64_t hash, const void *data, size_t bytes)
{
    const unsigned char *at = data;
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ at[i]) * 0x100000001b3U;
    return hash;
}

static uint64_t absorb_node(uint64_t hash, const node_spec *node)
{
    const op_settings *settings = &node->settings;
    const size_t sizes[] = {settings->outputs, settings->kernel, settings->stride,
                            settings->padding, settings->words,  settings->heads,
                            settings->no_bias, settings->by_tanh};
    const double reals[] = {settings->probability, settings->deviation};
    hash = absorb(hash, node->op->name, strlen(node->op->name));
    hash = absorb(hash, sizes, sizeof sizes);
    hash = absorb(hash, reals, sizeof reals);
    hash = absorb(hash, node->inputs, (size_t)node->op->inputs * sizeof node->inputs[0]);
    return absorb(hash, &node->tie, sizeof node->tie);
}

uint64_t model_spec_hash(const model_spec *spec)
{
    uint64_t hash = 0xcbf29ce484222325U;
    hash = absorb(hash, spec->input.dim, sizeof spec->input.dim);
    for (int n = 0; n < spec->count; n++)
        hash = absorb_node(hash, &spec->nodes[n]);
    return hash;
}

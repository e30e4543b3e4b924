/* SPDX-License-Identifier: Apache-2.0
 * Finds the places where a network may be cut, and makes the list of nodes between two cuts. */
#include "model_part.h"

#include <string.h>

#include "errors.h"

bool model_may_cut(const train_model *model, int node)
{
    for (int n = node; n < model->node_count; n++) {
        for (int k = 0; k < model->nodes[n].use.op->inputs; k++) {
            if (model->nodes[n].inputs[k] < node - 1)
                return false;
        }
    }
    return true;
}

int model_part_node(int first, int node)
{
    return first > 0 ? node - first + 1 : node;
}

/* @return the node that has the parameters of @p node, which may be tied to others. */
static int original_of(const model_spec *spec, int node)
{
    while (spec->nodes[node].tie != NOT_TIED)
        node = spec->nodes[node].tie;
    return node;
}

/* Appends node @p number to the part that begins with node @p first. If the part has an earlier
 * node with the same parameters, the new node is tied to that one. */
static ring_status add_node(model_spec *part, const model_spec *spec, int first, int number)
{
    const node_spec *from = &spec->nodes[number];
    node_spec *node = model_spec_add(part, from->op, &from->settings);
    if (node == NULL)
        return train_fail(RING_ERR_MEMORY, "no memory for a part of the network");
    memcpy(node->name, from->name, sizeof node->name);
    node->number = from->number;
    for (int k = 0; k < from->op->inputs; k++)
        node->inputs[k] = model_part_node(first, from->inputs[k]);
    int tie = first;
    while (original_of(spec, tie) != original_of(spec, number))
        tie++;
    if (tie != number)
        node->tie = model_part_node(first, tie);
    return RING_OK;
}

ring_status model_part_spec(model_spec *part, const model_spec *spec, const train_model *model,
                            int first, int end)
{
    model_spec_start(part, spec->name, first > 0 ? model->nodes[first - 1].use.out : spec->input);
    if (first > 0 && model_spec_add(part, &op_received, NULL) == NULL)
        return train_fail(RING_ERR_MEMORY, "no memory for a part of the network");
    for (int n = first; n < end; n++)
        RING_TRY(add_node(part, spec, first, n));
    return RING_OK;
}

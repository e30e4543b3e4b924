/* SPDX-License-Identifier: Apache-2.0
 * Where segments end, and computing one again. */
#include "segments.h"

#include "errors.h"
#include "model_part.h"

static bool may_end_behind(const train_model *model, int node)
{
    return node + 1 == model->node_count || model_may_cut(model, node + 1);
}

void segments_plan(train_model *model, int interval)
{
    int segment = 0, first = 0;
    model->interval = interval;
    for (int n = 0; n < model->node_count; n++) {
        model_node *node = &model->nodes[n];
        const bool is_long = n - first + 1 >= interval || node->use.op->is_received;
        node->segment = segment;
        if (interval == 0 || !is_long || !may_end_behind(model, n))
            continue;
        node->ends_segment = true;
        first = n + 1;
        segment++;
    }
    model->nodes[model->node_count - 1].ends_segment = true;
}

ring_status segments_restore(train_model *model, int slot, int node, const model_hooks *hooks)
{
    const int segment = model->nodes[node].segment;
    int first = node, end = node + 1;
    if (model->interval == 0 || (model->recent_slot == slot && model->recent_segment == segment))
        return RING_OK;
    while (first > 0 && model->nodes[first - 1].segment == segment)
        first--;
    while (end < model->node_count && model->nodes[end].segment == segment)
        end++;
    return model_forward(model, slot, first, end, hooks);
}

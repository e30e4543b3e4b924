/* SPDX-License-Identifier: Apache-2.0
 * Where segments end. */
#include "segments.h"

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

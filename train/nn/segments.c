/* SPDX-License-Identifier: Apache-2.0
 * Decides where segments end: after the first node at which the segment has enough nodes and after
 * which the network may be cut. */
#include "segments.h"

#include "model_part.h"

void segments_plan(train_model *model, int interval)
{
    int segment = 0, first = 0;
    model->interval = interval;
    for (int n = 0; n < model->node_count; n++) {
        model_node *node = &model->nodes[n];
        const bool is_long = n - first + 1 >= interval || node->use.op->is_received;
        node->segment = segment;
        if (interval == 0 || !is_long ||
            (n + 1 < model->node_count && !model_may_cut(model, n + 1)))
            continue;
        node->ends_segment = true;
        first = n + 1;
        segment++;
    }
    model->nodes[model->node_count - 1].ends_segment = true;
}

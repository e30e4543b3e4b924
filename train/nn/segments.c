/* SPDX-License-Identifier: Apache-2.0
 * Decides after which nodes segments end: at the first place where the network may be cut once the
 * segment has enough nodes. */
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

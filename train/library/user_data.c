/* SPDX-License-Identifier: Apache-2.0
 * Calls the caller's callback and checks its result: each label must be below the number of the
 * network's outputs. */
#include "user_data.h"

#include <string.h>

#include "errors.h"

ring_status user_labels_check(const op_shape *output, const uint32_t *labels, size_t count)
{
    const size_t width = shape_width(output);
    for (size_t i = 0; i < count; i++) {
        if (labels[i] >= width)
            return train_fail(RING_ERR_ARGUMENT,
                              "label %u at position %zu of the batch is too large: the model has "
                              "%zu output%s",
                              labels[i], i, width, plural(width));
    }
    return RING_OK;
}

static ring_status take(void *context, const uint32_t *order, size_t batch, float *inputs,
                        uint32_t *labels)
{
    const user_data *data = context;
    const int result = data->given.take(data->given.context, order, batch, inputs, labels);
    if (result != 0)
        return train_fail(RING_ERR_USAGE,
                          "the take callback returned %d, not 0, for %zu sample%s beginning with "
                          "sample %u",
                          result, batch, plural(batch), order[0]);
    return user_labels_check(&data->output, labels, batch * shape_rows(&data->output));
}

ring_status user_data_open(user_data *data, const ring_train_data *given, const op_shape *input,
                           train_dataset *dataset)
{
    *dataset = (train_dataset){0};
    if (given->count == 0)
        return RING_OK;
    if (given->take == NULL || given->count >= UINT32_MAX / 20)
        return train_fail(RING_ERR_ARGUMENT,
                          "train or test with %zu samples needs a take callback and fewer than %u "
                          "samples",
                          given->count, UINT32_MAX / 20);
    data->given = *given;
    static const data_source source = {.take = take};
    *dataset = (train_dataset){.count = given->count,
                               .features = shape_count(input),
                               .classes = (size_t)UINT32_MAX + 1,
                               .hash = given->count * 0x9e3779b97f4a7c15U + shape_count(input),
                               .source = &source,
                               .context = data};
    return RING_OK;
}

static ring_status copy_batch(void *context, const uint32_t *order, size_t batch, float *inputs,
                              uint32_t *labels)
{
    const user_batch *from = context;
    (void)order;
    (void)labels;
    if (inputs != NULL) /* the stage reads inputs */
        memcpy(inputs, from->inputs, batch * from->features * sizeof(float));
    return RING_OK;
}

train_dataset user_batch_open(user_batch *batch)
{
    static const data_source source = {.take = copy_batch};
    return (train_dataset){.features = batch->features,
                           .classes = (size_t)UINT32_MAX + 1,
                           .source = &source,
                           .context = batch};
}

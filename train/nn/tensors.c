/* SPDX-License-Identifier: Apache-2.0
 * Assigns each tensor an offset in the flat buffers; a tied tensor has the offset of its original.
 */
#include "tensors.h"

#include <stdlib.h>
#include <string.h>

#include "errors.h"

ring_status tensors_create(tensor_table *table, int most)
{
    *table = (tensor_table){0};
    return train_alloc((void **)&table->list, (size_t)most * sizeof *table->list, "the tensors");
}

void tensors_free(tensor_table *table)
{
    free(table->list);
    *table = (tensor_table){0};
}

ring_status tensors_add(tensor_table *table, const train_tensor *tensor)
{
    train_tensor *added = &table->list[table->count];
    *added = *tensor;
    added->count = 1;
    for (int d = 0; d < tensor->dims; d++)
        added->count *= tensor->shape[d];
    if (tensor->tie >= 0) {
        const train_tensor *original = &table->list[tensor->tie];
        if (tensor->dims != original->dims ||
            memcmp(tensor->shape, original->shape, sizeof tensor->shape) != 0)
            return train_fail(RING_ERR_CONFIG, "%s cannot be tied to %s: their shapes differ",
                              tensor->name, original->name);
        added->offset = original->offset;
        added->own = original->own;
    } else {
        added->offset = table->elements;
        added->own = table->own_count++;
        table->elements += added->count;
    }
    table->count++;
    return RING_OK;
}

train_tensor *tensors_find(const tensor_table *table, const char *name)
{
    for (int t = 0; t < table->count; t++) {
        if (strcmp(table->list[t].name, name) == 0)
            return &table->list[t];
    }
    return NULL;
}

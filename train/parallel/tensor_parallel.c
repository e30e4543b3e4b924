/* SPDX-License-Identifier: Apache-2.0
 * Copies tensors of the whole network, which are found by name, to a rank's parts of them, and
 * gathers the parts. */
#include "tensor_parallel.h"

#include <stdlib.h>
#include <string.h>

#include "agree.h"
#include "errors.h"
#include "tensor_split.h"

/* ---- Splitting ----------------------------------------------------------------------------- */

static void list_orders(tensor_parallel *tensor, const tensor_cut *cuts)
{
    const train_model *whole = &tensor->whole;
    for (int n = 0; n < whole->node_count; n++) {
        const model_node *node = &whole->nodes[n];
        for (int t = 0; t < node->use.tensor_count; t++) {
            const int number = node->tensors[t];
            tensor->orders[number] = tensor_split_order(cuts[n], &node->use, t,
                                                        whole->tensors.list[number].count,
                                                        tensor->ranks);
        }
    }
}

static ring_status split(tensor_parallel *tensor, const model_spec *spec, tensor_cut *cuts)
{
    const tensor_table *tensors = &tensor->whole.tensors;
    RING_TRY(tensor_split_find(cuts, spec, &tensor->whole, tensor->ranks));
    RING_TRY(train_alloc((void **)&tensor->orders, (size_t)tensors->count * sizeof *tensor->orders,
                         "tensors"));
    list_orders(tensor, cuts);
    return tensor_split_spec(&tensor->own, spec, &tensor->whole, cuts, tensor->ranks, tensor->rank);
}

ring_status tensor_parallel_create(tensor_parallel *tensor, const model_spec *spec)
{
    tensor_cut *cuts;
    RING_TRY(model_plan(&tensor->whole, spec));
    RING_TRY(train_alloc((void **)&cuts, (size_t)spec->count * sizeof *cuts, "the layers"));
    const ring_status status = split(tensor, spec, cuts);
    free(cuts);
    return status;
}

void tensor_parallel_destroy(tensor_parallel *tensor)
{
    model_destroy(&tensor->whole);
    model_spec_free(&tensor->own);
    free(tensor->orders);
    *tensor = (tensor_parallel){0};
}

int tensor_parallel_layers(const tensor_parallel *tensor)
{
    int layers = 0;
    for (int n = 0; n < tensor->own.count; n++)
        layers += tensor->own.nodes[n].op == &op_copied || tensor->own.nodes[n].op == &op_summed;
    return layers;
}

/* ---- Parameters ---------------------------------------------------------------------------- */

int tensor_parallel_number(const tensor_parallel *tensor, const char *name)
{
    return (int)(tensors_find(&tensor->whole.tensors, name) - tensor->whole.tensors.list);
}

/* Copies this rank's part of each tensor in the table. A tied tensor has its original's offset. */
static void take_parts(const tensor_parallel *tensor, const tensor_table *table, const float *all,
                       float *params)
{
    for (int t = 0; t < table->count; t++) {
        const train_tensor *to = &table->list[t];
        const int number = tensor_parallel_number(tensor, to->name);
        const tensor_order *order = &tensor->orders[number];
        size_t count;
        const size_t place = tensor_order_part(order, tensor->rank, &count);
        tensor_order_take(order, place, count, params + to->offset,
                          all + tensor->whole.tensors.list[number].offset);
    }
}

/* Draws the parameters of the whole network into @p all. The caller frees whole->params and grads.
 */
static ring_status draw(tensor_parallel *tensor, uint64_t seed, float *all)
{
    train_model *whole = &tensor->whole;
    const size_t pointers = (size_t)whole->tensors.count * sizeof(float *);
    RING_TRY(train_alloc((void **)&whole->params, pointers, "tensors"));
    RING_TRY(train_alloc((void **)&whole->grads, pointers, "tensors"));
    model_bind(whole, all, all);
    model_init(whole, seed);
    return RING_OK;
}

ring_status tensor_parallel_init(tensor_parallel *tensor, const tensor_table *table, uint64_t seed,
                                 float *params)
{
    float *all;
    RING_TRY(train_alloc((void **)&all, tensor->whole.tensors.elements * sizeof *all,
                         "initial parameters"));
    const ring_status status = draw(tensor, seed, all);
    if (status == RING_OK)
        take_parts(tensor, table, all, params);
    free(tensor->whole.params);
    free(tensor->whole.grads);
    tensor->whole.params = tensor->whole.grads = NULL;
    free(all);
    return status;
}

void tensor_parallel_mark(const tensor_parallel *tensor, const tensor_table *table)
{
    for (int t = 0; t < table->count && tensor->rank > 0; t++) {
        train_tensor *at = &table->list[t];
        const int number = tensor_parallel_number(tensor, at->name);
        at->counted_elsewhere |= tensor->orders[number].parts == 1;
    }
}

/* ---- Gathering ----------------------------------------------------------------------------- */

/* Gathers one tensor. @param parts  [ranks, elements of a part] scratch memory */
static ring_status gather_tensor(const tensor_parallel *tensor, int number, const float *own,
                                 float *parts, float *params)
{
    const tensor_order *order = &tensor->orders[number];
    size_t count;
    tensor_order_part(order, tensor->rank, &count);
    if (count < order->count) {
        RING_TRY(train_ring(tensor->comm,
                            ring_all_gather(own, parts, count, RING_FLOAT32, tensor->comm, NULL)));
        own = parts;
    }
    tensor_order_restore(order, own, params);
    return RING_OK;
}

static ring_status gather_all(const tensor_parallel *tensor, const tensor_table *table,
                              const float *own, float *parts, float *params)
{
    const tensor_table *whole = &tensor->whole.tensors;
    for (int t = 0; t < whole->count; t++) {
        const train_tensor *to = &whole->list[t], *from = tensors_find(table, to->name);
        if (to->tie < 0)
            RING_TRY(gather_tensor(tensor, t, own + from->offset, parts, params + to->offset));
    }
    return RING_OK;
}

ring_status tensor_parallel_gather(const tensor_parallel *tensor, const tensor_table *table,
                                   const float *own, float *params)
{
    const tensor_table *whole = &tensor->whole.tensors;
    size_t largest = 0;
    float *parts;
    for (int t = 0; t < whole->count; t++)
        largest = whole->list[t].count > largest ? whole->list[t].count : largest;
    ring_status status = agree(tensor->comm, train_alloc((void **)&parts, largest * sizeof *parts,
                                                         "all parameters"));
    if (status == RING_OK)
        status = gather_all(tensor, table, own, parts, params);
    free(parts);
    return status;
}

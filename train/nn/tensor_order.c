/* SPDX-License-Identifier: Apache-2.0
 * Converts between the place of an element in the order of parts and its index in the tensor, for
 * runs of elements that are consecutive in both. */
#include "tensor_order.h"

#include <string.h>

tensor_order tensor_order_whole(size_t count)
{
    return (tensor_order){.count = count, .parts = 1, .blocks = 1};
}

/* @return number of elements that a part has of each block. */
static size_t share_of(const tensor_order *order)
{
    return order->count / order->blocks / order->parts;
}

/* Both orders consist of parts * blocks shares: the tensor is block by block, and the places are
 * part by part. */
size_t tensor_order_element(const tensor_order *order, size_t place, size_t *run)
{
    const size_t share = share_of(order), shares = place / share;
    const size_t part = shares / order->blocks, block = shares % order->blocks;
    *run = share - place % share;
    return (block * order->parts + part) * share + place % share;
}

size_t tensor_order_place(const tensor_order *order, size_t element, size_t *run)
{
    const size_t share = share_of(order), shares = element / share;
    const size_t block = shares / order->parts, part = shares % order->parts;
    *run = share - element % share;
    return (part * order->blocks + block) * share + element % share;
}

size_t tensor_order_part(const tensor_order *order, int rank, size_t *count)
{
    *count = order->count / order->parts;
    return (size_t)rank % order->parts * *count;
}

void tensor_order_take(const tensor_order *order, size_t place, size_t count, float *own,
                       const float *whole)
{
    size_t run;
    for (size_t done = 0; done < count; done += run) {
        const float *from = whole + tensor_order_element(order, place + done, &run);
        run = run < count - done ? run : count - done;
        memcpy(own + done, from, run * sizeof *own);
    }
}

void tensor_order_restore(const tensor_order *order, const float *ordered, float *whole)
{
    size_t run;
    for (size_t done = 0; done < order->count; done += run) {
        float *to = whole + tensor_order_element(order, done, &run);
        memcpy(to, ordered + done, run * sizeof *to);
    }
}

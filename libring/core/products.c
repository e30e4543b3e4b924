/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes the products for RING_PREMUL_SUM. A rank multiplies its src by its factor before the
 * first op, and then runs the program of a sum with the products as src:
 *
 *     products (src elements) = src (src elements) * scale
 *
 * If this rank has a dst as long as src, the products are written there and the call continues in
 * place. Otherwise they are written to memory that the communicator keeps for later calls. If
 * possible, this memory is shared with the other ranks of the host, which then read it in place.
 */
#include "products.h"

#include "kernels.h"
#include "scratch.h"

/* ---- Memory -------------------------------------------------------------------------------- */

ring_status products_place(ring_comm *comm, const program *p, call_buffers *b)
{
    const bool replaces_dst = p->facts->in_place == PLAN_SAME && p->dst_here;
    if (b->src_bytes == 0)
        return RING_OK;
    b->products.missing = true;
    b->products.of = b->src;
    if (!replaces_dst)
        RING_TRY(scratch_take_products(comm, b->src_bytes, &b->products.memory));
    b->src = replaces_dst ? b->dst : b->products.memory;
    return RING_OK;
}

/* ---- Multiplying --------------------------------------------------------------------------- */

/* Finds the elements of the current block of src; without a shape all of src is one block. Gaps
 * between blocks are not touched, because they may not be mapped. @return false after the last
 * block. */
static bool find_block(const work *w, size_t *first, size_t *count)
{
    const program *p = w->program;
    const size_t *counts = p->shape.counts[PLAN_SRC], *displs = p->shape.displs[PLAN_SRC];
    const bool has_shape = p->facts->uneven && counts != NULL;
    const int32_t i = w->buffers.products.block;
    if (i >= (has_shape ? w->comm->ranks : 1))
        return false;
    *first = has_shape ? displs[i] : 0;
    *count = has_shape ? counts[i] : w->buffers.src_bytes / ring_dtype_size(w->call.dtype);
    return true;
}

/* Multiplies as much of a block as the turn allows. */
static void multiply(work *w, size_t first, size_t count)
{
    work_products *products = &w->buffers.products;
    const size_t size = ring_dtype_size(w->call.dtype);
    const size_t left = w->comm->turn.most - w->comm->turn.bytes;
    const size_t elements = min_size(count - products->done, max_size(left / size, 1));
    const size_t at = (first + products->done) * size;
    const uintptr_t of = products->list != NULL ? products->list[products->block]
                                                : (uintptr_t)products->of;
    kernel_scale((char *)(uintptr_t)w->buffers.src + at, (const char *)(of + at), elements,
                 w->call.dtype, products->scale);
    products->done += elements;
    comm_count_moved(w->comm, elements * size);
}

ring_status products_make(work *w, bool *moved)
{
    size_t first, count;
    if (w != w->lead)
        return RING_IN_PROGRESS;
    while (find_block(w, &first, &count)) {
        if (comm_turn_is_over(w->comm))
            return RING_IN_PROGRESS;
        *moved = true;
        multiply(w, first, count);
        if (w->buffers.products.done < count)
            continue;
        w->buffers.products.done = 0;
        w->buffers.products.block++;
    }
    w->buffers.products.missing = false;
    return RING_OK;
}

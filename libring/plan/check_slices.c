/* SPDX-License-Identifier: Apache-2.0
 *
 * A part of the checker: circular plans are run slice after slice, on links that still hold
 * messages of the slice before, under one count of messages and references. A slice of a chunk
 * is a chunk, so such a run is a longer plan: the same steps once a slice, each time about
 * other chunks. What is proven of plans can be proven of it.
 */
#include "check.h"

/* Blocks stay together: all slices of one, then those of the next. */
static int chunk_of_slice(const plan *p, int chunk, int slice, int slices)
{
    const int parts = p->chunks / plan_blocks(p->collective, p->ranks);
    return (chunk / parts * slices + slice) * parts + chunk % parts;
}

static void append_slice(plan *longer, const plan *p, int slice, int slices)
{
    for (plan_cursor at = plan_begin(p); plan_at(&at) != NULL; plan_next(&at)) {
        const plan_step *step = plan_at(&at);
        plan_step_like(longer, step);
        for (int i = 0; i < step->ins; i++) {
            const plan_loc in = plan_input(&at, step, i);
            plan_in(longer, in.rank, in.buffer, chunk_of_slice(p, in.chunk, slice, slices));
        }
        for (int i = 0; i < step->outs; i++) {
            const plan_loc out = plan_output(&at, step, i);
            plan_out(longer, out.rank, out.buffer, chunk_of_slice(p, out.chunk, slice, slices));
        }
    }
}

plan *check_slices(const plan *p, int slices)
{
    plan *longer = plan_new(p->collective, p->algorithm, p->rank, p->ranks, p->root,
                            slices * p->chunks);
    if (longer == NULL)
        return NULL;
    longer->circular = p->circular;
    for (int slice = 0; slice < slices; slice++)
        append_slice(longer, p, slice, slices);
    if (plan_seal(longer) == RING_OK)
        return longer;
    plan_free(longer);
    return NULL;
}

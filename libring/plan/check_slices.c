/* SPDX-License-Identifier: Apache-2.0
 *
 * A part of the checker: circular plans and those with scratch are run slice after slice, on
 * links that still hold messages of the slice before, under one count of messages and
 * references, with one scratch. A slice of a chunk is a chunk, so such a run is a longer plan:
 * the same steps once a slice, each time about other chunks; only in SCRATCH all slices' chunks
 * are one place. What is proven of plans can be proven of it.
 */
#include "checker.h"

/* Blocks stay together: all slices of one, then those of the next. */
static int chunk_of_slice(const plan *p, int chunk, int slice, int slices)
{
    const int parts = p->chunks / plan_blocks(p->collective, p->ranks);
    return (chunk / parts * slices + slice) * parts + chunk % parts;
}

static plan_loc loc_of_slice(const plan *p, plan_loc loc, int slice, int slices)
{
    loc.chunk = chunk_of_slice(p, loc.chunk, slice, slices);
    return loc;
}

static void append_slice(plan *longer, const plan *p, int slice, int slices)
{
    for (plan_cursor at = plan_begin(p); plan_at(&at) != NULL; plan_next(&at)) {
        const plan_step *step = plan_at(&at);
        plan_add_step(longer, step);
        for (int i = 0; i < step->ins; i++) {
            const plan_loc in = loc_of_slice(p, plan_input(&at, step, i), slice, slices);
            plan_add_input(longer, &in);
        }
        for (int i = 0; i < step->outs; i++) {
            const plan_loc out = loc_of_slice(p, plan_output(&at, step, i), slice, slices);
            plan_add_output(longer, &out);
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

/* SPDX-License-Identifier: Apache-2.0
 * The combining order of a chunk, read from the term that a run leaves there. */
#include "check.h"

static int first_with(const plan *const *plans, int ranks, int chunk)
{
    for (int rank = 0; rank < ranks; rank++)
        if (run_has(plans[rank], PLAN_DST, chunk))
            return rank;
    return -1;
}

static ring_status read_order(run *r, int chunk, int32_t *order)
{
    RING_TRY(run_to_end(r));
    const int rank = first_with(r->plans, r->ranks, chunk);
    const int32_t held = rank >= 0 ? run_held(r, rank, PLAN_DST, chunk) : TERM_NONE;
    if (held == TERM_NONE || term_order(&r->terms, held, order) != r->ranks)
        return run_wrong(r, "chunk %d is not folded from all ranks, left to right", chunk);
    return RING_OK;
}

ring_status plan_order(const plan *const *plans, int ranks, int chunk, int32_t *order)
{
    RING_TRY(check_shape(plans, ranks));
    if (chunk < 0 || chunk >= plans[0]->chunks)
        return fail(RING_ERR_INTERNAL, "there is no chunk %d of %d", chunk, plans[0]->chunks);
    run r;
    int32_t found[64];
    ring_status status = run_open(&r, plans, ranks, false);
    if (status == RING_OK)
        status = read_order(&r, chunk, found);
    run_close(&r);
    for (int i = 0; i < ranks && status == RING_OK; i++)
        order[i] = found[i];
    return status;
}

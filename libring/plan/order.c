/* SPDX-License-Identifier: Apache-2.0
 * Reads the order in which a chunk is combined from its symbol at the end of a simulation. */
#include "checker.h"

#include <string.h>

static int32_t result_of(const simulation *s, int chunk)
{
    for (int rank = 0; rank < s->ranks; rank++)
        if (sim_has(s->plans[rank], PLAN_DST, chunk))
            return sim_held(s, rank, PLAN_DST, chunk);
    return SYMBOL_NONE;
}

static ring_status read_order(simulation *s, int chunk, int32_t *order)
{
    int32_t found[2 * 64 - 1];
    RING_TRY(sim_to_end(s));
    const int32_t id = result_of(s, chunk);
    const int count = id != SYMBOL_NONE ? symbol_postfix(&s->symbols, id, found) : 0;
    if (count != 2 * s->ranks - 1)
        return sim_wrong(s, "chunk %d is not folded from all ranks", chunk);
    memcpy(order, found, (size_t)count * sizeof *order);
    return RING_OK;
}

ring_status plan_order(const plan *const *plans, int ranks, int chunk, int32_t *order)
{
    RING_TRY(check_shape(plans, ranks));
    if (chunk < 0 || chunk >= plans[0]->chunks)
        return fail(RING_ERR_INTERNAL, "there is no chunk %d of %d", chunk, plans[0]->chunks);
    simulation s;
    ring_status status = sim_open(&s, plans, ranks, (sim_mode){0});
    if (status == RING_OK)
        status = read_order(&s, chunk, order);
    sim_close(&s);
    return status;
}

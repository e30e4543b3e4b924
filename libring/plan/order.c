/* SPDX-License-Identifier: Apache-2.0
 * Reads the order in which a chunk is combined from its symbol at the end of a simulation. */
#include "checker.h"

#include <string.h>

static ring_status read_order(simulation *s, int chunk, int32_t *order)
{
    int32_t found[2 * 64 - 1];
    int rank = 0;
    RING_TRY(sim_to_end(s));
    while (rank < s->ranks && !sim_has(s->plans[rank], PLAN_DST, chunk))
        rank++;
    const int32_t id = rank < s->ranks ? sim_held(s, rank, PLAN_DST, chunk) : SYMBOL_NONE;
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
        return fail(RING_ERR_INTERNAL, "chunk %d is not among the plan's %d chunk%s", chunk,
                    plans[0]->chunks, plural(plans[0]->chunks));
    simulation s;
    ring_status status = sim_open(&s, plans, ranks, (sim_mode){0});
    if (status == RING_OK)
        status = read_order(&s, chunk, order);
    sim_close(&s);
    return status;
}

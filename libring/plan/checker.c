/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs the parts of the checker, and checks results. The checker proves, for plans of up to 64
 * ranks:
 *  - shape: each plan is well-formed (check_shape.c);
 *  - progress: no step waits for ever, every message is taken, and both ends of a message agree on
 *    chunk, place and type (simulator.c), even on links with little room (check_links.c);
 *  - result: every output chunk is the collective's result: it contains each rank once, is finished
 *    once, and is the same symbol on all ranks; a prefix contains its ranks in order (this file);
 *  - memory: no chunk is read or overwritten too early or too late (check_race.c).
 * All this is proven for buffers in place and out of place, for messages by value, by reference and
 * by store, and for plans that are run once and several times in a row, as the engine runs slices
 * (check_slices.c).
 */
#include "checker.h"

static ring_status wrong_result(const simulation *s, int rank, int chunk, const char *text)
{
    return sim_wrong(s, "rank %d ends with dst chunk %d %s", rank, chunk, text);
}

static ring_status check_sum(const simulation *s, int rank, int chunk, const symbol *v)
{
    const plan_collective collective = s->plans[0]->collective;
    const int count = plan_combined_ranks(collective, rank, s->ranks); /* at least 1 */
    const uint64_t wanted = UINT64_MAX >> (64 - count);                /* ranks [0, count) */
    if (v->chunk != chunk)
        return wrong_result(s, rank, chunk, "holding another chunk");
    if (v->kind != SYMBOL_FINISHED)
        return wrong_result(s, rank, chunk, "unfinished");
    if ((v->ranks & wanted) != wanted)
        return sim_wrong(s, "rank %d ends with dst chunk %d without rank %d's contribution", rank,
                         chunk, __builtin_ctzll(~v->ranks));
    if (v->ranks != wanted)
        return sim_wrong(s, "rank %d ends with dst chunk %d with rank %d's contribution", rank,
                         chunk, __builtin_ctzll(v->ranks & ~wanted));
    return RING_OK;
}

/* @return true if the symbol combines ranks 0, 1, ... from left to right. */
static bool is_in_rank_order(const simulation *s, int32_t id)
{
    const symbol *nodes = s->symbols.nodes;
    for (id = nodes[id].left; nodes[id].kind == SYMBOL_SUM; id = nodes[id].left)
        if (nodes[nodes[id].right].kind != SYMBOL_LEAF ||
            nodes[nodes[id].right].ranks <= nodes[nodes[id].left].ranks)
            return false;
    return true;
}

static ring_status check_chunk(simulation *s, int chunk)
{
    const plan *p = s->plans[0];
    const plan_facts *facts = plan_facts_of(p->collective);
    const bool reduces = facts->reduces, is_prefix = facts->result == PLAN_PREFIX;
    /* Several combining orders are correct, so all ranks must have the first rank's sum. */
    int32_t expected = SYMBOL_NONE;
    if (!reduces) {
        const int owner = facts->result == PLAN_ROOTS ? p->root : chunk / (p->chunks / p->ranks);
        expected = symbol_leaf(&s->symbols, owner, chunk);
    }
    for (int rank = 0; rank < s->ranks; rank++) {
        if (!sim_has(s->plans[rank], PLAN_DST, chunk))
            continue;
        const int32_t held = sim_held(s, rank, PLAN_DST, chunk);
        if (held == SYMBOL_NONE)
            return wrong_result(s, rank, chunk, "empty");
        if (reduces)
            RING_TRY(check_sum(s, rank, chunk, &s->symbols.nodes[held]));
        if (is_prefix && !is_in_rank_order(s, held))
            return wrong_result(s, rank, chunk, "not combined in the order of ranks");
        if (expected == SYMBOL_NONE || is_prefix)
            expected = held;
        if (held != expected)
            return wrong_result(s, rank, chunk,
                                reduces ? "combined in another order than on other ranks"
                                        : "holding the data of another rank or chunk");
    }
    return RING_OK;
}

static ring_status check_results(simulation *s)
{
    if (plan_facts_of(s->plans[0]->collective)->result == PLAN_NOTHING)
        return RING_OK;
    for (int chunk = 0; chunk < s->plans[0]->chunks; chunk++)
        RING_TRY(check_chunk(s, chunk));
    return RING_OK;
}

static ring_status check_run(const plan *const *plans, int ranks, sim_mode mode)
{
    simulation s;
    ring_status status = sim_open(&s, plans, ranks, mode);
    if (status == RING_OK)
        status = sim_to_end(&s);
    if (status == RING_OK)
        status = check_results(&s);
    if (status == RING_OK)
        status = check_race(&s);
    sim_close(&s);
    return status;
}

static ring_status check_all(const plan *const *plans, int ranks, int slices)
{
    RING_TRY(check_run(plans, ranks, (sim_mode){.slices = slices}));
    RING_TRY(check_run(plans, ranks, (sim_mode){.slices = slices, .in_place = true}));
    return check_links(plans, ranks, slices);
}

static ring_status check_in_a_row(const plan *const *plans, int ranks)
{
    plan *longer[64] = {0};
    bool built = true;
    for (int rank = 0; rank < ranks; rank++)
        built &= (longer[rank] = check_slices(plans[rank], CHECK_SLICES)) != NULL;
    const ring_status status = built ? check_all((const plan *const *)longer, ranks, CHECK_SLICES)
                                     : RING_ERR_MEMORY;
    for (int rank = 0; rank < ranks; rank++)
        plan_free(longer[rank]);
    return status;
}

ring_status plan_check(const plan *const *plans, int ranks)
{
    RING_TRY(check_shape(plans, ranks));
    RING_TRY(check_all(plans, ranks, 1));
    return check_in_a_row(plans, ranks);
}

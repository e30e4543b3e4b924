/* SPDX-License-Identifier: Apache-2.0
 *
 * The checker. It proves, for plans of up to 64 ranks:
 *  - shape: each plan is well-formed (check_shape.c);
 *  - progress: no step waits for ever, every message is taken, and both ends of a message
 *    agree on chunk, place and type (run.c); links may be soon full (check_links.c);
 *  - result: every output chunk holds what the collective says, each rank once, finished
 *    once, and the very same term on all ranks (here);
 *  - memory: no chunk is read or overwritten too early or too late (check_race.c).
 * Each for buffers in place and not, and for messages by value, by reference and by store; for
 * circular plans also run in a row, as the executor runs their slices (check_slices.c).
 */
#include "check.h"

static ring_status wrong_result(const run *r, int rank, int chunk, const char *text)
{
    return run_wrong(r, "rank %d ends with dst chunk %d %s", rank, chunk, text);
}

/* The term that is to be there, or TERM_NONE if there are several right ones. */
static int32_t exact_result(run *r, int chunk)
{
    const plan *p = r->plans[0];
    if (p->collective == PLAN_BROADCAST)
        return term_leaf(&r->terms, p->root, chunk);
    if (p->collective == PLAN_ALL_GATHER)
        return term_leaf(&r->terms, chunk / (p->chunks / p->ranks), chunk);
    return TERM_NONE;
}

static ring_status check_sum(const run *r, int rank, int chunk, const term *v)
{
    const uint64_t everybody = UINT64_MAX >> (64 - r->ranks);
    if (v->chunk != chunk)
        return wrong_result(r, rank, chunk, "holding another chunk");
    if (v->kind != TERM_FINISHED)
        return wrong_result(r, rank, chunk, "unfinished");
    if (v->ranks != everybody)
        return run_wrong(r, "rank %d ends with dst chunk %d without rank %d's contribution", rank,
                         chunk, __builtin_ctzll(~v->ranks));
    return RING_OK;
}

static ring_status check_chunk(run *r, int chunk)
{
    const bool reduces = plan_reduces(r->plans[0]->collective);
    int32_t expected = exact_result(r, chunk);
    for (int rank = 0; rank < r->ranks; rank++) {
        if (!run_has(r->plans[rank], PLAN_DST, chunk))
            continue;
        const int32_t held = run_held(r, rank, PLAN_DST, chunk);
        if (held == TERM_NONE)
            return wrong_result(r, rank, chunk, "empty");
        if (reduces)
            RING_TRY(check_sum(r, rank, chunk, &r->terms.nodes[held]));
        if (expected == TERM_NONE)
            expected = held;
        if (held != expected)
            return wrong_result(r, rank, chunk, reduces ? "combined in another order than elsewhere"
                                                        : "holding what belongs elsewhere");
    }
    return RING_OK;
}

static ring_status check_results(run *r)
{
    if (r->plans[0]->collective == PLAN_BARRIER)
        return RING_OK;
    for (int chunk = 0; chunk < r->plans[0]->chunks; chunk++)
        RING_TRY(check_chunk(r, chunk));
    return RING_OK;
}

static ring_status check_placed(const plan *const *plans, int ranks, bool in_place)
{
    run r;
    ring_status status = run_open(&r, plans, ranks, in_place);
    if (status == RING_OK)
        status = run_to_end(&r);
    if (status == RING_OK)
        status = check_results(&r);
    if (status == RING_OK)
        status = check_race(&r);
    run_close(&r);
    return status;
}

static ring_status check_all(const plan *const *plans, int ranks)
{
    RING_TRY(check_placed(plans, ranks, false));
    RING_TRY(check_placed(plans, ranks, true));
    return check_links(plans, ranks);
}

static ring_status check_in_a_row(const plan *const *plans, int ranks)
{
    plan *longer[64] = {0};
    bool built = true;
    for (int rank = 0; rank < ranks; rank++)
        built &= (longer[rank] = check_slices(plans[rank], CHECK_SLICES)) != NULL;
    const ring_status status =
        built ? check_all((const plan *const *)longer, ranks) : RING_ERR_MEMORY;
    for (int rank = 0; rank < ranks; rank++)
        plan_free(longer[rank]);
    return status;
}

ring_status plan_check(const plan *const *plans, int ranks)
{
    RING_TRY(check_shape(plans, ranks));
    RING_TRY(check_all(plans, ranks));
    return plans[0]->circular ? check_in_a_row(plans, ranks) : RING_OK;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * First part of the checker: each plan by itself is what plan.h says plans are. What passes
 * has no number out of its range, so the other parts need not look.
 */
#include "check.h"

#include "steps.h"

typedef struct shape {
    const plan *plan;
    plan_cursor at;
    int64_t index;
    uint64_t peers_in, peers_out; /* of the present step */
} shape;

static ring_status offence(const shape *s, const char *text)
{
    char step[STEP_TEXT];
    step_text(&s->at, step, sizeof step);
    return fail(RING_ERR_INTERNAL, "%s by %s, %d ranks: rank %d, step %lld (%s): %s",
                plan_collective_name(s->plan->collective), s->plan->algorithm, s->plan->ranks,
                s->plan->rank, (long long)s->index, step, text);
}

/* ---- Numbers in range ---------------------------------------------------------- */

static bool range_fits(int32_t first, int32_t count, int32_t whole)
{
    return first >= 0 && count >= 0 && first <= whole && count <= whole - first;
}

static bool locs_fit(const plan *p)
{
    for (int32_t i = 0; i < p->loc_count; i++) {
        const plan_loc *loc = &p->locs[i];
        if (loc->rank < 0 || loc->rank >= p->ranks || loc->chunk < 0 || loc->chunk >= p->chunks ||
            (unsigned)loc->buffer > PLAN_WIRE)
            return false;
    }
    return true;
}

static bool steps_fit(const plan *p)
{
    for (int32_t i = 0; i < p->step_count; i++) {
        const plan_step *step = &p->steps[i];
        if (!range_fits(step->first_in, step->ins, p->loc_count) ||
            !range_fits(step->first_out, step->outs, p->loc_count))
            return false;
    }
    for (int32_t i = 0; i < p->block_count; i++) {
        const plan_block *block = &p->blocks[i];
        if (!range_fits(block->first, block->steps, p->step_count) || block->steps < 1 ||
            block->times < 1)
            return false;
    }
    return true;
}

/* Rank by rank: the same call, in its own words. */
static ring_status check_head(const plan *const *plans, int ranks, int rank)
{
    const plan *p = plans[rank], *first = plans[0];
    if (p->rank != rank || p->ranks != ranks || p->collective != first->collective ||
        p->root != first->root || p->chunks != first->chunks || p->circular != first->circular)
        return fail(RING_ERR_INTERNAL, "plan %d is of another call (%s, rank %d of %d, root %d, %d "
                    "chunks) than plan 0", rank, plan_collective_name(p->collective), p->rank,
                    p->ranks, p->root, p->chunks);
    if (!locs_fit(p) || !steps_fit(p))
        return fail(RING_ERR_INTERNAL, "%s by %s: the plan of rank %d names what does not exist",
                    plan_collective_name(p->collective), p->algorithm, rank);
    return RING_OK;
}

static ring_status check_call(const plan *p, int ranks)
{
    if ((unsigned)p->collective >= PLAN_SEND)
        return fail(RING_ERR_INTERNAL, "%s is no collective: nothing to check",
                    plan_collective_name(p->collective));
    if (p->chunks < 1 || p->chunks > INT32_MAX / (4 * CHECK_SLICES * ranks) ||
        p->chunks % plan_blocks(p->collective, ranks) != 0)
        return fail(RING_ERR_INTERNAL, "%s by %s, %d ranks: %d chunks are not possible",
                    plan_collective_name(p->collective), p->algorithm, ranks, p->chunks);
    if (p->root < 0 || p->root >= ranks)
        return fail(RING_ERR_INTERNAL, "%s by %s, %d ranks: there is no root %d",
                    plan_collective_name(p->collective), p->algorithm, ranks, p->root);
    return RING_OK;
}

/* ---- One step ------------------------------------------------------------------ */

static bool is_local(const shape *s, plan_loc loc)
{
    return loc.rank == s->plan->rank;
}

static bool first_of_peer(uint64_t *peers, int peer)
{
    const uint64_t bit = UINT64_C(1) << peer;
    const bool first = (*peers & bit) == 0;
    *peers |= bit;
    return first;
}

static ring_status check_input(shape *s, const plan_step *step, plan_loc loc)
{
    if (is_local(s, loc))
        return loc.buffer != PLAN_WIRE ? RING_OK : offence(s, "reads its own wire");
    if (!first_of_peer(&s->peers_in, loc.rank))
        return offence(s, "takes two messages of one rank");
    if (step->kind == PLAN_STEP_RECV)
        return loc.buffer == PLAN_DST ? RING_OK : offence(s, "a RECV takes messages for dst");
    return loc.buffer == PLAN_WIRE ? RING_OK : offence(s, "a fold takes messages for the wire");
}

static ring_status check_output(shape *s, plan_loc loc)
{
    if (is_local(s, loc) && loc.buffer != PLAN_DST)
        return offence(s, "writes to something else than dst");
    if (loc.buffer == PLAN_SRC)
        return offence(s, "sends into a src buffer");
    return first_of_peer(&s->peers_out, loc.rank) ? RING_OK
                                                  : offence(s, "has two results for one rank");
}

static ring_status check_operands(shape *s, const plan_step *step)
{
    const int chunk = plan_output(&s->at, step, 0).chunk;
    s->peers_in = s->peers_out = 0;
    for (int i = 0; i < step->ins; i++) {
        const plan_loc loc = plan_input(&s->at, step, i);
        if (loc.chunk != chunk)
            return offence(s, "mixes chunks");
        RING_TRY(check_input(s, step, loc));
    }
    for (int i = 0; i < step->outs; i++) {
        const plan_loc loc = plan_output(&s->at, step, i);
        if (loc.chunk != chunk)
            return offence(s, "mixes chunks");
        RING_TRY(check_output(s, loc));
    }
    return RING_OK;
}

/* Finished exactly when it goes into buffers; on its way, in the accumulator's type. */
static ring_status check_fold(const shape *s, const plan_step *step)
{
    if (!plan_reduces(s->plan->collective) && s->plan->collective != PLAN_BARRIER)
        return offence(s, "this collective combines nothing");
    for (int i = 0; i < step->outs; i++) {
        const plan_loc loc = plan_output(&s->at, step, i);
        if (step->finish && loc.buffer != PLAN_DST)
            return offence(s, "a finished chunk goes to dst buffers");
        if (!step->finish && loc.buffer != PLAN_WIRE)
            return offence(s, "puts a chunk into a buffer that is not finished");
        if (!step->finish && step->wire_out != PLAN_WIRE_ACC)
            return offence(s, "rounds a chunk that is not finished");
    }
    return RING_OK;
}

static ring_status check_step(shape *s, const plan_step *step)
{
    const bool one_in = step->ins == 1, one_out = step->outs == 1;
    const bool in_local = step->ins > 0 && is_local(s, plan_input(&s->at, step, 0));
    const bool out_local = step->outs > 0 && is_local(s, plan_output(&s->at, step, 0));
    bool right = false;
    switch (step->kind) {
    case PLAN_STEP_SEND:
        right = one_in && one_out && in_local && !out_local && step->wire_out == PLAN_WIRE_DATA;
        break;
    case PLAN_STEP_RECV:
        right = one_in && one_out && !in_local && out_local;
        break;
    case PLAN_STEP_COPY:
        right = one_in && one_out && in_local && out_local;
        break;
    case PLAN_STEP_FOLD:
        right = step->ins >= 1 && step->outs >= 1;
        break;
    case PLAN_STEP_ACK:
        return step->ins == 0 && one_out && !out_local ? RING_OK : offence(s, "malformed");
    case PLAN_STEP_WAIT_ACK:
        return step->outs == 0 && one_in && !in_local ? RING_OK : offence(s, "malformed");
    }
    if (!right)
        return offence(s, "malformed");
    RING_TRY(check_operands(s, step));
    return step->kind == PLAN_STEP_FOLD ? check_fold(s, step) : RING_OK;
}

/* What a step is does not depend on the round, but for its chunks, which move together. */
static ring_status check_plan(const plan *p)
{
    shape s = {.plan = p, .at = plan_begin(p)};
    const plan_step *step;
    while ((step = plan_at(&s.at)) != NULL) {
        RING_TRY(check_step(&s, step));
        s.index++;
        if (++s.at.step == p->blocks[s.at.block].steps) {
            s.at.step = 0;
            s.at.block++;
        }
    }
    return RING_OK;
}

ring_status check_shape(const plan *const *plans, int ranks)
{
    if (ranks < 1 || ranks > 64)
        return fail(RING_ERR_INTERNAL, "the checker takes 1 to 64 ranks, not %d", ranks);
    for (int rank = 0; rank < ranks; rank++)
        if (plans[rank] == NULL)
            return fail(RING_ERR_INTERNAL, "rank %d has no plan", rank);
    RING_TRY(check_call(plans[0], ranks));
    for (int rank = 0; rank < ranks; rank++)
        RING_TRY(check_head(plans, ranks, rank));
    for (int rank = 0; rank < ranks; rank++)
        RING_TRY(check_plan(plans[rank]));
    return RING_OK;
}

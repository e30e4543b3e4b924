/* SPDX-License-Identifier: Apache-2.0
 *
 * This first part of the checker checks each plan by itself: it must follow the rules of plan.h. In
 * a plan that passes, all numbers are in range, so the other parts need not check them.
 */
#include "checker.h"

#include "step_text.h"

typedef struct shape {
    const plan *plan;
    plan_cursor at;
    int64_t index;
} shape;

static ring_status offence(const shape *s, const char *text)
{
    char step[STEP_TEXT];
    step_text(&s->at, step, sizeof step);
    return fail(RING_ERR_INTERNAL, "%s by %s, %d rank%s: rank %d, step %lld (%s): %s",
                plan_collective_name(s->plan->collective), s->plan->algorithm, s->plan->ranks,
                plural(s->plan->ranks), s->plan->rank, (long long)s->index, step, text);
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
        if (loc->rank < 0 || loc->rank >= p->ranks || loc->buffer > PLAN_SCRATCH ||
            loc->wire > PLAN_WIRE_ACC || loc->chunks < 1 ||
            !range_fits(loc->chunk, loc->chunks, p->chunks))
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

/* All plans must be of the same call. */
static ring_status check_head(const plan *const *plans, int ranks, int rank)
{
    const plan *p = plans[rank], *first = plans[0];
    if (p->rank != rank || p->ranks != ranks || p->collective != first->collective ||
        p->root != first->root || p->chunks != first->chunks || p->circular != first->circular)
        return fail(
            RING_ERR_INTERNAL,
            "plan %d (%s, rank %d of %d, root %d, %d chunk%s) is not of the same call as plan 0",
            rank, plan_collective_name(p->collective), p->rank, p->ranks, p->root, p->chunks,
            plural(p->chunks));
    if (!locs_fit(p) || !steps_fit(p))
        return fail(RING_ERR_INTERNAL,
                    "%s by %s: the plan of rank %d has an index that is out of range",
                    plan_collective_name(p->collective), p->algorithm, rank);
    return RING_OK;
}

static ring_status check_call(const plan *p, int ranks)
{
    if ((unsigned)p->collective >= PLAN_SEND)
        return fail(RING_ERR_INTERNAL, "%s is not a collective, so its plans cannot be checked",
                    plan_collective_name(p->collective));
    if (p->chunks < 1 || p->chunks > INT32_MAX / (4 * CHECK_SLICES * ranks) ||
        p->chunks % plan_blocks(p->collective, ranks) != 0)
        return fail(RING_ERR_INTERNAL, "%s by %s, %d rank%s: a plan cannot have %d chunk%s",
                    plan_collective_name(p->collective), p->algorithm, ranks, plural(ranks),
                    p->chunks, plural(p->chunks));
    if (p->root < 0 || p->root >= ranks)
        return fail(RING_ERR_INTERNAL, "%s by %s, %d rank%s: root %d is not one of the ranks",
                    plan_collective_name(p->collective), p->algorithm, ranks, plural(ranks),
                    p->root);
    return RING_OK;
}

/* ---- One step ------------------------------------------------------------------ */

static bool is_local(const shape *s, plan_loc loc)
{
    return loc.rank == s->plan->rank;
}

/* Checks that slices can split the range, that rounds can move it, and that the plan has its
 * scratch. */
static ring_status check_range(const shape *s, plan_loc loc)
{
    const plan *p = s->plan;
    const plan_block *block = &p->blocks[s->at.block];
    const int parts = p->chunks / plan_blocks(p->collective, p->ranks);
    if (loc.chunks > 1 && (p->circular || (block->times > 1 && block->stride != 0)))
        return offence(s, "has more than one chunk, in a moving block or a circular plan");
    if (p->scratch_chunks > 0 && loc.chunk % parts + loc.chunks > parts)
        return offence(s, "has a range that spans two blocks, so slices cannot split it");
    if (is_local(s, loc) && loc.buffer == PLAN_SCRATCH &&
        (loc.chunk < p->scratch_first ||
         loc.chunk + loc.chunks > p->scratch_first + p->scratch_chunks))
        return offence(s, "uses scratch that the plan does not have");
    return RING_OK;
}

enum {
    SRC = 1 << PLAN_SRC,
    DST = 1 << PLAN_DST,
    WIRE = 1 << PLAN_WIRE,
    SCRATCH = 1 << PLAN_SCRATCH
};

/* The buffers that the operands of a kind of step may use, as bits; 0 if the kind has no such
 * operand. */
typedef struct step_rule {
    bool many;                        /* may have more than one input and one output */
    unsigned in, out;                 /* buffers of this rank                        */
    unsigned in_message, out_message; /* the receiver's buffers of messages          */
} step_rule;

static const step_rule rules[] = {
    [PLAN_STEP_SEND] = {.in = SRC | DST | SCRATCH, .out_message = DST | WIRE | SCRATCH},
    [PLAN_STEP_RECV] = {.in_message = DST | SCRATCH, .out = DST | SCRATCH},
    [PLAN_STEP_COPY] = {.in = SRC | DST, .out = DST},
    [PLAN_STEP_FOLD] = {.many = true,
                        .in = SRC | SCRATCH,
                        .in_message = WIRE,
                        .out = DST | SCRATCH,
                        .out_message = DST | WIRE},
};

/* Checks an operand's buffer and range.
 * @param[in,out] peers  a bit for each rank with a message of this step. */
static ring_status check_loc(const shape *s, const plan_step *step, plan_loc loc, bool in,
                             uint64_t *peers)
{
    const step_rule *rule = &rules[step->kind];
    const plan_loc first = plan_output(&s->at, step, 0);
    const unsigned own = in ? rule->in : rule->out;
    const unsigned message = in ? rule->in_message : rule->out_message;
    if (loc.chunks != first.chunks || (loc.chunk != first.chunk && step->kind != PLAN_STEP_COPY))
        return offence(s, "has operands of different chunks");
    if (((is_local(s, loc) ? own : message) & 1u << loc.buffer) == 0)
        return offence(s, "uses a buffer that this kind of step cannot use");
    if (!is_local(s, loc) && (*peers & UINT64_C(1) << loc.rank) != 0)
        return offence(s, "has two messages from or to the same rank");
    *peers |= UINT64_C(1) << loc.rank;
    return check_range(s, loc);
}

/* ---- Types --------------------------------------------------------------------- */

static plan_wire type_in(plan_buffer buffer)
{
    return buffer == PLAN_SCRATCH ? PLAN_WIRE_ACC : PLAN_WIRE_DATA;
}

/* A message must have the type of the buffer that it is sent from, and of the buffer that it is
 * received into. */
static ring_status check_message(const shape *s, const plan_step *step)
{
    const plan_loc in = plan_input(&s->at, step, 0), out = plan_output(&s->at, step, 0);
    const plan_loc message = step->kind == PLAN_STEP_SEND ? out : in;
    const plan_loc place = step->kind == PLAN_STEP_SEND ? in : out;
    const bool for_buffer = message.buffer != PLAN_WIRE;
    return message.wire == type_in(place.buffer) &&
                   (!for_buffer || message.wire == type_in(message.buffer))
               ? RING_OK
               : offence(s, "has a message whose type is not that of its buffer");
}

/* An output must be finished if and only if it is for a dst; other messages must have the
 * accumulator's type. */
static ring_status check_fold(const shape *s, const plan_step *step)
{
    const plan_facts *facts = plan_facts_of(s->plan->collective);
    if (!facts->reduces && facts->result != PLAN_NOTHING)
        return offence(s, "is a fold, but this collective combines nothing");
    for (int i = 0; i < step->outs; i++) {
        const plan_loc loc = plan_output(&s->at, step, i);
        const plan_wire wire = loc.finish ? PLAN_WIRE_DATA : PLAN_WIRE_ACC;
        if (loc.finish != (loc.buffer == PLAN_DST))
            return offence(s, loc.finish ? "puts a finished chunk into a buffer other than dst"
                                         : "puts an unfinished chunk into dst");
        if (!is_local(s, loc) && loc.wire != wire)
            return offence(
                s, "sends a finished chunk in the accumulator's type, or an unfinished one in "
                   "the data type");
    }
    return RING_OK;
}

/* ---- Steps --------------------------------------------------------------------- */

static ring_status check_step(const shape *s, const plan_step *step)
{
    if (step->kind == PLAN_STEP_WAIT) {
        const plan_peer *peer = plan_peer_of(s->plan, step->peer);
        if (step->ins != 0 || step->outs != 0 || step->back < 0)
            return offence(s, "is malformed");
        return peer != NULL && peer->sends > 0 ? RING_OK
                                               : offence(s, "waits for a rank it never sends to");
    }
    if (step->kind > PLAN_STEP_WAIT || step->ins < 1 || step->outs < 1 ||
        (!rules[step->kind].many && step->ins + step->outs > 2) ||
        (step->eager && step->kind != PLAN_STEP_SEND))
        return offence(s, "is malformed");
    uint64_t from = 0, to = 0;
    for (int i = 0; i < step->ins; i++)
        RING_TRY(check_loc(s, step, plan_input(&s->at, step, i), true, &from));
    for (int i = 0; i < step->outs; i++)
        RING_TRY(check_loc(s, step, plan_output(&s->at, step, i), false, &to));
    if (step->kind == PLAN_STEP_FOLD)
        return check_fold(s, step);
    return step->kind != PLAN_STEP_COPY ? check_message(s, step) : RING_OK;
}

/* ---- Peers --------------------------------------------------------------------- */

static void count_messages(const plan *p, plan_peer *peers)
{
    for (plan_cursor at = plan_begin(p); plan_at(&at) != NULL; plan_next(&at)) {
        const plan_step *step = plan_at(&at);
        for (int i = 0; i < step->ins; i++)
            peers[plan_input(&at, step, i).rank].recvs++;
        for (int i = 0; i < step->outs; i++)
            peers[plan_output(&at, step, i).rank].sends++;
    }
}

static bool peers_agree(const plan *p)
{
    plan_peer counted[64] = {0};
    int32_t found = 0;
    count_messages(p, counted);
    for (int rank = 0; rank < p->ranks; rank++) {
        const plan_peer *own = &counted[rank], *listed = &p->peers[found];
        if (rank == p->rank || own->sends + own->recvs == 0)
            continue;
        if (found == p->peer_count || listed->rank != rank || listed->sends != own->sends ||
            listed->recvs != own->recvs)
            return false;
        found++;
    }
    return found == p->peer_count;
}

ring_status check_shape(const plan *const *plans, int ranks)
{
    if (ranks < 1 || ranks > 64)
        return fail(RING_ERR_INTERNAL, "the checker supports 1 to 64 ranks, not %d", ranks);
    for (int rank = 0; rank < ranks; rank++)
        if (plans[rank] == NULL)
            return fail(RING_ERR_INTERNAL, "rank %d has no plan", rank);
    RING_TRY(check_call(plans[0], ranks));
    for (int rank = 0; rank < ranks; rank++)
        RING_TRY(check_head(plans, ranks, rank));
    for (int rank = 0; rank < ranks; rank++)
        for (shape s = {.plan = plans[rank], .at = plan_begin(plans[rank])}; plan_at(&s.at) != NULL;
             plan_next(&s.at), s.index++)
            RING_TRY(check_step(&s, plan_at(&s.at)));
    for (int rank = 0; rank < ranks; rank++)
        if (!peers_agree(plans[rank]))
            return fail(RING_ERR_INTERNAL,
                        "%s by %s, %d rank%s: the list of rank %d's peers does not match its steps",
                        plan_collective_name(plans[rank]->collective), plans[rank]->algorithm,
                        ranks, plural(ranks), rank);
    return RING_OK;
}

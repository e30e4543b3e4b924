/* SPDX-License-Identifier: Apache-2.0
 *
 * A part of the checker: progress on links that soon are full. Chunks are three segments
 * here. What is sent from a buffer waits there until the link takes it; what a fold relays
 * has no buffer and waits for room, behind what was posted before. Links take one segment
 * ahead of the receiver; those of circular plans a chunk and a segment, for that is what
 * the executor slices chunks for.
 *
 * Everything goes by value and every acknowledgement is waited for: other ways only take
 * room and waits away. Who waits for whom does not depend on the schedule then, so one is
 * enough.
 */
#include "check.h"

#include "steps.h"

#include <stdlib.h>

enum { CHUNK = 3 };

typedef struct flow {
    const plan *const *plans;
    int32_t ranks, room;
    int32_t *queued, *carried; /* [ranks * ranks] segments before and on the link */
    int32_t *acks;             /* [ranks * ranks] */
    int32_t *position;         /* [ranks] segments of the present step that are done */
    plan_cursor *cursors;      /* [ranks] */
} flow;

static size_t pair(const flow *f, int from, int to)
{
    return (size_t)from * (size_t)f->ranks + (size_t)to;
}

static void carry(flow *f, size_t link)
{
    while (f->queued[link] > 0 && f->carried[link] < f->room) {
        f->queued[link]--;
        f->carried[link]++;
    }
}

static void post(flow *f, int from, int to)
{
    f->queued[pair(f, from, to)] += CHUNK;
    carry(f, pair(f, from, to));
}

/* ---- A segment of a step --------------------------------------------------------- */

static bool inputs_here(const flow *f, int rank, const plan_step *step)
{
    for (int i = 0; i < step->ins; i++) {
        const int from = plan_input(&f->cursors[rank], step, i).rank;
        if (from != rank && f->carried[pair(f, from, rank)] == 0)
            return false;
    }
    return true;
}

static void take_inputs(flow *f, int rank, const plan_step *step)
{
    for (int i = 0; i < step->ins; i++) {
        const int from = plan_input(&f->cursors[rank], step, i).rank;
        if (from == rank)
            continue;
        f->carried[pair(f, from, rank)]--;
        carry(f, pair(f, from, rank));
    }
}

static bool room_to_relay(const flow *f, int rank, const plan_step *step)
{
    for (int i = 0; i < step->outs; i++) {
        const plan_loc out = plan_output(&f->cursors[rank], step, i);
        const size_t link = pair(f, rank, out.rank);
        if (out.buffer == PLAN_WIRE && (f->queued[link] > 0 || f->carried[link] == f->room))
            return false;
    }
    return true;
}

static void put_results(flow *f, int rank, const plan_step *step, bool last)
{
    for (int i = 0; i < step->outs; i++) {
        const plan_loc out = plan_output(&f->cursors[rank], step, i);
        if (out.buffer == PLAN_WIRE)
            f->carried[pair(f, rank, out.rank)]++;
        else if (out.rank != rank && last)
            post(f, rank, out.rank);
    }
}

/* Room is asked for before anything is taken, as the executor does. */
static bool stream(flow *f, int rank, const plan_step *step)
{
    while (f->position[rank] < CHUNK) {
        if (!inputs_here(f, rank, step) || !room_to_relay(f, rank, step))
            return false;
        take_inputs(f, rank, step);
        put_results(f, rank, step, ++f->position[rank] == CHUNK);
    }
    return true;
}

/* ---- Steps ----------------------------------------------------------------------- */

static bool take_ack(flow *f, int from, int to)
{
    int32_t *acks = &f->acks[pair(f, from, to)];
    if (*acks == 0)
        return false;
    --*acks;
    return true;
}

/* @return true if the step could be ended. */
static bool advance(flow *f, int rank, const plan_step *step)
{
    const plan_cursor *at = &f->cursors[rank];
    switch (step->kind) {
    case PLAN_STEP_SEND:
        post(f, rank, plan_output(at, step, 0).rank);
        return true;
    case PLAN_STEP_ACK:
        f->acks[pair(f, rank, plan_output(at, step, 0).rank)]++;
        return true;
    case PLAN_STEP_WAIT_ACK:
        return take_ack(f, plan_input(at, step, 0).rank, rank);
    case PLAN_STEP_COPY:
        return true;
    default:
        return stream(f, rank, step);
    }
}

static bool advance_far(flow *f, int rank)
{
    plan_cursor *at = &f->cursors[rank];
    const int32_t position = f->position[rank];
    bool moved = false;
    const plan_step *step;
    while ((step = plan_at(at)) != NULL && advance(f, rank, step)) {
        f->position[rank] = 0;
        plan_next(at);
        moved = true;
    }
    return moved || f->position[rank] != position;
}

static ring_status stuck(const flow *f, int rank)
{
    const plan *p = f->plans[rank];
    char text[STEP_TEXT];
    step_text(&f->cursors[rank], text, sizeof text);
    return fail(RING_ERR_INTERNAL, "%s by %s, %d ranks: rank %d (%s) waits for ever once links "
                "hold %s", plan_collective_name(p->collective), p->algorithm, f->ranks, rank, text,
                p->circular ? "a chunk and a segment" : "a segment: the plan is circular");
}

static ring_status flow_to_end(flow *f)
{
    for (bool moved = true; moved;) {
        moved = false;
        for (int rank = 0; rank < f->ranks; rank++)
            moved |= advance_far(f, rank);
    }
    for (int rank = 0; rank < f->ranks; rank++)
        if (plan_at(&f->cursors[rank]) != NULL)
            return stuck(f, rank);
    return RING_OK;
}

ring_status check_links(const plan *const *plans, int ranks)
{
    const size_t pairs = (size_t)ranks * (size_t)ranks;
    int32_t *numbers = calloc(3 * pairs + (size_t)ranks, sizeof *numbers);
    flow f = {.plans = plans, .ranks = ranks, .room = plans[0]->circular ? CHUNK + 1 : 1,
              .cursors = calloc((size_t)ranks, sizeof *f.cursors)};
    ring_status status = RING_ERR_MEMORY;
    if (numbers != NULL && f.cursors != NULL) {
        f.queued = numbers;
        f.carried = f.queued + pairs;
        f.acks = f.carried + pairs;
        f.position = f.acks + pairs;
        for (int rank = 0; rank < ranks; rank++)
            f.cursors[rank] = plan_begin(plans[rank]);
        status = flow_to_end(&f);
    } else {
        fail(status, "checking the plans of %d ranks", ranks);
    }
    free(numbers);
    free(f.cursors);
    return status;
}

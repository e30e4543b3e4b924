/* SPDX-License-Identifier: Apache-2.0
 *
 * This part of the checker proves that plans make progress on links with little room. Here a chunk
 * has three segments. A message from a buffer waits in the buffer until the link has room. Relayed
 * results and eager messages have no buffer, so their step waits until all earlier messages are on
 * the link and the link has room for one more segment. A link holds one segment ahead of the
 * receiver, or all eager messages of the plan if these are more. A link of a circular plan holds a
 * chunk and a segment, because the engine chooses slices of that size.
 *
 * All messages are carried by value, and every WAIT waits until its messages are taken; references
 * and stores would only remove waits. The order of waits then does not depend on the schedule, so
 * one schedule is enough.
 */
#include "checker.h"

#include "step_text.h"

#include <stdlib.h>

enum { CHUNK = 3 };

/* The link from one rank to another. */
typedef struct flow_link {
    int32_t room;            /* segments that the link holds ahead of the receiver     */
    int32_t queued, carried; /* segments that wait for the link; segments on the link  */
    int32_t sent, taken;     /* numbers of messages                                    */
} flow_link;

typedef struct flow {
    const plan *const *plans;
    int32_t ranks;
    flow_link *links;     /* [ranks * ranks] */
    int32_t *position;    /* [ranks] finished segments of the current step */
    plan_cursor *cursors; /* [ranks] */
} flow;

static flow_link *link_of(const flow *f, int from, int to)
{
    return &f->links[(size_t)from * (size_t)f->ranks + (size_t)to];
}

static void carry(flow_link *link)
{
    while (link->queued > 0 && link->carried < link->room) {
        link->queued--;
        link->carried++;
    }
}

/* ---- A segment of a step --------------------------------------------------------- */

/* @return the link over which input @p i is received; NULL if it is local. */
static flow_link *link_in(const flow *f, int rank, const plan_step *step, int i)
{
    const int from = plan_input(&f->cursors[rank], step, i).rank;
    return from != rank ? link_of(f, from, rank) : NULL;
}

static flow_link *link_out(const flow *f, int rank, const plan_step *step, int i)
{
    const int to = plan_output(&f->cursors[rank], step, i).rank;
    return to != rank ? link_of(f, rank, to) : NULL;
}

static bool needs_room(const flow *f, int rank, const plan_step *step, int i)
{
    return step->eager || plan_relays(&f->cursors[rank], step, i);
}

static bool inputs_arrived(const flow *f, int rank, const plan_step *step)
{
    for (int i = 0; i < step->ins; i++) {
        const flow_link *link = link_in(f, rank, step, i);
        if (link != NULL && link->carried == 0)
            return false;
    }
    return true;
}

static void take_inputs(const flow *f, int rank, const plan_step *step, bool last)
{
    for (int i = 0; i < step->ins; i++) {
        flow_link *link = link_in(f, rank, step, i);
        if (link == NULL)
            continue;
        link->carried--;
        link->taken += last;
        carry(link);
    }
}

static bool room_for_outputs(const flow *f, int rank, const plan_step *step)
{
    for (int i = 0; i < step->outs; i++) {
        const flow_link *link = link_out(f, rank, step, i);
        if (needs_room(f, rank, step, i) && (link->queued > 0 || link->carried == link->room))
            return false;
    }
    return true;
}

static void put_outputs(const flow *f, int rank, const plan_step *step, int segments, bool last)
{
    for (int i = 0; i < step->outs; i++) {
        flow_link *link = link_out(f, rank, step, i);
        if (link == NULL)
            continue;
        link->sent += last;
        if (needs_room(f, rank, step, i))
            link->carried++;
        else if (last)
            link->queued += segments;
        carry(link);
    }
}

/* Executes a step segment by segment. Room is checked before inputs are taken, as in the engine. A
 * SEND that is not eager only posts. @return true if the step is complete. */
static bool stream(flow *f, int rank, const plan_step *step)
{
    const int segments = CHUNK * plan_output(&f->cursors[rank], step, 0).chunks;
    const bool posts = step->kind == PLAN_STEP_SEND && !step->eager;
    f->position[rank] = posts ? segments - 1 : f->position[rank];
    while (f->position[rank] < segments) {
        if (!inputs_arrived(f, rank, step) || !room_for_outputs(f, rank, step))
            return false;
        const bool last = ++f->position[rank] == segments;
        take_inputs(f, rank, step, last);
        put_outputs(f, rank, step, segments, last);
    }
    return true;
}

/* ---- Steps ----------------------------------------------------------------------- */

/* @return true if the step is complete; a WAIT is complete when its messages have been taken. */
static bool advance(flow *f, int rank, const plan_step *step)
{
    if (step->kind != PLAN_STEP_WAIT)
        return stream(f, rank, step);
    const flow_link *link = link_of(f, rank, step->peer);
    return link->taken >= link->sent - step->back;
}

/* Executes a rank's steps until one must wait. @return true if any segment has moved. */
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
    return fail(RING_ERR_INTERNAL,
                "%s by %s, %d rank%s: rank %d (%s) waits for ever if links hold only %s",
                plan_collective_name(p->collective), p->algorithm, f->ranks, plural(f->ranks), rank,
                text,
                p->circular ? "a chunk and a segment"
                            : "a segment; a plan that needs more must be marked circular");
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

/* ---- Opening --------------------------------------------------------------------- */

/* Each link has room for the eager messages of one slice: those of the plan, divided by its
 * slices. */
static void set_rooms(const flow *f, int slices)
{
    const int least = f->plans[0]->circular ? CHUNK + 1 : 1;
    for (int rank = 0; rank < f->ranks; rank++) {
        for (plan_cursor at = plan_begin(f->plans[rank]); plan_at(&at) != NULL; plan_next(&at)) {
            const plan_step *step = plan_at(&at);
            if (step->eager)
                link_of(f, rank, plan_output(&at, step, 0).rank)->room +=
                    CHUNK * plan_output(&at, step, 0).chunks;
        }
        for (int peer = 0; peer < f->ranks; peer++) {
            flow_link *link = link_of(f, rank, peer);
            link->room = link->room / slices > least ? link->room / slices : least;
        }
    }
}

ring_status check_links(const plan *const *plans, int ranks, int slices)
{
    const size_t count = (size_t)ranks;
    flow f = {.plans = plans,
              .ranks = ranks,
              .links = calloc(count * count, sizeof *f.links),
              .position = calloc(count, sizeof *f.position),
              .cursors = calloc(count, sizeof *f.cursors)};
    ring_status status = RING_ERR_MEMORY;
    if (f.links != NULL && f.position != NULL && f.cursors != NULL) {
        for (int rank = 0; rank < ranks; rank++)
            f.cursors[rank] = plan_begin(plans[rank]);
        set_rooms(&f, slices);
        status = flow_to_end(&f);
    } else {
        fail(status, "checking the plans of %d rank%s", ranks, plural(ranks));
    }
    free(f.links);
    free(f.position);
    free(f.cursors);
    return status;
}

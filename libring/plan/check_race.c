/* SPDX-License-Identifier: Apache-2.0
 *
 * This last part of the checker proves, for all schedules, that memory is not used too early or too
 * late. It orders events by vector clocks, which messages carry from rank to rank.
 *
 * A chunk of a SEND may be read until the end of the step that takes the message, or until a WAIT
 * of the sender that covers it: by the taker if the message is a reference, by the link if it is
 * carried by value. An eager SEND reads its chunk immediately. A fold's result that is also kept in
 * a local buffer may be carried from there. A result for a peer's dst is written by the fold if it
 * is stored, and by the step that takes the message if it is carried.
 *
 * A place is the memory of one chunk in one buffer of a rank. For every two uses of a place of
 * which one is a write, the checker proves that one use has ended before the other begins, or that
 * both belong to the same step. It also proves that each borrowed chunk is released before its
 * sender's plan ends. A WAIT proves only that the chunks of its messages are released; if the
 * messages are carried by value, the steps that take them may still follow.
 *
 * Folds stream: the first elements of a result may arrive while the fold still computes the others.
 * A message nevertheless counts as proof that its sender's step has ended: the step that takes it
 * uses no other chunk and no element that has not arrived, and the steps after that one wait for
 * the whole message.
 */
#include "array.h"
#include "checker.h"

#include "step_text.h"

#include <stdlib.h>

typedef struct use {
    int32_t first, last; /* the use lasts from event first to event last                    */
    int32_t released;    /* the WAIT event that also ends the use; QUEUE_NONE if there is none */
    int32_t message;     /* the message that the write delivers, by a store or by a RECV (only one
                            of the two happens); QUEUE_NONE for other uses                  */
    int32_t next;        /* the next use of the same place                                  */
    bool writes;
} use;

typedef struct race {
    const simulation *done;
    int32_t ranks;
    int32_t *clocks; /* [events * ranks] for each event, the number of steps of each rank that have
                        ended before it in every schedule, counting itself                   */
    int32_t *last;   /* [ranks] the rank's latest event; -1 if there is none             */
    int32_t *places; /* the first use of each place; -1 if there is none                 */
    use *uses;
    int32_t use_count, use_cap;
} race;

/* ---- Clocks -------------------------------------------------------------------- */

static int32_t *clock_of(const race *c, int32_t event)
{
    return c->clocks + (size_t)event * (size_t)c->ranks;
}

/* Raises each entry of the clock to that of an earlier event. */
static void merge_clock(const race *c, int32_t *clock, int32_t event)
{
    const int32_t *other = clock_of(c, event);
    for (int32_t i = 0; i < c->ranks; i++)
        clock[i] = clock[i] > other[i] ? clock[i] : other[i];
}

static void set_clock(race *c, int32_t e)
{
    const sim_event *event = &c->done->events[e];
    int32_t *clock = clock_of(c, e);
    if (c->last[event->rank] >= 0)
        merge_clock(c, clock, c->last[event->rank]);
    for (int32_t i = 0; i < event->taken; i++) {
        const int32_t message = c->done->taken[event->first_taken + i];
        merge_clock(c, clock, c->done->queues.messages[message].sender);
    }
    clock[event->rank] = event->index;
    c->last[event->rank] = e;
}

/* @return true if event a has ended when b begins, in every schedule. */
static bool precedes(const race *c, int32_t a, int32_t b)
{
    const sim_event *event = &c->done->events[a];
    return a != b && clock_of(c, b)[event->rank] >= event->index;
}

/* ---- Uses of places ------------------------------------------------------------ */

/* Adds a use of each chunk of a range. */
static ring_status add_use(race *c, int rank, plan_buffer buffer, plan_loc range, use u)
{
    for (int i = 0; i < range.chunks; i++) {
        const int32_t place = sim_place(c->done, rank, buffer, range.chunk + i);
        use *uses = array_with_room(c->uses, &c->use_cap, (int64_t)c->use_count + 1, sizeof *uses);
        if (uses == NULL)
            return fail(RING_ERR_MEMORY, "checking the plans of %d rank%s", c->ranks,
                        plural(c->ranks));
        c->uses = uses;
        u.next = c->places[place];
        c->places[place] = c->use_count;
        c->uses[c->use_count++] = u;
    }
    return RING_OK;
}

static ring_status add_local(race *c, plan_loc loc, use u)
{
    if (loc.rank != c->done->events[u.first].rank)
        return RING_OK;
    return add_use(c, loc.rank, loc.buffer, loc, u);
}

/* @return true if the step itself accesses memory. The copy of a chunk to itself (in place) does
 * not access it. A SEND that is not eager only posts: its chunk is read later. */
static bool touches_memory(const race *c, const sim_event *event)
{
    const plan_step *step = plan_at(&event->at);
    if (step->kind == PLAN_STEP_SEND)
        return step->eager;
    return step->kind != PLAN_STEP_COPY || !c->done->mode.in_place ||
           plan_input(&event->at, step, 0).chunk != plan_output(&event->at, step, 0).chunk;
}

static ring_status add_event_uses(race *c, int32_t e)
{
    const sim_event *event = &c->done->events[e];
    const plan_step *step = plan_at(&event->at);
    use u = {.first = e, .last = e, .released = QUEUE_NONE, .message = QUEUE_NONE};
    if (!touches_memory(c, event))
        return RING_OK;
    for (int i = 0; i < step->ins; i++)
        RING_TRY(add_local(c, plan_input(&event->at, step, i), u));
    u.writes = true;
    if (step->kind == PLAN_STEP_RECV)
        u.message = c->done->taken[event->first_taken];
    for (int i = 0; i < step->outs; i++)
        RING_TRY(add_local(c, plan_output(&event->at, step, i), u));
    return RING_OK;
}

static ring_status add_message_uses(race *c, int32_t id)
{
    const queue_message *m = &c->done->queues.messages[id];
    const use sent = {.first = m->sender,
                      .last = m->taker,
                      .released = m->released,
                      .message = QUEUE_NONE};
    const use stored = {.first = m->sender,
                        .last = m->sender,
                        .released = QUEUE_NONE,
                        .message = id,
                        .writes = true};
    if (m->reads)
        RING_TRY(add_use(c, m->from, m->source, m->loc, sent));
    return m->stores ? add_use(c, m->to, PLAN_DST, m->loc, stored) : RING_OK;
}

/* ---- Verdict ------------------------------------------------------------------- */

/* @return true if a write and another use of the place cannot happen at the same time. */
static bool apart(const race *c, const use *write, const use *other)
{
    const int32_t w = write->first;
    if (w == other->first || w == other->last)
        return true;
    if (write->message != QUEUE_NONE && write->message == other->message)
        return true;
    if (other->released != QUEUE_NONE && precedes(c, other->released, w))
        return true;
    return precedes(c, w, other->first) || precedes(c, other->last, w);
}

static ring_status report_overlap(const race *c, const use *write, const use *other)
{
    char writing[STEP_TEXT], using[STEP_TEXT];
    const sim_event *w = &c->done->events[write->first], *o = &c->done->events[other->last];
    step_text(&w->at, writing, sizeof writing);
    step_text(&o->at, using, sizeof using);
    return sim_wrong(c->done,
                     "rank %d, step %d (%s) overwrites a chunk too early or too late: rank %d, "
                     "step %d (%s) may still %s it",
                     w->rank, w->index - 1, writing, o->rank, o->index - 1, using,
                     other->writes ? "write" : "read");
}

static ring_status check_places(race *c)
{
    const int32_t places = sim_places(c->done);
    for (int32_t i = 0; i < places; i++)
        c->places[i] = -1;
    for (int32_t e = 0; e < c->done->event_count; e++)
        RING_TRY(add_event_uses(c, e));
    for (int32_t id = 0; id < c->done->queues.count; id++)
        RING_TRY(add_message_uses(c, id));
    for (int32_t place = 0; place < places; place++)
        for (int32_t i = c->places[place]; i >= 0; i = c->uses[i].next)
            for (int32_t j = c->places[place]; j >= 0 && c->uses[i].writes; j = c->uses[j].next)
                if (i != j && !apart(c, &c->uses[i], &c->uses[j]))
                    return report_overlap(c, &c->uses[i], &c->uses[j]);
    return RING_OK;
}

/* Borrowed chunks must be released when the plan ends, because the caller may then overwrite
 * them. */
static ring_status check_ends(const race *c)
{
    for (int32_t id = 0; id < c->done->queues.count; id++) {
        const queue_message *m = &c->done->queues.messages[id];
        if (!m->borrowed || m->released != QUEUE_NONE)
            continue;
        const int32_t read = c->done->events[m->taker].index;
        if (clock_of(c, c->last[m->from])[m->to] < read)
            return sim_wrong(c->done,
                             "rank %d may leave before rank %d has read its chunk %d (step %d): a "
                             "wait is missing",
                             m->from, m->to, m->loc.chunk, read - 1);
    }
    return RING_OK;
}

/* A barrier has no elements to protect, but all ranks must have entered it before one leaves. */
static ring_status check_barrier(const race *c)
{
    for (int32_t rank = 0; rank < c->ranks; rank++) {
        for (int32_t peer = 0; peer < c->ranks; peer++) {
            const int32_t e = c->last[rank];
            if (peer != rank && (e < 0 || clock_of(c, e)[peer] < 1))
                return sim_wrong(c->done,
                                 "rank %d may leave the barrier before rank %d has entered it",
                                 rank, peer);
        }
    }
    return RING_OK;
}

/* Events are in the order in which they were executed, so the clocks of senders are set before
 * those of takers. */
static ring_status prove(race *c)
{
    for (int32_t rank = 0; rank < c->ranks; rank++)
        c->last[rank] = -1;
    for (int32_t e = 0; e < c->done->event_count; e++)
        set_clock(c, e);
    if (plan_facts_of(c->done->plans[0]->collective)->result == PLAN_NOTHING)
        return check_barrier(c);
    RING_TRY(check_places(c));
    return check_ends(c);
}

ring_status check_race(const simulation *done)
{
    const size_t ranks = (size_t)done->ranks, clocks = (size_t)done->event_count * ranks;
    int32_t *numbers = calloc(clocks + ranks + (size_t)sim_places(done), sizeof *numbers);
    if (numbers == NULL)
        return fail(RING_ERR_MEMORY, "checking the plans of %d rank%s", done->ranks,
                    plural(done->ranks));
    race c = {.done = done, .ranks = done->ranks, .clocks = numbers};
    c.last = c.clocks + clocks;
    c.places = c.last + ranks;
    const ring_status status = prove(&c);
    free(c.uses);
    free(numbers);
    return status;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Last part of the checker: memory, in all schedules, by vector clocks over messages.
 *
 * A sent chunk may be read at any time from its SEND to the end of the step that takes it, by
 * reference (by the taker) or by value (by the link), or to a WAIT of the sender's that covers it;
 * an eager one is read in its SEND. A fold's result that its own buffer keeps may be sent by value
 * from there. One for a peer's dst is written by the fold (store) or by the taking step (by value).
 * Proven for every pair of uses of one place, one of them a write: one is over before the other
 * begins, or both are one step. And that the sender of a borrowed chunk knows that it is free
 * before the plan ends.
 *
 * A WAIT proves that messages' chunks are free, and no more: by value that may be before the peer's
 * step.
 *
 * Folds stream: the first elements of a result may arrive while the fold still works on the later
 * ones. A message counts as proof that its sender's step is done, all the same: the taking step
 * uses no other chunk, of this one it uses no element before the message has brought it, and the
 * taker's later steps wait for the whole message.
 */
#include "array.h"
#include "checker.h"

#include "step_text.h"

#include <stdlib.h>

typedef struct use {
    int32_t first, last; /* the events between which it happens */
    int32_t released;    /* event of a WAIT that ends it as well, else QUEUE_NONE */
    int32_t message;     /* of a write that is one of a message's two, else QUEUE_NONE */
    int32_t next;        /* use of the same place */
    bool writes;
} use;

typedef struct race {
    const simulation *done;
    int32_t ranks;
    int32_t *clocks; /* [events * ranks] steps of each rank that are known to be over */
    int32_t *last;   /* [ranks] latest event, -1 */
    int32_t *places; /* first use of each place */
    use *uses;
    int32_t use_count, use_cap;
} race;

/* ---- Clocks -------------------------------------------------------------------- */

static int32_t *clock_of(const race *c, int32_t event)
{
    return c->clocks + (size_t)event * (size_t)c->ranks;
}

static void learn(const race *c, int32_t *clock, int32_t event)
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
        learn(c, clock, c->last[event->rank]);
    for (int32_t i = 0; i < event->taken; i++) {
        const int32_t message = c->done->taken[event->first_taken + i];
        learn(c, clock, c->done->queues.messages[message].sender);
    }
    clock[event->rank] = event->index;
    c->last[event->rank] = e;
}

/* Events lie in the order in which they ran, so senders come before takers. */
static void set_clocks(race *c)
{
    for (int32_t rank = 0; rank < c->ranks; rank++)
        c->last[rank] = -1;
    for (int32_t e = 0; e < c->done->event_count; e++)
        set_clock(c, e);
}

/* @return true if event a is over when b begins. */
static bool precedes(const race *c, int32_t a, int32_t b)
{
    const sim_event *event = &c->done->events[a];
    return a != b && clock_of(c, b)[event->rank] >= event->index;
}

/* ---- Uses of places ------------------------------------------------------------ */

static ring_status make_room(race *c)
{
    use *uses = array_with_room(c->uses, &c->use_cap, (int64_t)c->use_count + 1, sizeof *uses);
    if (uses == NULL)
        return fail(RING_ERR_MEMORY, "checking the plans of %d rank%s", c->ranks, plural(c->ranks));
    c->uses = uses;
    return RING_OK;
}

/* Of all chunks of a range. */
static ring_status add_use(race *c, int rank, plan_buffer buffer, plan_loc range, use u)
{
    for (int i = 0; i < range.chunks; i++) {
        const int32_t place = sim_place(c->done, rank, buffer, range.chunk + i);
        RING_TRY(make_room(c));
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

/* In place, the copy of a chunk to itself touches no memory. A borrowed SEND reads its chunk
 * later. */
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

static ring_status add_uses(race *c)
{
    for (int32_t e = 0; e < c->done->event_count; e++)
        RING_TRY(add_event_uses(c, e));
    for (int32_t id = 0; id < c->done->queues.count; id++)
        RING_TRY(add_message_uses(c, id));
    return RING_OK;
}

/* ---- Judging ------------------------------------------------------------------- */

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

static ring_status clash(const race *c, const use *write, const use *other)
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

static ring_status check_place(const race *c, int32_t place)
{
    for (int32_t i = c->places[place]; i >= 0; i = c->uses[i].next) {
        for (int32_t j = c->places[place]; j >= 0 && c->uses[i].writes; j = c->uses[j].next)
            if (i != j && !apart(c, &c->uses[i], &c->uses[j]))
                return clash(c, &c->uses[i], &c->uses[j]);
    }
    return RING_OK;
}

static ring_status check_places(race *c)
{
    const int32_t places = sim_places(c->done);
    for (int32_t i = 0; i < places; i++)
        c->places[i] = -1;
    RING_TRY(add_uses(c));
    for (int32_t place = 0; place < places; place++)
        RING_TRY(check_place(c, place));
    return RING_OK;
}

/* A borrowed chunk is the caller's again when the plan ends. */
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

/* A barrier has no elements to protect; all ranks must have come before one leaves. */
static ring_status check_barrier(const race *c)
{
    for (int32_t rank = 0; rank < c->ranks; rank++) {
        for (int32_t peer = 0; peer < c->ranks; peer++) {
            const int32_t e = c->last[rank];
            if (peer != rank && (e < 0 || clock_of(c, e)[peer] < 1))
                return sim_wrong(c->done, "rank %d may leave before rank %d has come", rank, peer);
        }
    }
    return RING_OK;
}

static ring_status judge(race *c)
{
    set_clocks(c);
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
    const ring_status status = judge(&c);
    free(c.uses);
    free(numbers);
    return status;
}

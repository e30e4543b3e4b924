/* SPDX-License-Identifier: Apache-2.0
 *
 * Last part of the checker: memory, in all schedules, by vector clocks over messages.
 *
 * A chunk sent is read by somebody at any time from its SEND to the end of the step that
 * takes it, whether it goes by reference (the taker reads it) or by value (the link does).
 * A fold's result for a peer's dst is written by the fold (store) or by the taking step (by
 * value). Proven for every pair of uses of one place, one of them a write: one is over
 * before the other begins, or both are one step. Acknowledgements do not count here, as they
 * exist only after references; they count for the one thing that only references need:
 * that the owner of a referenced chunk does not leave before it was read.
 *
 * Folds stream: the first elements of a result may arrive while the fold still works on the
 * later ones. A message counts as if it told that its sender is done, all the same: the
 * taking step uses no other chunk, of this one it uses no element before the message has
 * brought it, and the taker's later steps wait for the whole message.
 */
#include "check.h"

#include "steps.h"

#include <stdlib.h>
#include <string.h>

typedef struct use {
    int32_t first, last; /* events that it lies between */
    int32_t message;     /* of a write that is one of a message's two, else MAIL_NONE */
    int32_t next;        /* use of the same place */
    bool writes;
} use;

typedef struct race {
    const run *run;
    int32_t ranks;
    int32_t *clocks; /* [events * ranks] steps of each rank that are known to be over */
    int32_t *last;   /* [ranks] latest event, -1 */
    int32_t *acked;  /* [ranks * ranks] owner, peer: steps of the peer known by its ACK */
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

static void note_ack(race *c, const mail_message *m)
{
    c->acked[m->to * c->ranks + m->from] = c->run->events[m->sender].index;
}

static void set_clock(race *c, int32_t e)
{
    const run_event *event = &c->run->events[e];
    int32_t *clock = clock_of(c, e);
    if (c->last[event->rank] >= 0)
        learn(c, clock, c->last[event->rank]);
    for (int32_t i = 0; i < event->taken; i++) {
        const mail_message *m = &c->run->mail.messages[c->run->taken[event->first_taken + i]];
        if (m->ack)
            note_ack(c, m);
        else
            learn(c, clock, m->sender);
    }
    clock[event->rank] = event->index;
    c->last[event->rank] = e;
}

/* Events lie in the order in which they ran, so senders come before takers. */
static void set_clocks(race *c)
{
    for (int32_t rank = 0; rank < c->ranks; rank++)
        c->last[rank] = -1;
    for (int32_t e = 0; e < c->run->event_count; e++)
        set_clock(c, e);
}

/* @return true if event a is over when b begins. */
static bool precedes(const race *c, int32_t a, int32_t b)
{
    const run_event *event = &c->run->events[a];
    return a != b && clock_of(c, b)[event->rank] >= event->index;
}

/* ---- Uses of places ------------------------------------------------------------ */

static ring_status add_use(race *c, int32_t place, use u)
{
    if (c->use_count == c->use_cap) {
        const int32_t cap = c->use_cap > 0 ? 2 * c->use_cap : 1024;
        use *uses = realloc(c->uses, (size_t)cap * sizeof *uses);
        if (uses == NULL)
            return fail(RING_ERR_MEMORY, "checking the plans of %d ranks", c->ranks);
        c->uses = uses;
        c->use_cap = cap;
    }
    u.next = c->places[place];
    c->places[place] = c->use_count;
    c->uses[c->use_count++] = u;
    return RING_OK;
}

static ring_status add_local(race *c, plan_loc loc, use u)
{
    if (loc.rank != c->run->events[u.first].rank)
        return RING_OK;
    return add_use(c, run_place(c->run, loc.rank, loc.buffer, loc.chunk), u);
}

/* In place, the copy of a chunk to itself touches nothing. What a SEND reads is read later. */
static bool touches_memory(const race *c, const plan_step *step)
{
    return step->kind == PLAN_STEP_FOLD || step->kind == PLAN_STEP_RECV ||
           (step->kind == PLAN_STEP_COPY && !c->run->in_place);
}

static ring_status add_event_uses(race *c, int32_t e)
{
    const run_event *event = &c->run->events[e];
    const plan_step *step = plan_at(&event->at);
    use u = {.first = e, .last = e, .message = MAIL_NONE};
    if (!touches_memory(c, step))
        return RING_OK;
    for (int i = 0; i < step->ins; i++)
        RING_TRY(add_local(c, plan_input(&event->at, step, i), u));
    u.writes = true;
    if (step->kind == PLAN_STEP_RECV)
        u.message = c->run->taken[event->first_taken];
    for (int i = 0; i < step->outs; i++)
        RING_TRY(add_local(c, plan_output(&event->at, step, i), u));
    return RING_OK;
}

static bool keeps_result(const run_event *event)
{
    const plan_step *step = plan_at(&event->at);
    for (int i = 0; i < step->outs; i++)
        if (plan_output(&event->at, step, i).rank == event->rank)
            return true;
    return false;
}

static ring_status add_message_uses(race *c, int32_t id)
{
    const mail_message *m = &c->run->mail.messages[id];
    const use sent = {.first = m->sender, .last = m->taker, .message = MAIL_NONE};
    if (m->ack)
        return RING_OK;
    if (!m->folded)
        return add_use(c, run_place(c->run, m->from, m->source, m->chunk), sent);
    if (m->buffer != PLAN_DST)
        return RING_OK;
    const use stored = {.first = m->sender, .last = m->sender, .message = id, .writes = true};
    RING_TRY(add_use(c, run_place(c->run, m->to, PLAN_DST, m->chunk), stored));
    if (!keeps_result(&c->run->events[m->sender]))
        return RING_OK;
    return add_use(c, run_place(c->run, m->from, PLAN_DST, m->chunk), sent);
}

static ring_status add_uses(race *c)
{
    for (int32_t e = 0; e < c->run->event_count; e++)
        RING_TRY(add_event_uses(c, e));
    for (int32_t id = 0; id < c->run->mail.count; id++)
        RING_TRY(add_message_uses(c, id));
    return RING_OK;
}

/* ---- Judging ------------------------------------------------------------------- */

static bool apart(const race *c, const use *write, const use *other)
{
    const int32_t w = write->first;
    if (w == other->first || w == other->last)
        return true;
    if (write->message != MAIL_NONE && write->message == other->message)
        return true;
    return precedes(c, w, other->first) || precedes(c, other->last, w);
}

static ring_status clash(const race *c, const use *write, const use *other)
{
    char writing[STEP_TEXT], using[STEP_TEXT];
    const run_event *w = &c->run->events[write->first], *o = &c->run->events[other->last];
    step_text(&w->at, writing, sizeof writing);
    step_text(&o->at, using, sizeof using);
    return run_wrong(c->run, "rank %d, step %d (%s) overwrites a chunk too early or too late: rank "
                     "%d, step %d (%s) may still %s it", w->rank, w->index - 1, writing, o->rank,
                     o->index - 1, using, other->writes ? "write" : "read");
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

static int32_t place_count(const run *r)
{
    return 2 * r->ranks * r->plans[0]->chunks;
}

static ring_status check_places(race *c)
{
    for (int32_t i = 0; i < place_count(c->run); i++)
        c->places[i] = -1;
    RING_TRY(add_uses(c));
    for (int32_t place = 0; place < place_count(c->run); place++)
        RING_TRY(check_place(c, place));
    return RING_OK;
}

/* A referenced chunk is the caller's again when the owner's plan ends. */
static ring_status check_ends(const race *c)
{
    for (int32_t id = 0; id < c->run->mail.count; id++) {
        const mail_message *m = &c->run->mail.messages[id];
        if (m->ack || m->folded)
            continue;
        const int32_t read = c->run->events[m->taker].index;
        const int32_t known = clock_of(c, c->last[m->from])[m->to];
        if (known < read && c->acked[m->from * c->ranks + m->to] < read)
            return run_wrong(c->run, "rank %d may leave before rank %d has read its chunk %d (step "
                             "%d): an acknowledgement is missing", m->from, m->to, m->chunk,
                             read - 1);
    }
    return RING_OK;
}

/* A barrier has no elements to protect; its point is that everybody has come. */
static ring_status check_barrier(const race *c)
{
    for (int32_t rank = 0; rank < c->ranks; rank++) {
        for (int32_t peer = 0; peer < c->ranks; peer++) {
            const int32_t e = c->last[rank];
            if (peer != rank && (e < 0 || clock_of(c, e)[peer] < 1))
                return run_wrong(c->run, "rank %d may leave before rank %d has come", rank, peer);
        }
    }
    return RING_OK;
}

static ring_status judge(race *c)
{
    set_clocks(c);
    if (c->run->plans[0]->collective == PLAN_BARRIER)
        return check_barrier(c);
    RING_TRY(check_places(c));
    return check_ends(c);
}

ring_status check_race(const run *done)
{
    const size_t ranks = (size_t)done->ranks, clocks = (size_t)done->event_count * ranks;
    int32_t *numbers = calloc(clocks + ranks + ranks * ranks + (size_t)place_count(done),
                              sizeof *numbers);
    if (numbers == NULL)
        return fail(RING_ERR_MEMORY, "checking the plans of %d ranks", done->ranks);
    race c = {.run = done, .ranks = done->ranks, .clocks = numbers};
    c.last = c.clocks + clocks;
    c.acked = c.last + ranks;
    c.places = c.acked + ranks * ranks;
    const ring_status status = judge(&c);
    free(c.uses);
    free(numbers);
    return status;
}

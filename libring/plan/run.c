/* SPDX-License-Identifier: Apache-2.0
 * Running all ranks' plans until nobody can go on. */
#include "run.h"

#include "steps.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- Failing ------------------------------------------------------------------- */

ring_status run_no_memory(const run *r)
{
    return fail(RING_ERR_MEMORY, "running the plans of %d ranks", r->ranks);
}

__attribute__((format(printf, 3, 0))) static ring_status wrong(
    const run *r, const char *where, const char *format, va_list args)
{
    const plan *p = r->plans[0];
    char text[640];
    vsnprintf(text, sizeof text, format, args);
    return fail(RING_ERR_INTERNAL, "%s by %s, %d ranks%s: %s%s",
                plan_collective_name(p->collective), p->algorithm, r->ranks,
                r->in_place ? ", in place" : "", where, text);
}

ring_status run_wrong(const run *r, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const ring_status status = wrong(r, "", format, args);
    va_end(args);
    return status;
}

ring_status run_offence(const run *r, int rank, const char *format, ...)
{
    char step[STEP_TEXT], where[STEP_TEXT + 64];
    step_text(&r->cursors[rank], step, sizeof step);
    snprintf(where, sizeof where, "rank %d, step %d (%s): ", rank, r->done[rank], step);
    va_list args;
    va_start(args, format);
    const ring_status status = wrong(r, where, format, args);
    va_end(args);
    return status;
}

/* ---- Memory -------------------------------------------------------------------- */

bool run_has(const plan *p, plan_buffer buffer, int chunk)
{
    const bool source = buffer == PLAN_SRC;
    switch (p->collective) {
    case PLAN_REDUCE_SCATTER:
        return source || chunk / (p->chunks / p->ranks) == p->rank;
    case PLAN_ALL_GATHER:
        return !source || chunk / (p->chunks / p->ranks) == p->rank;
    case PLAN_BROADCAST:
        return !source || p->rank == p->root;
    case PLAN_REDUCE:
        return source || p->rank == p->root;
    default:
        return true;
    }
}

int32_t run_place(const run *r, int rank, plan_buffer buffer, int chunk)
{
    const int32_t second = !r->in_place && buffer == PLAN_DST;
    return (2 * rank + second) * r->plans[0]->chunks + chunk;
}

int32_t run_held(const run *r, int rank, plan_buffer buffer, int chunk)
{
    return r->cells[run_place(r, rank, buffer, chunk)];
}

void run_note_latest(run *r, int rank, int chunk, int32_t id)
{
    r->latest[rank * r->plans[0]->chunks + chunk] = id;
}

/* ---- Running ------------------------------------------------------------------- */

/* The message that comes next, if it may be taken in this round. */
static mail_message *arrived(const run *r, int from, int to)
{
    mail_message *first = mail_first(&r->mail, from, to);
    if (first == NULL || !r->by_rounds || first->ack)
        return first;
    const bool carried = first->round < r->round;
    return carried && mail_between(&r->mail, from, to)->round != r->round ? first : NULL;
}

/* @return a rank whose message is still missing, -1 if the step can be executed. */
static int missing(const run *r, int rank, const plan_step *step)
{
    for (int i = 0; i < step->ins; i++) {
        const int from = plan_input(&r->cursors[rank], step, i).rank;
        if (from != rank && arrived(r, from, rank) == NULL)
            return from;
    }
    return -1;
}

static bool grow(void **array, int32_t *cap, int32_t needed, size_t element)
{
    if (needed <= *cap)
        return true;
    const int32_t grown_cap = needed > 2 * *cap ? needed : 2 * *cap;
    void *grown = realloc(*array, (size_t)grown_cap * element);
    if (grown == NULL)
        return false;
    *array = grown;
    *cap = grown_cap;
    return true;
}

static ring_status record(run *r, int rank, const plan_step *step)
{
    void *events = r->events, *taken = r->taken;
    const bool room = grow(&events, &r->event_cap, r->event_count + 1, sizeof *r->events) &&
                      grow(&taken, &r->taken_cap, r->taken_count + step->ins, sizeof *r->taken);
    r->events = events;
    r->taken = taken;
    if (!room)
        return run_no_memory(r);
    r->events[r->event_count++] = (run_event){.at = r->cursors[rank], .rank = rank,
                                              .index = r->done[rank] + 1,
                                              .first_taken = r->taken_count};
    return RING_OK;
}

/* Executes the next step of a rank if it need not wait. */
static ring_status run_step(run *r, int rank, bool *moved)
{
    const plan_step *step = plan_at(&r->cursors[rank]);
    if (step == NULL || missing(r, rank, step) >= 0)
        return RING_OK;
    RING_TRY(record(r, rank, step));
    run_event *event = &r->events[r->event_count - 1];
    RING_TRY(run_execute(r, rank, step));
    event->taken = r->taken_count - event->first_taken;
    plan_next(&r->cursors[rank]);
    r->done[rank]++;
    *moved = true;
    return RING_OK;
}

static ring_status run_until_waiting(run *r, int rank, bool *moved)
{
    for (bool again = true; again;) {
        again = false;
        RING_TRY(run_step(r, rank, &again));
        *moved |= again;
    }
    return RING_OK;
}

static ring_status run_all_until_waiting(run *r)
{
    for (bool moved = true; moved;) {
        moved = false;
        for (int rank = 0; rank < r->ranks; rank++)
            RING_TRY(run_until_waiting(r, rank, &moved));
    }
    return RING_OK;
}

ring_status run_round(run *r, bool *moved)
{
    const int32_t before = r->taken_count;
    RING_TRY(run_all_until_waiting(r));
    *moved = r->taken_count > before;
    r->round++;
    return RING_OK;
}

static ring_status nobody_waits(const run *r)
{
    for (int rank = 0; rank < r->ranks; rank++)
        if (plan_at(&r->cursors[rank]) != NULL)
            return run_offence(r, rank, "waits for ever for rank %d",
                               missing(r, rank, plan_at(&r->cursors[rank])));
    return RING_OK;
}

static ring_status all_taken(const run *r)
{
    for (int32_t i = 0; i < r->mail.count; i++) {
        const mail_message *m = &r->mail.messages[i];
        if (m->taker == MAIL_NONE)
            return run_wrong(r, "rank %d never takes the %s %d that rank %d sends in step %d",
                             m->to, m->ack ? "acknowledgement of" : "chunk",
                             m->ack ? m->from : m->chunk, m->from,
                             r->events[m->sender].index - 1);
    }
    return RING_OK;
}

ring_status run_finish(const run *r)
{
    RING_TRY(nobody_waits(r));
    return all_taken(r);
}

ring_status run_to_end(run *r)
{
    RING_TRY(run_all_until_waiting(r));
    return run_finish(r);
}

/* ---- Opening ------------------------------------------------------------------- */

static ring_status fill_sources(run *r)
{
    const int chunks = r->plans[0]->chunks;
    for (int rank = 0; rank < r->ranks; rank++) {
        for (int chunk = 0; chunk < chunks; chunk++) {
            if (!run_has(r->plans[rank], PLAN_SRC, chunk))
                continue;
            const int32_t leaf = term_leaf(&r->terms, rank, chunk);
            if (leaf == TERM_NONE)
                return run_no_memory(r);
            r->cells[run_place(r, rank, PLAN_SRC, chunk)] = leaf;
            run_note_latest(r, rank, chunk, leaf);
        }
    }
    return RING_OK;
}

ring_status run_open(run *r, const plan *const *plans, int ranks, bool in_place)
{
    const size_t pieces = (size_t)ranks * (size_t)plans[0]->chunks, cells = 3 * pieces;
    *r = (run){.plans = plans, .ranks = ranks, .in_place = in_place};
    RING_TRY(mail_open(&r->mail, ranks));
    r->cells = malloc(cells * sizeof *r->cells);
    r->cursors = malloc((size_t)ranks * sizeof *r->cursors);
    r->done = calloc((size_t)ranks, sizeof *r->done);
    if (r->cells == NULL || r->cursors == NULL || r->done == NULL)
        return run_no_memory(r);
    for (size_t i = 0; i < cells; i++)
        r->cells[i] = TERM_NONE;
    r->latest = r->cells + 2 * pieces;
    for (int rank = 0; rank < ranks; rank++)
        r->cursors[rank] = plan_begin(plans[rank]);
    return fill_sources(r);
}

void run_close(run *r)
{
    terms_free(&r->terms);
    mail_close(&r->mail);
    free(r->cells);
    free(r->cursors);
    free(r->done);
    free(r->events);
    free(r->taken);
}

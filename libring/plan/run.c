/* SPDX-License-Identifier: Apache-2.0
 * Executing steps on symbols. */
#include "run.h"

#include "steps.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- Failing ------------------------------------------------------------------- */

static ring_status out_of_memory(const run *r)
{
    return fail(RING_ERR_MEMORY, "running the plans of %d ranks", r->ranks);
}

static ring_status wrong(const run *r, const char *where, const char *format, va_list args)
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

static ring_status read_chunk(const run *r, int rank, plan_loc loc, int32_t *id)
{
    const char *buffer = step_buffer_name(loc.buffer);
    if (!run_has(r->plans[rank], loc.buffer, loc.chunk))
        return run_offence(r, rank, "this rank has no %s chunk %d", buffer, loc.chunk);
    *id = run_held(r, rank, loc.buffer, loc.chunk);
    return *id != TERM_NONE
               ? RING_OK
               : run_offence(r, rank, "reads %s chunk %d before anything is there", buffer,
                             loc.chunk);
}

static void note_latest(run *r, int rank, int chunk, int32_t id)
{
    r->latest[rank * r->plans[0]->chunks + chunk] = id;
}

static ring_status write_chunk(run *r, int rank, plan_loc loc, int32_t id)
{
    if (!run_has(r->plans[rank], loc.buffer, loc.chunk))
        return run_offence(r, rank, "this rank has no %s chunk %d", step_buffer_name(loc.buffer),
                           loc.chunk);
    r->cells[run_place(r, rank, loc.buffer, loc.chunk)] = id;
    note_latest(r, rank, loc.chunk, id);
    return RING_OK;
}

/* ---- Messages ------------------------------------------------------------------ */

/* The message that comes next, if it may be taken in this round. */
static mail_message *arrived(const run *r, int from, int to)
{
    mail_message *first = mail_first(&r->mail, from, to);
    if (first == NULL || !r->by_rounds || first->ack)
        return first;
    const bool carried = first->round < r->round;
    return carried && mail_between(&r->mail, from, to)->round != r->round ? first : NULL;
}

static ring_status match(const run *r, int rank, const mail_message *m, plan_loc loc,
                         plan_wire wire)
{
    if (m->ack)
        return run_offence(r, rank, "expects chunk %d, but an acknowledgement of rank %d comes",
                           loc.chunk, m->from);
    if (m->chunk != loc.chunk)
        return run_offence(r, rank, "expects chunk %d, but rank %d sends chunk %d", loc.chunk,
                           m->from, m->chunk);
    if (m->buffer != loc.buffer)
        return run_offence(r, rank, "takes a message for %s, but rank %d sends it for %s",
                           step_buffer_name(loc.buffer), m->from, step_buffer_name(m->buffer));
    if (m->buffer == PLAN_WIRE && m->wire != wire)
        return run_offence(r, rank, "takes the %s, but rank %d sends the %s",
                           wire == PLAN_WIRE_ACC ? "accumulator's type" : "data type", m->from,
                           wire == PLAN_WIRE_ACC ? "data type" : "accumulator's type");
    return RING_OK;
}

static void take(run *r, mail_message *m)
{
    mail_between(&r->mail, m->from, m->to)->round = r->round;
    r->taken[r->taken_count++] = (int32_t)(m - r->mail.messages);
    mail_take(&r->mail, m, r->event_count - 1);
}

static ring_status take_term(run *r, int rank, plan_loc loc, plan_wire wire, int32_t *id)
{
    mail_message *m = mail_first(&r->mail, loc.rank, rank);
    RING_TRY(match(r, rank, m, loc, wire));
    *id = m->term;
    take(r, m);
    return RING_OK;
}

static ring_status post(run *r, int rank, plan_loc to, mail_message message)
{
    message.from = rank;
    message.to = to.rank;
    message.buffer = to.buffer;
    message.chunk = to.chunk;
    message.sender = r->event_count - 1;
    message.round = r->round;
    return mail_post(&r->mail, &message);
}

/* ---- Steps --------------------------------------------------------------------- */

static ring_status run_send(run *r, int rank, const plan_step *step)
{
    const plan_cursor *at = &r->cursors[rank];
    const plan_loc from = plan_input(at, step, 0);
    mail_message message = {.source = from.buffer, .wire = PLAN_WIRE_DATA};
    RING_TRY(read_chunk(r, rank, from, &message.term));
    return post(r, rank, plan_output(at, step, 0), message);
}

static ring_status run_recv(run *r, int rank, const plan_step *step)
{
    const plan_cursor *at = &r->cursors[rank];
    int32_t id;
    RING_TRY(take_term(r, rank, plan_input(at, step, 0), PLAN_WIRE_DATA, &id));
    return write_chunk(r, rank, plan_output(at, step, 0), id);
}

static ring_status run_copy(run *r, int rank, const plan_step *step)
{
    const plan_cursor *at = &r->cursors[rank];
    int32_t id;
    RING_TRY(read_chunk(r, rank, plan_input(at, step, 0), &id));
    return write_chunk(r, rank, plan_output(at, step, 0), id);
}

static ring_status combine(run *r, int rank, int32_t id, int32_t *sum)
{
    const term *v = &r->terms.nodes[id];
    if (v->kind == TERM_FINISHED)
        return run_offence(r, rank, "folds chunk %d that is finished already", v->chunk);
    if (*sum == TERM_NONE) {
        *sum = id;
        return RING_OK;
    }
    const uint64_t twice = v->ranks & r->terms.nodes[*sum].ranks;
    if (twice != 0)
        return run_offence(r, rank, "adds rank %d's chunk %d twice", __builtin_ctzll(twice),
                           v->chunk);
    *sum = term_sum(&r->terms, *sum, id);
    return *sum != TERM_NONE ? RING_OK : out_of_memory(r);
}

static ring_status combine_inputs(run *r, int rank, const plan_step *step, int32_t *sum)
{
    for (int i = 0; i < step->ins; i++) {
        const plan_loc loc = plan_input(&r->cursors[rank], step, i);
        int32_t id;
        RING_TRY(loc.rank == rank ? read_chunk(r, rank, loc, &id)
                                  : take_term(r, rank, loc, step->wire_in, &id));
        RING_TRY(combine(r, rank, id, sum));
    }
    return RING_OK;
}

/* A store needs the peer's address, which its messages tell. */
static ring_status post_result(run *r, int rank, plan_loc to, const plan_step *step, int32_t sum)
{
    if (to.buffer == PLAN_DST && mail_between(&r->mail, to.rank, rank)->taken == 0)
        return run_offence(r, rank, "stores into rank %d before any message from it", to.rank);
    note_latest(r, rank, to.chunk, sum);
    return post(r, rank, to,
                (mail_message){.folded = true, .wire = step->wire_out, .term = sum});
}

static ring_status run_fold(run *r, int rank, const plan_step *step)
{
    int32_t sum = TERM_NONE;
    RING_TRY(combine_inputs(r, rank, step, &sum));
    if (step->finish && (sum = term_finished(&r->terms, sum)) == TERM_NONE)
        return out_of_memory(r);
    for (int i = 0; i < step->outs; i++) {
        const plan_loc loc = plan_output(&r->cursors[rank], step, i);
        RING_TRY(loc.rank == rank ? write_chunk(r, rank, loc, sum)
                                  : post_result(r, rank, loc, step, sum));
    }
    return RING_OK;
}

static ring_status run_ack(run *r, int rank, const plan_step *step)
{
    const plan_loc to = plan_output(&r->cursors[rank], step, 0);
    const int32_t taken = mail_between(&r->mail, to.rank, rank)->taken;
    return post(r, rank, to, (mail_message){.ack = true, .sequence = taken});
}

/* Whether an acknowledgement is sent depends on what went before it, so both ends must mean
 * the same messages. */
static ring_status run_wait_ack(run *r, int rank, const plan_step *step)
{
    const int peer = plan_input(&r->cursors[rank], step, 0).rank;
    mail_message *m = mail_first(&r->mail, peer, rank);
    const int32_t sent = mail_between(&r->mail, rank, peer)->sent;
    if (!m->ack)
        return run_offence(r, rank, "expects an acknowledgement, but rank %d sends chunk %d", peer,
                           m->chunk);
    if (m->sequence != sent)
        return run_offence(r, rank, "waits for an acknowledgement of %d messages, but rank %d "
                           "acknowledges %d", sent, peer, m->sequence);
    take(r, m);
    return RING_OK;
}

static ring_status execute(run *r, int rank, const plan_step *step)
{
    switch (step->kind) {
    case PLAN_STEP_SEND:
        return run_send(r, rank, step);
    case PLAN_STEP_RECV:
        return run_recv(r, rank, step);
    case PLAN_STEP_COPY:
        return run_copy(r, rank, step);
    case PLAN_STEP_FOLD:
        return run_fold(r, rank, step);
    case PLAN_STEP_ACK:
        return run_ack(r, rank, step);
    case PLAN_STEP_WAIT_ACK:
        return run_wait_ack(r, rank, step);
    }
    return run_offence(r, rank, "unknown kind of step");
}

/* ---- Running ------------------------------------------------------------------- */

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
        return out_of_memory(r);
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
    RING_TRY(execute(r, rank, step));
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
            return run_wrong(r, "rank %d never takes the %s %d that rank %d sends in step %d", m->to,
                             m->ack ? "acknowledgement of" : "chunk", m->ack ? m->from : m->chunk,
                             m->from, r->events[m->sender].index - 1);
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
                return out_of_memory(r);
            r->cells[run_place(r, rank, PLAN_SRC, chunk)] = leaf;
            note_latest(r, rank, chunk, leaf);
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
        return out_of_memory(r);
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

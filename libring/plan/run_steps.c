/* SPDX-License-Identifier: Apache-2.0
 * One step on symbols: where its operands come from and go to, and what is wrong with them. */
#include "run.h"

#include "steps.h"

/* ---- Memory -------------------------------------------------------------------- */

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

static ring_status write_chunk(run *r, int rank, plan_loc loc, int32_t id)
{
    if (!run_has(r->plans[rank], loc.buffer, loc.chunk))
        return run_offence(r, rank, "this rank has no %s chunk %d", step_buffer_name(loc.buffer),
                           loc.chunk);
    r->cells[run_place(r, rank, loc.buffer, loc.chunk)] = id;
    run_note_latest(r, rank, loc.chunk, id);
    return RING_OK;
}

/* ---- Messages ------------------------------------------------------------------ */

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
    return *sum != TERM_NONE ? RING_OK : run_no_memory(r);
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
    run_note_latest(r, rank, to.chunk, sum);
    return post(r, rank, to,
                (mail_message){.folded = true, .wire = step->wire_out, .term = sum});
}

static ring_status run_fold(run *r, int rank, const plan_step *step)
{
    int32_t sum = TERM_NONE;
    RING_TRY(combine_inputs(r, rank, step, &sum));
    if (step->finish && (sum = term_finished(&r->terms, sum)) == TERM_NONE)
        return run_no_memory(r);
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

ring_status run_execute(run *r, int rank, const plan_step *step)
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

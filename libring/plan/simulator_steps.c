/* SPDX-License-Identifier: Apache-2.0
 * Executes single steps on symbols: reads and writes their operands, and reports steps that are
 * wrong. */
#include "simulator_steps.h"

#include "step_text.h"

/* ---- Memory -------------------------------------------------------------------- */

static ring_status has_chunk(const simulation *s, int rank, plan_buffer buffer, int chunk)
{
    if (sim_has(s->plans[rank], buffer, chunk))
        return RING_OK;
    return sim_offence(s, rank, "uses %s chunk %d, which the rank does not have",
                       step_buffer_name(buffer), chunk);
}

/* Reads chunk @p i of a local range. */
static ring_status read_chunk(const simulation *s, int rank, plan_loc loc, int i, int32_t *id)
{
    const int chunk = loc.chunk + i;
    RING_TRY(has_chunk(s, rank, loc.buffer, chunk));
    *id = sim_held(s, rank, loc.buffer, chunk);
    return *id != SYMBOL_NONE ? RING_OK
                              : sim_offence(s, rank, "reads %s chunk %d before it is written",
                                            step_buffer_name(loc.buffer), chunk);
}

/* In collectives that reduce, a chunk must be finished if and only if it is written to dst. */
static ring_status write_chunk(simulation *s, int rank, plan_loc loc, int i, int32_t id)
{
    const int chunk = loc.chunk + i;
    const bool sums = plan_facts_of(s->plans[rank]->collective)->reduces;
    RING_TRY(has_chunk(s, rank, loc.buffer, chunk));
    if (sums && (loc.buffer == PLAN_DST) != (s->symbols.nodes[id].kind == SYMBOL_FINISHED))
        return sim_offence(s, rank, "puts %s chunk into %s",
                           loc.buffer == PLAN_DST ? "an unfinished" : "a finished",
                           step_buffer_name(loc.buffer));
    s->cells[sim_place(s, rank, loc.buffer, chunk)] = id;
    sim_note_latest(s, rank, chunk, id);
    return RING_OK;
}

/* ---- Messages ------------------------------------------------------------------ */

static ring_status match(const simulation *s, int rank, const queue_message *m, plan_loc loc)
{
    char expected[STEP_RANGE_TEXT], sent[STEP_RANGE_TEXT];
    if (m->loc.chunk != loc.chunk || m->loc.chunks != loc.chunks)
        return sim_offence(s, rank, "expects chunk %s, but rank %d sends chunk %s",
                           step_range_text(loc, expected), m->from, step_range_text(m->loc, sent));
    if (m->loc.buffer != loc.buffer)
        return sim_offence(s, rank, "takes a message for %s, but rank %d sends it for %s",
                           step_buffer_name(loc.buffer), m->from, step_buffer_name(m->loc.buffer));
    if (m->loc.wire != loc.wire)
        return sim_offence(s, rank, "takes the %s, but rank %d sends the %s",
                           loc.wire == PLAN_WIRE_ACC ? "accumulator's type" : "data type", m->from,
                           loc.wire == PLAN_WIRE_ACC ? "data type" : "accumulator's type");
    return RING_OK;
}

static void take(simulation *s, queue_message *m)
{
    queue_between(&s->queues, m->from, m->to)->round = s->round;
    s->taken[s->taken_count++] = (int32_t)(m - s->queues.messages);
    queue_take(&s->queues, m, s->event_count - 1);
}

static int32_t symbol_in(const simulation *s, const queue_message *m, int i)
{
    return s->carried[m->first_symbol + i];
}

/* Posts @p message with the next symbols of simulation.carried. */
static ring_status post(simulation *s, int rank, plan_loc to, queue_message message)
{
    message.from = rank;
    message.to = to.rank;
    message.loc = to;
    message.sender = s->event_count - 1;
    message.round = s->round;
    message.first_symbol = s->carried_count;
    s->carried_count += to.chunks;
    return queue_post(&s->queues, &message);
}

/* ---- Steps --------------------------------------------------------------------- */

static ring_status run_send(simulation *s, int rank, const plan_step *step)
{
    const plan_cursor *at = &s->cursors[rank];
    const plan_loc from = plan_input(at, step, 0);
    RING_TRY(sim_carry(s, from.chunks));
    for (int i = 0; i < from.chunks; i++)
        RING_TRY(read_chunk(s, rank, from, i, &s->carried[s->carried_count + i]));
    return post(s, rank, plan_output(at, step, 0),
                (queue_message){.reads = !step->eager,
                                .source = from.buffer,
                                .borrowed = !step->eager});
}

static ring_status run_recv(simulation *s, int rank, const plan_step *step)
{
    const plan_cursor *at = &s->cursors[rank];
    const plan_loc from = plan_input(at, step, 0), to = plan_output(at, step, 0);
    queue_message *m = queue_first(&s->queues, from.rank, rank);
    RING_TRY(match(s, rank, m, from));
    take(s, m);
    for (int i = 0; i < to.chunks; i++)
        RING_TRY(write_chunk(s, rank, to, i, symbol_in(s, m, i)));
    return RING_OK;
}

static ring_status run_copy(simulation *s, int rank, const plan_step *step)
{
    const plan_cursor *at = &s->cursors[rank];
    const plan_loc from = plan_input(at, step, 0), to = plan_output(at, step, 0);
    const int32_t shift = sim_place(s, rank, from.buffer, from.chunk) -
                          sim_place(s, rank, to.buffer, to.chunk);
    if (shift != 0 && shift < from.chunks && -shift < from.chunks)
        return sim_offence(s, rank, "copies a range onto a part of itself");
    for (int i = 0; i < from.chunks; i++) {
        int32_t id;
        RING_TRY(read_chunk(s, rank, from, i, &id));
        RING_TRY(write_chunk(s, rank, to, i, id));
    }
    return RING_OK;
}

static ring_status combine(simulation *s, int rank, int32_t id, int32_t *sum)
{
    const symbol *v = &s->symbols.nodes[id];
    if (v->kind == SYMBOL_FINISHED)
        return sim_offence(s, rank, "folds chunk %d, which is already finished", v->chunk);
    if (*sum == SYMBOL_NONE) {
        *sum = id;
        return RING_OK;
    }
    if (v->chunk != s->symbols.nodes[*sum].chunk)
        return sim_offence(s, rank, "adds chunk %d to chunk %d", v->chunk,
                           s->symbols.nodes[*sum].chunk);
    const uint64_t twice = v->ranks & s->symbols.nodes[*sum].ranks;
    if (twice != 0)
        return sim_offence(s, rank, "adds rank %d's chunk %d twice", __builtin_ctzll(twice),
                           v->chunk);
    *sum = symbol_sum(&s->symbols, *sum, id);
    return *sum != SYMBOL_NONE ? RING_OK : sim_no_memory(s);
}

static ring_status add_input(simulation *s, int rank, plan_loc in)
{
    queue_message *m = in.rank != rank ? queue_first(&s->queues, in.rank, rank) : NULL;
    if (m != NULL) {
        RING_TRY(match(s, rank, m, in));
        take(s, m);
    }
    for (int i = 0; i < in.chunks; i++) {
        int32_t id;
        if (m != NULL)
            id = symbol_in(s, m, i);
        else
            RING_TRY(read_chunk(s, rank, in, i, &id));
        RING_TRY(combine(s, rank, id, &s->sums[i]));
    }
    return RING_OK;
}

static ring_status put_result(simulation *s, int rank, const plan_step *step, int i)
{
    const plan_loc to = plan_output(&s->cursors[rank], step, i);
    RING_TRY(sim_carry(s, to.chunks));
    for (int k = 0; k < to.chunks; k++) {
        int32_t id = s->sums[k];
        if (to.finish && (id = symbol_finished(&s->symbols, id)) == SYMBOL_NONE)
            return sim_no_memory(s);
        s->carried[s->carried_count + k] = id;
        if (to.rank == rank)
            RING_TRY(write_chunk(s, rank, to, k, id));
        else
            sim_note_latest(s, rank, to.chunk + k, id);
    }
    if (to.rank == rank)
        return RING_OK;
    /* A result that is also kept locally may be carried from there. A store needs the address of
     * the peer's buffer, which the peer's first message brings. */
    return post(s, rank, to,
                (queue_message){.reads = !plan_relays(&s->cursors[rank], step, i),
                                .source = to.finish ? PLAN_DST : PLAN_SCRATCH,
                                .stores = to.buffer == PLAN_DST &&
                                          queue_between(&s->queues, to.rank, rank)->taken > 0});
}

static ring_status run_fold(simulation *s, int rank, const plan_step *step)
{
    for (int i = plan_input(&s->cursors[rank], step, 0).chunks - 1; i >= 0; i--)
        s->sums[i] = SYMBOL_NONE;
    for (int i = 0; i < step->ins; i++)
        RING_TRY(add_input(s, rank, plan_input(&s->cursors[rank], step, i)));
    for (int i = 0; i < step->outs; i++)
        RING_TRY(put_result(s, rank, step, i));
    return RING_OK;
}

ring_status sim_execute(simulation *s, int rank, const plan_step *step)
{
    queue_message *m;
    switch ((plan_kind)step->kind) {
    case PLAN_STEP_SEND:
        return run_send(s, rank, step);
    case PLAN_STEP_RECV:
        return run_recv(s, rank, step);
    case PLAN_STEP_COPY:
        return run_copy(s, rank, step);
    case PLAN_STEP_FOLD:
        return run_fold(s, rank, step);
    case PLAN_STEP_WAIT:
        while ((m = queue_release(&s->queues, rank, step->peer, step->back)) != NULL)
            m->released = s->event_count - 1;
        return RING_OK;
    }
    return sim_offence(s, rank, "is of an unknown kind");
}

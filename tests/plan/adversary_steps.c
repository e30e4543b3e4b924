/* SPDX-License-Identifier: Apache-2.0
 * Steps on the adversary's memory, element by element. */
#include "adversary_world.h"

#include <stdlib.h>
#include <string.h>

/* Of the slice that @p a is at. */
static int piece_of(const world *w, const actor *a, plan_loc loc)
{
    return a->slice * w->chunks + loc.chunk;
}

static word *chunk_of(const world *w, const actor *a, plan_loc loc)
{
    return (loc.buffer == PLAN_SRC ? a->src : a->dst) + piece_of(w, a, loc) * ELEMENTS;
}

/* ---- Messages ------------------------------------------------------------------ */

static int post(world *w, message m)
{
    const int id = w->message_count++;
    if (id >= MOST_MESSAGES)
        abort();
    m.next = NONE;
    w->messages[id] = m;
    if (w->first[m.from][m.to] == NONE)
        w->first[m.from][m.to] = id;
    else
        w->messages[w->last[m.from][m.to]].next = id;
    w->last[m.from][m.to] = id;
    return id;
}

static message *oldest(world *w, int from, int to)
{
    const int id = w->first[from][to];
    return id != NONE ? &w->messages[id] : NULL;
}

/* @return true if an element of it can be taken. */
static bool can_take(world *w, const message *m, int chunk, int position)
{
    if (m == NULL)
        return false;
    if (m->way == ACK || m->chunk != chunk) {
        w->wrong = "another message came than the one expected";
        return false;
    }
    return m->way != BY_VALUE || w->elements == 0 || m->here > position;
}

static word take_element(world *w, const message *m, int position)
{
    if (m->bounded)
        w->on_link[m->from][m->to]--;
    return m->way == BY_REFERENCE ? m->memory[position] : m->data[position];
}

static void consume(world *w, message *m)
{
    actor *a = &w->actors[m->to];
    a->heard[m->from] = true;
    a->was_referred[m->from] |= m->way == BY_REFERENCE;
    w->first[m->from][m->to] = m->next;
}

/* ---- Steps, element by element; each returns true when it is done -------------------- */

static bool send_step(world *w, int rank, const plan_step *step)
{
    actor *a = &w->actors[rank];
    const plan_loc to = plan_output(&a->at, step, 0);
    const bool refer = plans_random(&w->random, 4) < w->reference_odds && w->elements > 0;
    post(w, (message){.from = rank, .to = to.rank, .chunk = to.chunk,
                      .way = refer ? BY_REFERENCE : BY_VALUE, .lazy = true, .bounded = !refer,
                      .memory = chunk_of(w, a, plan_input(&a->at, step, 0))});
    a->referred[to.rank] |= refer;
    return true;
}

static bool recv_step(world *w, int rank, const plan_step *step, bool *moved)
{
    actor *a = &w->actors[rank];
    const plan_loc from = plan_input(&a->at, step, 0), to = plan_output(&a->at, step, 0);
    message *m = oldest(w, from.rank, rank);
    if (!can_take(w, m, from.chunk, a->position))
        return false;
    *moved = true;
    if (m->way != STORED && a->position < w->elements)
        chunk_of(w, a, to)[a->position] = take_element(w, m, a->position);
    if (++a->position < w->elements)
        return false;
    consume(w, m);
    return true;
}

static bool copy_step(world *w, int rank, const plan_step *step)
{
    actor *a = &w->actors[rank];
    if (!w->in_place)
        memcpy(chunk_of(w, a, plan_output(&a->at, step, 0)),
               chunk_of(w, a, plan_input(&a->at, step, 0)), ELEMENTS * sizeof(word));
    return true;
}

static bool inputs_here(world *w, int rank, const plan_step *step)
{
    const actor *a = &w->actors[rank];
    for (int i = 0; i < step->ins; i++) {
        const plan_loc in = plan_input(&a->at, step, i);
        if (in.rank != rank && !can_take(w, oldest(w, in.rank, rank), in.chunk, a->position))
            return false;
    }
    return true;
}

/* A relay has no buffer: it waits for room, behind what was posted before. */
static bool room_to_relay(world *w, int rank, const plan_step *step)
{
    for (int i = 0; i < step->outs && w->elements > 0; i++) {
        const plan_loc out = plan_output(&w->actors[rank].at, step, i);
        if (out.buffer == PLAN_WIRE && (world_to_carry(w, rank, out.rank) != NULL ||
                                        !world_has_room(w, rank, out.rank)))
            return false;
    }
    return true;
}

static word fold_element(world *w, int rank, const plan_step *step)
{
    actor *a = &w->actors[rank];
    word sum = 0;
    for (int i = 0; i < step->ins; i++) {
        const plan_loc in = plan_input(&a->at, step, i);
        const word x = in.rank == rank ? chunk_of(w, a, in)[a->position]
                                       : take_element(w, oldest(w, in.rank, rank), a->position);
        sum = i == 0 ? x : combined(sum, x);
    }
    return step->finish ? finished(sum) : sum;
}

static bool keeps_result(const actor *a, int rank, const plan_step *step)
{
    for (int i = 0; i < step->outs; i++)
        if (plan_output(&a->at, step, i).rank == rank)
            return true;
    return false;
}

/* A result for a peer's dst is stored there, or sent as it comes, or sent from the own copy. */
static void choose_ways(world *w, int rank, const plan_step *step)
{
    actor *a = &w->actors[rank];
    for (int i = 0; i < step->ins; i++)
        a->heard[plan_input(&a->at, step, i).rank] = true;
    for (int i = 0; i < step->outs; i++) {
        const plan_loc out = plan_output(&a->at, step, i);
        const bool store = out.buffer == PLAN_DST && a->heard[out.rank] &&
                           plans_random(&w->random, 4) < w->store_odds;
        a->out_way[i] = store ? STORED : BY_VALUE;
        a->out_message[i] = NONE;
        if (out.rank == rank || store)
            continue;
        if (out.buffer == PLAN_DST && keeps_result(a, rank, step) && plans_random(&w->random, 2))
            continue;
        a->out_message[i] = post(w, (message){.from = rank, .to = out.rank, .chunk = out.chunk,
                                              .way = BY_VALUE, .bounded = out.buffer == PLAN_WIRE});
    }
}

static void put_element(world *w, int rank, const plan_step *step, word x)
{
    actor *a = &w->actors[rank];
    for (int i = 0; i < step->outs; i++) {
        const plan_loc out = plan_output(&a->at, step, i);
        actor *owner = &w->actors[out.rank];
        if (out.rank == rank || a->out_way[i] == STORED) {
            if (!owner->started || owner->ended)
                w->wrong = "stored into a rank that is not in the call";
            owner->dst[piece_of(w, a, out) * ELEMENTS + a->position] = x;
        } else if (a->out_message[i] != NONE) {
            message *m = &w->messages[a->out_message[i]];
            m->data[m->here++] = x;
            w->on_link[rank][out.rank] += m->bounded;
        }
    }
}

static void end_fold(world *w, int rank, const plan_step *step)
{
    actor *a = &w->actors[rank];
    for (int i = 0; i < step->ins; i++) {
        const int from = plan_input(&a->at, step, i).rank;
        if (from != rank)
            consume(w, oldest(w, from, rank));
    }
    for (int i = 0; i < step->outs; i++) {
        const plan_loc out = plan_output(&a->at, step, i);
        if (out.rank != rank && a->out_message[i] == NONE)
            post(w, (message){.from = rank, .to = out.rank, .chunk = out.chunk,
                              .way = a->out_way[i], .lazy = true,
                              .bounded = a->out_way[i] == BY_VALUE,
                              .memory = chunk_of(w, a, out)});
    }
}

static bool fold_step(world *w, int rank, const plan_step *step, bool *moved)
{
    actor *a = &w->actors[rank];
    if (!inputs_here(w, rank, step) || !room_to_relay(w, rank, step))
        return false;
    *moved = true;
    if (a->position == 0)
        choose_ways(w, rank, step);
    if (w->elements > 0)
        put_element(w, rank, step, fold_element(w, rank, step));
    if (++a->position < w->elements)
        return false;
    end_fold(w, rank, step);
    return true;
}

static bool ack_step(world *w, int rank, const plan_step *step)
{
    actor *a = &w->actors[rank];
    const int peer = plan_output(&a->at, step, 0).rank;
    if (a->was_referred[peer])
        post(w, (message){.from = rank, .to = peer, .way = ACK});
    return true;
}

static bool wait_ack_step(world *w, int rank, const plan_step *step)
{
    actor *a = &w->actors[rank];
    const int peer = plan_input(&a->at, step, 0).rank;
    message *m = oldest(w, peer, rank);
    if (!a->referred[peer])
        return true;
    if (m == NULL)
        return false;
    if (m->way != ACK)
        w->wrong = "a message came instead of an acknowledgement";
    w->first[peer][rank] = m->next;
    return true;
}

bool world_step(world *w, int rank, const plan_step *step, bool *moved)
{
    switch (step->kind) {
    case PLAN_STEP_SEND:
        return send_step(w, rank, step);
    case PLAN_STEP_RECV:
        return recv_step(w, rank, step, moved);
    case PLAN_STEP_COPY:
        return copy_step(w, rank, step);
    case PLAN_STEP_FOLD:
        return fold_step(w, rank, step, moved);
    case PLAN_STEP_ACK:
        return ack_step(w, rank, step);
    default:
        return wait_ack_step(w, rank, step);
    }
}

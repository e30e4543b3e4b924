/* SPDX-License-Identifier: Apache-2.0
 * Steps on the adversary's memory, element by element. */
#include "adversary_world.h"

#include <stdlib.h>
#include <string.h>

/* Of the slice that @p a is at; all slices have one scratch. */
static word *range_of(const world *w, const actor *a, plan_loc loc)
{
    const int piece = a->slice * w->chunks + loc.chunk;
    if (loc.buffer == PLAN_SCRATCH)
        return a->scratch + loc.chunk * ELEMENTS;
    return (loc.buffer == PLAN_SRC ? a->src : a->dst) + piece * ELEMENTS;
}

static int length_of(const world *w, plan_loc loc)
{
    return loc.chunks * w->elements;
}

/* ---- Messages ------------------------------------------------------------------ */

static int post(world *w, int from, plan_loc to, message m)
{
    const int id = w->message_count++;
    if (id >= MOST_MESSAGES)
        abort();
    m.from = from;
    m.to = to.rank;
    m.chunk = to.chunk;
    m.chunks = to.chunks;
    m.next = NONE;
    m.data = m.way == BY_VALUE ? malloc((size_t)to.chunks * ELEMENTS * sizeof *m.data) : NULL;
    w->messages[id] = m;
    if (w->first[from][to.rank] == NONE)
        w->first[from][to.rank] = id;
    else
        w->messages[w->last[from][to.rank]].next = id;
    w->last[from][to.rank] = id;
    return id;
}

static message *oldest(world *w, int from, int to)
{
    const int id = w->first[from][to];
    return id != NONE ? &w->messages[id] : NULL;
}

/* @return true if an element of it can be taken. */
static bool can_take(world *w, const message *m, plan_loc loc, int position)
{
    if (m == NULL)
        return false;
    if (m->chunk != loc.chunk || m->chunks != loc.chunks) {
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
    w->actors[m->to].heard[m->from] = true;
    w->first[m->from][m->to] = m->next;
    m->taken = true;
}

static void add_element(world *w, message *m, word x)
{
    m->data[m->here++] = x;
    w->on_link[m->from][m->to] += m->bounded;
}

/* A message without a buffer waits for room, behind earlier ones. */
static bool has_room(world *w, int from, int to)
{
    return w->elements == 0 || (world_to_carry(w, from, to) == NULL && world_has_room(w, from, to));
}

/* ---- Steps, element by element; each returns true when it is done -------------------- */

static bool send_step(world *w, int rank, const plan_step *step)
{
    actor *a = &w->actors[rank];
    const bool refer = plans_random(&w->random, 4) < w->reference_odds && w->elements > 0;
    post(w, rank, plan_output(&a->at, step, 0),
         (message){.way = refer ? BY_REFERENCE : BY_VALUE,
                   .lazy = true,
                   .lent = true,
                   .bounded = !refer,
                   .memory = range_of(w, a, plan_input(&a->at, step, 0))});
    return true;
}

static bool eager_step(world *w, int rank, const plan_step *step, bool *moved)
{
    actor *a = &w->actors[rank];
    const plan_loc from = plan_input(&a->at, step, 0), to = plan_output(&a->at, step, 0);
    if (!has_room(w, rank, to.rank))
        return false;
    *moved = true;
    if (a->position == 0)
        a->out_message[0] = post(w, rank, to, (message){.way = BY_VALUE, .bounded = true});
    if (w->elements > 0)
        add_element(w, &w->messages[a->out_message[0]], range_of(w, a, from)[a->position]);
    return ++a->position >= length_of(w, to);
}

static bool recv_step(world *w, int rank, const plan_step *step, bool *moved)
{
    actor *a = &w->actors[rank];
    const plan_loc from = plan_input(&a->at, step, 0), to = plan_output(&a->at, step, 0);
    message *m = oldest(w, from.rank, rank);
    if (!can_take(w, m, from, a->position))
        return false;
    *moved = true;
    if (m->way != STORED && w->elements > 0)
        range_of(w, a, to)[a->position] = take_element(w, m, a->position);
    if (++a->position < length_of(w, to))
        return false;
    consume(w, m);
    return true;
}

static bool copy_step(world *w, int rank, const plan_step *step)
{
    actor *a = &w->actors[rank];
    const plan_loc from = plan_input(&a->at, step, 0);
    word *to = range_of(w, a, plan_output(&a->at, step, 0));
    if (to != range_of(w, a, from))
        memcpy(to, range_of(w, a, from), (size_t)length_of(w, from) * sizeof(word));
    return true;
}

static bool inputs_here(world *w, int rank, const plan_step *step)
{
    const actor *a = &w->actors[rank];
    for (int i = 0; i < step->ins; i++) {
        const plan_loc in = plan_input(&a->at, step, i);
        if (in.rank != rank && !can_take(w, oldest(w, in.rank, rank), in, a->position))
            return false;
    }
    return true;
}

static word sum_element(world *w, int rank, const plan_step *step)
{
    actor *a = &w->actors[rank];
    word sum = 0;
    for (int i = 0; i < step->ins; i++) {
        const plan_loc in = plan_input(&a->at, step, i);
        const word x = in.rank == rank ? range_of(w, a, in)[a->position]
                                       : take_element(w, oldest(w, in.rank, rank), a->position);
        sum = i == 0 ? x : combined(sum, x);
    }
    return sum;
}

/* The local output that holds the same as output @p i; NONE if there is none. */
static int kept_as(const actor *a, int rank, const plan_step *step, int i)
{
    for (int k = 0; k < step->outs; k++) {
        const plan_loc kept = plan_output(&a->at, step, k);
        if (kept.rank == rank && kept.finish == plan_output(&a->at, step, i).finish)
            return k;
    }
    return NONE;
}

/* A result for a peer's dst is stored there; any result is sent from the own copy, if there is
 * one, or as it comes. */
static void choose_ways(world *w, int rank, const plan_step *step)
{
    actor *a = &w->actors[rank];
    for (int i = 0; i < step->ins; i++)
        a->heard[plan_input(&a->at, step, i).rank] = true;
    for (int i = 0; i < step->outs; i++) {
        const plan_loc out = plan_output(&a->at, step, i);
        const bool store = out.buffer == PLAN_DST && a->heard[out.rank] &&
                           plans_random(&w->random, 4) < w->store_odds;
        const bool relay = kept_as(a, rank, step, i) == NONE;
        a->out_way[i] = store ? STORED : BY_VALUE;
        a->out_message[i] = NONE;
        if (out.rank != rank && !store && (relay || plans_random(&w->random, 2)))
            a->out_message[i] = post(w, rank, out, (message){.way = BY_VALUE, .bounded = relay});
    }
}

static bool room_to_relay(world *w, int rank, const plan_step *step)
{
    const actor *a = &w->actors[rank];
    for (int i = 0; i < step->outs; i++) {
        const bool relayed = a->out_message[i] != NONE && w->messages[a->out_message[i]].bounded;
        if (relayed && !has_room(w, rank, plan_output(&a->at, step, i).rank))
            return false;
    }
    return true;
}

static void put_element(world *w, int rank, const plan_step *step, word sum)
{
    actor *a = &w->actors[rank];
    for (int i = 0; i < step->outs; i++) {
        const plan_loc out = plan_output(&a->at, step, i);
        const word x = out.finish ? finished(sum) : sum;
        actor *owner = &w->actors[out.rank];
        if (out.rank == rank) {
            range_of(w, a, out)[a->position] = x;
        } else if (a->out_way[i] == STORED) {
            if (!owner->started || owner->ended)
                w->wrong = "stored into a rank that is not in the call";
            owner->dst[(a->slice * w->chunks + out.chunk) * ELEMENTS + a->position] = x;
        } else if (a->out_message[i] != NONE) {
            add_element(w, &w->messages[a->out_message[i]], x);
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
        const int kept = kept_as(a, rank, step, i);
        if (out.rank != rank && a->out_message[i] == NONE)
            post(w, rank, out,
                 (message){.way = a->out_way[i],
                           .lazy = true,
                           .bounded = a->out_way[i] == BY_VALUE,
                           .memory = kept == NONE
                                         ? NULL
                                         : range_of(w, a, plan_output(&a->at, step, kept))});
    }
}

/* The ways are chosen when the first elements have come, and then stay. */
static bool fold_step(world *w, int rank, const plan_step *step, bool *moved)
{
    actor *a = &w->actors[rank];
    if (!inputs_here(w, rank, step))
        return false;
    if (!a->chosen)
        choose_ways(w, rank, step);
    a->chosen = true;
    if (!room_to_relay(w, rank, step))
        return false;
    *moved = true;
    if (w->elements > 0)
        put_element(w, rank, step, sum_element(w, rank, step));
    if (++a->position < length_of(w, plan_output(&a->at, step, 0)))
        return false;
    a->chosen = false;
    end_fold(w, rank, step);
    return true;
}

static bool needs_chunk(const world *w, const message *m)
{
    if (m->way == BY_REFERENCE)
        return !m->taken;
    return m->way == BY_VALUE && m->lazy && m->here < world_length(w, m);
}

static bool wait_step(const world *w, int rank, const plan_step *step)
{
    int back = 0;
    for (int i = w->message_count - 1; i >= 0; i--) {
        const message *m = &w->messages[i];
        if (m->from == rank && m->to == step->peer && back++ >= step->back && needs_chunk(w, m))
            return false;
    }
    return true;
}

bool world_step(world *w, int rank, const plan_step *step, bool *moved)
{
    switch ((plan_kind)step->kind) {
    case PLAN_STEP_SEND:
        return step->eager ? eager_step(w, rank, step, moved) : send_step(w, rank, step);
    case PLAN_STEP_RECV:
        return recv_step(w, rank, step, moved);
    case PLAN_STEP_COPY:
        return copy_step(w, rank, step);
    case PLAN_STEP_FOLD:
        return fold_step(w, rank, step, moved);
    default:
        return wait_step(w, rank, step);
    }
}

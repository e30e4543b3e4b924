/* SPDX-License-Identifier: Apache-2.0
 * See adversary.h. Elements are words; combining them is a hash that depends on the order. */
#include "adversary.h"

#include <stdlib.h>
#include <string.h>

enum { ELEMENTS = 3, NONE = -1, MOST_MESSAGES = 1024 };

typedef uint64_t word;
typedef enum way { BY_VALUE, BY_REFERENCE, STORED, ACK } way;

typedef struct message {
    int from, to, chunk, next;
    way way;
    bool lazy;          /* by value: the link still reads it from memory */
    const word *memory; /* of the sender */
    word data[ELEMENTS];
    int here;           /* elements that have arrived */
} message;

typedef struct actor {
    plan_cursor at;
    int position;
    bool started, ended;
    word *src, *dst;
    word *result;                         /* dst when it ended */
    bool referred[MOST_RANKS];            /* sent a reference to */
    bool was_referred[MOST_RANKS];        /* took a reference from */
    bool heard[MOST_RANKS];               /* knows the peer's dst */
    way out_way[MOST_RANKS];              /* of the present fold */
    int out_message[MOST_RANKS];
} actor;

typedef struct world {
    const plan_set *set;
    bool in_place;
    int chunks, elements;
    uint64_t random;
    unsigned reference_odds, store_odds; /* of 4 */
    actor actors[MOST_RANKS];
    message messages[MOST_MESSAGES];
    int message_count;
    int carried[MOST_RANKS]; /* no earlier message of a rank is still to be carried */
    int first[MOST_RANKS][MOST_RANKS], last[MOST_RANKS][MOST_RANKS];
    const char *wrong;
} world;

/* ---- Words --------------------------------------------------------------------- */

static word mix(word x)
{
    x = (x ^ x >> 31) * 0x9e3779b97f4a7c15u;
    return x ^ x >> 29;
}

static word source(int rank, int chunk, int position)
{
    return mix((word)rank * 1000003 + (word)chunk * 1009 + (word)position + 1);
}

static word combined(word a, word b)
{
    return mix(3 * a + mix(b));
}

static word finished(word a)
{
    return mix(a ^ 0x5bd1e995);
}

static void fill_with_rubbish(world *w, word *memory)
{
    for (int i = 0; i < w->chunks * ELEMENTS; i++)
        memory[i] = mix(w->random += 77);
}

/* ---- Memory -------------------------------------------------------------------- */

static word *chunk_of(actor *a, plan_loc loc)
{
    return (loc.buffer == PLAN_SRC ? a->src : a->dst) + loc.chunk * ELEMENTS;
}

static bool owns_source(const plan *p, int chunk)
{
    if (p->collective == PLAN_ALL_GATHER)
        return chunk / (p->chunks / p->ranks) == p->rank;
    return p->collective != PLAN_BROADCAST || p->rank == p->root;
}

static bool owns_result(const plan *p, int chunk)
{
    if (p->collective == PLAN_REDUCE_SCATTER)
        return chunk / (p->chunks / p->ranks) == p->rank;
    return p->collective != PLAN_REDUCE || p->rank == p->root;
}

/* The caller enters: until now its buffers were somebody else's. */
static void start(world *w, int rank)
{
    actor *a = &w->actors[rank];
    a->started = true;
    fill_with_rubbish(w, a->dst);
    for (int chunk = 0; chunk < w->chunks; chunk++)
        for (int i = 0; i < ELEMENTS && owns_source(w->set->of[rank], chunk); i++)
            a->src[chunk * ELEMENTS + i] = source(rank, chunk, i);
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

static word element_of(const message *m, int position)
{
    return m->way == BY_REFERENCE ? m->memory[position] : m->data[position];
}

static void consume(world *w, message *m)
{
    actor *a = &w->actors[m->to];
    a->heard[m->from] = true;
    a->was_referred[m->from] |= m->way == BY_REFERENCE;
    w->first[m->from][m->to] = m->next;
}

static bool is_to_carry(const world *w, const message *m, int from)
{
    return m->from == from && m->way == BY_VALUE && m->lazy && m->here < w->elements;
}

/* The rank's oldest message with something left to carry; its messages leave in order. */
static message *next_to_carry(world *w, int from)
{
    int *i = &w->carried[from];
    while (*i < w->message_count && !is_to_carry(w, &w->messages[*i], from))
        ++*i;
    return *i < w->message_count ? &w->messages[*i] : NULL;
}

/* The link carries one more element, read from memory only now. */
static bool carry_any(world *w, int from)
{
    message *m = next_to_carry(w, from);
    if (m == NULL)
        return false;
    m->data[m->here] = m->memory[m->here];
    m->here++;
    return true;
}

/* ---- Steps, element by element; each returns true when it is done -------------------- */

static bool send_step(world *w, int rank, const plan_step *step)
{
    actor *a = &w->actors[rank];
    const plan_loc to = plan_output(&a->at, step, 0);
    const bool refer = plans_random(&w->random, 4) < w->reference_odds && w->elements > 0;
    post(w, (message){.from = rank, .to = to.rank, .chunk = to.chunk,
                      .way = refer ? BY_REFERENCE : BY_VALUE, .lazy = true,
                      .memory = chunk_of(a, plan_input(&a->at, step, 0))});
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
        chunk_of(a, to)[a->position] = element_of(m, a->position);
    if (++a->position < w->elements)
        return false;
    consume(w, m);
    return true;
}

static bool copy_step(world *w, int rank, const plan_step *step)
{
    actor *a = &w->actors[rank];
    if (!w->in_place)
        memcpy(chunk_of(a, plan_output(&a->at, step, 0)), chunk_of(a, plan_input(&a->at, step, 0)),
               ELEMENTS * sizeof(word));
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

static word fold_element(world *w, int rank, const plan_step *step)
{
    actor *a = &w->actors[rank];
    word sum = 0;
    for (int i = 0; i < step->ins; i++) {
        const plan_loc in = plan_input(&a->at, step, i);
        const word x = in.rank == rank ? chunk_of(a, in)[a->position]
                                       : element_of(oldest(w, in.rank, rank), a->position);
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
                                              .way = BY_VALUE});
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
            chunk_of(owner, out)[a->position] = x;
        } else if (a->out_message[i] != NONE) {
            message *m = &w->messages[a->out_message[i]];
            m->data[m->here++] = x;
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
                              .way = a->out_way[i], .lazy = true, .memory = chunk_of(a, out)});
    }
}

static bool fold_step(world *w, int rank, const plan_step *step, bool *moved)
{
    actor *a = &w->actors[rank];
    if (!inputs_here(w, rank, step))
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

static bool run_step(world *w, int rank, const plan_step *step, bool *moved)
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

/* ---- Running ------------------------------------------------------------------- */

/* The caller takes its result and uses the buffers for something else. */
static bool end(world *w, int rank)
{
    actor *a = &w->actors[rank];
    if (a->ended || next_to_carry(w, rank) != NULL)
        return false;
    a->ended = true;
    memcpy(a->result, a->dst, (size_t)w->chunks * ELEMENTS * sizeof(word));
    fill_with_rubbish(w, a->src);
    fill_with_rubbish(w, a->dst);
    for (int peer = 0; peer < w->set->ranks; peer++)
        if (w->set->of[0]->collective == PLAN_BARRIER && !w->actors[peer].started)
            w->wrong = "a rank left the barrier before all had come";
    return true;
}

static bool act(world *w, int rank)
{
    actor *a = &w->actors[rank];
    bool moved = false;
    if (!a->started) {
        start(w, rank);
        return true;
    }
    const plan_step *step = plan_at(&a->at);
    if (step == NULL)
        return end(w, rank);
    if (!run_step(w, rank, step, &moved))
        return moved;
    plan_next(&a->at);
    a->position = 0;
    return true;
}

/* Ranks are actors 0 .. ranks - 1, the links of the ranks' messages the ones behind. */
static bool act_any(world *w, int number)
{
    const int ranks = w->set->ranks;
    if (number < ranks)
        return act(w, number);
    return carry_any(w, number - ranks);
}

static bool all_ended(const world *w)
{
    for (int rank = 0; rank < w->set->ranks; rank++)
        if (!w->actors[rank].ended)
            return false;
    return true;
}

static void run(world *w)
{
    const uint32_t actors = 2 * (uint32_t)w->set->ranks;
    static const uint32_t slowness[] = {1, 1, 4, 40};
    uint32_t slow[2 * MOST_RANKS];
    for (uint32_t i = 0; i < actors; i++)
        slow[i] = slowness[plans_random(&w->random, 4)];
    for (int idle = 0; !all_ended(w) && w->wrong == NULL; idle++) {
        const uint32_t number = plans_random(&w->random, actors);
        if (plans_random(&w->random, slow[number]) == 0 && act_any(w, (int)number))
            idle = 0;
        bool moved = idle < 20000;
        for (uint32_t i = 0; i < actors && !moved; i++)
            moved = act_any(w, (int)i);
        if (!moved)
            w->wrong = "ranks wait for ever";
    }
}

/* ---- Judging ------------------------------------------------------------------- */

static bool chunk_is_right(const world *w, int rank, int chunk, const int32_t *order)
{
    const plan *p = w->set->of[rank];
    const int owner = p->collective == PLAN_ALL_GATHER ? chunk / (p->chunks / p->ranks) : p->root;
    for (int i = 0; i < w->elements; i++) {
        word expected = source(owner, chunk, i);
        if (plan_reduces(p->collective)) {
            expected = source(order[0], chunk, i);
            for (int r = 1; r < p->ranks; r++)
                expected = combined(expected, source(order[r], chunk, i));
            expected = finished(expected);
        }
        if (w->actors[rank].result[chunk * ELEMENTS + i] != expected)
            return false;
    }
    return true;
}

static const char *judge(const world *w)
{
    int32_t order[MOST_RANKS];
    const plan *p = w->set->of[0];
    if (w->wrong != NULL || p->collective == PLAN_BARRIER)
        return w->wrong;
    for (int chunk = 0; chunk < w->chunks; chunk++) {
        if (plan_reduces(p->collective) &&
            plan_order((const plan *const *)w->set->of, p->ranks, chunk, order) != RING_OK)
            return fail_text();
        for (int rank = 0; rank < p->ranks; rank++)
            if (owns_result(w->set->of[rank], chunk) && !chunk_is_right(w, rank, chunk, order))
                return "a rank ended with wrong elements";
    }
    return NULL;
}

const char *adversary_run(const plan_set *set, bool in_place, uint64_t seed)
{
    static world w; /* large */
    const plan *p = set->of[0];
    const size_t words = (size_t)p->chunks * ELEMENTS, ranks = (size_t)set->ranks;
    word *memory = calloc(3 * words * ranks, sizeof *memory);
    if (memory == NULL)
        abort();
    memset(&w, 0, sizeof w);
    w.set = set;
    w.in_place = in_place;
    w.chunks = p->chunks;
    w.elements = p->collective == PLAN_BARRIER ? 0 : ELEMENTS;
    w.random = mix(seed + 1);
    w.reference_odds = plans_random(&w.random, 5);
    w.store_odds = plans_random(&w.random, 5);
    memset(w.first, 0xff, sizeof w.first); /* NONE */
    for (int rank = 0; rank < set->ranks; rank++) {
        actor *a = &w.actors[rank];
        a->at = plan_begin(set->of[rank]);
        a->src = memory + 3 * words * (size_t)rank;
        a->dst = in_place ? a->src : a->src + words;
        a->result = a->src + 2 * words;
        fill_with_rubbish(&w, a->src);
        fill_with_rubbish(&w, a->dst);
    }
    run(&w);
    const char *wrong = judge(&w);
    free(memory);
    return wrong;
}

const char *adversary_attack(const plan_set *set, int times)
{
    for (int i = 0; i < times; i++) {
        const char *wrong = adversary_run(set, i % 2 == 1, (uint64_t)i);
        if (wrong != NULL)
            return wrong;
    }
    return NULL;
}

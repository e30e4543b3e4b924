/* SPDX-License-Identifier: Apache-2.0
 * See adversary.h. */
#include "adversary.h"
#include "adversary_world.h"

#include <stdlib.h>
#include <string.h>

/* ---- Memory -------------------------------------------------------------------- */

/* A piece is what one slice covers of a chunk. */
static word source(int rank, int piece, int position)
{
    return mix((word)rank * 1000003 + (word)piece * 1009 + (word)position + 1);
}

static int memory_of_a_buffer(const world *w)
{
    return w->slices * w->chunks * ELEMENTS;
}

static void fill_with_rubbish(world *w, word *memory)
{
    for (int i = 0; i < memory_of_a_buffer(w); i++)
        memory[i] = mix(w->random += 77);
}

/* The rank that gives a chunk that is not combined. */
static int owner_of(const plan *p, int chunk)
{
    const bool of_root = p->collective == PLAN_BROADCAST || p->collective == PLAN_SCATTER;
    return of_root ? p->root : chunk / (p->chunks / p->ranks);
}

static bool owns_source(const plan *p, int chunk)
{
    return plan_facts_of(p->collective)->reduces || p->collective == PLAN_BARRIER ||
           owner_of(p, chunk) == p->rank;
}

static bool owns_result(const plan *p, int chunk)
{
    switch (p->collective) {
    case PLAN_REDUCE_SCATTER:
    case PLAN_SCATTER:
        return chunk / (p->chunks / p->ranks) == p->rank;
    case PLAN_ALL_TO_ALL:
        return chunk / (p->chunks / p->ranks / p->ranks) % p->ranks == p->rank;
    case PLAN_REDUCE:
    case PLAN_GATHER:
        return p->rank == p->root;
    case PLAN_EXSCAN:
        return p->rank > 0;
    default:
        return true;
    }
}

/* The caller enters: until now its buffers were somebody else's. */
static void start(world *w, int rank)
{
    actor *a = &w->actors[rank];
    a->started = true;
    fill_with_rubbish(w, a->dst);
    for (int piece = 0; piece < w->slices * w->chunks; piece++)
        for (int i = 0; i < ELEMENTS && owns_source(w->set->of[rank], piece % w->chunks); i++)
            a->src[piece * ELEMENTS + i] = source(rank, piece, i);
}

/* ---- Links --------------------------------------------------------------------- */

static bool is_to_carry(const world *w, const message *m, int from, int to)
{
    return m->from == from && m->to == to && m->way == BY_VALUE && m->lazy &&
           m->here < world_length(w, m);
}

message *world_to_carry(world *w, int from, int to)
{
    int *i = &w->carried[from][to];
    while (*i < w->message_count && !is_to_carry(w, &w->messages[*i], from, to))
        ++*i;
    return *i < w->message_count ? &w->messages[*i] : NULL;
}

/* The plan itself protects lent chunks; other messages leave before its end. */
static bool all_carried(const world *w, int from)
{
    for (int i = 0; i < w->message_count; i++) {
        const message *m = &w->messages[i];
        if (!m->lent && is_to_carry(w, m, from, m->to))
            return false;
    }
    return true;
}

/* One of the links carries one more element, read from memory only now. */
static bool carry_any(world *w, int from)
{
    for (int i = 0; i < w->set->ranks; i++) {
        const int to = (w->favoured[from] + i) % w->set->ranks;
        message *m = world_to_carry(w, from, to);
        if (m == NULL || !world_has_room(w, from, to))
            continue;
        m->data[m->here] = m->memory[m->here];
        m->here++;
        w->on_link[from][to]++;
        return true;
    }
    return false;
}

/* ---- Running ------------------------------------------------------------------- */

/* The caller takes its result and uses the buffers for something else. */
static bool end(world *w, int rank)
{
    actor *a = &w->actors[rank];
    if (a->ended || !all_carried(w, rank))
        return false;
    a->ended = true;
    memcpy(a->result, a->dst, (size_t)memory_of_a_buffer(w) * sizeof(word));
    fill_with_rubbish(w, a->src);
    fill_with_rubbish(w, a->dst);
    fill_with_rubbish(w, a->scratch);
    for (int peer = 0; peer < w->set->ranks; peer++)
        if (w->set->of[0]->collective == PLAN_BARRIER && !w->actors[peer].started)
            w->wrong = "a rank left the barrier before all had come";
    return true;
}

/* @return false if that was the last one. */
static bool next_slice(const world *w, actor *a)
{
    if (a->slice + 1 == w->slices)
        return false;
    a->slice++;
    a->at = plan_begin(a->at.plan);
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
        return next_slice(w, a) || end(w, rank);
    if (!world_step(w, rank, step, &moved))
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

static word sum_of(const int32_t *postfix, int length, int piece, int position)
{
    word stack[MOST_RANKS];
    int height = 0;
    for (int i = 0; i < length; i++) {
        if (postfix[i] >= 0) {
            stack[height++] = source(postfix[i], piece, position);
            continue;
        }
        height--;
        stack[height - 1] = combined(stack[height - 1], stack[height]);
    }
    return finished(stack[0]);
}

/* Of a prefix, in the order of ranks; else @p order, of all. */
static word result_of(const plan *p, const int32_t *order, int piece, int position)
{
    int32_t own[2 * MOST_RANKS];
    int length = 0;
    if (plan_facts_of(p->collective)->result != PLAN_PREFIX)
        return sum_of(order, 2 * p->ranks - 1, piece, position);
    for (int rank = 0; rank < p->rank + (p->collective == PLAN_SCAN); rank++) {
        own[length++] = rank;
        if (rank > 0)
            own[length++] = -1;
    }
    return sum_of(own, length, piece, position);
}

static bool piece_is_right(const world *w, int rank, int piece, const int32_t *order)
{
    const plan *p = w->set->of[rank];
    const int chunk = piece % w->chunks;
    for (int i = 0; i < w->elements; i++) {
        const word expected = plan_facts_of(p->collective)->reduces
                                  ? result_of(p, order, piece, i)
                                  : source(owner_of(p, chunk), piece, i);
        if (w->actors[rank].result[piece * ELEMENTS + i] != expected)
            return false;
    }
    return true;
}

static const char *judge(const world *w)
{
    int32_t order[2 * MOST_RANKS];
    const plan *p = w->set->of[0];
    if (w->wrong != NULL || p->collective == PLAN_BARRIER)
        return w->wrong;
    for (int piece = 0; piece < w->slices * w->chunks; piece++) {
        const int chunk = piece % w->chunks;
        if (plan_facts_of(p->collective)->result == PLAN_SUM &&
            plan_order((const plan *const *)w->set->of, p->ranks, chunk, order) != RING_OK)
            return fail_text();
        for (int rank = 0; rank < p->ranks; rank++)
            if (owns_result(w->set->of[rank], chunk) && !piece_is_right(w, rank, piece, order))
                return "a rank ended with wrong elements";
    }
    return NULL;
}

/* Elements that one plan sends another rank eagerly. */
static int eager_elements(const world *w, int from, int to)
{
    int elements = 0;
    for (plan_cursor at = plan_begin(w->set->of[from]); plan_at(&at) != NULL; plan_next(&at)) {
        const plan_step *step = plan_at(&at);
        if (step->eager && plan_output(&at, step, 0).rank == to)
            elements += plan_output(&at, step, 0).chunks * ELEMENTS;
    }
    return elements;
}

static void create_links(world *w)
{
    const int least = w->set->of[0]->circular ? ELEMENTS + 1 : 1;
    memset(w->first, 0xff, sizeof w->first); /* NONE */
    for (int from = 0; from < w->set->ranks; from++) {
        for (int to = 0; to < w->set->ranks; to++) {
            const int eager = eager_elements(w, from, to);
            w->room[from][to] = eager > least ? eager : least;
        }
    }
}

static void create(world *w, const plan_set *set, int slices, bool in_place, uint64_t random)
{
    const plan *p = set->of[0];
    memset(w, 0, sizeof *w);
    w->set = set;
    w->in_place = in_place;
    w->random = random;
    w->slices = slices;
    w->chunks = p->chunks;
    w->elements = p->collective == PLAN_BARRIER ? 0 : ELEMENTS;
    w->reference_odds = plans_random(&w->random, 5);
    w->store_odds = plans_random(&w->random, 5);
    create_links(w);
}

enum { BUFFERS = 4 }; /* of an actor */

static void place_actors(world *w, word *memory)
{
    const size_t words = (size_t)memory_of_a_buffer(w);
    for (int rank = 0; rank < w->set->ranks; rank++) {
        actor *a = &w->actors[rank];
        w->favoured[rank] = (int)plans_random(&w->random, (uint32_t)w->set->ranks);
        a->at = plan_begin(w->set->of[rank]);
        a->src = memory + BUFFERS * words * (size_t)rank;
        a->dst = w->in_place ? a->src : a->src + words;
        a->result = a->src + 2 * words;
        a->scratch = a->src + 3 * words;
        fill_with_rubbish(w, a->src);
        fill_with_rubbish(w, a->dst);
        fill_with_rubbish(w, a->scratch);
    }
}

static const char *attack(const plan_set *set, int slices, bool in_place, uint64_t random)
{
    static world w; /* large */
    create(&w, set, slices, in_place, random);
    const size_t words = (size_t)memory_of_a_buffer(&w);
    word *memory = calloc(BUFFERS * words * (size_t)set->ranks, sizeof *memory);
    if (memory == NULL)
        abort();
    place_actors(&w, memory);
    run(&w);
    const char *wrong = judge(&w);
    for (int i = 0; i < w.message_count; i++)
        free(w.messages[i].data);
    free(memory);
    return wrong;
}

/* Slices cut ranges. */
const char *adversary_attack(const plan_set *set, int times)
{
    plan_set cut = plans_cut(set);
    const char *wrong = NULL;
    for (int i = 0; i < times && wrong == NULL; i++) {
        uint64_t random = mix((word)i + 1);
        const int slices = 1 + (int)plans_random(&random, MOST_SLICES);
        wrong = attack(slices > 1 ? &cut : set, slices, i % 2 == 1, random);
    }
    plans_free(&cut);
    return wrong;
}

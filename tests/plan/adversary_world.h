/* SPDX-License-Identifier: Apache-2.0
 * The adversary's world: ranks, their memory, messages. Elements are words; combining them is
 * a hash that depends on the order. */
#ifndef TESTS_PLAN_ADVERSARY_WORLD_H
#define TESTS_PLAN_ADVERSARY_WORLD_H

#include "plans.h"

enum { ELEMENTS = 3, MOST_SLICES = 3, NONE = -1, MOST_MESSAGES = 4096 };

typedef uint64_t word;
typedef enum way { BY_VALUE, BY_REFERENCE, STORED } way;

typedef struct message {
    int from, to, chunk, chunks, next;
    way way;
    bool lazy;    /* by value: the link still reads it from memory */
    bool lent;    /* … which nobody but the plan protects until it was read */
    bool bounded; /* by value: what has arrived takes room on the link */
    bool taken;
    const word *memory; /* of the sender */
    word *data;
    int here; /* elements that have arrived */
} message;

typedef struct actor {
    plan_cursor at;
    int slice, position;
    bool started, ended;
    bool chosen; /* how the present fold's results go */
    word *src, *dst, *scratch;
    word *result;            /* dst when it ended */
    bool heard[MOST_RANKS];  /* knows the peer's dst */
    way out_way[MOST_RANKS]; /* of the present step */
    int out_message[MOST_RANKS];
} actor;

typedef struct world {
    const plan_set *set;
    bool in_place;
    int slices;           /* runs of the plan in a row, about other chunks */
    int chunks, elements; /* elements of a chunk: 0 or ELEMENTS */
    uint64_t random;
    unsigned reference_odds, store_odds; /* of 4 */
    actor actors[MOST_RANKS];
    message messages[MOST_MESSAGES];
    int message_count;
    int room[MOST_RANKS][MOST_RANKS];    /* elements that a link takes ahead of the taker */
    int carried[MOST_RANKS][MOST_RANKS]; /* no earlier message of a pair is still to be carried */
    int on_link[MOST_RANKS][MOST_RANKS]; /* elements that have arrived and were not yet taken */
    int favoured[MOST_RANKS];            /* the peer whose messages a rank's links carry first */
    int first[MOST_RANKS][MOST_RANKS], last[MOST_RANKS][MOST_RANKS];
    const char *wrong;
} world;

/* Words. */
static inline word mix(word x)
{
    x = (x ^ x >> 31) * 0x9e3779b97f4a7c15u;
    return x ^ x >> 29;
}

static inline word combined(word a, word b)
{
    return mix(3 * a + mix(b));
}

static inline word finished(word a)
{
    return mix(a ^ 0x5bd1e995);
}

static inline int world_length(const world *w, const message *m)
{
    return m->chunks * w->elements;
}

/** The oldest message of a pair with something left to carry, or NULL. */
message *world_to_carry(world *w, int from, int to);

static inline bool world_has_room(const world *w, int from, int to)
{
    return w->on_link[from][to] < w->room[from][to];
}

/** Executes as much of a rank's step as is possible at once, an element at most.
 *  @return true when it is done; *moved is set if anything happened before. */
bool world_step(world *w, int rank, const plan_step *step, bool *moved);

#endif

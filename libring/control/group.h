/* SPDX-License-Identifier: Apache-2.0
 *
 * group: one communicator of a membership: its ranks, its verdict, and its callbacks. The lock
 * guards all members except constant and atomic ones; all functions need it.
 */
#ifndef RING_CONTROL_GROUP_H
#define RING_CONTROL_GROUP_H

#include "control_message.h"

#include <stdatomic.h>

struct membership;

typedef struct group {
    control_world world; /* first: the part that other rooms see */
    struct membership *member;
    const int *ranks; /* [size] numbers in the membership; NULL: the same */
    _Atomic int verdict;
    char text[CONTROL_TEXT];      /* written once, before the verdict    */
    int suspect;                  /* the peer whose link broke here */
    char suspicion[CONTROL_TEXT]; /* and how */
    double accuse_at;             /* when that is proposed as the verdict */
    void (*wake)(void *);
    void *wake_context;
    control_sink *sink;
    void *sink_context;
    struct opened_socket *opened; /* given to a sink so far, data_sockets.h */
    control_statement_sink *on_statement;
    void *on_statement_context;

    /* Shrinking. */
    int round;                 /* the current round of votes, from 1 */
    int *votes;                /* [size] the latest round of each rank's vote */
    double decide_by;          /* the voters' deadline, if there are any */
    control_message *decision; /* the latest; NULL: none */
    struct group *next;
} group;

static inline group *group_of(control_world *world)
{
    return (group *)world;
}

static inline const group *group_at(const control_world *world)
{
    return (const group *)world;
}

static inline bool group_is_decided(const group *g)
{
    return atomic_load_explicit(&g->verdict, memory_order_relaxed) != RING_OK;
}

/** Rank @p r of the communicator, as the membership numbers it. */
static inline int group_member_rank(const group *g, int r)
{
    return g->ranks != NULL ? g->ranks[r] : r;
}

/** The inverse; -1: not in this communicator. */
int group_rank(const group *g, int member_rank);
/** NULL: not made here yet, or left. */
group *group_find(const struct membership *m, uint64_t id);
/** @return true if this rank has freed the communicator. */
bool group_was_left(const struct membership *m, uint64_t id);
/** An id that this rank gives once. */
uint64_t group_new_id(struct membership *m);
/** Frees one that was derived. */
void group_free(group *g);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * group: keeps one communicator of a membership: its ranks, its verdict, and its callbacks. The
 * lock guards all members except constant and atomic ones, and all functions need it.
 */
#ifndef RING_CONTROL_GROUP_H
#define RING_CONTROL_GROUP_H

#include "control_message.h"

#include <stdatomic.h>

struct membership;

typedef struct group {
    control_world world; /* first: the part that other rooms see */
    struct membership *member;
    const int *ranks; /* [size] numbers in the membership; NULL: they are equal */
    _Atomic int verdict;
    char text[CONTROL_TEXT];      /* of the verdict, written once before it */
    int suspect;                  /* the peer whose link broke on this rank */
    char suspicion[CONTROL_TEXT]; /* the reason why that link broke */
    double accuse_at;             /* when the loss of the suspect is proposed as the verdict */
    void (*wake)(void *);
    void *wake_context;
    control_sink *sink;
    void *sink_context;
    struct opened_socket *opened; /* sockets given to a sink so far, data_sockets.h */
    control_statement_sink *on_statement;
    void *on_statement_context;

    /* Shrinking (shrink.h). */
    int round;                 /* the current round of votes, from 1 */
    int *votes;                /* [size] the latest round in which each rank has voted */
    double decide_by;          /* the earliest deadline of the voters, if there are any */
    control_message *decision; /* the latest one; NULL: none */
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

/** @return the number in the membership of rank @p r of the communicator. */
static inline int group_member_rank(const group *g, int r)
{
    return g->ranks != NULL ? g->ranks[r] : r;
}

/** @return the rank in the communicator of a rank of the membership; -1 if it is not in it. */
int group_rank(const group *g, int member_rank);
/** @return NULL if this rank has not created the communicator yet, or has left it. */
group *group_find(const struct membership *m, uint64_t id);
/** @return true if this rank has left the communicator. */
bool group_was_left(const struct membership *m, uint64_t id);
/** @return an id that no rank has returned before. */
uint64_t group_new_id(struct membership *m);
/** Frees a derived communicator. */
void group_free(group *g);

#endif

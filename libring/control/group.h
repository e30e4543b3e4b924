/* SPDX-License-Identifier: Apache-2.0
 *
 * group: holds the state of one communicator of a membership: its ranks, its verdict, and its
 * callbacks. The lock guards all struct members that are neither constant nor atomic, and the
 * caller of any function must hold it.
 */
#ifndef RING_CONTROL_GROUP_H
#define RING_CONTROL_GROUP_H

#include "control_message.h"

#include <stdatomic.h>

struct membership;

typedef struct group {
    control_world world; /* the part that other rooms use; the first member, see group_of() */
    struct membership *member;
    const int *ranks;             /* [size] the ranks' numbers in the membership; NULL: the same */
    _Atomic int verdict;          /* a ring_status */
    char text[CONTROL_TEXT];      /* of the verdict; it is written once, before the verdict */
    int suspect;                  /* the peer whose data link broke on this rank */
    char suspicion[CONTROL_TEXT]; /* the reason why that link broke */
    double accuse_at; /* the time at which the suspect's loss is proposed as the verdict */
    void (*wake)(void *);
    void *wake_context;
    control_sink *sink;
    void *sink_context;
    struct opened_socket *opened; /* sockets that the sink has taken so far, data_sockets.c */
    control_statement_sink *on_statement;
    void *on_statement_context;

    /* Shrinking (shrink.h). */
    int round;                 /* the current round of votes, from 1 */
    int *votes;                /* [size] the latest round in which each rank has voted */
    double decide_by;          /* the earliest deadline of the voters; CONTROL_NEVER: no voters */
    control_message *decision; /* the latest decision; NULL: there is none */
    struct group *next;
} group;

/** @return the group whose first member is @p world. */
static inline group *group_of(control_world *world)
{
    return (group *)world;
}

/** Does the same for a constant world. */
static inline const group *group_at(const control_world *world)
{
    return (const group *)world;
}

/** @return true if the communicator has a verdict. */
static inline bool group_is_decided(const group *g)
{
    return atomic_load_explicit(&g->verdict, memory_order_relaxed) != RING_OK;
}

/** @return the number in the membership of rank @p r of the communicator. */
static inline int group_member_rank(const group *g, int r)
{
    return g->ranks != NULL ? g->ranks[r] : r;
}

/** @return the rank in the communicator of the membership's rank @p member_rank; -1 if that rank is
 * not in the communicator. */
int group_rank(const group *g, int member_rank);
/** @return the communicator with the id @p id; NULL if this rank has not created it yet, or has
 * left it. */
group *group_find(const struct membership *m, uint64_t id);
/** @return true if the communicator is one of the GROUPS_LEFT_KEPT that this rank has left lately.
 */
bool group_was_left(const struct membership *m, uint64_t id);
/** @return an id that no rank of the membership has returned before. */
uint64_t group_new_id(struct membership *m);
/** Frees a derived communicator. */
void group_free(group *g);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * queues: messages between ranks while plans are simulated, on symbols or on the cost model's
 * clock. One queue an ordered pair, first in, first out, as roomy as needed; messages are
 * never forgotten, so readers can go through them afterwards.
 */
#ifndef RING_PLAN_QUEUES_H
#define RING_PLAN_QUEUES_H

#include "timeline.h"

enum { QUEUE_NONE = -1 };

typedef struct queue_message {
    int32_t from, to;      /* ranks */
    plan_loc loc;          /* of the receiver */
    bool reads;            /* from its sending until it is taken or released, … */
    plan_buffer source;    /* … it reads this buffer of the sender */
    bool borrowed;         /* a SEND, to be released before the sender's plan ends */
    bool stores;           /* a fold's result that may be stored */
    int32_t first_symbol;  /* its symbols in simulation.carried, one a chunk */
    int32_t sender, taker; /* events; taker QUEUE_NONE until taken */
    int32_t released;      /* event of the sender's WAIT, QUEUE_NONE if there is none */
    int32_t round;         /* when it was sent */
    cost_post post;        /* for the cost of taking it */
    int32_t next;          /* in its queue */
} queue_message;

typedef struct queue {
    int32_t first, last;    /* unread messages */
    int32_t sent, taken;    /* how many */
    int32_t held, released; /* the oldest without a WAIT; how many have one */
    int32_t round;          /* of the latest that was taken */
} queue;

typedef struct queues {
    int32_t ranks;
    queue_message *messages;
    int32_t count, cap;
    queue *pairs; /* [ranks * ranks], from * ranks + to */
} queues;

ring_status queues_open(queues *q, int ranks);
void queues_close(queues *q);
queue *queue_between(const queues *q, int from, int to);
/** Queues a message behind the others of its pair. */
ring_status queue_post(queues *q, const queue_message *message);
/** @return the oldest unread message from @p from to @p to, NULL if there is none. */
queue_message *queue_first(const queues *q, int from, int to);
/** Takes the oldest one. */
void queue_take(queues *q, queue_message *first, int32_t taker);
/** @return true if all messages but the last @p back were taken. */
bool queue_is_taken(const queues *q, int from, int to, int back);
/** @return the oldest message that no WAIT covers, if one for all but the last @p back does; call
 *  again until there is none: NULL. */
queue_message *queue_release(queues *q, int from, int to, int back);

#endif

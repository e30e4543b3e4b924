/* SPDX-License-Identifier: Apache-2.0
 *
 * queues: holds the messages between ranks while plans are simulated, on symbols or on the cost
 * model's clock. Each ordered pair of ranks has an unbounded queue, first in, first out. Messages
 * are kept after they are taken, so that the checker can read them afterwards.
 */
#ifndef RING_PLAN_QUEUES_H
#define RING_PLAN_QUEUES_H

#include "timeline.h"

enum { QUEUE_NONE = -1 };

typedef struct queue_message {
    int32_t from, to;      /* ranks */
    plan_loc loc;          /* the receiver's operand                                       */
    bool reads;            /* may be read from `source` until it is taken or released      */
    plan_buffer source;    /* the sender's buffer                                          */
    bool borrowed;         /* a SEND, which must be released before the sender's plan ends */
    bool stores;           /* a fold's result that may be stored                           */
    int32_t first_symbol;  /* index in simulation.carried, which has a symbol for each chunk */
    int32_t sender, taker; /* events; taker is QUEUE_NONE until the message is taken       */
    int32_t released;      /* the event of the sender's WAIT; QUEUE_NONE if there is none  */
    int32_t round;         /* the round in which it was sent                               */
    cost_post post;        /* determines the cost of taking it                             */
    int32_t next;          /* the next message in its queue                                */
} queue_message;

typedef struct queue {
    int32_t first, last;    /* messages that have not been taken                         */
    int32_t sent, taken;    /* numbers of messages                                       */
    int32_t held, released; /* the oldest message that no WAIT covers; how many precede it */
    int32_t round;          /* the round in which the latest message was taken           */
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
/** Appends a message to the queue of its pair. */
ring_status queue_post(queues *q, const queue_message *message);
/** @return the oldest message from @p from to @p to that has not been taken; NULL if there is
 *  none. */
queue_message *queue_first(const queues *q, int from, int to);
/** Takes the message that queue_first() returned. */
void queue_take(queues *q, queue_message *first, int32_t taker);
/** @return true if all messages but the last @p back have been taken. */
bool queue_is_taken(const queues *q, int from, int to, int back);
/** Releases one message for a WAIT that covers all messages but the last @p back. The caller
 *  repeats the call until it returns NULL. @return the released message: the oldest one that no
 *  earlier WAIT covered; NULL if all are released. */
queue_message *queue_release(queues *q, int from, int to, int back);

#endif

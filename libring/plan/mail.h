/* SPDX-License-Identifier: Apache-2.0
 *
 * mail: messages between ranks while plans are run on symbols, or on the cost model's
 * clock. One queue an ordered pair, first in, first out, as roomy as needed; messages are
 * never forgotten, so readers can go through them afterwards.
 */
#ifndef RING_PLAN_MAIL_H
#define RING_PLAN_MAIL_H

#include "cost_line.h"

enum { MAIL_NONE = -1 };

typedef struct mail_message {
    int32_t from, to;        /* ranks */
    bool ack;
    bool folded;             /* a fold's output, else a SEND's */
    plan_buffer buffer;      /* of the receiver */
    plan_buffer source;      /* of a SEND: what it was sent from */
    plan_wire wire;
    int32_t chunk;
    int32_t term;            /* what it carries, in symbols */
    int32_t sender, taker;   /* events; taker MAIL_NONE until taken */
    int32_t round;           /* when it was sent */
    int32_t sequence;        /* ACK: messages taken from `to` before it */
    cost_post post;          /* what it costs to take */
    int32_t next;            /* in its queue */
} mail_message;

typedef struct mail_queue {
    int32_t first, last;     /* unread messages */
    int32_t sent, taken;     /* messages, acknowledgements apart */
    int32_t round;           /* of the latest that was taken */
} mail_queue;

typedef struct mail {
    int32_t ranks;
    mail_message *messages;
    int32_t count, cap;
    mail_queue *queues;      /* [ranks * ranks], from * ranks + to */
} mail;

ring_status mail_open(mail *m, int ranks);
void mail_close(mail *m);
mail_queue *mail_between(const mail *m, int from, int to);
/** Queues a message behind the others of its pair. */
ring_status mail_post(mail *m, const mail_message *message);
/** @return the oldest unread message from @p from to @p to, NULL if there is none. */
mail_message *mail_first(const mail *m, int from, int to);
/** Takes the oldest one. */
void mail_take(mail *m, mail_message *first, int32_t taker);

#endif

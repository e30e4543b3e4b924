/* SPDX-License-Identifier: Apache-2.0
 *
 * inside: what health's files share. The lock guards the verdict's birth and the requests to
 * the thread; wires belong to the thread alone.
 */
#ifndef RING_HEALTH_INSIDE_H
#define RING_HEALTH_INSIDE_H

#include "health.h"

#include <pthread.h>
#include <stdatomic.h>

enum health_kind { HEALTH_BEAT = 1, HEALTH_REPORT, HEALTH_GOODBYE };

typedef struct health_message {
    uint32_t kind;
    int32_t rank; /* who beats, reports, or has left */
    int32_t status;
    char text[HEALTH_TEXT];
} health_message;

_Static_assert(sizeof(health_message) == 512, "messages have one size");

/** One control connection. What is to be sent follows from the flags, so nothing queues. */
typedef struct wire {
    int fd, peer;
    bool open;          /* read and beaten over                          */
    bool deaf;          /* sending failed; reading tells why             */
    bool told_report, told_goodbye;
    size_t told_leavers;
    double heard, beat; /* when the peer was heard last; next beat       */
    health_message in, out;
    size_t got, sent;   /* bytes of `in` read; of `out`, its size: none  */
} wire;

struct health {
    boot_world *world;
    void (*wake)(void *);
    void *context;
    double interval;
    pthread_t thread;
    bool running;
    int bell;           /* eventfd: there is a request */
    atomic_bool *left;  /* [ranks] said goodbye */

    pthread_mutex_t lock;
    pthread_cond_t changed; /* the verdict is there, or told */
    atomic_int verdict;
    char text[HEALTH_TEXT];     /* written once, before the verdict */
    bool proposed;              /* other ranks: rank 0 was asked to make this the verdict */
    health_message proposal;
    bool stopping;
    bool told; /* the verdict was written to all who are there */

    /* The thread's own. */
    wire *wires;
    int wire_count;
    int *leavers; /* rank 0: in the order of their goodbyes */
    size_t leaver_count;
    bool woken;
    double latest_turn, stop_by;
};

/* health.c */
/** Makes it the verdict unless there is one. */
void health_decide(health *h, ring_status status, const char *text);
/** "rank 2 (host7, pid 123)". */
void health_name(const health *h, int rank, char *out, size_t size);

/* pulse.c: the thread */
void *pulse_run(void *context);

/* wire.c */
/** Reads messages until there is none; calls heard() for each.
 *  @return false when the connection has ended. */
bool wire_read(wire *w, void (*heard)(health *h, wire *w), health *h);
/** Sends what next() gives until it gives nothing or the peer takes no more. */
void wire_write(wire *w, bool (*next)(health *h, wire *w), health *h);
/** Nothing more will be said; the peer may close without losing what was. */
void wire_shut(wire *w);
bool wire_busy(const wire *w);

#endif

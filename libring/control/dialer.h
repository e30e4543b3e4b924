/* SPDX-License-Identifier: Apache-2.0
 *
 * dialer: opens one outgoing connection, and retries after short pauses until the other side has
 * proved its membership. It never blocks; all functions run under the lock.
 */
#ifndef RING_CONTROL_DIALER_H
#define RING_CONTROL_DIALER_H

#include "control_thread.h"
#include "handshake.h"

typedef struct dialer {
    control_source source;
    const handshake_terms *terms;
    net_address to;
    int peer;
    handshake_purpose purpose;
    bool local;        /* the peer is on this host; passed on to the sink of a link */
    double patience;   /* s, for the other side's proof */
    double most_pause; /* s, the longest pause between two tries; 0: only one try */
    double deadline;
    bool frugal; /* retries when no descriptor is free, where other dialers fail */
    /** Called once, at the end. RING_OK: the callee owns @p fd, and d->handshake has the hellos.
     *  RING_ERR_CONFIG: the other side is a member that cannot work with this rank. Any other
     *  status: the dialer failed, and fail_text() has the reason. */
    void (*done)(struct dialer *d, ring_status status, int fd);
    void *context;

    handshake handshake;
    bool busy, ended;
    double again, pause; /* time of the next try, and the pause before it */
    ring_status why;     /* the status of the most telling failed try; RING_OK: none has failed */
    char text[256];      /* its text */
    struct dialer *next;
} dialer;

/** Starts the next try when it is due, and advances the current one as far as possible. */
void dialer_go(dialer *d);
/** @return when dialer_go() must be called again if there is no event before. */
double dialer_due(const dialer *d);
/** Ends the dialer without calling done(). */
void dialer_drop(dialer *d);

#endif

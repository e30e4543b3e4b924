/* SPDX-License-Identifier: Apache-2.0
 *
 * dialer: opens one outgoing connection, and retries after short pauses until the peer has proved
 * its membership. It never blocks; all functions run under the lock.
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
    bool local;        /* the peer is on this host; passed on to the owner of a data socket */
    double patience;   /* s: the time in which the peer must prove its membership */
    double most_pause; /* s: the longest pause between two tries; 0: there is only one try */
    double deadline;
    bool frugal;         /* retries if no descriptor is free; other dialers fail */
    bool listens_always; /* the peer listens before it is dialed, so the dialer fails with
                         RING_ERR_PEER if it refuses connections or is unreachable for some seconds
                       */
    /** Called once, at the end. RING_OK: the callee owns @p fd, and d->handshake has the hellos.
     *  RING_ERR_CONFIG: the peer is a member that cannot work with this rank. Any other status: the
     *  dialer has failed. fail_text() has the reason of a failure. */
    void (*done)(struct dialer *d, ring_status status, int fd);
    void *context;

    handshake handshake;
    bool busy;           /* a try is in flight */
    bool ended;          /* the dialer is to be freed */
    double again, pause; /* the time of the next try, and the pause before it, s */
    double refused;      /* the time since which all tries were refused; 0: the last was not */
    ring_status why;     /* why a try has failed: the latest RING_ERR_AUTH, else the latest failure;
                            RING_OK: no try has failed */
    char text[256];      /* the text of that failure */
    struct dialer *next;
} dialer;

/** Starts the next try if it is due, and advances the current one as far as possible. */
void dialer_go(dialer *d);
/** @return the time at which dialer_go() must be called if there is no event before. */
double dialer_due(const dialer *d);
/** Ends the dialer without calling done(). */
void dialer_drop(dialer *d);

#endif

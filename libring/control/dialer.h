/* SPDX-License-Identifier: Apache-2.0
 *
 * dialer: one outgoing connection, tried again after short pauses until the other side has
 * proved itself. Never blocks. The lock is held in all of it.
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
    bool local;        /* of a link, for its taker */
    double patience;   /* for the other side's proof, s                                 */
    double most_pause; /* between two tries, s; 0: there is one try only                 */
    double deadline;
    bool frugal; /* waits for a descriptor where others fail */
    /** Called once, at the end. RING_OK: @p fd is the callee's, d->handshake has the hellos.
     *  RING_ERR_CONFIG: a member that cannot take part with us. Else it failed: fail_text(). */
    void (*done)(struct dialer *d, ring_status status, int fd);
    void *context;

    handshake handshake;
    bool busy, ended;
    double again, pause;
    ring_status why; /* of the failed try with the best reason, RING_OK: none did */
    char text[256];
    struct dialer *next;
} dialer;

/** Makes the next try or step that is possible now. */
void dialer_go(dialer *d);
/** @return when dialer_go() must be called next, if no event comes first. */
double dialer_due(const dialer *d);
/** Ends it without calling done(). */
void dialer_drop(dialer *d);

#endif

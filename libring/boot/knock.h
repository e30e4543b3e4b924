/* SPDX-License-Identifier: Apache-2.0
 *
 * knock: one outgoing connection, tried again after short pauses until the other side has
 * proved itself. Never blocks.
 */
#ifndef RING_BOOT_KNOCK_H
#define RING_BOOT_KNOCK_H

#include "address.h"
#include "hand.h"
#include "waits.h"

typedef struct knock {
    boot_address to;
    int peer, lane;
    enum hand_purpose purpose;
    const void *extra; /* sent behind the proof, borrowed */
    size_t extra_bytes;
    double most_pause; /* between two tries, s */

    hand hand;
    bool busy, done;
    double again, pause;
    ring_status why; /* of the most telling try that failed, RING_OK: none did */
    char text[256];
} knock;

/** @return RING_OK: through, the socket is k->hand.fd and the caller's;
 *          RING_IN_PROGRESS; RING_ERR_SYSTEM: the same, but no descriptor was free;
 *          RING_ERR_CONFIG: a member that cannot take part with us. */
ring_status knock_step(knock *k, const hand_terms *terms);
ring_status knock_wait(const knock *k, waits *w);
void knock_drop(knock *k);

#endif

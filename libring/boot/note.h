/* SPDX-License-Identifier: Apache-2.0
 *
 * note: "I am through" or "I failed, because", from a rank to rank 0, and from rank 0 to all,
 * over the control connections until health takes them over.
 */
#ifndef RING_BOOT_NOTE_H
#define RING_BOOT_NOTE_H

#include "star.h"

typedef struct note {
    int32_t status;
    char text[STAR_TEXT];
} note;

/** A note of this rank; its text names rank and host. */
note note_of(const boot_world *world, ring_status status);
/** To rank 0, or from rank 0 to all. Does not wait. */
void note_send(const boot_world *world, const note *n);
/** Reads the note that @p rank sent. A connection that ended is RING_ERR_PEER, naming it. */
ring_status note_read(const boot_world *world, int rank, double deadline, note *out);
/** The note's status, with its text as this thread's failure. */
ring_status note_status(const note *n);
/** Rank 0: a lost connection is often only what another rank's failure did, and the note with
 *  the reason may still be on its way. Looks for it a moment if @p status is RING_ERR_PEER.
 *  @return its status and text, else @p status. */
ring_status note_reason(const boot_world *world, ring_status status);

#endif

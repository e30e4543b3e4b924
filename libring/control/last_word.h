/* SPDX-License-Identifier: Apache-2.0
 *
 * last word: lets a rank that cannot join report the reason to the other ranks. It needs one
 * descriptor, but no memory, thread or membership, since the lack of these may be the reason.
 */
#ifndef RING_CONTROL_LAST_WORD_H
#define RING_CONTROL_LAST_WORD_H

#include "credential.h"

typedef struct last_word {
    int rank, size;     /* this rank, and the number of ranks */
    ring_status status; /* the failure */
    const char *text;   /* its reason */
    double deadline;    /* of the start */
} last_word;

/** At rank 0: reports to the ranks that connect to @p listener, a bound socket, until all others
 * have connected, or no rank has connected for a second; for at most about 5 s. */
void last_word_to_joiners(const credential *c, const last_word *w, int listener);
/** At the other ranks: reports to rank 0, which announces the failure to all ranks. Retries for a
 *  second at most. */
void last_word_to_rank_0(const credential *c, const last_word *w);

#endif

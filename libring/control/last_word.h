/* SPDX-License-Identifier: Apache-2.0
 *
 * last word: lets a rank that cannot join report the reason to the others. It needs one descriptor
 * but no memory, thread or membership, since their lack may be the reason.
 */
#ifndef RING_CONTROL_LAST_WORD_H
#define RING_CONTROL_LAST_WORD_H

#include "credential.h"

typedef struct last_word {
    int rank, size;
    ring_status status;
    const char *text;
    double deadline; /* of the start */
} last_word;

/** At rank 0: answers the ranks that connect to @p listener, until none connects for a second. */
void last_word_to_joiners(const credential *c, const last_word *w, int listener);
/** At the other ranks: reports to rank 0, which announces it to all. Tries for a second at most. */
void last_word_to_rank_0(const credential *c, const last_word *w);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * last word: a rank that cannot join reports the reason to the others. It takes one descriptor, and
 * neither memory, thread nor membership, since the lack of those may be the reason. */
#ifndef RING_CONTROL_LAST_WORD_H
#define RING_CONTROL_LAST_WORD_H

#include "credential.h"

typedef struct last_word {
    int rank, size;
    ring_status status;
    const char *text;
    double deadline; /* of the start */
} last_word;

/** Rank 0: answers the ranks that come to @p listener, until none comes for a second. */
void last_word_to_joiners(const credential *c, const last_word *w, int listener);
/** Other ranks: reports to rank 0, which announces it to all; for a second at most. */
void last_word_to_rank_0(const credential *c, const last_word *w);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * star: the rendezvous. Every rank brings its card to rank 0; rank 0 hands all of them out,
 * or the one reason why not. The connections stay as world->control.
 */
#ifndef RING_BOOT_STAR_H
#define RING_BOOT_STAR_H

#include "doorman.h"
#include "knock.h"
#include "pass.h"

enum { STAR_TEXT = 512 };

/* s: rank 0 gives up when the first of us would, and needs a moment to tell why. */
#define VERDICT_PATIENCE 2.0

/** The listeners for the links of this rank. */
typedef struct boot_doors {
    hand_terms terms;
    doorman tcp, local;
} boot_doors;

/** Behind the proof of a rank that joins. */
typedef struct star_request {
    double remaining; /* until this rank gives up, s */
    boot_card card;
} star_request;

_Static_assert(sizeof(star_request) <= HAND_EXTRA, "a request travels with its proof");

/** What rank 0 answers; on RING_OK the cards follow. */
typedef struct star_verdict {
    int32_t status;
    int32_t cards;
    double remaining;
    char algo[32]; /* settings that must be the same everywhere */
    double timeout, peer_timeout;
    char text[STAR_TEXT];
} star_verdict;

/** Where to look for rank 0 now. RING_IN_PROGRESS: not known yet, the text says why. */
typedef ring_status (*star_source)(void *context, pass *out);

/** Rank 0: gathers all ranks at @p listener (owned) and hands out the cards. */
ring_status star_host(boot_world *world, int listener);
/** Other ranks: finds rank 0. @p source NULL: @p p stays as it is. */
ring_status star_visit(boot_world *world, pass *p, star_source source, void *context);

/** The last words to a rank, as far as it can take them at once: one that reads slowly must not
 *  cost the others theirs. Leaves this thread's failure text alone. */
void star_tell(int fd, const void *data, size_t bytes);
/** RING_ERR_PEER: @p rank was lost @p when ("while links were made"). */
ring_status star_lost(const boot_world *world, int rank, const char *when);

/** Opens this rank's listeners and writes them into its card. */
ring_status doors_open(boot_world *world, const pass *p);
/** Closes them, wipes the key. */
void doors_free(boot_world *world);

/** Writes ranks as "1, 3-5" for which missing(context, rank); returns their number. */
int ranks_text(int size, bool (*missing)(const void *context, int rank), const void *context,
               char *out, size_t bytes);

#endif

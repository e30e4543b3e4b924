/* SPDX-License-Identifier: Apache-2.0
 * stage: ranks as processes that have started together, and meet between the steps of a test. */
#ifndef TEST_STAGE_H
#define TEST_STAGE_H

#include "ranks.h"

#include <stdatomic.h>

enum { STAGE_STEPS = 8, STAGE_IDS = 64 };

typedef struct stage {
    ring_unique_id id;
    int size, victim;
    uint64_t ids[STAGE_IDS]; /* for communicators, given by rank 0              */
    atomic_int arrived[STAGE_STEPS];
    atomic_bool go; /* by the test                                     */
    ring_status (*act)(struct stage *s, control_world **w); /* may free *w, and set it NULL */
} stage;

stage *stage_new(int size, ring_status (*act)(stage *s, control_world **w));
void stage_free(stage *s);
/** Each rank acts once all have started; in the end it has as many descriptors as before. */
ring_status stage_play(int rank, int size, void *stage);
/** Goes on when @p count ranks have come to this step. */
ring_status stage_meet(stage *s, int step, int count);
/** Plays it with one process a rank; all that @p dies (bits) does not name end with RING_OK. */
void stage_run(stage *s, unsigned dies);
/** The second half of it. */
void stage_end(stage *s, crew *c, unsigned dies);

/** The verdict within some seconds, RING_OK: there is none. Its text is fail_text(). */
ring_status verdict_within(const control_world *w, double seconds);
/** RING_OK if that is @p want with @p part in its text. */
ring_status expect_verdict(const control_world *w, ring_status want, const char *part);
/** A communicator of @p of with the ranks whose bits are set. */
ring_status derive_bits(control_world *of, uint64_t id, unsigned bits, control_world **out);
int count_threads(void);

#endif

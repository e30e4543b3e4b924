/* SPDX-License-Identifier: Apache-2.0
 *
 * run: all ranks' plans executed on symbols instead of bytes. The checker judges what comes
 * out and the order it came about in; the printer draws it; plan_order() reads one chunk.
 *
 * One schedule is run. It stands for all: ranks only wait for named messages, so results
 * cannot depend on who is faster, unless memory is used too early or too late, and that is
 * what check_race() excludes.
 */
#ifndef RING_PLAN_RUN_H
#define RING_PLAN_RUN_H

#include "mail.h"
#include "terms.h"

/** A step that was executed. */
typedef struct run_event {
    plan_cursor at;
    int32_t rank;
    int32_t index;              /* of its rank's steps, from 1 */
    int32_t first_taken, taken; /* messages, into run.taken */
} run_event;

typedef struct run {
    const plan *const *plans;
    int32_t ranks;
    bool in_place;
    bool by_rounds;       /* a pair carries one message a round, sent before the round */
    int32_t round;
    term_table terms;
    mail mail;
    int32_t *cells;       /* what each chunk of each buffer of each rank holds */
    int32_t *latest;      /* [ranks * chunks] what a rank last made or got of a chunk */
    plan_cursor *cursors; /* [ranks] */
    int32_t *done;        /* [ranks] steps */
    run_event *events;
    int32_t event_count, event_cap;
    int32_t *taken;       /* message numbers */
    int32_t taken_count, taken_cap;
} run;

/** Prepares a run of plans that have passed check_shape(). Close it in any case. */
ring_status run_open(run *r, const plan *const *plans, int ranks, bool in_place);
void run_close(run *r);

/** Runs all plans to their ends; fails on the first step that is wrong or waits for ever,
 *  and on messages that nobody takes. */
ring_status run_to_end(run *r);
/** With by_rounds: one round. @param[out] moved  false if no rank could take a message. */
ring_status run_round(run *r, bool *moved);
/** Fails if a rank still waits or a message was not taken. */
ring_status run_finish(const run *r);

/** Number of a chunk's place; SRC and DST are one place in place. */
int32_t run_place(const run *r, int rank, plan_buffer buffer, int chunk);
/** What it holds: a term, or TERM_NONE. */
int32_t run_held(const run *r, int rank, plan_buffer buffer, int chunk);
/** @return true if the collective gives this rank that chunk of that buffer. */
bool run_has(const plan *p, plan_buffer buffer, int chunk);

/** "all_reduce by ring, 5 ranks, in place: rank 1, step 3 (recv ...): " and the text. */
ring_status run_offence(const run *r, int rank, const char *format, ...) RING_PRINTF(3, 4);
/** Fails without naming a step. */
ring_status run_wrong(const run *r, const char *format, ...) RING_PRINTF(2, 3);

/* ---- Between run.c and run_steps.c ---- */

/** Executes a step whose messages are there. */
ring_status run_execute(run *r, int rank, const plan_step *step);
void run_note_latest(run *r, int rank, int chunk, int32_t id);
ring_status run_no_memory(const run *r);

#endif

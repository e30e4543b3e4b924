/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator: all ranks' plans executed on symbols instead of bytes. The checker judges the results
 * and the order of events; the printer draws them; plan_order() reads one chunk.
 *
 * One schedule is run. It stands for all: ranks only wait for named messages, so results cannot
 * depend on speed, unless memory is used too early or too late, which check_race() excludes. A WAIT
 * passes when the messages were taken: by value it may pass earlier, which can only let more ranks
 * go on.
 */
#ifndef RING_PLAN_SIMULATOR_H
#define RING_PLAN_SIMULATOR_H

#include "queues.h"
#include "symbols.h"

/** A step that was executed. */
typedef struct sim_event {
    plan_cursor at;
    int32_t rank;
    int32_t index;              /* of its rank's steps, from 1 */
    int32_t first_taken, taken; /* messages, into simulation.taken */
} sim_event;

/** How plans are run. */
typedef struct sim_mode {
    bool in_place;
    bool by_rounds; /* a pair carries one message a round, sent before the round */
    int slices;     /* number of slices in the plans, see check_slices(); 0 is 1 */
} sim_mode;

typedef struct simulation {
    const plan *const *plans;
    int32_t ranks;
    sim_mode mode;
    int32_t round;
    symbol_table symbols;
    queues queues;
    int32_t *cells;       /* the symbol in each chunk of each buffer of each rank */
    int32_t *latest;      /* [ranks * chunks] the latest symbol of a chunk that a rank made or
                             got */
    int32_t *sums;        /* [chunks] of the present fold */
    plan_cursor *cursors; /* [ranks] */
    int32_t *done;        /* [ranks] steps */
    sim_event *events;
    int32_t event_count, event_cap;
    int32_t *taken; /* message numbers */
    int32_t taken_count, taken_cap;
    int32_t *carried; /* symbols in messages */
    int32_t carried_count, carried_cap;
} simulation;

/** Prepares to run plans that have passed check_shape(). Close it in any case. */
ring_status sim_open(simulation *s, const plan *const *plans, int ranks, sim_mode mode);
void sim_close(simulation *s);

/** Runs all plans to their ends; fails on the first step that is wrong or waits for ever, and on
 *  messages that are not taken. */
ring_status sim_to_end(simulation *s);
/** With by_rounds: one round. @param[out] moved  false if no rank could take a message. */
ring_status sim_round(simulation *s, bool *moved);
/** Fails if a rank still waits or a message was not taken. */
ring_status sim_finish(const simulation *s);

/** Number of a chunk's place; SRC and DST are one place in place, and all slices' chunks of
 *  SCRATCH are. */
int32_t sim_place(const simulation *s, int rank, plan_buffer buffer, int chunk);
int32_t sim_places(const simulation *s);
/** @return the symbol there, or SYMBOL_NONE. */
int32_t sim_held(const simulation *s, int rank, plan_buffer buffer, int chunk);
/** @return true if the collective gives this rank that chunk of that buffer. */
bool sim_has(const plan *p, plan_buffer buffer, int chunk);

/** "all_reduce by ring, 5 ranks, in place: rank 1, step 3 (recv ...): " and the text. */
ring_status sim_offence(const simulation *s, int rank, const char *format, ...) RING_PRINTF(3, 4);
/** Fails without naming a step. */
ring_status sim_wrong(const simulation *s, const char *format, ...) RING_PRINTF(2, 3);

/* ---- Between simulator.c and simulator_steps.c ---- */

/** Executes a step that need not wait. */
ring_status sim_execute(simulation *s, int rank, const plan_step *step);
void sim_note_latest(simulation *s, int rank, int chunk, int32_t id);
/** Makes room for @p more symbols in messages. */
ring_status sim_carry(simulation *s, int32_t more);
ring_status sim_no_memory(const simulation *s);

#endif

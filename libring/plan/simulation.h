/* SPDX-License-Identifier: Apache-2.0
 *
 * simulation: all ranks' plans, how far each is, and the symbols that their memory holds.
 */
#ifndef RING_PLAN_SIMULATION_H
#define RING_PLAN_SIMULATION_H

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
    int slices;     /* that the plans consist of, see check_slices(); 0 is 1 */
} sim_mode;

typedef struct simulation {
    const plan *const *plans;
    int32_t ranks;
    sim_mode mode;
    int32_t round;
    symbol_table symbols;
    queues queues;
    int32_t *cells;       /* what each chunk of each buffer of each rank holds */
    int32_t *latest;      /* [ranks * chunks] what a rank last made or got of a chunk */
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

/** Number of a chunk's place; SRC and DST are one place in place, and all slices' chunks of
 *  SCRATCH are. */
int32_t sim_place(const simulation *s, int rank, plan_buffer buffer, int chunk);
int32_t sim_places(const simulation *s);
/** The symbol that it holds, or SYMBOL_NONE. */
int32_t sim_held(const simulation *s, int rank, plan_buffer buffer, int chunk);
/** @return true if the collective gives this rank that chunk of that buffer. */
bool sim_has(const plan *p, plan_buffer buffer, int chunk);

/** "all_reduce by ring, 5 ranks, in place: rank 1, step 3 (recv ...): " and the text. */
ring_status sim_offence(const simulation *s, int rank, const char *format, ...) RING_PRINTF(3, 4);
/** Fails without naming a step. */
ring_status sim_wrong(const simulation *s, const char *format, ...) RING_PRINTF(2, 3);

/** Keeps the symbol that a rank last made or got of a chunk. */
void sim_note_latest(simulation *s, int rank, int chunk, int32_t id);
/** Makes room for @p more symbols in messages. */
ring_status sim_carry(simulation *s, int32_t more);
ring_status sim_no_memory(const simulation *s);

#endif

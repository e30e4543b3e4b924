/* SPDX-License-Identifier: Apache-2.0
 *
 * simulation: holds the state of a simulation: all ranks' plans, the position in each, and the
 * symbols in the ranks' memory.
 */
#ifndef RING_PLAN_SIMULATION_H
#define RING_PLAN_SIMULATION_H

#include "queues.h"
#include "symbols.h"

/** A step that has been executed. */
typedef struct sim_event {
    plan_cursor at;
    int32_t rank;
    int32_t index;              /* number among its rank's steps, from 1                     */
    int32_t first_taken, taken; /* range in simulation.taken of the messages that it took    */
} sim_event;

/** How plans are run. */
typedef struct sim_mode {
    bool in_place;
    bool by_rounds; /* in each round, each pair carries at most one message, which was sent before
                       the round */
    int slices;     /* the slices in each plan, see check_slices(); 0 means 1                  */
} sim_mode;

typedef struct simulation {
    const plan *const *plans;
    int32_t ranks;
    sim_mode mode;
    int32_t round;
    symbol_table symbols;
    queues queues;
    int32_t *cells;       /* the symbol in each chunk of each buffer of each rank            */
    int32_t *latest;      /* [ranks * chunks] the latest symbol of a chunk at a rank         */
    int32_t *sums;        /* [chunks] the sums of the current fold                           */
    plan_cursor *cursors; /* [ranks]                                                         */
    int32_t *done;        /* [ranks] number of steps that the rank has executed              */
    sim_event *events;
    int32_t event_count, event_cap;
    int32_t *taken; /* message numbers */
    int32_t taken_count, taken_cap;
    int32_t *carried; /* symbols in messages */
    int32_t carried_count, carried_cap;
} simulation;

/** Prepares to run plans that have passed check_shape(). The caller calls sim_close() even if this
 *  fails. */
ring_status sim_open(simulation *s, const plan *const *plans, int ranks, sim_mode mode);
void sim_close(simulation *s);

/** @return the number of a chunk's place in memory. In calls in place, a chunk has the same place
 *  in SRC and DST. In SCRATCH, all slices of a chunk have the same place. */
int32_t sim_place(const simulation *s, int rank, plan_buffer buffer, int chunk);
int32_t sim_places(const simulation *s);
/** @return the symbol in a chunk; SYMBOL_NONE if it is empty. */
int32_t sim_held(const simulation *s, int rank, plan_buffer buffer, int chunk);
/** @return true if the collective gives this rank that chunk of that buffer. */
bool sim_has(const plan *p, plan_buffer buffer, int chunk);

/** Fails with "all_reduce by ring, 5 ranks, in place: rank 1, step 3 (recv ...): " and the text. */
ring_status sim_offence(const simulation *s, int rank, const char *format, ...) RING_PRINTF(3, 4);
/** Fails without naming a step. */
ring_status sim_wrong(const simulation *s, const char *format, ...) RING_PRINTF(2, 3);

/** Records the symbol of a chunk that a rank has just computed or received. */
void sim_note_latest(simulation *s, int rank, int chunk, int32_t id);
/** Makes room for @p more symbols in messages. */
ring_status sim_carry(simulation *s, int32_t more);
ring_status sim_no_memory(const simulation *s);

#endif

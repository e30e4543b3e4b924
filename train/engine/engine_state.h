/* SPDX-License-Identifier: Apache-2.0
 *
 * engine_state: describes everything that an engine carries from one update to the next, as ranges
 * of named tensors and as named numbers. Code that saves and loads them needs to know nothing about
 * buckets, stages or padding; a new part of an engine's state is one more row in engine_state.c.
 */
#ifndef TRAIN_ENGINE_STATE_H
#define TRAIN_ENGINE_STATE_H

#include "train_engine.h"

/** The state that every tensor has: its float32 values. */
#define STATE_PARAM "param"

typedef enum state_share {
    SHARE_OWN, /* the part that this rank owns: each element is on one rank, in every stage */
    SHARE_HELD /* everything that this rank has memory for; 16-bit parameters with masters are
                  listed twice, as the same state */
} state_share;

/** Elements of one tensor, or of a state that an optimiser keeps for it: neighbours in the order in
 *  which tensor ranks have it. */
typedef struct state_piece {
    const char *state;          /* STATE_PARAM, "exp_avg", …: PyTorch's names */
    const train_tensor *tensor; /* of the whole network, whatever stage of it is here */
    tensor_order order;         /* of its elements; without tensor ranks the tensor's own */
    size_t begin, count;        /* places in that order */
    ring_dtype type;
    void *values; /* [count] the engine's memory */
} state_piece;

/** @return the element of the tensor that is @p done elements after the piece's first; @p count
 *  receives how many neighbours follow it within the piece. */
size_t state_piece_element(const state_piece *piece, size_t done, size_t *count);

/** A number of the engine: one of the three is not NULL. */
typedef struct state_number {
    const char *name;
    long *whole;
    int *small;
    double *real;
    bool optional; /* keeps its value if it is not stored */
} state_number;

double state_number_get(const state_number *number);
void state_number_set(const state_number *number, double value);

enum { STATE_NUMBERS_MAX = 8 };

typedef struct engine_state {
    train_offload *offload; /* the engine's; values may lie in its files: offload_fetch() first */
    state_piece *pieces;    /* [piece_count] state by state, buckets in the order of memory */
    int piece_count;
    state_number numbers[STATE_NUMBERS_MAX];
    int number_count;
} engine_state;

/** Lists @p share of the engine's state, without padding and without tied tensors. Free with
 *  engine_state_free() whatever the result. @return RING_OK or RING_ERR_MEMORY. */
ring_status engine_state_list(train_engine *engine, state_share share, engine_state *state);
void engine_state_free(engine_state *state);

/** @return the order in which the elements of a tensor of engine_network() are listed. */
tensor_order engine_order(const train_engine *engine, int tensor);

/** Brings the values of @p piece into memory to be changed if they are stored in a file.
 *  @return RING_OK, or RING_ERR_SYSTEM if the disk fails. */
ring_status state_piece_fetch(const engine_state *state, const state_piece *piece);

/** Sets what this rank holds of a tensor of engine_network(). @param values  [tensor->count]
 *  @return RING_OK or RING_ERR_MEMORY. */
ring_status engine_set_param(train_engine *engine, const train_tensor *tensor, const float *values);

#endif

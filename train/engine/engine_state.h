/* SPDX-License-Identifier: Apache-2.0
 *
 * engine_state: describes everything that an engine carries from one update to the next, as ranges
 * of named tensors and as named numbers. Code that saves and loads them needs to know nothing about
 * buckets, stages or padding; a new part of an engine's state is one more row in engine_state.c.
 */
#ifndef TRAIN_ENGINE_STATE_H
#define TRAIN_ENGINE_STATE_H

#include "train_engine.h"

/** The name of the state that every tensor has: its values. */
#define STATE_PARAM "param"

typedef enum state_share {
    SHARE_OWN, /* the elements that this rank owns: in every stage of ZeRO exactly one rank owns
                  each element */
    SHARE_HELD /* all elements that this rank has memory for. Parameters that have 16-bit values and
                  masters are listed twice, both times as STATE_PARAM */
} state_share;

/** A range of elements of one tensor, or of a state that an optimiser keeps for the tensor. They
 * are adjacent in @c order. */
typedef struct state_piece {
    const char *state;          /* STATE_PARAM, "exp_avg", …: PyTorch's names */
    const train_tensor *tensor; /* in the table of the whole network (engine_network()) */
    tensor_order order;         /* order in which tensor ranks divide the tensor's elements; without
                                   tensor ranks the order of the tensor itself */
    size_t begin, count;        /* first position in that order, and number of elements */
    ring_dtype type;            /* of values */
    void *values;               /* [count] in the engine's memory */
} state_piece;

/** @return the index in the tensor of the piece's element @p done.
 *  @param[out] count  number of the piece's elements from there on that are adjacent in the tensor
 *  as well */
size_t state_piece_element(const state_piece *piece, size_t done, size_t *count);

/** A number of the engine's state. Exactly one of the three pointers is not NULL. */
typedef struct state_number {
    const char *name;
    long *whole;
    int *small;
    double *real;
    bool optional; /* keeps its value if a checkpoint does not have it */
} state_number;

double state_number_get(const state_number *number);
void state_number_set(const state_number *number, double value);

enum { STATE_NUMBERS_MAX = 8 };

typedef struct engine_state {
    const nn_place *place;  /* of the pieces' values; borrowed */
    train_offload *offload; /* the engine's; call state_piece_fetch() before changing values, which
                               may be in a mapped file */
    state_piece *pieces;    /* [piece_count] state by state, and bucket by bucket within a state */
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

/** If the values of @p piece are in a mapped file, brings them into memory, to be changed.
 *  @return RING_OK, or RING_ERR_SYSTEM if the disk fails. */
ring_status state_piece_fetch(const engine_state *state, const state_piece *piece);

/** Sets all elements that this rank holds of a tensor of engine_network(). @param values
 *  [tensor->count]
 *  @return RING_OK or RING_ERR_MEMORY. */
ring_status engine_set_param(train_engine *engine, const train_tensor *tensor, const float *values);

#endif

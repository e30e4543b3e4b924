/* SPDX-License-Identifier: Apache-2.0
 *
 * offload: keeps part of a rank's state in files (mapped_file.h), as the sections offload_optimizer
 * and offload_param request: the optimiser's states and float32 masters, and in stage 3 the
 * parameters that the rank owns.
 */
#ifndef TRAIN_OFFLOAD_H
#define TRAIN_OFFLOAD_H

#include "config.h"
#include "errors.h"
#include "mapped_file.h"
#include "optimizer.h"
#include "zero_memory.h"

enum { OFFLOAD_ARRAYS = OPTIMIZER_STATES + 2 };

typedef struct train_offload {
    mapped_file states, params;
    mapped_array arrays[OFFLOAD_ARRAYS]; /* [array_count], an element for each that is updated */
    size_t sizes[OFFLOAD_ARRAYS];        /* bytes of an element */
    int array_count;
    train_failure failure; /* of the disk; what failed stays so */
} train_offload;

/** Marks the arrays of a planned @p memory that are to lie in files, so that none are allocated. */
void offload_plan(const offload_config *config, zero_memory *memory);

/** @return bytes of a rank's files: @p updated elements of states, and the arrays marked. */
size_t offload_bytes(const train_config *config, const zero_memory *memory, size_t updated);

/** Opens the files and places the marked arrays there; @p states are the optimiser's, NULL where
 *  they are to be allocated. Close whatever the result. @return as mapped_file_open(). */
ring_status offload_open(train_offload *offload, const train_config *config, zero_memory *memory,
                         size_t updated, float *states[OPTIMIZER_STATES]);
void offload_close(train_offload *offload);

/** @return the most elements that an update is to take at a time; SIZE_MAX without files. */
size_t offload_block(const train_offload *offload);

/** Elements @p at to below @p at + @p count of all arrays come into memory.
 *  @return false if a disk has failed: they must not be touched. */
bool offload_enter(train_offload *offload, size_t at, size_t count);

/** Copies @p bytes of the parameters' file, which lie at @p from, to @p to in memory. After a
 *  failure of the disk @p to stays as it is. */
void offload_read_params(train_offload *offload, void *to, const void *from, size_t bytes);

/** Brings memory that may be of a file in, to be read or changed soon: outside of walks.
 *  @return as offload_enter(). */
bool offload_fetch(train_offload *offload, const void *at, size_t bytes, bool to_change);

/** Collective over @p comm: ends the walk of an update, of an evaluation, or of what was fetched.
 * @return RING_OK, or on all ranks that a disk of one has failed, then or before. */
ring_status offload_leave(train_offload *offload, const offload_config *config, ring_comm *comm);

#endif

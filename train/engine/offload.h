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
    train_failure failure; /* of the disk; a failure is permanent */
} train_offload;

/** Marks the arrays of a planned @p memory that belong in files, so that they are not allocated. */
void offload_plan(const offload_config *config, zero_memory *memory);

/** @return bytes of a rank's files: @p updated elements of states, and the arrays marked. */
size_t offload_bytes(const train_config *config, const zero_memory *memory, size_t updated);

/** Opens the files and places the marked arrays there. @p states are the optimiser's arrays;
 *  entries are NULL if the optimiser must allocate them. Close whatever the result. @return as
 *  mapped_file_open(). */
ring_status offload_open(train_offload *offload, const train_config *config, zero_memory *memory,
                         size_t updated, float *states[OPTIMIZER_STATES]);
void offload_close(train_offload *offload);

/** @return the largest number of elements that an update may process at a time; SIZE_MAX without
 *  files. */
size_t offload_block(const train_offload *offload);

/** Brings elements @p at to @p at + @p count - 1 of all arrays into memory.
 *  @return false if a disk has failed: they must not be touched. */
bool offload_enter(train_offload *offload, size_t at, size_t count);

/** Copies @p bytes at @p from, in the file of parameters, to @p to in memory. If the disk has
 *  failed, @p to is unchanged. */
void offload_read_params(train_offload *offload, void *to, const void *from, size_t bytes);

/** Brings memory that may belong to a file into RAM, to be read or changed soon. Only outside
 *  walks.
 *  @return as offload_enter(). */
bool offload_fetch(train_offload *offload, const void *at, size_t bytes, bool to_change);

/** Collective over @p comm. Ends the walk of an update or an evaluation, or releases fetched
 *  memory. @return RING_OK, or an error on all ranks if any rank's disk has failed, now or earlier.
 */
ring_status offload_leave(train_offload *offload, const offload_config *config, ring_comm *comm);

#endif

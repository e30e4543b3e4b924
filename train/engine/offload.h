/* SPDX-License-Identifier: Apache-2.0
 *
 * offload: keeps part of a rank's state in mapped files instead of in memory (mapped_file.h). The
 * configuration's section offload_optimizer selects the optimiser's states and float32 masters;
 * offload_param selects the parameters that the rank owns in stage 3 of ZeRO.
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
    mapped_array arrays[OFFLOAD_ARRAYS]; /* [array_count], each with one element for every parameter
                                            that the rank updates */
    size_t sizes[OFFLOAD_ARRAYS];        /* [array_count] bytes of an element */
    int array_count;
    train_failure failure; /* the first failure of a disk; it is permanent */
} train_offload;

/** Marks the arrays of a planned @p memory that belong in files, so that they are not allocated. */
void offload_plan(const offload_config *config, zero_memory *memory);

/** @return bytes of a rank's files.
 *  @param memory  after offload_plan()
 *  @param updated  parameters that the rank updates */
size_t offload_bytes(const train_config *config, const zero_memory *memory, size_t updated);

/** Opens the files and places the arrays there that offload_plan() has marked.
 *  @param[in,out] states  the optimiser's arrays, NULL on entry; entries that stay NULL are to be
 *  allocated in memory. Close it whatever the result. @return as mapped_file_open(). */
ring_status offload_open(train_offload *offload, const train_config *config, zero_memory *memory,
                         size_t updated, float *states[OPTIMIZER_STATES]);
void offload_close(train_offload *offload);

/** @return the largest number of elements that an update may process between two calls of
 *  offload_enter(); SIZE_MAX without files. */
size_t offload_block(const train_offload *offload);

/** Brings elements @p at to @p at + @p count - 1 of all arrays into memory. A walk must move
 * forward until offload_leave().
 *  @return false if a disk has failed; then the elements must not be accessed. */
bool offload_enter(train_offload *offload, size_t at, size_t count);

/** Copies @p bytes from @p from, in the file of parameters, to @p to in memory. If a disk has
 * failed before, @p to is unchanged. */
void offload_read_params(train_offload *offload, void *to, const void *from, size_t bytes);

/** Brings @p bytes at @p at, which may be in a file, into RAM to be read or changed soon. Must not
 * be called between offload_enter() and offload_leave(). @return as offload_enter(). */
bool offload_fetch(train_offload *offload, const void *at, size_t bytes, bool to_change);

/** Ends the walk of an update or an evaluation, writes changes to the disk and releases fetched
 *  memory. Collective over @p comm.
 *  @return RING_OK, or an error on all ranks if the disk of any rank has failed, now or earlier. */
ring_status offload_leave(train_offload *offload, const offload_config *config, ring_comm *comm);

#endif

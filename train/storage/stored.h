/* SPDX-License-Identifier: Apache-2.0
 *
 * stored: reads named tensors that are stored in one file or, range by range, in several. Callers
 * read by name and range and need not know which file holds which part. In files of ranges the name
 * of an entry is "TENSOR@BEGIN".
 */
#ifndef TRAIN_STORED_H
#define TRAIN_STORED_H

#include "safetensors.h"
#include "tensor_order.h"

enum { STORED_NAME_MAX = 128, STORED_PATH_MAX = 4096 };

/** A range of a tensor in a file. */
typedef struct stored_range {
    char name[STORED_NAME_MAX];         /* of the tensor */
    size_t begin, count;                /* elements of it */
    size_t shape[SAFETENSORS_DIMS_MAX]; /* [dims] of the entry */
    int dims;
    ring_dtype type;
    int file;
    size_t at; /* bytes before it in the file */
} stored_range;

typedef struct stored_tensors {
    stored_range *ranges; /* [count] by name, then by begin */
    int count;
    char **paths; /* [files] */
    int files;
    int open_file, fd; /* the file that was read last; fd -1: none */
} stored_tensors;

/** Lists what is in the files @p paths.
 *  @param whole  each entry is a whole tensor with its own name; else a range.
 *  Free with stored_free() whatever the result. @return RING_OK, RING_ERR_MEMORY; RING_ERR_SYSTEM
 *  names a file that cannot be read, or a tensor whose ranges overlap or leave a gap. */
ring_status stored_open(stored_tensors *stored, const char *const *paths, int files, bool whole);
void stored_free(stored_tensors *stored);

/** @return the first range of the tensor, or NULL. */
const stored_range *stored_find(const stored_tensors *stored, const char *name);

/** @return elements of the tensor from its first to the last that is stored; 0: there is none. */
size_t stored_count(const stored_tensors *stored, const char *name);

/** Reads elements @p begin to below @p begin + @p count, cast to float32.
 *  @param order  in which the tensor is stored. @return RING_OK; RING_ERR_SYSTEM. */
ring_status stored_read(stored_tensors *stored, const char *name, const tensor_order *order,
                        size_t begin, size_t count, float *values);

#endif

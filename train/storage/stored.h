/* SPDX-License-Identifier: Apache-2.0
 *
 * stored: reads named tensors from one file, or from several files that have ranges of the tensors.
 * Callers read by name and range, regardless of how the files are divided. In files of ranges, an
 * entry has the name "TENSOR@BEGIN", with the number of its first element.
 */
#ifndef TRAIN_STORED_H
#define TRAIN_STORED_H

#include "safetensors.h"
#include "tensor_order.h"

enum { STORED_NAME_MAX = 128, STORED_PATH_MAX = 4096 };

/** A range of a tensor in a file. */
typedef struct stored_range {
    char name[STORED_NAME_MAX];         /* name of the tensor */
    size_t begin, count;                /* first element and number of elements */
    size_t shape[SAFETENSORS_DIMS_MAX]; /* [dims] shape of the entry in the file */
    int dims;
    ring_dtype type;
    int file;  /* index of the file */
    size_t at; /* offset in the file, in bytes */
} stored_range;

typedef struct stored_tensors {
    stored_range *ranges; /* [count] sorted by name, then by begin */
    int count;
    char **paths; /* [files] */
    int files;
    int open_file, fd; /* index and descriptor of the file that is open; fd -1: none */
} stored_tensors;

/** Lists the tensors in the files @p paths.
 *  @param whole  each entry of a file is a whole tensor; false: each entry is a range of a tensor.
 *  Free with stored_free() whatever the result. @return RING_OK, RING_ERR_MEMORY; RING_ERR_SYSTEM
 * if a file cannot be read, or if the ranges of a tensor overlap or leave a gap. */
ring_status stored_open(stored_tensors *stored, const char *const *paths, int files, bool whole);
void stored_free(stored_tensors *stored);

/** @return the first range of the tensor, or NULL. */
const stored_range *stored_find(const stored_tensors *stored, const char *name);

/** @return the number of elements of the tensor; 0: there is no such tensor. */
size_t stored_count(const stored_tensors *stored, const char *name);

/** Reads elements [@p begin, @p begin + @p count) of a tensor, and converts them to float32.
 *  @param order  order in which the elements are stored. @return RING_OK or RING_ERR_SYSTEM. */
ring_status stored_read(stored_tensors *stored, const char *name, const tensor_order *order,
                        size_t begin, size_t count, float *values);

#endif

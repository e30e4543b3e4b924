/* SPDX-License-Identifier: Apache-2.0
 *
 * idx: reads LeCun's IDX files of unsigned bytes, raw or compressed by gzip. A file is untrusted
 * input: its header is compared with its size on disk before anything is allocated, and the file
 * must have exactly as many elements as its header says.
 */
#ifndef TRAIN_IDX_H
#define TRAIN_IDX_H

#include <ring/ring.h>

enum { IDX_DIMS_MAX = 3 };

typedef struct idx_array {
    size_t shape[IDX_DIMS_MAX];
    size_t bytes;  /* product of the shape */
    uint8_t *data; /* row-major; freed by idx_free() */
} idx_array;

/** Reads @p path, whose array must have @p dims dimensions.
 *  @return RING_OK; RING_ERR_CONFIG (the file is wrong), RING_ERR_SYSTEM, RING_ERR_MEMORY. */
ring_status idx_read(const char *path, int dims, idx_array *array);
void idx_free(idx_array *array);

/** Allocates array->bytes. Rows are read in random order, so large arrays use huge pages if the
 *  kernel has them. @return RING_OK or RING_ERR_MEMORY. */
ring_status idx_allocate(idx_array *array);

#endif

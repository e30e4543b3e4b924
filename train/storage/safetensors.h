/* SPDX-License-Identifier: Apache-2.0
 *
 * safetensors: reads and writes the format of Hugging Face's library: the length of the header
 * (little-endian, 8 bytes), a JSON header with the type, shape and position of each tensor, and the
 * data. Supported types are float32, float16 and bfloat16. The reader refuses the same files as
 * that library: those whose tensors overlap, leave gaps, extend past the end of the file or do not
 * match the size of their shape.
 */
#ifndef TRAIN_SAFETENSORS_H
#define TRAIN_SAFETENSORS_H

#include <ring/ring.h>
#include <stdbool.h>

enum { SAFETENSORS_NAME_MAX = 160, SAFETENSORS_DIMS_MAX = 8 };

typedef struct safetensors_entry {
    char name[SAFETENSORS_NAME_MAX]; /* printable, without '"' and '\' */
    ring_dtype type;
    size_t shape[SAFETENSORS_DIMS_MAX]; /* [dims] */
    int dims;
    size_t count; /* product of the shape */
    size_t at;    /* bytes before it in the file */
} safetensors_entry;

/** @return bytes of an element; 0 if @p type is not one of the three. */
size_t safetensors_size(ring_dtype type);

/** Writes the start of a file whose data are the entries' in their order, without gaps.
 *  @param entries  [count] name, type, shape and dims; count and at are filled in here.
 *  @param[out] head, bytes  to be free()d. @return RING_OK or RING_ERR_MEMORY. */
ring_status safetensors_head(safetensors_entry *entries, int count, char **head, size_t *bytes);

/** Reads the start of the file @p path, open at @p fd.
 *  @param[out] entries, count  in the order of the data; to be free()d.
 *  @return RING_OK, RING_ERR_MEMORY; RING_ERR_SYSTEM if it cannot be read or is no such file, which
 *  names @p path. */
ring_status safetensors_read(const char *path, int fd, safetensors_entry **entries, int *count);

#endif

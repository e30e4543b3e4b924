/* SPDX-License-Identifier: Apache-2.0
 *
 * safetensors: reads and writes the format of Hugging Face's library. A file has the length of the
 * header (little-endian, 8 bytes), a JSON header with the type, shape and position of each tensor,
 * and the data. Supported types are float32, float16 and bfloat16. Like that library, the reader
 * refuses a file if its tensors overlap, leave gaps, extend past the end of the file, or have
 * another size than their shape.
 */
#ifndef TRAIN_SAFETENSORS_H
#define TRAIN_SAFETENSORS_H

#include <ring/ring.h>
#include <stdbool.h>

enum { SAFETENSORS_NAME_MAX = 160, SAFETENSORS_DIMS_MAX = 8 };

typedef struct safetensors_entry {
    char name[SAFETENSORS_NAME_MAX]; /* printable, without quotes and backslashes */
    ring_dtype type;
    size_t shape[SAFETENSORS_DIMS_MAX]; /* [dims] */
    int dims;
    size_t count; /* product of the shape */
    size_t at;    /* offset of its data in the file, in bytes */
} safetensors_entry;

/** @return the size of an element in bytes; 0 if @p type is not supported. */
size_t safetensors_size(ring_dtype type);

/** Makes the start of a file whose data follow in the order of the entries, without gaps.
 *  @param entries  [count] with name, type, shape and dims; count and at are filled in here.
 *  @param[out] head, bytes  to be free()d. @return RING_OK or RING_ERR_MEMORY. */
ring_status safetensors_head(safetensors_entry *entries, int count, char **head, size_t *bytes);

/** Reads the start of an open file.
 *  @param path  of the file @p fd, for messages
 *  @param[out] entries, count  in the order of the data; to be free()d.
 *  @return RING_OK, RING_ERR_MEMORY; RING_ERR_SYSTEM if the file cannot be read or does not have
 * this format. */
ring_status safetensors_read(const char *path, int fd, safetensors_entry **entries, int *count);

#endif

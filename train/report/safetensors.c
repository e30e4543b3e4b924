/* SPDX-License-Identifier: Apache-2.0
 * The header, and the parameters as they lie in memory. */
#include "safetensors.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "errors.h"

enum { HEADER_START = 64, TENSOR_ENTRY_MAX = 320 };

_Static_assert(TENSOR_ENTRY_MAX >= TENSOR_NAME_MAX + 80 + (TENSOR_DIMS_MAX + 2) * 21,
               "the header holds every tensor");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the file is little-endian");

/* Writes "name":{…}; @p text has TENSOR_ENTRY_MAX bytes, @p at is the tensor's place in the data.
 * @return its length. */
static size_t describe(const train_tensor *tensor, size_t at, char *text)
{
    int used = sprintf(text, ",\"%s\":{\"dtype\":\"F32\",\"shape\":[", tensor->name);
    for (int d = 0; d < tensor->dims; d++)
        used += sprintf(text + used, "%s%zu", d > 0 ? "," : "", tensor->shape[d]);
    used += sprintf(text + used, "],\"data_offsets\":[%zu,%zu]}", at,
                    at + tensor->count * sizeof(float));
    return (size_t)used;
}

/* @return the header's length: a multiple of 8, so that the data are aligned. */
static size_t make_header(const tensor_table *tensors, char *header)
{
    size_t used = (size_t)sprintf(header, "{\"__metadata__\":{\"format\":\"pt\"}"), at = 0;
    for (int i = 0; i < tensors->count; i++) {
        if (tensors->list[i].tie >= 0)
            continue;
        used += describe(&tensors->list[i], at, header + used);
        at += tensors->list[i].count * sizeof(float);
    }
    header[used++] = '}';
    while (used % 8 != 0)
        header[used++] = ' ';
    return used;
}

/* Without what may lie between tensors in memory. */
static bool write_data(FILE *file, const tensor_table *tensors, const float *params)
{
    for (int i = 0; i < tensors->count; i++) {
        const train_tensor *tensor = &tensors->list[i];
        if (tensor->tie < 0 &&
            fwrite(params + tensor->offset, sizeof(float), tensor->count, file) != tensor->count)
            return false;
    }
    return true;
}

static bool write_file(FILE *file, const tensor_table *tensors, const float *params)
{
    char *header = malloc(HEADER_START + (size_t)tensors->count * TENSOR_ENTRY_MAX);
    if (header == NULL)
        return false;
    const uint64_t length = make_header(tensors, header);
    const bool written = fwrite(&length, sizeof length, 1, file) == 1 &&
                         fwrite(header, length, 1, file) == 1 && write_data(file, tensors, params);
    free(header);
    return written;
}

static ring_status file_fail(const char *path, int cause)
{
    return train_fail(RING_ERR_SYSTEM, "--dump-params %s: %s", path, strerror(cause));
}

ring_status safetensors_open(output_file *file, const char *path, int rank)
{
    char own[OUTPUT_PATH_MAX];
    if (snprintf(own, sizeof own, "%s.%d", path, rank) >= (int)sizeof own)
        return train_fail(RING_ERR_ARGUMENT, "--dump-params: the name is too long");
    return output_begin(file, own) ? RING_OK : file_fail(own, errno);
}

ring_status safetensors_write(output_file *file, const tensor_table *tensors, const float *params)
{
    if (write_file(file->stream, tensors, params) && output_finish(file))
        return RING_OK;
    const ring_status status = file_fail(file->path, errno);
    output_discard(file);
    return status;
}

/* SPDX-License-Identifier: Apache-2.0
 * Writes the header of a safetensors file, then the float32 parameters as they are in memory. */
#include "params_dump.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "errors.h"
#include "safetensors.h"

static int list_entries(const tensor_table *tensors, safetensors_entry *entries)
{
    int count = 0;
    for (int i = 0; i < tensors->count; i++) {
        const train_tensor *tensor = &tensors->list[i];
        if (tensor->tie >= 0)
            continue;
        safetensors_entry *entry = &entries[count++];
        entry->type = RING_FLOAT32;
        entry->dims = tensor->dims;
        memcpy(entry->shape, tensor->shape, sizeof tensor->shape);
        memcpy(entry->name, tensor->name, sizeof tensor->name);
    }
    return count;
}

static ring_status make_head(const tensor_table *tensors, char **head, size_t *bytes)
{
    safetensors_entry *entries;
    RING_TRY(train_alloc((void **)&entries, (size_t)tensors->count * sizeof *entries,
                         "the list of parameters"));
    const ring_status status = safetensors_head(entries, list_entries(tensors, entries), head,
                                                bytes);
    free(entries);
    return status;
}

/* Writes the tensors one by one, because there may be unused elements between them in memory. */
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

#define DUMP "--dump-params "

static ring_status file_fail(const char *option, const char *path, int cause)
{
    return train_fail(RING_ERR_SYSTEM, "%s%s: %s", option, path, strerror(cause));
}

ring_status params_dump_open(output_file *file, const char *path, int rank)
{
    char own[OUTPUT_PATH_MAX];
    if (snprintf(own, sizeof own, "%s.%d", path, rank) >= (int)sizeof own)
        return train_fail(RING_ERR_ARGUMENT,
                          "--dump-params: the path is too long; give a shorter path");
    return output_begin(file, own) ? RING_OK : file_fail(DUMP, own, errno);
}

static ring_status write_file(output_file *file, const char *option, const tensor_table *tensors,
                              const float *params)
{
    char *head;
    size_t bytes;
    RING_TRY(make_head(tensors, &head, &bytes));
    const bool written = fwrite(head, bytes, 1, file->stream) == 1 &&
                         write_data(file->stream, tensors, params) && output_finish(file);
    const int cause = errno;
    free(head);
    return written ? RING_OK : file_fail(option, file->path, cause);
}

ring_status params_dump_write(output_file *file, const tensor_table *tensors, const float *params)
{
    const ring_status status = write_file(file, DUMP, tensors, params);
    output_discard(file);
    return status;
}

ring_status params_file_write(const char *path, const tensor_table *tensors, const float *params)
{
    output_file file = {0};
    if (!output_begin(&file, path))
        return file_fail("", path, errno);
    const ring_status status = write_file(&file, "", tensors, params);
    output_discard(&file);
    return status;
}

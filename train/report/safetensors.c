/* SPDX-License-Identifier: Apache-2.0
 * Written beside its place and renamed, so that a reader never sees half a file. */
#include "safetensors.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "errors.h"

enum { HEADER_BYTES = 4096, TENSOR_ENTRY_MAX = 128 };

_Static_assert(HEADER_BYTES >= (2 * MODEL_LAYERS_MAX + 1) * TENSOR_ENTRY_MAX,
               "the header holds every tensor");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the file is little-endian");

/* @return the header's length: a multiple of 8, so that the data are aligned. */
static size_t make_header(const train_model *model, char header[HEADER_BYTES])
{
    model_tensor tensors[2 * MODEL_LAYERS_MAX];
    const size_t count = model_tensors(model, tensors);
    size_t used = (size_t)sprintf(header, "{\"__metadata__\":{\"format\":\"pt\"}");
    for (size_t i = 0; i < count; i++) {
        const model_tensor *tensor = &tensors[i];
        char columns[24] = "";
        if (tensor->dims == 2)
            snprintf(columns, sizeof columns, ",%zu", tensor->shape[1]);
        used += (size_t)snprintf(header + used, HEADER_BYTES - used,
                                 ",\"%s\":{\"dtype\":\"F32\",\"shape\":[%zu%s],"
                                 "\"data_offsets\":[%zu,%zu]}",
                                 tensor->name, tensor->shape[0], columns,
                                 tensor->offset * sizeof(float),
                                 (tensor->offset + tensor->count) * sizeof(float));
    }
    header[used++] = '}';
    while (used % 8 != 0)
        header[used++] = ' ';
    return used;
}

static bool write_file(FILE *file, const train_model *model, const float *params)
{
    char header[HEADER_BYTES];
    const uint64_t length = make_header(model, header);
    const size_t count = model->param_count;
    return fwrite(&length, sizeof length, 1, file) == 1 && fwrite(header, length, 1, file) == 1 &&
           fwrite(params, sizeof(float), count, file) == count;
}

static ring_status file_fail(const char *path, int cause)
{
    return train_fail(RING_ERR_SYSTEM, "--dump-params %s: %s", path, strerror(cause));
}

ring_status safetensors_open(safetensors_file *file, const char *path, int rank)
{
    struct stat info;
    snprintf(file->final, sizeof file->final, "%s.%d", path, rank);
    if ((size_t)snprintf(file->partial, sizeof file->partial, "%s.%d.partial", path, rank) >=
        sizeof file->partial)
        return train_fail(RING_ERR_ARGUMENT, "--dump-params: the name is too long");
    if (stat(file->final, &info) == 0 && S_ISDIR(info.st_mode))
        return file_fail(file->final, EISDIR);
    file->stream = fopen(file->partial, "wbe");
    return file->stream != NULL ? RING_OK : file_fail(file->partial, errno);
}

ring_status safetensors_write(safetensors_file *file, const train_model *model, const float *params)
{
    const bool written = write_file(file->stream, model, params);
    const int cause = errno;
    const bool closed = fclose(file->stream) == 0;
    file->stream = NULL;
    if (written && closed && rename(file->partial, file->final) == 0)
        return RING_OK;
    const ring_status status = file_fail(file->final, written ? errno : cause);
    unlink(file->partial);
    return status;
}

void safetensors_discard(safetensors_file *file)
{
    if (file->stream == NULL)
        return;
    fclose(file->stream);
    unlink(file->partial);
    file->stream = NULL;
}

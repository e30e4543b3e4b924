/* SPDX-License-Identifier: Apache-2.0
 * The header, and the parameters as they lie in memory. */
#include "safetensors.h"

#include <errno.h>
#include <string.h>

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

ring_status safetensors_open(output_file *file, const char *path, int rank)
{
    char own[OUTPUT_PATH_MAX];
    if (snprintf(own, sizeof own, "%s.%d", path, rank) >= (int)sizeof own)
        return train_fail(RING_ERR_ARGUMENT, "--dump-params: the name is too long");
    return output_begin(file, own) ? RING_OK : file_fail(own, errno);
}

ring_status safetensors_write(output_file *file, const train_model *model, const float *params)
{
    if (write_file(file->stream, model, params) && output_finish(file))
        return RING_OK;
    const ring_status status = file_fail(file->path, errno);
    output_discard(file);
    return status;
}

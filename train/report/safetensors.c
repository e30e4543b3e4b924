/* SPDX-License-Identifier: Apache-2.0
 * Written beside its place and renamed, so that a reader never sees half a file. */
#include "safetensors.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "errors.h"

enum { PATH_BYTES = 4096, HEADER_BYTES = 4096, TENSOR_ENTRY_MAX = 128 };

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
    return fwrite(&length, sizeof length, 1, file) == 1 &&
           fwrite(header, length, 1, file) == 1 &&
           fwrite(params, sizeof(float), count, file) == count;
}

ring_status safetensors_write(const char *path, int rank, const train_model *model,
                              const float *params)
{
    char final[PATH_BYTES], partial[PATH_BYTES];
    snprintf(final, sizeof final, "%s.%d", path, rank);
    if ((size_t)snprintf(partial, sizeof partial, "%s.%d.partial", path, rank) >=
        sizeof partial)
        return train_fail(RING_ERR_ARGUMENT, "--dump-params: the name is too long");
    FILE *file = fopen(partial, "wbe");
    if (file == NULL)
        return train_fail(RING_ERR_SYSTEM, "--dump-params %s: %s", partial, strerror(errno));
    const bool written = write_file(file, model, params);
    if (fclose(file) != 0 || !written || rename(partial, final) != 0) {
        const int cause = errno;
        unlink(partial);
        return train_fail(RING_ERR_SYSTEM, "--dump-params %s: %s", final, strerror(cause));
    }
    return RING_OK;
}

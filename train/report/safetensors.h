/* SPDX-License-Identifier: Apache-2.0
 *
 * safetensors: named float32 arrays in the layout that Hugging Face's library reads: the
 * header's length (little-endian, 8 bytes), a JSON header, the data.
 */
#ifndef TRAIN_SAFETENSORS_H
#define TRAIN_SAFETENSORS_H

#include <stdio.h>

#include "model.h"

enum { SAFETENSORS_PATH_MAX = 4096 };

/** A file in the making; all zero: none. */
typedef struct safetensors_file {
    FILE *stream;
    char final[SAFETENSORS_PATH_MAX], partial[SAFETENSORS_PATH_MAX];
} safetensors_file;

/** Creates "path.rank.partial", so that a path that cannot be written is known before there
 *  is anything to write. End with safetensors_discard() whatever the result. */
ring_status safetensors_open(safetensors_file *file, const char *path, int rank);

/** Writes the model's parameters and puts them in place as "path.rank".
 *  @param params  the flat buffer that model_bind() placed. */
ring_status safetensors_write(safetensors_file *file, const train_model *model,
                              const float *params);

/** Removes what is not in place. */
void safetensors_discard(safetensors_file *file);

#endif

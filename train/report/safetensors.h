/* SPDX-License-Identifier: Apache-2.0
 *
 * safetensors: named float32 arrays in the layout that Hugging Face's library reads: the
 * header's length (little-endian, 8 bytes), a JSON header, the data.
 */
#ifndef TRAIN_SAFETENSORS_H
#define TRAIN_SAFETENSORS_H

#include "model.h"

/** Writes the model's parameters to "path.rank", as a whole or not at all.
 *  @param params  the flat buffer that model_bind() placed. */
ring_status safetensors_write(const char *path, int rank, const train_model *model,
                              const float *params);

#endif

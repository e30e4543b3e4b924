/* SPDX-License-Identifier: Apache-2.0
 *
 * safetensors: named float32 arrays in the layout that Hugging Face's library reads: the
 * header's length (little-endian, 8 bytes), a JSON header, the data.
 */
#ifndef TRAIN_SAFETENSORS_H
#define TRAIN_SAFETENSORS_H

#include "output.h"
#include "tensors.h"

/** Begins "path.rank", so that a path that cannot be written is known before there is anything to
 *  write. End with output_discard() whatever the result. */
ring_status safetensors_open(output_file *file, const char *path, int rank);

/** Writes the tensors and puts the file in place. Tied tensors are written once, by the name of
 *  their original. @param params  [tensors->elements], as the table lays it out. */
ring_status safetensors_write(output_file *file, const tensor_table *tensors, const float *params);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * params_dump: writes a model's parameters to one safetensors file, or to one file per rank
 * (--dump-params).
 */
#ifndef TRAIN_PARAMS_DUMP_H
#define TRAIN_PARAMS_DUMP_H

#include "output.h"
#include "tensors.h"

/** Begins "path.rank", so that a path that cannot be written is known before there is anything to
 *  write. End with output_discard() whatever the result. */
ring_status params_dump_open(output_file *file, const char *path, int rank);

/** Writes the tensors and puts the file in place. Tied tensors are written once, by the name of
 *  their original. @param params  [tensors->elements], as the table lays it out. */
ring_status params_dump_write(output_file *file, const tensor_table *tensors, const float *params);

/** The same as the file @p path, at once. */
ring_status params_file_write(const char *path, const tensor_table *tensors, const float *params);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * params_dump: writes a model's parameters to one safetensors file, or with --dump-params to one
 * such file for each rank.
 */
#ifndef TRAIN_PARAMS_DUMP_H
#define TRAIN_PARAMS_DUMP_H

#include "output.h"
#include "tensors.h"

/** Begins the file "path.rank". Call this before the training, so that a path that cannot be
 * written fails early. End with output_discard() whatever the result. */
ring_status params_dump_open(output_file *file, const char *path, int rank);

/** Writes the tensors, and completes the file. Tied tensors are written once, with the name of
 * their original. @param params  [tensors->elements], laid out by the table */
ring_status params_dump_write(output_file *file, const tensor_table *tensors, const float *params);

/** Begins, writes and completes the file @p path. */
ring_status params_file_write(const char *path, const tensor_table *tensors, const float *params);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * cifar: reads CIFAR-10's binary files. A file has no header; each record is a label of one byte
 * and three planes (red, green, blue) of 32 x 32 bytes. The files are untrusted input, so their
 * sizes are checked before anything is allocated.
 */
#ifndef TRAIN_CIFAR_H
#define TRAIN_CIFAR_H

#include <stdbool.h>

#include "idx.h"

enum { CIFAR_PIXELS = 3 * 32 * 32 /* bytes of an image */ };

/** @return whether @p folder has the first file of the training or the test set. */
bool cifar_is_here(const char *folder);

/** Reads test_batch.bin, or data_batch_1.bin, data_batch_2.bin, … up to the last one that exists.
 *  @param[out] images  [count, CIFAR_PIXELS]; @param[out] labels  [count]; to be freed with
 *  idx_free() whatever the result.
 *  @return RING_OK; RING_ERR_CONFIG (a file is wrong), RING_ERR_SYSTEM, RING_ERR_MEMORY. */
ring_status cifar_read(const char *folder, bool test, idx_array *images, idx_array *labels);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * dataset: MNIST and whatever has its four files (raw IDX or .gz), or CIFAR-10 and whatever has
 * its binary files: images as bytes in memory, turned into float32 rows when a batch is taken.
 */
#ifndef TRAIN_DATASET_H
#define TRAIN_DATASET_H

#include "idx.h"

enum { DATASET_CLASSES = 10 };

typedef struct train_dataset {
    idx_array images; /* [count, rows, columns], or [count, 3 planes of 32 x 32] */
    idx_array labels; /* [count], each below DATASET_CLASSES */
    size_t count;
    size_t features; /* bytes of an image */
} train_dataset;

typedef enum dataset_part { DATASET_TRAIN, DATASET_TEST } dataset_part;

/** Reads the files of @p part from @p folder: CIFAR-10's if they are there. Never downloads
 * anything. */
ring_status dataset_read(const char *folder, dataset_part part, train_dataset *dataset);
void dataset_free(train_dataset *dataset);

/** @return a number that tells data sets apart: quick to compute, and no secret. */
uint64_t dataset_hash(const train_dataset *dataset);

/** Copies the samples @p order[0..batch) as torchvision's ToTensor does (byte / 255).
 *  @param[out] images  [batch, features]; @param[out] labels [batch]. */
void dataset_take(const train_dataset *dataset, const uint32_t *order, size_t batch, float *images,
                  uint8_t *labels);

#endif

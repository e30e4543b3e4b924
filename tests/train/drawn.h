/* SPDX-License-Identifier: Apache-2.0
 *
 * drawn: random images and labels, the same ones that make_vectors.py and
 * make_precision_vectors.py draw.
 */
#ifndef TESTS_TRAIN_DRAWN_H
#define TESTS_TRAIN_DRAWN_H

#include <dataset.h>
#include <random.h>
#include <stdlib.h>

#include "check.h"

enum { DRAWN_PIXELS = 784 };

/** Ends the test if there is no memory. Free with dataset_free(). */
static inline void drawn_fill(train_dataset *dataset, size_t count)
{
    train_random random;
    random_seed(&random, 11);
    dataset->count = count;
    dataset->features = DRAWN_PIXELS;
    dataset->images.data = malloc(count * DRAWN_PIXELS);
    dataset->labels.data = malloc(count);
    assert_non_null(dataset->images.data);
    assert_non_null(dataset->labels.data);
    for (size_t i = 0; i < count * DRAWN_PIXELS; i++)
        dataset->images.data[i] = (uint8_t)random_uniform(&random, 0, 256);
    for (size_t i = 0; i < count; i++)
        dataset->labels.data[i] = (uint8_t)random_uniform(&random, 0, 10);
}

#endif

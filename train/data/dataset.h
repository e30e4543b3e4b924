/* SPDX-License-Identifier: Apache-2.0
 *
 * dataset: samples by number, turned into float32 rows when a batch is taken. Images come from
 * MNIST's four files (raw IDX or .gz) or CIFAR-10's binary files, with one label each; text from
 * files of tokens (tokens.h), where each token is the label of the one before it; anything else
 * from a source that the caller gives.
 */
#ifndef TRAIN_DATASET_H
#define TRAIN_DATASET_H

#include "idx.h"
#include "pixel_norm.h"

enum { DATASET_CLASSES = 10 };

/** Samples that are not in this process's arrays: functions of whoever has them. */
typedef struct data_source {
    /** As dataset_take(). Several threads may call it at once; @p inputs may be NULL. */
    ring_status (*take)(void *context, const uint32_t *order, size_t batch, float *inputs,
                        uint32_t *labels);
    void (*close)(void *context); /* NULL: nothing to close; dataset_free() calls it */
} data_source;

/* A source has count, features, classes, own_labels and hash filled in, and no arrays. */
typedef struct train_dataset {
    idx_array images; /* [count, rows, columns], or [count, 3 planes of 32 x 32]; or the text */
    idx_array labels; /* [count], each below DATASET_CLASSES; of text none */
    size_t count;
    size_t features;        /* numbers of a sample: bytes of an image, tokens */
    size_t classes;         /* more than any label */
    size_t channels;        /* planes of an image */
    size_t token_bytes;     /* of text; 0: images */
    const pixel_norm *norm; /* of images; borrowed; NULL: bytes / 255 as they are */
    uint64_t hash;          /* what dataset_hash() is to return; 0: of the arrays, computed then */
    void *shared;           /* the mapping that holds both arrays; NULL: they are malloc()ed */
    const data_source *source; /* NULL: the arrays */
    void *context;             /* of the source */
    size_t own_labels;         /* of a sample of the source */
} train_dataset;

typedef enum dataset_part { DATASET_TRAIN, DATASET_TEST } dataset_part;

/** Reads the files of @p part from @p folder: CIFAR-10's if they are there, or a text's, else
 *  MNIST's. Never downloads anything. */
ring_status dataset_read(const char *folder, dataset_part part, train_dataset *dataset);

/** Cuts a text into samples of @p tokens tokens, one behind the other; what is left is not used.
 *  Images are samples already: nothing is done. @return RING_ERR_CONFIG if there is no sample. */
ring_status dataset_cut(train_dataset *dataset, size_t tokens);

/** Has images normalized from now on. @param norm  borrowed.
 *  @return RING_ERR_CONFIG for a text, or images of another number of channels. */
ring_status dataset_normalize(train_dataset *dataset, const pixel_norm *norm);

void dataset_free(train_dataset *dataset);

/** @return a number that tells data sets apart: quick to compute, and no secret. */
uint64_t dataset_hash(const train_dataset *dataset);

/** Copies the samples @p order[0..batch): images as torchvision's ToTensor does (byte / 255), and
 * Normalize if there is a norm, tokens as the numbers that they are, which a float holds exactly.
 *  @param[out] inputs  [batch, features]; NULL: labels alone. @param[out] labels [batch], of text
 * [batch, features]. @return RING_OK, or what a source fails with: train_fail() in take(). */
ring_status dataset_take(const train_dataset *dataset, const uint32_t *order, size_t batch,
                         float *inputs, uint32_t *labels);

#endif

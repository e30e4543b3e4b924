/* SPDX-License-Identifier: Apache-2.0
 *
 * dataset: provides samples by number, and converts them to float32 rows when a batch is taken.
 * Images are read from MNIST's four files (raw IDX or .gz) or CIFAR-10's binary files, with one
 * label each; text from files of tokens (tokens.h), where each token is the label of the one before
 * it; anything else from a source that the caller provides.
 */
#ifndef TRAIN_DATASET_H
#define TRAIN_DATASET_H

#include "idx.h"
#include "pixel_norm.h"

enum { DATASET_CLASSES = 10 };

/** Functions of a caller that provides samples itself instead of having them read into arrays. */
typedef struct data_source {
    /** As dataset_take(). Several threads may call it at once; @p inputs may be NULL. */
    ring_status (*take)(void *context, const uint32_t *order, size_t batch, float *inputs,
                        uint32_t *labels);
    void (*close)(void *context); /* NULL: nothing to close; dataset_free() calls it */
} data_source;

/* A source has count, features, classes, own_labels and hash filled in, and no arrays. */
typedef struct train_dataset {
    idx_array images; /* [count, rows, columns], or [count, 3 planes of 32 x 32]; or the text */
    idx_array labels; /* [count], each below DATASET_CLASSES; a text has none */
    size_t count;
    size_t features;           /* numbers of a sample: bytes of an image, tokens */
    size_t classes;            /* more than any label */
    size_t channels;           /* planes of an image */
    size_t token_bytes;        /* of text; 0: images */
    const pixel_norm *norm;    /* of images; borrowed; NULL: bytes / 255 as they are */
    uint64_t hash;             /* returned by dataset_hash(); 0: it hashes the arrays */
    void *shared;              /* the mapping that holds both arrays; NULL: they are malloc()ed */
    const data_source *source; /* NULL: the arrays */
    void *context;             /* of the source */
    size_t own_labels;         /* of a sample of the source */
} train_dataset;

typedef enum dataset_part { DATASET_TRAIN, DATASET_TEST } dataset_part;

/** Reads the files of @p part from @p folder: CIFAR-10's if they are there, or a text's, else
 *  MNIST's. Never downloads anything. */
ring_status dataset_read(const char *folder, dataset_part part, train_dataset *dataset);

/** Cuts a text into consecutive samples of @p tokens tokens; the rest is not used. Does nothing for
 *  images, which are samples already. @return RING_ERR_CONFIG if the text is too short. */
ring_status dataset_cut(train_dataset *dataset, size_t tokens);

/** Makes dataset_take() normalize images from now on. @param norm  borrowed.
 *  @return RING_ERR_CONFIG for a text, or images of another number of channels. */
ring_status dataset_normalize(train_dataset *dataset, const pixel_norm *norm);

void dataset_free(train_dataset *dataset);

/** @return a hash of the data: quick to compute, not cryptographic. */
uint64_t dataset_hash(const train_dataset *dataset);

/** Copies the samples @p order[0..batch). Images are converted as by torchvision's ToTensor (byte /
 *  255), and Normalize if there is a norm; tokens are copied as numbers, which a float holds
 * exactly.
 *  @param[out] inputs  [batch, features]; NULL: labels only
 *  @param[out] labels  [batch]; for a text [batch, features]
 *  @return RING_OK, or the failure of a source's take(), which calls train_fail(). */
ring_status dataset_take(const train_dataset *dataset, const uint32_t *order, size_t batch,
                         float *inputs, uint32_t *labels);

#endif

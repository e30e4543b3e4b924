/* SPDX-License-Identifier: Apache-2.0
 *
 * dataset: provides samples by number, and converts them to rows of float32 when a batch is taken.
 * Images, each with one label, come from MNIST's four files (raw IDX or .gz) or from CIFAR-10's
 * binary files. Texts come from files of tokens (tokens.h); the label of a token is the next token.
 * Other samples come from a source that the caller provides.
 */
#ifndef TRAIN_DATASET_H
#define TRAIN_DATASET_H

#include "idx.h"
#include "pixel_norm.h"

enum { DATASET_CLASSES = 10 };

/** Functions of a caller that provides the samples itself, in place of files. */
typedef struct data_source {
    /** Copies samples as dataset_take() does. Several threads may call it at once. @p inputs may be
     *  NULL. */
    ring_status (*take)(void *context, const uint32_t *order, size_t batch, float *inputs,
                        uint32_t *labels);
    void (*close)(void *context); /* NULL: nothing to close; dataset_free() calls it */
} data_source;

/* With a source, only count, features, classes, own_labels and hash are filled in, and there are no
 * arrays. */
typedef struct train_dataset {
    idx_array images; /* [count, rows, columns], [count, 3 * 32 * 32], or the bytes of a text */
    idx_array labels; /* [count], each below DATASET_CLASSES; empty for a text */
    size_t count;
    size_t features;           /* numbers in a sample: bytes of an image, or tokens */
    size_t classes;            /* each label is below this */
    size_t channels;           /* planes of an image */
    size_t token_bytes;        /* bytes of a token of a text; 0: images */
    const pixel_norm *norm;    /* normalization of images; borrowed; NULL: bytes / 255 */
    uint64_t hash;             /* the result of dataset_hash(); 0: not computed yet */
    void *shared;              /* mapping of both arrays; NULL: the arrays are malloc()ed */
    const data_source *source; /* NULL: samples are in the arrays */
    void *context;             /* passed to the source's functions */
    size_t own_labels;         /* labels of each sample of the source */
} train_dataset;

typedef enum dataset_part { DATASET_TRAIN, DATASET_TEST } dataset_part;

/** Reads the files of @p part from @p folder: CIFAR-10's files if they exist, or else the files of
 * a text, or else MNIST's files. Never downloads anything. */
ring_status dataset_read(const char *folder, dataset_part part, train_dataset *dataset);

/** Divides a text into consecutive samples of @p tokens tokens, and ignores the remainder. Does
 *  nothing for images. @return RING_ERR_CONFIG if the text is too short. */
ring_status dataset_cut(train_dataset *dataset, size_t tokens);

/** Makes dataset_take() normalize images from now on. @param norm  borrowed.
 *  @return RING_ERR_CONFIG for a text, or for images with another number of channels. */
ring_status dataset_normalize(train_dataset *dataset, const pixel_norm *norm);

void dataset_free(train_dataset *dataset);

/** @return a fast hash of the data, which is not cryptographic. */
uint64_t dataset_hash(const train_dataset *dataset);

/** Copies the samples whose numbers are @p order[0..batch). Images are converted as torchvision
 * does: by ToTensor (byte / 255), and by Normalize if there is a norm. Tokens are converted to
 * float, which is exact.
 *  @param[out] inputs  [batch, features]; NULL: labels only
 *  @param[out] labels  [batch]; for a text [batch, features]
 *  @return RING_OK, or the error of a source's take(), which calls train_fail(). */
ring_status dataset_take(const train_dataset *dataset, const uint32_t *order, size_t batch,
                         float *inputs, uint32_t *labels);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * manifest: describes a checkpoint in the file manifest.json next to its shards. The last line is a
 * hash of all lines before it, so a damaged number is never used.
 */
#ifndef TRAIN_MANIFEST_H
#define TRAIN_MANIFEST_H

#include <ring/ring.h>
#include <stdbool.h>

#include "tensor_order.h"
#include "tensors.h"

enum {
    MANIFEST_VERSION = 2,
    MANIFEST_VERSION_OLDEST = 1, /* that is read: without tensor ranks */
    MANIFEST_NAME_MAX = 64,
    MANIFEST_STATES_MAX = 16,
    MANIFEST_NUMBERS_MAX = 16
};

/** How far a run is. */
typedef struct run_place {
    long step;          /* updates done */
    int epoch;          /* from 1 */
    uint64_t taken;     /* samples of the epoch that all ranks together have taken: the head of its
                           permutation */
    bool epoch_over;    /* all of them */
    long micro_batches; /* done by a rank */
} run_place;

/** Facts that must be equal for a run to resume another. */
typedef struct run_identity {
    char model[MANIFEST_NAME_MAX];
    uint64_t model_hash, data_hash;
    uint64_t seed;
} run_identity;

typedef struct manifest_tensor {
    char name[TENSOR_NAME_MAX];
    size_t shape[TENSOR_DIMS_MAX]; /* [dims] */
    int dims;
    tensor_order order; /* in which the shards have its elements */
} manifest_tensor;

typedef struct manifest_number {
    char name[MANIFEST_NAME_MAX];
    double value; /* finite */
} manifest_number;

typedef struct manifest_shard {
    uint64_t bytes, hash;
} manifest_shard;

typedef struct checkpoint_manifest {
    run_place place;
    run_identity identity;
    int stage;                                     /* of ZeRO, for people */
    manifest_number numbers[MANIFEST_NUMBERS_MAX]; /* of the engine's state */
    int number_count;
    char states[MANIFEST_STATES_MAX][MANIFEST_NAME_MAX]; /* that each tensor has */
    int state_count;
    manifest_tensor *tensors; /* [tensor_count] in the model's order; tied ones are not there */
    int tensor_count;
    manifest_shard *shards; /* [shard_count] of rank 0, 1, … */
    int shard_count;
    char *settings; /* lines "name=value": may differ, with a note; NULL: none */
} checkpoint_manifest;

/** @param[out] text  to be free()d. @return RING_OK or RING_ERR_MEMORY. */
ring_status manifest_write(const checkpoint_manifest *manifest, char **text, size_t *length);

/** @param path  for messages. Free with manifest_free() whatever the result.
 *  @return RING_OK, RING_ERR_MEMORY; RING_ERR_SYSTEM if it is damaged; RING_ERR_UNSUPPORTED if it
 * is of another version. */
ring_status manifest_parse(checkpoint_manifest *manifest, const char *path, const char *text,
                           size_t length);

/** The same from the file @p path. */
ring_status manifest_read(checkpoint_manifest *manifest, const char *path);
void manifest_free(checkpoint_manifest *manifest);

/** @return the tensor called @p name, or NULL. */
const manifest_tensor *manifest_find(const checkpoint_manifest *manifest, const char *name);

#endif

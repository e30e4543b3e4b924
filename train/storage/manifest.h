/* SPDX-License-Identifier: Apache-2.0
 *
 * manifest: reads and writes the file manifest.json, which describes a checkpoint and is in the
 * folder of its shards. The last line has a hash of all bytes before it, so that a damaged file is
 * never used.
 */
#ifndef TRAIN_MANIFEST_H
#define TRAIN_MANIFEST_H

#include <ring/ring.h>
#include <stdbool.h>

#include "tensor_order.h"
#include "tensors.h"

enum {
    MANIFEST_VERSION = 2,
    MANIFEST_VERSION_OLDEST = 1, /* the oldest version that can be read; it has no tensor ranks */
    MANIFEST_NAME_MAX = 64,
    MANIFEST_STATES_MAX = 16,
    MANIFEST_NUMBERS_MAX = 16
};

/** The progress of a run. */
typedef struct run_place {
    long step;          /* updates done */
    int epoch;          /* from 1 */
    uint64_t taken;     /* number of samples that all ranks together have taken in this epoch: the
                           first ones of its order */
    bool epoch_over;    /* the epoch is complete */
    long micro_batches; /* micro-batches done by a rank */
} run_place;

/** Facts that must be equal when a run resumes from a checkpoint. */
typedef struct run_identity {
    char model[MANIFEST_NAME_MAX];
    uint64_t model_hash, data_hash;
    uint64_t seed;
} run_identity;

typedef struct manifest_tensor {
    char name[TENSOR_NAME_MAX];
    size_t shape[TENSOR_DIMS_MAX]; /* [dims] */
    int dims;
    tensor_order order; /* the order in which shards store its elements */
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
    int stage;                                     /* stage of ZeRO, for information */
    manifest_number numbers[MANIFEST_NUMBERS_MAX]; /* single numbers of the engine's state */
    int number_count;
    char states[MANIFEST_STATES_MAX][MANIFEST_NAME_MAX]; /* names of the states of each tensor */
    int state_count;
    manifest_tensor *tensors; /* [tensor_count] in the model's order, without tied tensors */
    int tensor_count;
    manifest_shard *shards; /* [shard_count] by rank */
    int shard_count;
    char *settings; /* lines "name=value", which may change with a note; NULL: none */
} checkpoint_manifest;

/** Writes a manifest to memory. @param[out] text  to be free()d. @return RING_OK or
 * RING_ERR_MEMORY. */
ring_status manifest_write(const checkpoint_manifest *manifest, char **text, size_t *length);

/** Parses a manifest in memory. @param path  for messages. Free with manifest_free() whatever the
 *  result. @return RING_OK, RING_ERR_MEMORY; RING_ERR_SYSTEM if the text is damaged;
 *  RING_ERR_UNSUPPORTED if it has another version. */
ring_status manifest_parse(checkpoint_manifest *manifest, const char *path, const char *text,
                           size_t length);

/** Reads the file @p path and parses it in the same way. */
ring_status manifest_read(checkpoint_manifest *manifest, const char *path);
void manifest_free(checkpoint_manifest *manifest);

/** @return the tensor with the name @p name, or NULL. */
const manifest_tensor *manifest_find(const checkpoint_manifest *manifest, const char *name);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * shard: what one rank owns of an engine's state, as a safetensors file of ranges with names
 * "STATE/TENSOR@BEGIN": rank-00000.safetensors, …
 */
#ifndef TRAIN_SHARD_H
#define TRAIN_SHARD_H

#include "engine_state.h"
#include "manifest.h"
#include "stored.h"

/** Writes "FOLDER/rank-NNNNN.safetensors". @return RING_ERR_CONFIG if the path is too long. */
ring_status shard_path(const char *folder, int rank, char path[STORED_PATH_MAX]);

/** Writes the shard and syncs it. @param state  SHARE_OWN of it. @param[out] shard  its facts. */
ring_status shard_write(const char *path, const engine_state *state, manifest_shard *shard);

/** @return RING_OK, or RING_ERR_SYSTEM if the file is not what @p shard says. */
ring_status shard_check(const char *path, const manifest_shard *shard);

/** Opens all shards of the checkpoint in @p folder. Free with stored_free() whatever the result. */
ring_status shards_open(const char *folder, int shards, stored_tensors *stored);

/** Reads the piece's elements, cast to its type, from those that are stored as @p name in @p order.
 */
ring_status shard_read_piece(stored_tensors *stored, const char *name, const tensor_order *order,
                             const state_piece *piece);

/** Writes the name under which a state of a tensor is stored. */
void shard_tensor_name(const char *state, const char *tensor, char name[STORED_NAME_MAX]);

#endif

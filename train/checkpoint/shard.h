/* SPDX-License-Identifier: Apache-2.0
 *
 * shard: writes and reads the part of an engine's state that one rank owns, as a safetensors file
 * rank-NNNNN.safetensors. Each entry is a range of elements of a tensor, with the name
 * "STATE/TENSOR@BEGIN", where BEGIN is the position of the range's first element.
 */
#ifndef TRAIN_SHARD_H
#define TRAIN_SHARD_H

#include "engine_state.h"
#include "manifest.h"
#include "stored.h"

/** @param[out] path  "FOLDER/rank-NNNNN.safetensors"
 *  @return RING_OK, or RING_ERR_CONFIG if the path is too long. */
ring_status shard_path(const char *folder, int rank, char path[STORED_PATH_MAX]);

/** Writes a shard and syncs it to the disk.
 *  @param state  listed with SHARE_OWN
 *  @param[out] shard  length and hash of the file
 *  @return RING_OK, RING_ERR_MEMORY or RING_ERR_SYSTEM; after an error the file is removed. */
ring_status shard_write(const char *path, const engine_state *state, manifest_shard *shard);

/** Checks length and hash of the file. @return RING_OK, or RING_ERR_SYSTEM if they differ from
 *  @p shard. */
ring_status shard_check(const char *path, const manifest_shard *shard);

/** Opens the @p shards shards of the checkpoint in @p folder, and reads their headers. Free @p
 * stored with stored_free() whatever the result. */
ring_status shards_open(const char *folder, int shards, stored_tensors *stored);

/** Reads the elements of @p piece from the shards and casts them to the piece's type.
 *  @param name  of shard_tensor_name()
 *  @param place  of the piece's values
 *  @param order  the order of elements in which the tensor is stored */
ring_status shard_read_piece(stored_tensors *stored, const char *name, const tensor_order *order,
                             const nn_place *place, const state_piece *piece);

/** @param[out] name  "STATE/TENSOR", under which a state of a tensor is stored. */
void shard_tensor_name(const char *state, const char *tensor, char name[STORED_NAME_MAX]);

#endif

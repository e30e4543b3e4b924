/* SPDX-License-Identifier: Apache-2.0
 *
 * deferred_update: runs updates at a place that computes them after the host has requested them
 * (nn/place.h), on a single rank and in float32. Losses and norms stay at the place, which itself
 * decides whether an update is skipped, and the host reads them later.
 */
#ifndef TRAIN_DEFERRED_UPDATE_H
#define TRAIN_DEFERRED_UPDATE_H

#include "train_engine.h"

/** Prepares the place for updates with samples of @p dataset, the first time.
 *  @param[out] defers  whether they are deferred. @return RING_OK or a failure of the place. */
ring_status deferred_prepare(train_engine *engine, const train_dataset *dataset, bool *defers);

/** As engine_submit() and engine_collect().
 *  @param schedule  of share->micro_batches micro-batches. The updates must be deferred. */
ring_status deferred_submit(train_engine *engine, const update_schedule *schedule,
                            const train_dataset *dataset, const engine_share *share, double lr);
ring_status deferred_collect(train_engine *engine, bool wait, engine_result *result, bool *found);

#endif

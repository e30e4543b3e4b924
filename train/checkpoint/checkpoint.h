/* SPDX-License-Identifier: Apache-2.0
 *
 * checkpoint: saves and loads the state of an engine and the progress of its run, in a folder
 * DIR/step-NNNNNNNN:
 *
 *     manifest.json               model, settings, progress, and a hash of every shard
 *     rank-00000.safetensors, …   shards: what each rank owned, as ranges of named tensors
 *
 * Every element is in exactly one shard, in every stage of ZeRO, and padding is in none. Therefore
 * a checkpoint can be loaded with any number of ranks and any stage. All calls that take an engine
 * are collective, and all ranks must have access to the same folders.
 */
#ifndef TRAIN_CHECKPOINT_H
#define TRAIN_CHECKPOINT_H

#include "agree.h"
#include "manifest.h"
#include "stored.h"
#include "train_engine.h"

#define CHECKPOINT_MANIFEST "manifest.json"

/** Description of a run that is stored in its checkpoints. */
typedef struct checkpoint_run {
    run_identity identity; /* must be the same when the run is resumed */
    run_place place;       /* progress of the run */
    char *settings;        /* this run's settings, lines "name=value"; borrowed */
    char *before;          /* settings of the checkpoint that was loaded, to be free()d; or NULL */
    int ranks;             /* number of ranks that saved the checkpoint that was loaded */
} checkpoint_run;

/** Lists the settings that checkpoints store, as lines "name=value": those that change the results
 * of updates but may differ when a run is resumed.
 *  @param compat  whether the run behaves as DeepSpeed 0.13
 *  @param norm  value of --normalize; NULL: images are not normalized
 *  @return RING_OK, RING_ERR_MEMORY or RING_ERR_INTERNAL. */
ring_status checkpoint_describe(const train_engine *engine, bool compat, const char *norm,
                                char text[SETTINGS_TEXT_MAX]);

/** Saves a checkpoint to @p dir/step-NNNNNNNN. It is written to a hidden folder, which is renamed
 * once everything is on the disk, so that a failure leaves earlier checkpoints intact. Collective.
 *  @param keep  number of newest checkpoints to keep; 0: all.
 *  @return RING_OK; RING_ERR_SYSTEM on all ranks if it could not be written: @p dir is unchanged,
 * and the run may continue; or the error that ended the communicator. */
ring_status checkpoint_save(train_engine *engine, const char *dir, const checkpoint_run *run,
                            int keep);

/** Callback that receives a line about a checkpoint that is not used, or about a changed setting.
 */
typedef void checkpoint_note_fn(void *context, const char *text);

/** Loads the checkpoint @p path, or the newest intact one in a folder of checkpoints; newer ones
 * that are damaged are reported to @p note. Everything is checked before the engine changes.
 * Collective.
 *  @param[in,out] run  its identity must be that of the checkpoint; place, before and ranks are set
 *  @param[out] found  the folder that was loaded; "" if @p path has no checkpoint
 *  @return RING_OK; RING_ERR_SYSTEM: damaged, or there is no intact checkpoint; RING_ERR_CONFIG:
 * the checkpoint is of a different run; RING_ERR_UNSUPPORTED: its format has another version. After
 * an error the engine is unchanged, unless the disk fails while the checked values are being read.
 */
ring_status checkpoint_load(train_engine *engine, const char *path, checkpoint_run *run,
                            checkpoint_note_fn *note, void *context, char found[STORED_PATH_MAX]);

/** Reports to @p note each setting of @p run that differs from the checkpoint that was loaded. */
void checkpoint_tell_changes(checkpoint_run *run, checkpoint_note_fn *note, void *context);

/** Sets all parameters from one safetensors file, whose names and shapes must be the model's.
 *  Collective. @return RING_OK; RING_ERR_CONFIG: the file does not fit; RING_ERR_SYSTEM. */
ring_status checkpoint_init_params(train_engine *engine, const char *path);

/** Checks the manifest and all shards of the checkpoint @p path, or of the newest intact one in a
 *  folder of checkpoints, without an engine; not collective.
 *  @param[out] manifest  to be freed with manifest_free() whatever the result
 *  @param[out] found  the folder of the checkpoint; "" if @p path has no checkpoint
 *  @return as checkpoint_load(). */
ring_status checkpoint_find(const char *path, checkpoint_manifest *manifest,
                            checkpoint_note_fn *note, void *context, char found[STORED_PATH_MAX]);

#endif

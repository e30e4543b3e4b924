/* SPDX-License-Identifier: Apache-2.0
 *
 * checkpoint: an engine's state, and how far its run is, in a folder DIR/step-NNNNNNNN:
 *
 *     manifest.json               what it is, and a hash of every shard
 *     rank-00000.safetensors, …   what each rank owned, as ranges of named tensors
 *
 * Each element lies in one shard whatever the stage of ZeRO, padding in none; so any number of
 * ranks and any stage loads what any other has saved. All calls that take an engine are
 * collective, and all ranks must see the same folders.
 */
#ifndef TRAIN_CHECKPOINT_H
#define TRAIN_CHECKPOINT_H

#include "agree.h"
#include "manifest.h"
#include "stored.h"
#include "train_engine.h"

#define CHECKPOINT_MANIFEST "manifest.json"

/** A run, for its checkpoints. */
typedef struct checkpoint_run {
    run_identity identity;
    run_place place;
    char *settings; /* lines "name=value"; borrowed */
    char *before;   /* the same of the checkpoint that was loaded, to be free()d; or NULL */
    int ranks;      /* that saved it */
} checkpoint_run;

/** Lists the settings of a run of @p engine that checkpoints tell: what its updates compute follows
 *  from these, and from what must not change at all.
 *  @param compat  DeepSpeed 0.13's ways  @param norm  --normalize; NULL: none */
ring_status checkpoint_describe(const train_engine *engine, bool compat, const char *norm,
                                char text[SETTINGS_TEXT_MAX]);

/** Writes @p dir/step-NNNNNNNN. The folder gets that name once it is on the disk, so a rank that
 *  ends or fails meanwhile leaves earlier checkpoints intact. @param keep number of checkpoints to
 *  keep; 0: all.
 *  @return RING_OK; RING_ERR_SYSTEM on all ranks if it could not be written: @p dir is as it was,
 *  and the run may go on; or what ends the communicator. */
ring_status checkpoint_save(train_engine *engine, const char *dir, const checkpoint_run *run,
                            int keep);

/** Told one line about a checkpoint that is not used, or about a setting that has changed. */
typedef void checkpoint_note_fn(void *context, const char *text);

/** Loads the checkpoint @p path; or of a folder of checkpoints the newest that is whole, naming
 *  those that are not to @p note.
 *  @param run  the identity of this run. @param[out] run->place, run->before, run->ranks
 *  @param[out] found the folder that was loaded; "" if @p path has no checkpoint
 *  @return RING_OK; RING_ERR_SYSTEM: damaged, or nothing whole there; RING_ERR_CONFIG: of another
 *  run; RING_ERR_UNSUPPORTED: of another version. The engine is as it was unless RING_OK. */
ring_status checkpoint_load(train_engine *engine, const char *path, checkpoint_run *run,
                            checkpoint_note_fn *note, void *context, char found[STORED_PATH_MAX]);

/** Names the settings of @p run that differ from those of the checkpoint that was loaded last. */
void checkpoint_tell_changes(checkpoint_run *run, checkpoint_note_fn *note, void *context);

/** Sets all parameters from one safetensors file with the model's names and shapes. */
ring_status checkpoint_init_params(train_engine *engine, const char *path);

/** Checks the manifest and all shards of the checkpoint at @p path, without an engine; or of the
 *  newest whole one in such a folder. Free with manifest_free() whatever the result. */
ring_status checkpoint_find(const char *path, checkpoint_manifest *manifest,
                            checkpoint_note_fn *note, void *context, char found[STORED_PATH_MAX]);

#endif

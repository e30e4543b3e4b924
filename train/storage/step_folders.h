/* SPDX-License-Identifier: Apache-2.0
 *
 * step_folders: manages the checkpoints of a run, each in a folder DIR/step-NNNNNNNN. While a
 * checkpoint is being written or removed, its folder has the hidden name DIR/.step-NNNNNNNN. The
 * folder is renamed after the last write and before the first removal, so a folder without the dot
 * is always complete. The file DIR/latest has the name of the newest checkpoint, for people and
 * scripts; this program does not read it.
 */
#ifndef TRAIN_STEP_FOLDERS_H
#define TRAIN_STEP_FOLDERS_H

#include <ring/ring.h>
#include <stdbool.h>

enum { FOLDER_PATH_MAX = 4096 };

/** Creates @p dir if it does not exist and locks it against other runs until step_folders_close()
 *  or the end of the process. @param[out] lock  a descriptor, or -1.
 *  @return RING_OK; RING_ERR_SYSTEM; RING_ERR_CONFIG if another run has the lock. */
ring_status step_folders_open(const char *dir, int *lock);
void step_folders_close(int lock);

/** Finds the newest checkpoint before @p below.
 *  @param[out] step  the largest step below @p below that has a folder in @p dir; -1 if there is no
 *  such folder, or no @p dir. @return RING_OK, or RING_ERR_SYSTEM: @p dir cannot be read. */
ring_status step_folders_before(const char *dir, long below, long *step);

/** @return whether the last part of @p path has the form step-NNNNNNNN. */
bool step_folders_is_step(const char *path);

/** Write the path of @p step's folder, and its hidden path. @return RING_ERR_CONFIG if it is too
 * long. */
ring_status step_folders_path(const char *dir, long step, char path[FOLDER_PATH_MAX]);
ring_status step_folders_hidden(const char *dir, long step, char path[FOLDER_PATH_MAX]);

/** Creates the empty folder @p hidden, after removing hidden folders that killed runs left in
 *  @p dir. */
ring_status step_folders_begin(const char *dir, const char *hidden);

/** Renames the complete folder @p hidden, whose files are synced, to @p path, and syncs @p dir.
 * Then removes all but the newest @p keep checkpoints up to @p step. @param keep  0: remove none */
ring_status step_folders_finish(const char *dir, const char *hidden, const char *path, long step,
                                int keep);

/** Removes a folder and the files in it. Failures are ignored. */
void step_folders_remove(const char *path);

#endif

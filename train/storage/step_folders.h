/* SPDX-License-Identifier: Apache-2.0
 *
 * step_folders: manages the checkpoints of a run, each in a folder DIR/step-NNNNNNNN. While a
 * checkpoint is being written or removed its folder has a hidden name, DIR/.step-NNNNNNNN; it is
 * renamed after the last write and before the first removal, so a folder whose name has no dot is
 * always complete. DIR/latest names the newest checkpoint for people and scripts; nothing here
 * reads it.
 */
#ifndef TRAIN_STEP_FOLDERS_H
#define TRAIN_STEP_FOLDERS_H

#include <ring/ring.h>
#include <stdbool.h>

enum { FOLDER_PATH_MAX = 4096 };

/** Creates @p dir if it does not exist and locks it against other runs until step_folders_close()
 *  or the end of the process. @param[out] lock a descriptor, or -1.
 *  @return RING_OK; RING_ERR_SYSTEM; RING_ERR_CONFIG if another run writes there. */
ring_status step_folders_open(const char *dir, int *lock);
void step_folders_close(int lock);

/** @param[out] step the largest step less than @p below that has a folder in @p dir; -1 if there is
 *  none, or no @p dir yet. @return RING_OK, or RING_ERR_SYSTEM: it cannot be read. */
ring_status step_folders_before(const char *dir, long below, long *step);

/** @return whether the last part of @p path is a step's name. */
bool step_folders_is_step(const char *path);

/** Writes the path of @p step's folder, and the hidden one. @return RING_ERR_CONFIG if too long. */
ring_status step_folders_path(const char *dir, long step, char path[FOLDER_PATH_MAX]);
ring_status step_folders_hidden(const char *dir, long step, char path[FOLDER_PATH_MAX]);

/** Makes an empty folder @p hidden. Removes hidden folders that killed runs left in @p dir. */
ring_status step_folders_begin(const char *dir, const char *hidden);

/** Renames the complete and synced folder @p hidden to @p path, durably, and then removes all but
 *  the newest @p keep checkpoints up to @p step (0: removes none). */
ring_status step_folders_finish(const char *dir, const char *hidden, const char *path, long step,
                                int keep);

/** Removes a folder of files. Failures are ignored. */
void step_folders_remove(const char *path);

#endif

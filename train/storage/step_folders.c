/* SPDX-License-Identifier: Apache-2.0
 * Names the folders of checkpoints, renames them when they are complete, and removes old ones. */
#include "step_folders.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "durable.h"
#include "errors.h"
#include "numbers.h"

enum { LOCK_TRIES = 60 /* 3 seconds */ };

#define PREFIX "step-"
#define LATEST "latest"

static ring_status path_fail(const char *path)
{
    return train_fail(RING_ERR_SYSTEM, "%s: %s", path, strerror(errno));
}

/* ---- Names --------------------------------------------------------------------------------- */

static ring_status join(const char *dir, const char *name, char path[FOLDER_PATH_MAX])
{
    if (snprintf(path, FOLDER_PATH_MAX, "%s/%s", dir, name) < FOLDER_PATH_MAX)
        return RING_OK;
    return train_fail(RING_ERR_CONFIG, "%.200s…: the path is too long", dir);
}

ring_status step_folders_path(const char *dir, long step, char path[FOLDER_PATH_MAX])
{
    char name[48];
    snprintf(name, sizeof name, PREFIX "%08ld", step);
    return join(dir, name, path);
}

ring_status step_folders_hidden(const char *dir, long step, char path[FOLDER_PATH_MAX])
{
    char name[48];
    snprintf(name, sizeof name, "." PREFIX "%08ld", step);
    return join(dir, name, path);
}

/* @return the step in the name "step-NNNNNNNN"; -1 for a name of another form. */
static long step_of(const char *name)
{
    long long step;
    char again[48];
    if (strncmp(name, PREFIX, strlen(PREFIX)) != 0 ||
        !number_whole(name + strlen(PREFIX), 0, LONG_MAX, &step))
        return -1;
    snprintf(again, sizeof again, PREFIX "%08lld", step);
    return strcmp(name, again) == 0 ? (long)step : -1;
}

bool step_folders_is_step(const char *path)
{
    size_t end = strlen(path);
    while (end > 0 && path[end - 1] == '/')
        end--;
    size_t begin = end;
    while (begin > 0 && path[begin - 1] != '/')
        begin--;
    char name[48];
    if (end - begin >= sizeof name)
        return false;
    memcpy(name, path + begin, end - begin);
    name[end - begin] = '\0';
    return step_of(name) >= 0;
}

ring_status step_folders_before(const char *dir, long below, long *step)
{
    DIR *entries = opendir(dir);
    *step = -1;
    if (entries == NULL)
        return errno == ENOENT ? RING_OK : train_folder_fail(dir);
    for (const struct dirent *entry; (entry = readdir(entries)) != NULL;) {
        const long at = step_of(entry->d_name);
        if (at < below && at > *step)
            *step = at;
    }
    closedir(entries);
    return RING_OK;
}

/* ---- Folders ------------------------------------------------------------------------------- */

/* Locks a folder. Waits a while for the lock, because the ranks of a run that was just killed may
 * not have ended yet. On a file system without locks, this succeeds for two runs in the same
 * folder.
 * @return false: another run has the lock. */
static bool lock_folder(int fd)
{
    const struct timespec pause = {.tv_nsec = 50000000};
    for (int tries = 0; flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK; tries++) {
        if (tries == LOCK_TRIES)
            return false;
        nanosleep(&pause, NULL);
    }
    return true;
}

ring_status step_folders_open(const char *dir, int *lock)
{
    char parent[FOLDER_PATH_MAX];
    *lock = -1;
    RING_TRY(join(dir, "..", parent));
    if (mkdir(dir, 0777) == 0)
        RING_TRY(durable_sync_folder(parent));
    else if (errno == ENOENT)
        return train_fail(RING_ERR_SYSTEM, "%s: its parent folder does not exist", dir);
    else if (errno != EEXIST)
        return train_folder_fail(dir);
    const int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return train_folder_fail(dir);
    *lock = fd;
    if (!lock_folder(fd))
        return train_fail(
            RING_ERR_CONFIG,
            "--save %s: another run is saving to this folder; give this run its own folder", dir);
    if (access(dir, W_OK | X_OK) != 0)
        return path_fail(dir);
    return RING_OK;
}

void step_folders_close(int lock)
{
    if (lock >= 0)
        close(lock);
}

void step_folders_remove(const char *path)
{
    DIR *entries = opendir(path);
    if (entries == NULL)
        return;
    for (const struct dirent *entry; (entry = readdir(entries)) != NULL;) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            unlinkat(dirfd(entries), entry->d_name, 0);
    }
    closedir(entries);
    rmdir(path);
}

/* Removes the hidden folders of checkpoints that were not completed or not removed completely. */
static void remove_leftovers(const char *dir)
{
    DIR *entries = opendir(dir);
    if (entries == NULL)
        return;
    for (const struct dirent *entry; (entry = readdir(entries)) != NULL;) {
        char path[FOLDER_PATH_MAX];
        if (entry->d_name[0] == '.' && step_of(entry->d_name + 1) >= 0 &&
            join(dir, entry->d_name, path) == RING_OK)
            step_folders_remove(path);
    }
    closedir(entries);
}

ring_status step_folders_begin(const char *dir, const char *hidden)
{
    remove_leftovers(dir);
    return mkdir(hidden, 0777) == 0 ? RING_OK : path_fail(hidden);
}

/* Renames a folder. If the step has a folder already, because a run resumed from an earlier step,
 * the old and the new folder are exchanged, so that one of them is complete at any time. */
static ring_status put_in_place(const char *hidden, const char *path)
{
    if (rename(hidden, path) == 0)
        return RING_OK;
    if (errno != EEXIST && errno != ENOTEMPTY)
        return path_fail(path);
    if (renameat2(AT_FDCWD, hidden, AT_FDCWD, path, RENAME_EXCHANGE) != 0) {
        step_folders_remove(path); /* the file system cannot exchange folders */
        return rename(hidden, path) == 0 ? RING_OK : path_fail(path);
    }
    step_folders_remove(hidden);
    return RING_OK;
}

/* Writes the name of the newest checkpoint to the file DIR/latest. */
static ring_status write_latest(const char *dir, long step)
{
    char path[FOLDER_PATH_MAX], hidden[FOLDER_PATH_MAX], text[48];
    RING_TRY(join(dir, LATEST, path));
    RING_TRY(join(dir, "." LATEST, hidden));
    const int length = snprintf(text, sizeof text, PREFIX "%08ld\n", step);
    unlink(hidden);
    RING_TRY(durable_write_all(hidden, text, (size_t)length));
    return rename(hidden, path) == 0 ? RING_OK : path_fail(path);
}

/* Removes all but the newest @p keep checkpoints up to @p step. Hides a folder before removing its
 * files, so that an incomplete folder does not look like a checkpoint. */
static void prune(const char *dir, long step, int keep)
{
    char path[FOLDER_PATH_MAX], hidden[FOLDER_PATH_MAX];
    int kept = 0;
    /* step_folders_before() sets at to -1 if there is no older checkpoint, or if it fails. */
    for (long at = step; at >= 0; (void)step_folders_before(dir, at, &at)) {
        if (kept++ < keep || step_folders_path(dir, at, path) != RING_OK ||
            step_folders_hidden(dir, at, hidden) != RING_OK)
            continue;
        if (rename(path, hidden) == 0)
            step_folders_remove(hidden);
    }
}

ring_status step_folders_finish(const char *dir, const char *hidden, const char *path, long step,
                                int keep)
{
    RING_TRY(durable_sync_folder(hidden));
    RING_TRY(put_in_place(hidden, path));
    RING_TRY(durable_sync_folder(dir));
    RING_TRY(write_latest(dir, step));
    if (keep > 0)
        prune(dir, step, keep);
    return RING_OK;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements the exchange of the id through a file of mode 0600 in a directory that all ranks
 * share. Rank 0 writes the file under a temporary name, renames it when it is complete, and removes
 * it when all ranks have joined. A job that was killed may leave its file. A rank that finds such a
 * file cannot connect, and reads the file again until rank 0 of this job has replaced it.
 *
 * By default ranks of one host use a directory in /tmp that belongs to their user. Every rank
 * checks the directory itself, so that it fails at once if rank 0 cannot write there.
 */
#include "id_exchange.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NEW ".new"

typedef struct file_state {
    char path[PATH_MAX];
    bool mine; /* this rank wrote the file, and must remove it */
} file_state;

/* Names this job by a hash of environment variables that are equal on all its ranks, and that
 * differ between jobs of one user. */
static void job_name(char *out, size_t size)
{
    static const char *const names[] = {
        "RING_JOB_ID",
        "PMIX_NAMESPACE",
        "OMPI_MCA_ess_base_jobid",
        "OMPI_MCA_orte_hnp_uri",
        "PMI_JOBID",
        "MPISPAWN_MPIRUN_ID",
        "SLURM_JOB_ID",
        "SLURM_STEP_ID",
        "SLURM_STEPID",
        "PBS_JOBID",
        "LSB_JOBID",
    };
    /* RING_JOB_ID, which the user may set, overrides the variables of the launchers. */
    const char *own = getenv("RING_JOB_ID");
    const size_t count = own != NULL && *own != '\0' ? 1 : sizeof names / sizeof names[0];
    unsigned char hash[16];
    crypto_generichash_state state;
    crypto_generichash_init(&state, NULL, 0, sizeof hash);
    for (size_t i = 0; i < count; i++) {
        const char *value = getenv(names[i]);
        const char *text = value != NULL ? value : "";
        crypto_generichash_update(&state, (const unsigned char *)text, strlen(text) + 1);
    }
    crypto_generichash_final(&state, hash, sizeof hash);
    sodium_bin2hex(out, size, hash, sizeof hash);
}

/* ---- The directory ----------------------------------------------------------------- */

/* Creates a directory that only this user can access. If it exists, checks its owner and mode,
 * since another user may have created it. */
static ring_status own_folder(const char *path)
{
    struct stat info;
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return fail(RING_ERR_CONFIG,
                    "creating the directory %s: %m; set RING_RENDEZVOUS_DIR to a "
                    "directory that all ranks share",
                    path);
    if (lstat(path, &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == geteuid() &&
        (info.st_mode & 077) == 0)
        return RING_OK;
    return fail(RING_ERR_CONFIG,
                "%s is not a directory of this user with mode 0700: remove it, or set "
                "RING_RENDEZVOUS_DIR to a directory that all ranks share",
                path);
}

static ring_status choose_folder(const id_exchange *x, char *dir, size_t size)
{
    const char *given = x->settings->rendezvous_dir;
    if (given[0] == '\0' && x->one_host) {
        text_format(dir, size, "/tmp/ring-%u", (unsigned)geteuid());
        return own_folder(dir);
    }
    if (!text_format(dir, size, "%s", given[0] != '\0' ? given : "."))
        return fail(RING_ERR_CONFIG, "RING_RENDEZVOUS_DIR is longer than %zu bytes", size - 1);
    return access(dir, W_OK | X_OK) == 0
               ? RING_OK
               : fail(RING_ERR_CONFIG,
                      "cannot find rank 0 through the directory %s: %m; set RING_RENDEZVOUS_DIR to "
                      "a directory that all ranks share",
                      dir);
}

static ring_status file_open(id_exchange *x)
{
    char job[33], dir[PATH_MAX - 128];
    RING_TRY(choose_folder(x, dir, sizeof dir));
    file_state *f = calloc(1, sizeof *f);
    if (f == NULL)
        return fail(RING_ERR_MEMORY, "no memory to find rank 0");
    job_name(job, sizeof job);
    text_format(f->path, sizeof f->path - 16, "%s/ring-%u-%s-%s", dir, (unsigned)geteuid(), job,
                x->key);
    x->state = f;
    return RING_OK;
}

/* ---- The file ---------------------------------------------------------------------- */

/* Writes @p text to a new file. Its name is random, so that another user cannot have created it.
 * @param[in,out] path  ends with "XXXXXX" NEW; the X are replaced. */
static ring_status write_new(char *path, const char *text)
{
    int fd = mkostemps(path, (int)strlen(NEW), O_CLOEXEC); /* mode 0600 */
    if (fd < 0)
        return fail(RING_ERR_CONFIG,
                    "writing %s: %m; set RING_RENDEZVOUS_DIR to a directory that all ranks share",
                    path);
    const size_t length = strlen(text);
    const bool written = write(fd, text, length) == (ssize_t)length && fsync(fd) == 0;
    if (!written)
        fail(RING_ERR_SYSTEM, "writing %s: %m", path);
    fd_close(&fd);
    if (!written)
        unlink(path);
    return written ? RING_OK : RING_ERR_SYSTEM;
}

static ring_status file_publish(id_exchange *x, const char *hex)
{
    file_state *f = x->state;
    char fresh[PATH_MAX];
    text_format(fresh, sizeof fresh, "%s.XXXXXX" NEW, f->path);
    RING_TRY(write_new(fresh, hex));
    f->mine = rename(fresh, f->path) == 0;
    if (f->mine)
        return RING_OK;
    const ring_status status = fail(RING_ERR_CONFIG, "renaming %s to %s: %m", fresh, f->path);
    unlink(fresh);
    return status;
}

static ring_status file_look(id_exchange *x, char *hex, size_t size)
{
    const file_state *f = x->state;
    int fd = open(f->path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return fail(RING_IN_PROGRESS,
                    "opening %s: %m; RING_RENDEZVOUS_DIR must be a directory that all ranks share",
                    f->path);
    struct stat file; /* other users may write to the directory, so the file's owner is checked */
    const bool ours = fstat(fd, &file) == 0 && S_ISREG(file.st_mode) && file.st_uid == geteuid() &&
                      (file.st_mode & 077) == 0;
    const ssize_t got = ours ? read(fd, hex, size - 1) : -1;
    fd_close(&fd);
    if (!ours)
        return fail(RING_IN_PROGRESS, "%s is not a regular file of this user with mode 0600",
                    f->path);
    hex[got > 0 ? got : 0] = '\0';
    return RING_OK;
}

static void file_close(id_exchange *x)
{
    file_state *f = x->state;
    if (f->mine)
        unlink(f->path);
    free(f);
}

const exchange_way exchange_by_file = {"a shared file", file_open, file_publish, file_look,
                                       file_close};

/* SPDX-License-Identifier: Apache-2.0
 * The environment of a rank, and the secret it shares with the others. */
#include "job.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

void job_free(job *j)
{
    texts_free(&j->argv);
    texts_free(&j->exports);
    free(j->directory);
    free(j->address);
    explicit_bzero(j, sizeof *j);
}

ring_status job_draw_secret(job *j)
{
    size_t have = 0;
    while (have < sizeof j->secret) {
        const ssize_t got = getrandom(j->secret + have, sizeof j->secret - have, 0);
        if (got < 0 && errno != EINTR)
            return fail(RING_ERR_SYSTEM, "drawing the secret (getrandom): %m");
        have += got > 0 ? (size_t)got : 0;
    }
    j->has_secret = true;
    return RING_OK;
}

int job_secret_file(const job *j)
{
    const int fd = memfd_create("ring-secret", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0) {
        fail(RING_ERR_SYSTEM, "memory for the secret (memfd_create): %m");
        return -1;
    }
    if (write(fd, j->secret, sizeof j->secret) != (ssize_t)sizeof j->secret ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
        fail(RING_ERR_SYSTEM, "writing the secret: %m");
        close(fd);
        return -1;
    }
    return fd;
}

const char *const *job_thread_variables(size_t *count)
{
    static const char *const names[] = {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS",
                                        "MKL_NUM_THREADS"};
    *count = sizeof names / sizeof names[0];
    return names;
}

/* Several ranks on one host share its cores; libraries that start a thread a core in each rank
 * would compete for them. Users who want more threads a rank set the variable. MKL follows
 * OpenMP's. */
static void set_threads(texts *out)
{
    static const char *const names[] = {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (texts_get(out, names[i]) == NULL)
            texts_set(out, names[i], "1");
    }
}

static void set_rank(const job *j, const share *s, int local, int secret_fd, texts *out)
{
    static const char *const ranks[] = {"RING_RANK", "RANK"};
    static const char *const sizes[] = {"RING_SIZE", "WORLD_SIZE"};
    static const char *const local_ranks[] = {"RING_LOCAL_RANK", "LOCAL_RANK"};
    static const char *const local_sizes[] = {"RING_LOCAL_SIZE", "LOCAL_WORLD_SIZE", "LOCAL_SIZE"};
    for (size_t i = 0; i < 2; i++) {
        texts_set(out, ranks[i], "%d", s->first_rank + local);
        texts_set(out, sizes[i], "%d", j->ranks);
        texts_set(out, local_ranks[i], "%d", local);
    }
    for (size_t i = 0; i < 3; i++)
        texts_set(out, local_sizes[i], "%d", s->ranks);
    texts_set(out, "CROSS_RANK", "%d", s->node);
    texts_set(out, "CROSS_SIZE", "%d", j->nodes);
    texts_set(out, "MASTER_ADDR", "%s", j->address);
    texts_set(out, "MASTER_PORT", "%d", j->port);
    texts_set(out, "RING_LAUNCHER", "ringrun");
    if (secret_fd >= 0)
        texts_set(out, "RING_SECRET_FD", "%d", secret_fd);
}

const char *job_decides(const char *name)
{
    char nowhere[] = "";
    texts list = {0};
    if (strcmp(name, "RING_SECRET_FILE") == 0)
        return "ringrun hands every rank a secret of its own making (with --node-rank: that of its "
               "environment)";
    if (strcmp(name, "TORCHELASTIC_USE_AGENT_STORE") == 0)
        return "no agent of torchrun holds the port of this job";
    set_rank(&(job){.address = nowhere}, &(share){.ranks = 1}, 0, 0, &list);
    const bool set = texts_get(&list, name) != NULL;
    texts_free(&list);
    return set ? "ringrun sets this variable itself, for each rank" : NULL;
}

void job_environment(const job *j, const share *s, int local, int secret_fd, char *const *base,
                     texts *out)
{
    for (char *const *at = base; *at != NULL; at++)
        texts_add(out, "%s", *at);
    for (size_t i = 0; i < j->exports.count; i++)
        texts_put(out, j->exports.items[i]);
    texts_unset(out, "RING_SECRET_FD");
    if (j->has_secret)
        texts_unset(out, "RING_SECRET_FILE");
    texts_unset(out, "TORCHELASTIC_USE_AGENT_STORE"); /* no agent of torchrun holds our port */
    set_threads(out);
    set_rank(j, s, local, secret_fd, out);
}

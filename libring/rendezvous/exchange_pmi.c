/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements the exchange of the id by PMI-1, the protocol of MPICH's and Intel's mpiexec and of
 * Slurm's pmi2 plug-in. Requests and answers are lines of "cmd=… key=value …" over the socket
 * PMI_FD. A process may send "init" and "finalize" only once, so the session lasts as long as the
 * process.
 */
#include "id_exchange.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PMI_LINE = 2048 };

static struct {
    pthread_mutex_t lock;
    enum { PMI_NOT_TRIED, PMI_READY, PMI_BROKEN } state;
    pid_t owner; /* the process that began the session, which a forked child must not use */
    int fd;
    ino_t inode;     /* shows later whether the descriptor is still the same socket */
    char space[256]; /* the name of the job's key-value space */
} pmi = {.lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1};

/* ---- Lines ----------------------------------------------------------------------- */

/* Ends the session for good. @return RING_ERR_SYSTEM, with the reason @p why. */
static ring_status broken(const char *why)
{
    pmi.state = PMI_BROKEN;
    return fail(RING_ERR_SYSTEM, "cannot use the process manager (PMI_FD=%d): %s", pmi.fd, why);
}

static ring_status read_byte(char *byte, double deadline)
{
    const ring_status status = fd_read_all(pmi.fd, byte, 1, deadline);
    if (status == RING_OK)
        return RING_OK;
    broken(fail_text());
    return status == RING_ERR_TIMEOUT ? fail(status, "not all ranks reached the process manager's "
                                                     "barrier in time (RING_INIT_TIMEOUT)")
                                      : RING_ERR_SYSTEM;
}

/* Reads byte by byte, because bytes after the line must stay in the socket. The lines are few. */
static ring_status read_line(char *line, double deadline)
{
    for (size_t used = 0; used + 1 < PMI_LINE;) {
        RING_TRY(read_byte(line + used, deadline));
        if (line[used++] == '\n') {
            line[used - 1] = '\0';
            return RING_OK;
        }
    }
    return broken("its answer is too long");
}

/* Sends @p line and expects a reply that begins with "cmd=", followed by @p answer. */
static ring_status ask(const char *line, const char *answer, char *reply, double deadline)
{
    char start[64];
    text_format(start, sizeof start, "cmd=%s", answer);
    if (fd_write_all(pmi.fd, line, strlen(line), deadline) != RING_OK)
        return broken("it did not accept a request");
    RING_TRY(read_line(reply, deadline));
    if (strncmp(reply, start, strlen(start)) == 0)
        return RING_OK;
    log_debug("the process manager answered \"%s\"", reply);
    return broken("its answer is not one of PMI-1");
}

/* Copies the value after " name=", up to the next blank. @return false if there is no such name. */
static bool value_of(const char *reply, const char *name, char *out, size_t size)
{
    char start[64];
    text_format(start, sizeof start, " %s=", name);
    const char *at = strstr(reply, start);
    if (at == NULL)
        return false;
    at += strlen(start);
    return text_format(out, size, "%.*s", (int)strcspn(at, " "), at);
}

/* ---- The session ------------------------------------------------------------------- */

/* @return false if the session has ended: an MPI library in this process may have finalized it and
 * closed the descriptor. */
static bool still_open(void)
{
    struct stat file;
    struct pollfd entry = {.fd = pmi.fd};
    return pmi.state == PMI_READY && pmi.owner == getpid() && fstat(pmi.fd, &file) == 0 &&
           file.st_ino == pmi.inode && poll(&entry, 1, 0) == 0;
}

static void finalize(void)
{
    char reply[PMI_LINE];
    if (still_open())
        (void)ask("cmd=finalize\n", "finalize_ack", reply, clock_now() + 1);
}

static ring_status begin(double deadline)
{
    char reply[PMI_LINE];
    struct stat file;
    const char *text = getenv("PMI_FD");
    pmi.fd = text != NULL ? (int)strtol(text, NULL, 10) : -1;
    if (pmi.fd < 0 || fstat(pmi.fd, &file) != 0 || !S_ISSOCK(file.st_mode))
        return fail(RING_ERR_UNSUPPORTED, "PMI_FD is not set, or is not a socket");
    pmi.inode = file.st_ino;
    pmi.owner = getpid();
    RING_TRY(ask("cmd=init pmi_version=1 pmi_subversion=1\n", "response_to_init", reply, deadline));
    RING_TRY(ask("cmd=get_my_kvsname\n", "my_kvsname", reply, deadline));
    if (!value_of(reply, "kvsname", pmi.space, sizeof pmi.space))
        return broken("it did not name the job's key-value space");
    pmi.state = PMI_READY;
    atexit(finalize);
    return RING_OK;
}

static ring_status pmi_open(id_exchange *x)
{
    pthread_mutex_lock(&pmi.lock);
    ring_status status = RING_OK;
    if (pmi.state == PMI_NOT_TRIED)
        status = begin(x->deadline);
    else if (!still_open())
        status = fail(RING_ERR_UNSUPPORTED, "the connection to the process manager has ended");
    pthread_mutex_unlock(&pmi.lock);
    return status;
}

/* Stores the id (@p hex) if it is not NULL, and passes the barrier that all ranks of the job pass.
 */
static ring_status put_and_meet(const id_exchange *x, const char *hex)
{
    char line[PMI_LINE], reply[PMI_LINE];
    if (hex != NULL) {
        text_format(line, sizeof line, "cmd=put kvsname=%s key=%s value=%s\n", pmi.space, x->key,
                    hex);
        RING_TRY(ask(line, "put_result rc=0", reply, x->deadline));
    }
    return ask("cmd=barrier_in\n", "barrier_out", reply, x->deadline);
}

static ring_status pmi_publish(id_exchange *x, const char *hex)
{
    pthread_mutex_lock(&pmi.lock);
    const ring_status status = put_and_meet(x, hex);
    pthread_mutex_unlock(&pmi.lock);
    return status;
}

/* Passes the barrier, after which rank 0 has stored the id, and gets the id. */
static ring_status meet_and_get(const id_exchange *x, char *hex, size_t size)
{
    char line[PMI_LINE], reply[PMI_LINE];
    RING_TRY(put_and_meet(x, NULL));
    text_format(line, sizeof line, "cmd=get kvsname=%s key=%s\n", pmi.space, x->key);
    RING_TRY(ask(line, "get_result rc=0", reply, x->deadline));
    return value_of(reply, "value", hex, size)
               ? RING_OK
               : broken("its answer does not have rank 0's address");
}

/* Passes the barrier and gets the id at the first call; later calls return the stored id. */
static ring_status pmi_look(id_exchange *x, char *hex, size_t size)
{
    if (x->state != NULL)
        return text_format(hex, size, "%s", (const char *)x->state) ? RING_OK : RING_ERR_INTERNAL;
    pthread_mutex_lock(&pmi.lock);
    const ring_status status = meet_and_get(x, hex, size);
    pthread_mutex_unlock(&pmi.lock);
    if (status == RING_OK)
        x->state = strdup(hex);
    return status == RING_OK && x->state == NULL
               ? fail(RING_ERR_MEMORY, "no memory to store rank 0's address")
               : status;
}

static void pmi_close(id_exchange *x)
{
    free(x->state);
}

const exchange_way exchange_by_pmi = {"PMI", pmi_open, pmi_publish, pmi_look, pmi_close};

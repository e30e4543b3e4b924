/* SPDX-License-Identifier: Apache-2.0
 *
 * job: the facts that are the same for all ranks, and the environment of one of them. The job
 * travels to other hosts in one message over ssh's standard input, so neither program arguments nor
 * the secret ever meet a shell or a command line.
 */
#ifndef LAUNCH_JOB_H
#define LAUNCH_JOB_H

#include "layout.h"

enum { JOB_SECRET_BYTES = 32 };

/** Are ranks tied to cores? Auto: each rank of a host to its share of the cores, if that is at
 *  least one and at least its threads. Two ranks that yield to each other on one core do not
 *  leave it by themselves. */
typedef enum job_binding { BIND_NONE, BIND_CORE, BIND_AUTO } job_binding;

typedef struct job {
    int ranks, nodes;
    texts argv;      /* the program and its arguments                         */
    texts exports;   /* NAME=VALUE for every rank                             */
    char *directory; /* where ranks start                                     */
    char *address;   /* MASTER_ADDR: where rank 0 listens                     */
    int port;        /* MASTER_PORT                                           */
    job_binding binding;
    bool has_secret; /* false: RING_SECRET_FILE of the environment stays      */
    unsigned char secret[JOB_SECRET_BYTES];
} job;

void job_free(job *j);

/** Draws the secret. */
ring_status job_draw_secret(job *j);
/** @return a descriptor whose file holds the secret, for ranks to inherit: sealed memory
 *  with no name, read with pread() from 0. -1 and fail() if there can be none. */
int job_secret_file(const job *j);

/** The changes to the environment that rank first_rank + @p local of @p s is started in, as
 * putenv() takes them: "NAME=VALUE", or "NAME" for a variable that is taken out. These are the
 * exports, then the rank's own variables.
 *  @param secret_fd  the number that the secret has in the rank, -1: none. */
void job_environment(const job *j, const share *s, int local, int secret_fd, texts *out);

/** @return true if it can be the name of a variable. */
bool job_is_variable(const char *name);
/** @return the reason why exporting @p name would have no effect on the ranks; NULL: it would. */
const char *job_decides(const char *name);

/** Job and share as one message, and back. Unpacking checks all it reads. */
void job_pack(const job *j, const share *s, bytes *out);
ring_status job_unpack(const char *data, size_t size, job *j, share *s);

#endif

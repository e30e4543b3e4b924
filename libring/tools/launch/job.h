/* SPDX-License-Identifier: Apache-2.0
 *
 * job: the values that are the same for all ranks, and the environment of each rank. A job is sent
 * to other hosts as one message through the standard input of ssh, so that no shell and no command
 * line contains the arguments of the program or the secret.
 */
#ifndef LAUNCH_JOB_H
#define LAUNCH_JOB_H

#include "layout.h"

enum { JOB_SECRET_BYTES = 32 };

/** Binding of ranks to cores. BIND_CORE: each rank is bound to the core of its slot. BIND_AUTO:
 *  each rank of a host is bound to an equal share of the cores, if the share has at least one core
 *  for each thread of the rank. Without binding, the kernel may leave two ranks that yield to each
 *  other on one core. */
typedef enum job_binding { BIND_NONE, BIND_CORE, BIND_AUTO } job_binding;

typedef struct job {
    int ranks, nodes;
    texts argv;      /* the program and its arguments                         */
    texts exports;   /* NAME=VALUE for every rank                             */
    char *directory; /* current folder of ranks                               */
    char *address;   /* MASTER_ADDR: address at which rank 0 listens          */
    int port;        /* MASTER_PORT                                           */
    job_binding binding;
    bool has_secret; /* false: ranks use RING_SECRET_FILE of the environment  */
    unsigned char secret[JOB_SECRET_BYTES];
} job;

void job_free(job *j);

/** Draws a random secret. */
ring_status job_draw_secret(job *j);
/** @return a descriptor that ranks inherit: an anonymous sealed file with the secret, which they
 *  read by pread() from offset 0. -1, after fail(), if it cannot be created. */
int job_secret_file(const job *j);

/** Adds the changes to the environment of rank first_rank + @p local of @p s, in the form of
 *  putenv(): "NAME=VALUE", or "NAME" for a variable that is removed. The exports come first, then
 *  the rank's own variables.
 *  @param secret_fd  the rank's descriptor of the secret; -1: it has none. */
void job_environment(const job *j, const share *s, int local, int secret_fd, texts *out);

/** @return true if @p name is a valid name of a variable. */
bool job_is_variable(const char *name);
/** @return the reason why ranks cannot get the variable @p name by an export, or NULL if they can.
 */
const char *job_decides(const char *name);

/** Appends a message with the job and the share of one host. */
void job_pack(const job *j, const share *s, bytes *out);
/** Reads such a message, and checks all values. @param[out] j, s  the caller frees both.
 *  @return RING_ERR_CONFIG if the message is damaged; there is nothing to free then. */
ring_status job_unpack(const char *data, size_t size, job *j, share *s);

#endif

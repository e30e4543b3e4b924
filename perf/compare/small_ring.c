/* SPDX-License-Identifier: Apache-2.0
 *
 * small_ring: defines the functions of small.h with libring, for the comparison of small messages.
 */
#include "small.h"

#include <ring/ring.h>
#include <stdio.h>
#include <stdlib.h>

static ring_comm *comm;

static void must(ring_status status)
{
    if (status == RING_OK)
        return;
    fprintf(stderr, "libring: %s: %s\n", ring_status_string(status), ring_last_error(comm));
    exit(3);
}

void small_open(int *argc, char ***argv, small_self *self)
{
    (void)argc, (void)argv;
    if (ring_comm_init_env(&comm) != RING_OK)
        exit(3); /* libring has printed the reason */
    *self = (small_self){ring_comm_rank(comm), ring_comm_size(comm)};
}

void small_close(void)
{
    ring_comm_destroy(comm);
}

const char *small_library(void)
{
    static char text[64];
    const int version = ring_version();
    snprintf(text, sizeof text, "libring %d.%d.%d", version / 10000, version / 100 % 100,
             version % 100);
    return text;
}

float *small_alloc(size_t bytes, bool own)
{
    void *buffer = NULL;
    if (own)
        must(ring_mem_alloc(&buffer, bytes));
    else
        buffer = malloc(bytes);
    return buffer;
}

void small_free(float *buffer, bool own)
{
    if (own)
        ring_mem_free(buffer);
    else
        free(buffer);
}

void small_all_reduce(const small_self *self, float *buffer, size_t count)
{
    (void)self;
    must(ring_all_reduce(buffer, buffer, count, RING_FLOAT32, RING_SUM, comm, NULL));
}

void small_reduce(const small_self *self, float *buffer, size_t count)
{
    float *dst = self->rank == 0 ? buffer : NULL;
    must(ring_reduce(buffer, dst, count, RING_FLOAT32, RING_SUM, 0, comm, NULL));
}

void small_broadcast(const small_self *self, float *buffer, size_t count)
{
    (void)self;
    must(ring_broadcast(buffer, buffer, count, RING_FLOAT32, 0, comm, NULL));
}

void small_all_gather(const small_self *self, float *buffer, size_t count)
{
    must(ring_all_gather(buffer + (size_t)self->rank * count, buffer, count, RING_FLOAT32, comm,
                         NULL));
}

void small_barrier(const small_self *self, float *buffer, size_t count)
{
    (void)self, (void)buffer, (void)count;
    must(ring_barrier(comm, NULL));
}

void small_ping_pong(const small_self *self, float *buffer, size_t count)
{
    const int peer = self->rank ^ 1;
    if (peer >= self->ranks)
        return;
    if (self->rank < peer)
        must(ring_send(buffer, count, RING_FLOAT32, peer, comm, NULL));
    must(ring_recv(buffer, count, RING_FLOAT32, peer, comm, NULL));
    if (self->rank > peer)
        must(ring_send(buffer, count, RING_FLOAT32, peer, comm, NULL));
}

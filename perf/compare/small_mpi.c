/* SPDX-License-Identifier: Apache-2.0
 *
 * small_mpi: defines the functions of small.h with MPI, for the comparison of small messages. MPI
 * ends the job after an error.
 */
#include "small.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>

void small_open(int *argc, char ***argv, small_self *self)
{
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &self->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &self->ranks);
}

void small_close(void)
{
    MPI_Finalize();
}

const char *small_library(void)
{
    static char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    MPI_Get_library_version(text, &length);
    text[strcspn(text, "\n,\"\\")] =
        '\0'; /* only the first line, without characters that JSON would escape */
    for (char *tab = text; (tab = strchr(tab, '\t'));)
        *tab = ' ';
    return text;
}

float *small_alloc(size_t bytes, bool own)
{
    void *buffer = NULL;
    if (own)
        MPI_Alloc_mem((MPI_Aint)bytes, MPI_INFO_NULL, &buffer);
    else
        buffer = malloc(bytes);
    return buffer;
}

void small_free(float *buffer, bool own)
{
    if (own)
        MPI_Free_mem(buffer);
    else
        free(buffer);
}

void small_all_reduce(const small_self *self, float *buffer, size_t count)
{
    (void)self;
    MPI_Allreduce(MPI_IN_PLACE, buffer, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

void small_reduce(const small_self *self, float *buffer, size_t count)
{
    if (self->rank == 0)
        MPI_Reduce(MPI_IN_PLACE, buffer, (int)count, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD);
    else
        MPI_Reduce(buffer, NULL, (int)count, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD);
}

void small_broadcast(const small_self *self, float *buffer, size_t count)
{
    (void)self;
    MPI_Bcast(buffer, (int)count, MPI_FLOAT, 0, MPI_COMM_WORLD);
}

void small_all_gather(const small_self *self, float *buffer, size_t count)
{
    (void)self;
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, buffer, (int)count, MPI_FLOAT,
                  MPI_COMM_WORLD);
}

void small_barrier(const small_self *self, float *buffer, size_t count)
{
    (void)self, (void)buffer, (void)count;
    MPI_Barrier(MPI_COMM_WORLD);
}

void small_ping_pong(const small_self *self, float *buffer, size_t count)
{
    const int peer = self->rank ^ 1, number = (int)count;
    if (peer >= self->ranks)
        return;
    if (self->rank < peer)
        MPI_Send(buffer, number, MPI_FLOAT, peer, 0, MPI_COMM_WORLD);
    MPI_Recv(buffer, number, MPI_FLOAT, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (self->rank > peer)
        MPI_Send(buffer, number, MPI_FLOAT, peer, 0, MPI_COMM_WORLD);
}

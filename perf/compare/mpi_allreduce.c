/* SPDX-License-Identifier: Apache-2.0
 *
 * mpi_allreduce: measures MPI_Allreduce as ringperf measures ring_all_reduce: a float sum, each
 * rank rewrites its input before every call, the ranks start together, the time of a call is that
 * of its slowest rank, and the result is the median over calls. compare.py builds it with each MPI.
 *
 * usage: mpi_allreduce BYTES ITERS WARMUP [out]    (rank 0 prints one JSON object)
 *   out   calls are out of place
 */
#include "stopwatch.h"

#include <mpi.h>
#include <stdio.h>

/* @param[out] hosts  1, or 2 if there are several hosts. @return the number of ranks on this
 * host. */
static int local_ranks(int *hosts)
{
    MPI_Comm host;
    int ranks, all;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
    MPI_Comm_size(host, &ranks);
    MPI_Comm_size(MPI_COMM_WORLD, &all);
    MPI_Comm_free(&host);
    *hosts = ranks == all ? 1 : 2;
    return ranks;
}

/* @param in  the input, which is rewritten before the call; MPI_IN_PLACE: @p buffer is the
 * input. */
static double timed_call(void *in, float *buffer, size_t count, unsigned seed, int gate)
{
    stopwatch_rewrite(in == MPI_IN_PLACE ? buffer : in, count, seed);
    MPI_Barrier(MPI_COMM_WORLD);
    if (gate)
        stopwatch_gate();
    const double start = stopwatch_us();
    MPI_Allreduce(in, buffer, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    return stopwatch_us() - start;
}

/* @return how many elements are not the sum of the ranks' inputs. */
static size_t count_wrong(const float *buffer, size_t count, unsigned seed, int ranks)
{
    size_t wrong = 0;
    for (size_t i = 0; i < count; i++) {
        float sum = 0;
        for (int rank = 0; rank < ranks; rank++)
            sum += (float)((i + seed + (unsigned)rank) & 63);
        wrong += buffer[i] != sum;
    }
    return wrong;
}

int main(int argc, char **argv)
{
    int rank, ranks, hosts;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const size_t bytes = argc >= 4 ? strtoull(argv[1], NULL, 10) : 0, count = bytes / 4;
    const int iters = argc >= 4 ? atoi(argv[2]) : 0, warmup = argc >= 4 ? atoi(argv[3]) : 0;
    float *buffer = malloc(bytes + 4);
    void *in = argc == 5 ? malloc(bytes + 4) : MPI_IN_PLACE;
    double *times = malloc((size_t)(iters + 1) * sizeof *times);
    if (iters < 1 || !buffer || !in || !times || count > 1u << 30) {
        fputs("usage: mpi_allreduce BYTES ITERS WARMUP [out]\n", stderr);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    const int gate = stopwatch_gate_useful(1, local_ranks(&hosts)) && hosts == 1;
    unsigned seed = (unsigned)rank;
    for (int i = -warmup; i < iters; i++) {
        seed = (unsigned)(i + warmup + rank);
        const double time = timed_call(in, buffer, count, seed, gate);
        if (i >= 0)
            times[i] = time;
    }
    unsigned long long wrong = count_wrong(buffer, count, seed - (unsigned)rank, ranks);
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, times, iters, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (rank == 0)
        printf("{\"bytes\": %zu, \"ranks\": %d, \"time_us\": %.9g, \"wrong\": %llu}\n", count * 4,
               ranks, stopwatch_median(times, (size_t)iters), wrong);
    free(times);
    if (in != MPI_IN_PLACE)
        free(in);
    free(buffer);
    MPI_Finalize();
    return wrong != 0;
}

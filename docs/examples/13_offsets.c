/* SPDX-License-Identifier: Apache-2.0
 * Each rank finds some numbers in its share; exscan says at which line of a common file they begin,
 * so that all ranks write at once.
 *
 *     ringrun -n 4 offsets primes.txt
 */
#include <ring/ring.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { BELOW = 1000, LINE = 4 };

static void check(ring_status status)
{
    if (status == RING_OK)
        return;
    fprintf(stderr, "offsets: %s\n", ring_last_error(NULL));
    exit(1);
}

static int is_prime(int n)
{
    for (int i = 2; i * i <= n; i++)
        if (n % i == 0)
            return 0;
    return n > 1;
}

static int write_lines(const char *path, int64_t first, const int *numbers, int64_t count)
{
    FILE *file = fopen(path, "r+");
    if (file == NULL || fseek(file, (long)(first * LINE), SEEK_SET) != 0)
        return 0;
    for (int64_t i = 0; i < count; i++)
        fprintf(file, "%3d\n", numbers[i]);
    return fclose(file) == 0;
}

static int create(const char *path)
{
    FILE *file = fopen(path, "w");
    return file != NULL && fclose(file) == 0;
}

int main(int argc, char **argv)
{
    const char *path = argc > 1 ? argv[1] : "primes.txt";
    ring_comm *comm;
    int found[BELOW];
    int64_t count = 0, first = 0; /* exscan writes nothing on rank 0 */
    if (ring_comm_init_env(&comm) != RING_OK)
        return 1; /* the reason was printed */
    const int rank = ring_comm_rank(comm), ranks = ring_comm_size(comm);
    int good = rank != 0 || create(path);
    for (int n = BELOW * rank / ranks; n < BELOW * (rank + 1) / ranks; n++)
        if (is_prime(n))
            found[count++] = n;
    check(ring_exscan(&count, &first, 1, RING_INT64, RING_SUM, comm, NULL));
    check(ring_barrier(comm, NULL)); /* the file is there */
    good = good && write_lines(path, first, found, count);
    check(ring_all_reduce(&good, &good, 1, RING_INT32, RING_LAND, comm, NULL));
    if (rank == ranks - 1 && good)
        printf("%s has %lld numbers; those of rank %d begin at line %lld\n", path,
               (long long)(first + count), rank, (long long)first + 1);
    if (rank == 0 && !good)
        fprintf(stderr, "offsets: %s cannot be written\n", path);
    ring_comm_destroy(comm);
    return good ? 0 : 1;
}

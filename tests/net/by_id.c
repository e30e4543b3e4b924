/* SPDX-License-Identifier: Apache-2.0
 * As MPI programs start NCCL: a rank makes an id, all get it by another way, here a file.
 * Usage: by_id RANK SIZE FILE MAKER */
#include <ring/ring.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static ring_status publish(const char *path, const ring_config *config, ring_unique_id *id)
{
    char fresh[512];
    const ring_status status = ring_get_unique_id_config(id, config);
    if (status != RING_OK)
        return status;
    snprintf(fresh, sizeof fresh, "%s.new", path);
    FILE *file = fopen(fresh, "w");
    if (file == NULL)
        return RING_ERR_SYSTEM;
    fwrite(id, sizeof *id, 1, file);
    return fclose(file) == 0 && rename(fresh, path) == 0 ? RING_OK : RING_ERR_SYSTEM;
}

static ring_status look(const char *path, ring_unique_id *id)
{
    FILE *file;
    for (int tries = 0; (file = fopen(path, "r")) == NULL && tries < 1000; tries++)
        usleep(10000);
    if (file == NULL)
        return RING_ERR_TIMEOUT;
    const size_t got = fread(id, sizeof *id, 1, file);
    fclose(file);
    return got == 1 ? RING_OK : RING_ERR_SYSTEM;
}

static ring_status add_up(int rank, int size, const char *path, int maker, float *sum)
{
    ring_config config = RING_CONFIG_INIT;
    ring_unique_id id;
    ring_comm *comm;
    config.any_process = maker > 0;
    ring_status status = rank == maker ? publish(path, &config, &id) : look(path, &id);
    if (status == RING_OK)
        status = ring_comm_init(&comm, size, &id, rank);
    if (status != RING_OK)
        return status;
    *sum = (float)(rank + 1);
    status = ring_all_reduce(sum, sum, 1, RING_FLOAT32, RING_SUM, comm, NULL);
    ring_comm_destroy(comm);
    return status;
}

int main(int argc, char **argv)
{
    float sum = 0;
    if (argc != 5)
        return 2;
    if (add_up(atoi(argv[1]), atoi(argv[2]), argv[3], atoi(argv[4]), &sum) != RING_OK) {
        fprintf(stderr, "rank %s: %s\n", argv[1], ring_last_error(NULL));
        return 1;
    }
    printf("rank %s of %s: %g\n", argv[1], argv[2], (double)sum);
    return 0;
}

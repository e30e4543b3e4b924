/* SPDX-License-Identifier: Apache-2.0
 * Sends two rounds of messages among the ranks. The first round decides which rank of each host
 * reads the files; in the second round this rank tells the others where its copy is. */
#include "host_data.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agree.h"
#include "errors.h"

enum { BOOT_BYTES = 36 };

/* Ranks with equal keys have the same folder, and can open each other's files through /proc. */
typedef struct host_key {
    char boot[BOOT_BYTES + 4];
    uint64_t processes; /* inode of the namespace of process ids */
    uint64_t device, folder;
    uint64_t alone; /* unique to the rank if another member is unknown; else 0 */
} host_key;

/* The result of a rank that read the files, for the other ranks. */
typedef struct host_card {
    int64_t pid, fd;        /* process and descriptor of the copy; fd -1: no copy */
    uint64_t device, inode; /* identity of the copy's file */
    int64_t status;
    train_dataset dataset; /* without pointers */
} host_card;

/* ---- Choosing the reading rank ------------------------------------------------------------- */

static bool read_boot(char boot[BOOT_BYTES])
{
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    const bool read = file != NULL && fread(boot, BOOT_BYTES, 1, file) == 1;
    if (file != NULL)
        fclose(file);
    return read;
}

/* @return the key of a rank that reads @p folder. */
static host_key key_of(const char *folder, int rank)
{
    host_key key = {.alone = 0};
    struct stat place, processes;
    if (!read_boot(key.boot) || stat(folder, &place) != 0 ||
        stat("/proc/self/ns/pid", &processes) != 0)
        return (host_key){.alone = (uint64_t)rank + 1};
    key.processes = processes.st_ino;
    key.device = place.st_dev;
    key.folder = place.st_ino;
    return key;
}

/* Collective. @param[out] reader  the lowest rank that has the same key as this rank
 * @param[out] users   the number of ranks that have this key */
static ring_status find_reader(ring_comm *comm, const char *folder, int *reader, int *users)
{
    const int ranks = ring_comm_size(comm);
    const host_key mine = key_of(folder, ring_comm_rank(comm));
    host_key *keys = calloc((size_t)ranks, sizeof *keys);
    *reader = *users = 0;
    RING_TRY(agree(comm, keys != NULL ? RING_OK : train_fail(RING_ERR_MEMORY, "no memory")));
    const ring_status status = train_ring(comm, ring_all_gather(&mine, keys, sizeof mine,
                                                                RING_UINT8, comm, NULL));
    for (int r = ranks - 1; r >= 0 && status == RING_OK; r--) {
        if (memcmp(&keys[r], &mine, sizeof mine) != 0)
            continue;
        *reader = r;
        ++*users;
    }
    free(keys);
    return status;
}

/* ---- The copy ------------------------------------------------------------------------------ */

/* Writes all bytes. @return false: a write failed. */
static bool write_all(int fd, const uint8_t *data, size_t bytes)
{
    while (bytes > 0) {
        const ssize_t wrote = write(fd, data, bytes);
        if (wrote < 0 && errno != EINTR)
            return false;
        data += wrote > 0 ? wrote : 0;
        bytes -= wrote > 0 ? (size_t)wrote : 0;
    }
    return true;
}

/* Maps the copy, which has the images first and then the labels, as @p dataset's arrays.
 * @return false: the copy cannot be mapped */
static bool map_copy(int fd, train_dataset *dataset)
{
    const size_t bytes = dataset->images.bytes + dataset->labels.bytes;
    void *copy = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
    if (copy == MAP_FAILED)
        return false;
    dataset->shared = copy;
    dataset->images.data = copy;
    dataset->labels.data = dataset->images.data + dataset->images.bytes;
    return true;
}

/* Moves the arrays into shared memory that is sealed against writing. @return the descriptor of the
 * memory, or -1 if it could not be created; then @p dataset is unchanged. */
static int make_copy(train_dataset *dataset)
{
    uint8_t *images = dataset->images.data, *labels = dataset->labels.data;
    const int fd = memfd_create("ring-data", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return -1;
    if (!write_all(fd, images, dataset->images.bytes) ||
        !write_all(fd, labels, dataset->labels.bytes) ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW) != 0 ||
        !map_copy(fd, dataset)) {
        close(fd);
        return -1;
    }
    free(images);
    free(labels);
    return fd;
}

static host_card make_card(int64_t status, int fd, const train_dataset *dataset)
{
    struct stat copy = {0};
    host_card card = {.pid = getpid(), .fd = fd, .status = status, .dataset = *dataset};
    if (fd >= 0 && fstat(fd, &copy) != 0)
        card.fd = -1;
    card.device = copy.st_dev;
    card.inode = copy.st_ino;
    card.dataset.shared = NULL;
    card.dataset.images.data = card.dataset.labels.data = NULL;
    return card;
}

/* @return whether the descriptor is the copy that the card describes. */
static bool is_copy(int fd, const host_card *card)
{
    struct stat copy;
    return fstat(fd, &copy) == 0 && copy.st_dev == card->device && copy.st_ino == card->inode;
}

static bool use_copy(const host_card *card, train_dataset *dataset)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%lld/fd/%lld", (long long)card->pid, (long long)card->fd);
    const int fd = card->fd >= 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return false;
    *dataset = card->dataset;
    const bool mapped = is_copy(fd, card) && map_copy(fd, dataset);
    close(fd);
    return mapped;
}

/* ---- Reading ------------------------------------------------------------------------------- */

/* Collective: gathers the cards of all ranks. */
static ring_status share(ring_comm *comm, const host_card *mine, host_card *cards)
{
    RING_TRY(agree(comm, cards != NULL ? RING_OK : train_fail(RING_ERR_MEMORY, "no memory")));
    return train_ring(comm, ring_all_gather(mine, cards, sizeof *mine, RING_UINT8, comm, NULL));
}

ring_status host_data_read(ring_comm *comm, const char *folder, dataset_part part,
                           train_dataset *dataset)
{
    int reader, users, fd = -1;
    ring_status mine = RING_OK;
    memset(dataset, 0, sizeof *dataset);
    RING_TRY(find_reader(comm, folder, &reader, &users));
    const bool reads = reader == ring_comm_rank(comm);
    if (reads)
        mine = dataset_read(folder, part, dataset);
    if (reads && mine == RING_OK) {
        dataset->hash = dataset_hash(dataset);
        fd = users > 1 ? make_copy(dataset) : -1;
    }
    const host_card card = make_card(mine, fd, dataset);
    host_card *cards = calloc((size_t)ring_comm_size(comm), sizeof *cards);
    ring_status status = share(comm, &card, cards);
    if (status == RING_OK) {
        const host_card *given = &cards[reader];
        if (!reads && given->status != RING_OK) /* agree() distributes the text of the reader */
            mine = train_fail((ring_status)given->status,
                              "%s: another rank could not read this folder", folder);
        else if (!reads && !use_copy(given, dataset))
            mine = dataset_read(folder, part, dataset);
        status = agree(comm, mine); /* after this call, all ranks have mapped the copy */
    }
    free(cards);
    if (fd >= 0)
        close(fd);
    return status;
}

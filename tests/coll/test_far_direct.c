/* SPDX-License-Identifier: Apache-2.0
 * Tests far memory that adapters access themselves, over the double of libibverbs: data that moves
 * in place does not pass through host memory, and each received byte is flushed once. If adapters
 * cannot or may not access the memory, the data passes through the host with the same values.
 * Usage: test_coll_far_direct dmabuf|address|staged WAYS [PLACE]
 *   the way that is to be taken; FAR_* by which memory is shared; where its accelerator is */
#include "harness.h"

#include "fake_ibverbs.h"
#include "far.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 3, BYTES = 1 << 20, ALL = RANKS * BYTES };

static bool in_place, by_dmabuf;
static pthread_barrier_t all_are_out; /* of the calls before the one that fails */

static void *fake(const char *name)
{
    void *library = dlopen("libibverbs.so.1", RTLD_NOW);
    void *found = library != NULL ? dlsym(library, name) : NULL;
    if (found == NULL) {
        printf("SKIPPED: libibverbs.so.1 is not the double of adapters\n");
        exit(77);
    }
    return found;
}

static void make_addresses_known(void)
{
    void (*peer_memory)(void *, void *, size_t);
    char *first = far_alloc(1);
    *(void **)&peer_memory = fake("fake_ibverbs_peer_memory");
    peer_memory(first, far_at_adapters(first), (size_t)1 << 29);
}

/* ---- Values ---------------------------------------------------------------------- */

static unsigned char byte_of(size_t i, int rank)
{
    return (unsigned char)(i * 31 + i / 251 + (size_t)rank * 7);
}

static void fill(unsigned char *memory, size_t bytes, int rank)
{
    unsigned char *host = malloc(bytes);
    for (size_t i = 0; host != NULL && i < bytes; i++)
        host[i] = byte_of(i, rank);
    far_write(memory, host, bytes);
    free(host);
}

/* @return the index of the first byte that is not @p rank's; @p bytes if all are. */
static size_t first_wrong(const unsigned char *memory, size_t bytes, int rank)
{
    unsigned char *host = malloc(bytes);
    size_t i = 0;
    far_read(host, memory, bytes);
    while (i < bytes && host[i] == byte_of(i, rank))
        i++;
    free(host);
    return i;
}

/* ---- Calls ----------------------------------------------------------------------- */

/* One call of all ranks between two barriers, and its cost. */
typedef struct seen {
    far_counts before, after;
} seen;

static int meet(ring_comm *comm, far_counts *counts)
{
    EXPECT_OK(ring_barrier(comm, NULL));
    far_counters(counts);
    EXPECT_OK(ring_barrier(comm, NULL));
    return 0;
}

/* @param received  bytes by all ranks together. */
static int judge(const seen *s, uint64_t received)
{
    const uint64_t host = s->after.host_bytes - s->before.host_bytes;
    const uint64_t flushed = s->after.flushed_bytes - s->before.flushed_bytes;
    const uint64_t flushes = s->after.flushes - s->before.flushes;
    if (in_place) {
        EXPECT(host == 0, "%llu bytes were staged", (unsigned long long)host);
        EXPECT(flushed == received, "%llu bytes were flushed, not %llu",
               (unsigned long long)flushed, (unsigned long long)received);
    } else {
        EXPECT(host >= 2 * received, "%llu bytes were staged, not twice %llu",
               (unsigned long long)host, (unsigned long long)received);
        EXPECT(flushes == 0, "%llu flushes", (unsigned long long)flushes);
    }
    return 0;
}

static int gather(int rank, ring_comm *comm, unsigned char *src, unsigned char *dst)
{
    seen s;
    fill(src, BYTES, rank);
    EXPECT(meet(comm, &s.before) == 0, "no barrier");
    EXPECT_OK(ring_all_gather(src, dst, BYTES, RING_UINT8, comm, NULL));
    EXPECT(meet(comm, &s.after) == 0, "no barrier");
    for (int r = 0; r < RANKS; r++)
        EXPECT(first_wrong(dst + (size_t)r * BYTES, BYTES, r) == BYTES, "block %d of rank %d", r,
               rank);
    return judge(&s, (uint64_t)ALL * (RANKS - 1));
}

static int spread(int rank, ring_comm *comm, unsigned char *memory)
{
    seen s;
    fill(memory, BYTES, rank);
    EXPECT(meet(comm, &s.before) == 0, "no barrier");
    EXPECT_OK(ring_broadcast(memory, memory, BYTES, RING_UINT8, 1, comm, NULL));
    EXPECT(meet(comm, &s.after) == 0, "no barrier");
    EXPECT(first_wrong(memory, BYTES, 1) == BYTES, "rank %d", rank);
    return judge(&s, (uint64_t)BYTES * (RANKS - 1));
}

static int pass_on(int rank, ring_comm *comm, unsigned char *src, unsigned char *dst)
{
    seen s;
    fill(src, BYTES, rank);
    EXPECT(meet(comm, &s.before) == 0, "no barrier");
    if (rank == 0)
        EXPECT_OK(ring_send(src, BYTES, RING_UINT8, 1, comm, NULL));
    if (rank == 1)
        EXPECT_OK(ring_recv(dst, BYTES, RING_UINT8, 0, comm, NULL));
    EXPECT(meet(comm, &s.after) == 0, "no barrier");
    if (rank == 1)
        EXPECT(first_wrong(dst, BYTES, 0) == BYTES, "the wrong bytes arrived");
    return judge(&s, BYTES);
}

/* Operands of folds are carried, sent in place from far memory; the sums are received in place. */
static int reduce(ring_comm *comm, unsigned char *src, unsigned char *dst)
{
    seen s;
    unsigned char *host = malloc(BYTES);
    EXPECT(host != NULL, "no memory");
    fill(src, BYTES, 0);
    EXPECT(meet(comm, &s.before) == 0, "no barrier");
    EXPECT_OK(ring_all_reduce(src, dst, BYTES, RING_UINT8, RING_SUM, comm, NULL));
    EXPECT(meet(comm, &s.after) == 0, "no barrier");
    far_read(host, dst, BYTES);
    for (size_t i = 0; i < BYTES; i++)
        EXPECT(host[i] == (unsigned char)(RANKS * byte_of(i, 0)), "byte %zu", i);
    free(host);
    const uint64_t staged = s.after.host_bytes - s.before.host_bytes;
    const uint64_t folded = (uint64_t)BYTES * (RANKS - 1);
    EXPECT(in_place ? staged == folded : staged >= 3 * folded, "%llu bytes were staged",
           (unsigned long long)staged);
    return 0;
}

/* A message that cannot be flushed is not taken for received. The failure ends the communicator,
 * also for a rank that is still in an earlier call. */
static int unseen(int rank, ring_comm *comm, unsigned char *src, unsigned char *dst)
{
    pthread_barrier_wait(&all_are_out);
    if (!in_place || rank == 2)
        return 0;
    far_fail_flushes(true);
    if (rank == 0) {
        (void)ring_send(src, BYTES, RING_UINT8, 1, comm, NULL);
        return 0;
    }
    EXPECT(ring_recv(dst, BYTES, RING_UINT8, 0, comm, NULL) == RING_ERR_SYSTEM, "%s",
           ring_last_error(comm));
    EXPECT(strstr(ring_last_error(comm), "the flush failed") != NULL, "%s", ring_last_error(comm));
    return 0;
}

/* Over a link that is not open yet nothing is referred to. */
static int open_links(int rank, ring_comm *comm, unsigned char *src, unsigned char *dst)
{
    EXPECT_OK(ring_all_gather(src, dst, 1, RING_UINT8, comm, NULL));
    if (rank == 0)
        EXPECT_OK(ring_send(src, 1, RING_UINT8, 1, comm, NULL));
    if (rank == 1)
        EXPECT_OK(ring_recv(dst, 1, RING_UINT8, 0, comm, NULL));
    return 0;
}

static int all_calls(int rank, int ranks, harness_board *board, void *arg)
{
    ring_comm *comm;
    unsigned char *src = far_alloc(BYTES), *dst = far_alloc(ALL);
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    const int failed = open_links(rank, comm, src, dst) + gather(rank, comm, src, dst) +
                       spread(rank, comm, src) + pass_on(rank, comm, src, dst) +
                       reduce(comm, src, dst) + unseen(rank, comm, src, dst);
    ring_comm_destroy(comm);
    far_free(src);
    far_free(dst);
    return failed;
}

static int expect_way(void)
{
    void (*calls)(fake_ibverbs_dmabuf *);
    fake_ibverbs_dmabuf last;
    *(void **)&calls = fake("fake_ibverbs_dmabuf_calls");
    calls(&last);
    const bool taken = last.calls > 0 && last.fd >= 0;
    EXPECT(!in_place || taken == by_dmabuf, "%llu calls of ibv_reg_dmabuf_mr, the last with %d",
           (unsigned long long)last.calls, last.fd);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: %s dmabuf|address|staged WAYS [PLACE]\n", argv[0]);
        return 2;
    }
    by_dmabuf = strcmp(argv[1], "dmabuf") == 0;
    in_place = by_dmabuf || strcmp(argv[1], "address") == 0;
    far_share_by((unsigned)strtoul(argv[2], NULL, 10));
    far_place(argc > 3 ? argv[3] : NULL);
    make_addresses_known();
    setenv("RING_TRANSPORT", "verbs", 1);
    setenv("RING_ALGO", "direct", 1);
    pthread_barrier_init(&all_are_out, NULL, RANKS);
    const int failed = harness_run(HARNESS_THREADS, RANKS, all_calls, NULL, NULL);
    return failed != 0 || expect_way() != 0;
}

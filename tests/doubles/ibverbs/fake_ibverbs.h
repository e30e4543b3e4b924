/* SPDX-License-Identifier: Apache-2.0
 *
 * fake_ibverbs: a libibverbs without hardware, for tests. It is built as libibverbs.so.1 in a
 * folder of its own (tests/fake-ibverbs of the build), so that LD_LIBRARY_PATH puts it in the place
 * of rdma-core's. It has reliable queue pairs between the contexts of one process. Its adapter is a
 * thread that moves bytes late: in order on each queue pair, the pieces of one message in any
 * order, and queue pairs at random.
 *
 * FAKE_IBVERBS is a comma list, read at the first call. An unknown word there ends the process.
 *   devices=N      fake0, fake1, ...; 2 unless told, 16 at most
 *   ports=N        ports of each, with one address; 1 unless told, 2 at most
 *   link=eth|ib    RoCE (as unless told: GIDs 0 (v1) and 1 (v2), IPv4-mapped) or InfiniBand (LIDs)
 *   down=NAME      the ports of that device are down
 *   inline=BYTES   the most inline data that a queue pair is granted, 256 unless told; who asks for
 *                  more is granted this much
 *   strict_inline  who asks for more is refused
 *   mtu=BYTES      the active MTU, 1024 unless told
 *   wrs=N          the most work requests of a queue, 16384 unless told
 *   rd_atomic=N    the most RDMA reads that a queue pair has under way, 16 unless told
 *   memlock=BYTES  the most memory registered at a time
 *   no_copy_on_fork  ibv_fork_init() is needed, as by old kernels
 *   no_dmabuf      ibv_reg_dmabuf_mr() is not supported
 *   seed=N         of all that is random
 *   delay=US       work requests are done so much later on average
 *   fail=NAME:N    the N-th call of ibv_NAME() fails; may be given several times
 *
 * The functions below are found by fake_ibverbs_function().
 */
#ifndef TEST_DOUBLES_FAKE_IBVERBS_H
#define TEST_DOUBLES_FAKE_IBVERBS_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FAKE_API __attribute__((visibility("default")))

/** From now on the @p nth call of ibv_ @p function fails; 0: none does. reg_mr stands for all ways
 *  to register memory. @return false: there is no such function. */
FAKE_API bool fake_ibverbs_fail(const char *function, int nth);

/** @return how many of the calls that are to fail have not been made. */
FAKE_API int fake_ibverbs_failures_left(void);

/** Stops the traffic of that device, or lets it go on. @return false: there is no such device. */
FAKE_API bool fake_ibverbs_cut(const char *device, bool cut);

/** Tells all contexts of the device of an enum ibv_event_type of its port 1. IBV_EVENT_PORT_ERR and
 *  IBV_EVENT_PORT_ACTIVE change the state that ibv_query_port() tells, not the traffic.
 *  @return false: there is no such device. */
FAKE_API bool fake_ibverbs_port_event(const char *device, int event);

/** The pages of this memory are about to be unmapped, moved or discarded. As on hardware, which has
 *  pinned them, who holds a key of a registration that has some of them goes on with those pages,
 *  whatever comes to lie at the address. */
FAKE_API void fake_ibverbs_pages_go(const void *memory, size_t bytes);

typedef struct fake_ibverbs_counts {
    /* Since the process began. */
    uint64_t writes, immediates, reads, sends; /* posted; an immediate is not counted as a write */
    uint64_t inlined;                          /* of them */
    uint64_t bytes;                            /* moved */
    uint64_t completions;                      /* in whichever queue, polled or not */
    uint64_t rnr_naks;
    uint64_t registrations_made;
    /* Now. */
    uint64_t contexts, domains, registrations, registered_bytes, channels, completion_queues,
        receive_queues, queue_pairs; /* receive queues: shared ones */
} fake_ibverbs_counts;
FAKE_API void fake_ibverbs_counters(fake_ibverbs_counts *out);

typedef struct fake_ibverbs_dmabuf {
    uint64_t calls; /* the rest is of the last one */
    uint64_t offset, length, iova;
    int fd, access;
} fake_ibverbs_dmabuf;
FAKE_API void fake_ibverbs_dmabuf_calls(fake_ibverbs_dmabuf *out);

/** Registers addresses the way a device's driver would: those from @p seen on, which the host
 * cannot access, may be registered, and their contents are at @p real. Replaces earlier addresses.
 */
FAKE_API void fake_ibverbs_peer_memory(void *seen, void *real, size_t bytes);

/** @return one of the functions above from the loaded fake library; NULL if it is not loaded. */
static inline void *fake_ibverbs_function(const char *name)
{
    void *library = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_NOLOAD);
    return library != NULL ? dlsym(library, name) : NULL;
}

#endif

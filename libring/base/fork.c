/* SPDX-License-Identifier: Apache-2.0
 *
 * Closes guarded descriptors in forked children. If the worker process of a data loader kept copies
 * of a rank's sockets, the peers would not notice that the rank was killed.
 *
 * A table has one bit per descriptor, so guarding a descriptor takes no lock. The child, which may
 * call only async-signal-safe functions, scans the table. If another thread forks between the
 * opening of a descriptor and fd_guard(), the child keeps a copy of the descriptor.
 */
#include "base.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

enum { WORD_BITS = 64, WORDS = (1 << 20) / WORD_BITS }; /* Linux' default limit */

static _Atomic uint64_t guarded[WORDS];
static _Atomic unsigned generation;

static bool has_bit(int fd)
{
    return fd >= 0 && fd / WORD_BITS < WORDS;
}

static uint64_t bit_of(int fd)
{
    return UINT64_C(1) << fd % WORD_BITS;
}

int fd_guard(int fd)
{
    if (has_bit(fd))
        atomic_fetch_or_explicit(&guarded[fd / WORD_BITS], bit_of(fd), memory_order_relaxed);
    return fd;
}

void fd_close(int *fd)
{
    if (has_bit(*fd))
        atomic_fetch_and_explicit(&guarded[*fd / WORD_BITS], ~bit_of(*fd), memory_order_relaxed);
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* Closes this child's copies of the guarded descriptors. */
static void in_child(void)
{
    atomic_fetch_add_explicit(&generation, 1, memory_order_relaxed);
    for (int word = 0; word < WORDS; word++) {
        uint64_t bits = atomic_load_explicit(&guarded[word], memory_order_relaxed);
        if (bits == 0)
            continue;
        atomic_store_explicit(&guarded[word], 0, memory_order_relaxed);
        for (; bits != 0; bits &= bits - 1)
            close(word * WORD_BITS + __builtin_ctzll(bits));
    }
}

__attribute__((constructor)) static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, in_child);
}

unsigned fork_generation(void)
{
    return atomic_load_explicit(&generation, memory_order_relaxed);
}

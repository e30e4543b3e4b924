/* SPDX-License-Identifier: Apache-2.0
 * Chooses the size of a heap's address space, and maps heaps at staggered addresses. */
#include "span.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

/* The size of a span is a multiple of SPAN_STEP. Each span begins at another multiple of
 * STAGGER_PAGES, an odd number of pages, from the start of its reserved addresses. So the stagger
 * does not depend on the size, and the distance of two mappings is no large power of two. After
 * STAGGER_STEPS spans the multiples repeat. */
#define SPAN_STEP ((size_t)2 << 20)
#define STAGGER_PAGES 37
#define STAGGER_STEPS 61
/* The number of heaps that must fit into the address space: this process's own and those of local
 * peers. If there are more peers, the heaps of some are not mapped. */
#define SHARES 16

size_t span_page(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

/* ---- Size ----------------------------------------------------------------------- */

/* @return the process's limit on a resource; SIZE_MAX if there is none. */
static size_t limit_on(int resource)
{
    struct rlimit limit;
    if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return SIZE_MAX;
    return (size_t)limit.rlim_cur;
}

size_t span_sensible(const char **bound)
{
    const long pages = sysconf(_SC_PHYS_PAGES);
    size_t twice;
    if (pages <= 0 || !mul_size(2 * (size_t)pages, span_page(), &twice))
        twice = SIZE_MAX;
    /* The size of the address space is about the address of the AT_RANDOM bytes, since the kernel
     * puts them on the main stack, at the end of the address space. */
    const size_t end = (size_t)getauxval(AT_RANDOM);
    const size_t addresses = min_size(end != 0 ? end : SIZE_MAX, limit_on(RLIMIT_AS));
    const struct {
        size_t bytes;
        const char *name;
    } bounds[] = {
        {SPAN_MOST, "the most that libring uses"},
        {twice, "twice the machine's memory"},
        {addresses / SHARES, "a sixteenth of the address space; see ulimit -v"},
        {limit_on(RLIMIT_FSIZE), "the limit on file sizes; see ulimit -f"},
    };
    size_t least = 0;
    for (size_t i = 1; i < sizeof bounds / sizeof *bounds; i++)
        if (bounds[i].bytes < bounds[least].bytes)
            least = i;
    *bound = bounds[least].name;
    return bounds[least].bytes / SPAN_STEP * SPAN_STEP;
}

/* ---- Mapping -------------------------------------------------------------------- */

/* Reserves addresses first, and then maps the file into them, after the stagger. */
bool span_map(int fd, size_t bytes, span *out)
{
    static _Atomic unsigned stagger;
    const size_t shift = ((size_t)1 + stagger++ % STAGGER_STEPS) * STAGGER_PAGES * span_page();
    const int quiet = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void *reserved = mmap(NULL, bytes + shift, PROT_NONE, quiet, -1, 0);
    if (reserved == MAP_FAILED)
        return false;
    void *base = mmap((char *)reserved + shift, bytes, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_FIXED | MAP_NORESERVE, fd, 0);
    if (base == MAP_FAILED) {
        munmap(reserved, bytes + shift);
        return false;
    }
    madvise(base, bytes, MADV_DONTDUMP);
    madvise(reserved, bytes + shift, MADV_DONTFORK);
    *out =
        (span){.base = base, .bytes = bytes, .reserved = reserved, .reserved_bytes = bytes + shift};
    return true;
}

/* Maps the range without access. This runs in a fork handler, so it calls only mmap(), which takes
 * no lock. If an earlier handler has mapped memory in the range, both halves are tried separately,
 * down to single pages, so that all addresses around that memory are reserved. */
static void bar(char *at, size_t bytes)
{
    const int quiet = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
    const size_t half = bytes / 2 / span_page() * span_page();
    if (mmap(at, bytes, PROT_NONE, quiet, -1, 0) != MAP_FAILED || errno != EEXIST || half == 0)
        return;
    bar(at, half);
    bar(at + half, bytes - half);
}

void span_bar(const span *s)
{
    bar(s->reserved, s->reserved_bytes);
}

void span_unmap(const span *s)
{
    munmap(s->reserved, s->reserved_bytes);
}

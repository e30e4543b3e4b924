/* SPDX-License-Identifier: Apache-2.0
 *
 * fake_cuda: a libcuda without a GPU, for tests. It has the functions of the driver API that
 * libring and its tests use. It is built as libcuda.so.1 in a folder of its own (tests/fake-cuda of
 * the build), so that LD_LIBRARY_PATH selects it instead of NVIDIA's.
 *
 * cuInit() starts a GPU process, which ends with the host process. Memory of a device is reserved
 * without access in the host process, so that any load or store there faults, and can be read and
 * written at the same address in the GPU process; pinned memory can in both. Streams are threads of
 * the GPU process, and so are the blocks that a device has room for: a block keeps its place until
 * it ends. Kernels are those of emulated_kernel.h, found by name. One that fails ends the GPU
 * process: all devices are lost then, where real ones fail one by one.
 *
 * It is simpler than NVIDIA's driver: ops of a captured graph run one after the other, in the order
 * of the capture unless FAKE_CUDA_GRAPH_SEED is set; a kernel may
 * access the memory of all devices; priorities only select hardware queues; blocks of cooperative
 * launches have at most 32 threads. A kernel that reads pageable memory of the host reads the
 * contents of the time when the GPU process began; only fake_cuda_check() detects that.
 *
 * Environment, read when the GPU process starts:
 *   FAKE_CUDA=no_device   there is no GPU
 *   FAKE_CUDA=no_binary   no image has kernels for it
 *   FAKE_CUDA_DEVICES=n   devices, at 0000:3B:00.0 and following (1, at most 16)
 *   FAKE_CUDA_BLOCKS=n    blocks that a device has room for, one a multiprocessor (8)
 *   FAKE_CUDA_PEERS=0     devices cannot access each other's memory
 *   FAKE_CUDA_PEERS=lies  calls say that they can, and enable it, but kernels that access another
 *                         device's memory fail (CUDA_ERROR_ILLEGAL_ADDRESS). Needs a processor with
 *                         memory protection keys; at most 15 devices.
 *   FAKE_CUDA_IPC=0       memory and events cannot be exported to other processes, nor imported
 *   FAKE_CUDA_IPC=open    they can be exported, but opening them fails
 *   FAKE_CUDA_SHARED=file  processes with the same file share the devices. Without MPS the blocks
 *                         of one process keep those of others from a device until all have ended,
 *                         so kernels of two processes that wait for each other never end
 *   FAKE_CUDA_MPS=1       the devices belong to an MPS server: blocks of all processes that share a
 *                         device run at once as far as it has room
 *   FAKE_CUDA_DELAY=us    each op of a stream waits for up to so long before it begins (0)
 *   FAKE_CUDA_ORDER=n     in which order threads of a block run (0; see emulated_set_order())
 *   FAKE_CUDA_SEED=n      of these delays and orders (1)
 *   FAKE_CUDA_GRAPH_SEED=n  each launch of a graph runs its ops in an order, drawn from those
 *                         which their dependencies allow (0: in the order of the capture)
 *   FAKE_CUDA_DEADLINE=s  a call that waits for longer ends the process (60); a message names the
 *                         call, its stream, and the op that each stream is at
 * The next ones change behaviours of a real GPU and its driver:
 *   FAKE_CUDA_LATE=us     Some calls return before their copy to memory of the device, which begins
 *                         so many microseconds late, in the order of its stream: cuMemcpy and
 *                         cuMemcpyAsync from pageable memory, cuMemcpy within devices, and memsets.
 *                         Copies from pageable memory of more than 64 KiB first wait for the
 *                         stream. (200; off: such calls return after the copy)
 *   FAKE_CUDA_QUEUES=n    hardware queues of a device for each priority, at most 32, to which
 * streams are dealt in turn. A copy or memset enters the queue of its stream when it is called, and
 * holds up later ones of other streams in that queue until it has ended. Kernels, words, events and
 * host functions pass. (the value of CUDA_DEVICE_MAX_CONNECTIONS, or else 8; 0: no queues)
 *   FAKE_CUDA_QUEUES=n,strict  such a copy holds up later kernels and words, too
 *   FAKE_CUDA_LIMITS=0    no limits. Otherwise 1,020 ops may be pending in each stream, except host
 *                         functions, and 55 host functions of graphs. A call that adds more waits.
 *                         A graph launch that waits for host functions holds the driver's lock
 *                         meanwhile, and all calls that enqueue wait for that lock.
 *   FAKE_CUDA_MEMORY=n    cuMemAlloc of more than n bytes fails
 *   FAKE_CUDA_ALLOC_DRAINS=1  cuMemAlloc waits until the device's streams have ended all ops that
 *                         were appended before, as cuMemFree and cuCtxSynchronize always do
 *   FAKE_CUDA_FREE_LOCKS=1  these calls hold the driver's lock while they wait
 *   FAKE_CUDA_SYNC=1      cuLaunchKernel returns when the kernel has ended, as under
 *                         compute-sanitizer
 *   FAKE_CUDA_R1=1        A call by libring that may wait for a stream, or for a lock that another
 *                         call holds meanwhile, ends the process: copies, memsets, host functions,
 *                         synchronisations, allocations, frees, registrations of memory, graphs,
 *                         modules, launches of functions that were not loaded, exports and imports,
 *                         peer access, and creating or destroying streams and events. It is allowed
 *                         where a test permits it: see fake_cuda_permit().
 *   FAKE_CUDA_R1=print    such calls are only printed
 *
 * The functions below are found by dlsym().
 */
#ifndef TEST_DOUBLES_FAKE_CUDA_H
#define TEST_DOUBLES_FAKE_CUDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FAKE_CUDA_API __attribute__((visibility("default")))

/** An allocation of device 0; it begins 512 bytes after a page does. */
FAKE_CUDA_API void *fake_cuda_alloc(size_t bytes);
/** Frees memory that fake_cuda_alloc() returned. */
FAKE_CUDA_API void fake_cuda_free(void *memory);
/** @return the bytes of @p memory in the host process. The allocation must not be mapped piece by
 *  piece, nor be another process's. */
FAKE_CUDA_API unsigned char *fake_cuda_at(void *memory);
/** Copies at once, without waiting for any stream, from or to memory that the device can access. */
FAKE_CUDA_API void fake_cuda_read(void *dst, const void *memory, size_t bytes);
FAKE_CUDA_API void fake_cuda_write(void *memory, const void *src, size_t bytes);

/** For kernels. Unless all bytes lie in one allocation, later calls end with
 *  CUDA_ERROR_ILLEGAL_ADDRESS. It takes a lock, so it is too slow for each element. */
FAKE_CUDA_API void fake_cuda_check(const void *memory, size_t bytes);

/** Until the matching call with false, FAKE_CUDA_R1 does not apply to this thread, nor to threads
 *  that never call this. */
FAKE_CUDA_API void fake_cuda_permit(bool permitted);

/** Sets an attribute of the devices. @return its previous value. */
FAKE_CUDA_API int fake_cuda_set(int attribute, int value);
/** From now on all calls of that function end with @p result; 0: none does. The caller keeps the
 *  string @p function. */
FAKE_CUDA_API void fake_cuda_fail(const char *function, int result);
/** The n-th call from now ends with @p result and does nothing; n = 0: none does. Calls that name
 *  errors are not counted. */
FAKE_CUDA_API void fake_cuda_fail_nth(uint64_t n, int result);
/** The same, but only the library's calls of that function are counted. The caller keeps the
 * string.
 */
FAKE_CUDA_API void fake_cuda_fail_nth_of(const char *function, uint64_t n, int result);
/** @return the function that failed since fake_cuda_fail_nth(); NULL: none yet. */
FAKE_CUDA_API const char *fake_cuda_last_failed(void);

typedef struct fake_cuda_counts {
    uint64_t sync_memops, handles, flushes, retains, releases, contexts_left;
    uint64_t range, range_bytes; /* of the last handle for a range of addresses */
    uint64_t calls;              /* those that fake_cuda_fail_nth() counts */
    /* Objects alive. allocations: device memory, imported or mapped memory included; pinned:
     * pinned, managed and registered memory; graphs: executable graphs included. */
    uint64_t allocations, pinned, streams, events, modules, graphs, user_objects, contexts;
    uint64_t device_bytes; /* of allocations of this process that are not mapped piece by piece */
    uint64_t physical;     /* pieces of cuMemCreate() and cuMemImportFromShareableHandle() */
    /* Of all devices: launches of which a block has started, launches that have ended, and blocks
     * that run now. */
    uint64_t launches_started, launches_done, blocks, ops_done;
} fake_cuda_counts;
/** Counts since the process began; contexts_left: pushed and not popped by this thread. */
FAKE_CUDA_API void fake_cuda_counters(fake_cuda_counts *out);

/** Calls of one function by one thread. */
typedef struct fake_cuda_census_row {
    const char *function; /* "cuLaunchKernel" */
    int thread;           /* the kernel's number of it */
    bool of_library;      /* called from a shared object whose file name begins with "libring" or
                           * "libnccl" */
    uint64_t calls;
} fake_cuda_census_row;

/** @return the kernel that this process launched last; NULL: none yet. @param[out] blocks  of it.
 */
FAKE_CUDA_API const char *fake_cuda_last_kernel(unsigned *blocks);

/** Finds the longest chain of kernels in the graph that was instantiated last, which must exist.
 *  @param[out] names  of the first @p most kernels. @return the number of kernels. */
FAKE_CUDA_API int fake_cuda_longest_chain(const char **names, int most);

/** Begins to count the calls of all threads of this process, from zero. */
FAKE_CUDA_API void fake_cuda_census_begin(void);
/** Ends that. @return the number of rows written to @p out, at most @p most. */
FAKE_CUDA_API int fake_cuda_census_end(fake_cuda_census_row *out, int most);

typedef struct fake_cuda_census {
    uint64_t calls; /* of all functions, which include the following ones */
    uint64_t launches, functions, words;
    uint64_t copies;           /* and memsets */
    uint64_t synchronisations; /* with copies and memsets that have no stream */
    uint64_t allocations;      /* also frees, and registrations of the host's memory */
} fake_cuda_census;
/** @return the sums of the rows of the library or of the program.
 *  @param thread  0: of all threads. */
FAKE_CUDA_API fake_cuda_census fake_cuda_census_sum(const fake_cuda_census_row *of, int count,
                                                    bool of_library, int thread);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * emulated_kernel: GPU kernels that a C++ compiler compiled, and what runs them. A block is run by
 * a thread of the system; its threads are fibers, which change at barriers and pauses alone.
 */
#ifndef TEST_DOUBLES_EMULATED_KERNEL_H
#define TEST_DOUBLES_EMULATED_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A kernel and its one parameter, a struct. */
typedef struct emulated_kernel {
    const char *name;
    void (*body)(const void *args);
    size_t args_bytes;
    size_t shared_bytes;
    struct emulated_kernel *next;
} emulated_kernel;

/** Before main(). @param kernel  stays. */
void emulated_kernel_register(emulated_kernel *kernel);
/** @return NULL: there is none of that name. */
const emulated_kernel *emulated_kernel_find(const char *name);

typedef struct emulated_launch {
    const emulated_kernel *kernel;
    const void *args;
    unsigned grid, block; /* blocks; threads of each, at most 1024 */
    bool judged;          /* ThreadSanitizer tells threads of a block apart: a fiber for each, which
                             is slow */
} emulated_launch;

/** Runs all threads of one block. Threads of a block come to the same barriers, or the process is
 *  aborted. @return false: a thread trapped, and the block ended there. */
bool emulated_block_run(const emulated_launch *launch, unsigned block_index);
/** All blocks, each by a thread of its own: a launch of tests without a driver. */
bool emulated_launch_run(const emulated_launch *launch);

/** In which order the threads of a block run between barriers; the next launch has it. */
enum { EMULATED_FORWARD, EMULATED_REVERSE, EMULATED_RANDOM };
void emulated_set_order(int order, unsigned seed);

/** From now on words are written late, now and then: by up to so many microseconds; 0: they are
 * not. */
void emulated_set_delay(unsigned most_us, unsigned seed);

/** @return how many words kernels of this process have stored with release semantics. */
uint64_t emulated_releases(void);

/* ---- For kernels -------------------------------------------------------------------- */

unsigned fiber_thread_index(void);
unsigned fiber_thread_count(void);
unsigned fiber_block_index(void);
unsigned fiber_block_count(void);
void fiber_barrier(void);
/** A barrier. @return true in all threads if @p mine is true in one of them. */
bool fiber_any(bool mine);
/** Other fibers go on, and other blocks. */
void fiber_pause(void);
uint64_t fiber_nanoseconds(void);
/** Before a word is written that others wait for. */
void fiber_delay(void);
void fiber_count_release(void);
/** Ends the block. Does not return. */
void emulated_trap(void);

/** Aborts the process unless @p at is a multiple of @p bytes, as a GPU would end the kernel. */
void emulated_check_aligned(const void *at, size_t bytes);
float emulated_from_half(uint16_t bits);
uint16_t emulated_to_half(float value);

#ifdef __cplusplus
}
#endif

#endif

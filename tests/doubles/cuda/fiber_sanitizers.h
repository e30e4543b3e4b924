/* SPDX-License-Identifier: Apache-2.0
 *
 * fiber_sanitizers: the sanitizers are told of stacks that change. Without one it is nothing. */
#ifndef TEST_DOUBLES_FIBER_SANITIZERS_H
#define TEST_DOUBLES_FIBER_SANITIZERS_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __SANITIZE_THREAD__
/** The scheduler's own data are of one thread, though fibers take turns at them. */
#define UNSEEN __attribute__((no_sanitize("thread")))
enum { FIBER_FOR_EACH = 1 };
#else
#define UNSEEN
enum { FIBER_FOR_EACH = 0 };
#endif

typedef struct fiber_marks {
    void *fake, *of_thread;
    const void *stack;
    size_t bytes;
    bool unstarted;
} fiber_marks;

#if defined(__SANITIZE_ADDRESS__)

#include <sanitizer/common_interface_defs.h>

static inline void fiber_marks_new(fiber_marks *m, void *stack, size_t bytes)
{
    *m = (fiber_marks){.stack = stack, .bytes = bytes};
}

/* Where the thread's own stack lies is told by the first change from it. */
static inline void fiber_marks_main(fiber_marks *m)
{
    *m = (fiber_marks){0};
}

static inline void fiber_marks_leave(fiber_marks *from, fiber_marks *to, bool ends)
{
    __sanitizer_start_switch_fiber(ends ? NULL : &from->fake, to->stack, to->bytes);
}

/** @param thread  the marks of the thread's own stack; NULL: it is entered itself. */
static inline void fiber_marks_enter(fiber_marks *me, fiber_marks *thread)
{
    const void *stack;
    size_t bytes;
    __sanitizer_finish_switch_fiber(me->fake, &stack, &bytes);
    if (thread != NULL && thread->stack == NULL) {
        thread->stack = stack;
        thread->bytes = bytes;
    }
}

static inline void fiber_marks_free(fiber_marks *m, bool ended)
{
}

static inline void fiber_marks_free_kept(void)
{
}

#elif defined(__SANITIZE_THREAD__)

#include <sanitizer/tsan_interface.h>

/* The sanitizer's records of fibers that have ended, for the next blocks of the thread: making one
 * clears much memory. There can be 8,128 records at once, in all threads. */
enum { KEPT_HERE = 1024, KEPT_IN_ALL = 4096 };
static _Thread_local void *records[KEPT_HERE];
static _Thread_local unsigned kept_here;
static unsigned kept_in_all;

UNSEEN static inline void fiber_marks_new(fiber_marks *m, void *stack, size_t bytes)
{
    if (kept_here > 0)
        __atomic_fetch_sub(&kept_in_all, 1, __ATOMIC_RELAXED);
    m->of_thread = kept_here > 0 ? records[--kept_here] : __tsan_create_fiber(0);
    m->unstarted = true;
}

UNSEEN static inline void fiber_marks_main(fiber_marks *m)
{
    m->of_thread = __tsan_get_current_fiber();
}

/* The first change to a fiber orders it after the thread that starts it. */
UNSEEN static inline void fiber_marks_leave(fiber_marks *from, fiber_marks *to, bool ends)
{
    const unsigned flags = to->unstarted ? 0 : __tsan_switch_to_fiber_no_sync;
    to->unstarted = false;
    __tsan_switch_to_fiber(to->of_thread, flags);
}

UNSEEN static inline void fiber_marks_enter(fiber_marks *me, fiber_marks *thread)
{
}

/** @param ended  false: functions of the fiber have not returned. */
UNSEEN static inline void fiber_marks_free(fiber_marks *m, bool ended)
{
    if (ended && kept_here < KEPT_HERE &&
        __atomic_load_n(&kept_in_all, __ATOMIC_RELAXED) < KEPT_IN_ALL) {
        __atomic_fetch_add(&kept_in_all, 1, __ATOMIC_RELAXED);
        records[kept_here++] = m->of_thread;
    } else {
        __tsan_destroy_fiber(m->of_thread);
    }
}

/** Before the thread ends. */
UNSEEN static inline void fiber_marks_free_kept(void)
{
    __atomic_fetch_sub(&kept_in_all, kept_here, __ATOMIC_RELAXED);
    while (kept_here > 0)
        __tsan_destroy_fiber(records[--kept_here]);
}

#else

static inline void fiber_marks_new(fiber_marks *m, void *stack, size_t bytes)
{
}

static inline void fiber_marks_main(fiber_marks *m)
{
}

static inline void fiber_marks_leave(fiber_marks *from, fiber_marks *to, bool ends)
{
}

static inline void fiber_marks_enter(fiber_marks *me, fiber_marks *thread)
{
}

static inline void fiber_marks_free(fiber_marks *m, bool ended)
{
}

static inline void fiber_marks_free_kept(void)
{
}

#endif

#endif

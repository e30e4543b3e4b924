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

static inline void fiber_marks_leave(fiber_marks *from, const fiber_marks *to, bool ends)
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

static inline void fiber_marks_free(fiber_marks *m)
{
}

#elif defined(__SANITIZE_THREAD__)

#include <sanitizer/tsan_interface.h>

UNSEEN static inline void fiber_marks_new(fiber_marks *m, void *stack, size_t bytes)
{
    m->of_thread = __tsan_create_fiber(0);
}

UNSEEN static inline void fiber_marks_main(fiber_marks *m)
{
    m->of_thread = __tsan_get_current_fiber();
}

UNSEEN static inline void fiber_marks_leave(fiber_marks *from, const fiber_marks *to, bool ends)
{
    __tsan_switch_to_fiber(to->of_thread, __tsan_switch_to_fiber_no_sync);
}

UNSEEN static inline void fiber_marks_enter(fiber_marks *me, fiber_marks *thread)
{
}

UNSEEN static inline void fiber_marks_free(fiber_marks *m)
{
    __tsan_destroy_fiber(m->of_thread);
}

#else

static inline void fiber_marks_new(fiber_marks *m, void *stack, size_t bytes)
{
}

static inline void fiber_marks_main(fiber_marks *m)
{
}

static inline void fiber_marks_leave(fiber_marks *from, const fiber_marks *to, bool ends)
{
}

static inline void fiber_marks_enter(fiber_marks *me, fiber_marks *thread)
{
}

static inline void fiber_marks_free(fiber_marks *m)
{
}

#endif

#endif

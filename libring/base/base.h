/* SPDX-License-Identifier: Apache-2.0
 *
 * base: provides the helpers that every room may use: errors with text, logging, the clock, and
 * small functions for text, descriptors and threads.
 *
 * Error rule: the function that detects a failure writes its text with fail() and returns the
 * status; its callers only return that status (RING_TRY).
 */
#ifndef RING_BASE_H
#define RING_BASE_H

#include "words.h"

#include <pthread.h>
#include <ring/ring.h>
#include <stdarg.h>
#include <stdbool.h>

#define RING_PRINTF(at, args) __attribute__((format(printf, at, args)))
#define RING_CACHE_LINE 64
/** Marks a rarely used function, which the compiler then does not inline into hot callers. */
#define RING_RARE __attribute__((noinline, cold))

/** Asserts an invariant of libring, in debug and sanitizer builds. */
#ifdef RING_CHECKED
#define ring_assert(condition) \
    ((condition) ? (void)0 : assertion_failed(#condition, __FILE__, __LINE__))
_Noreturn void assertion_failed(const char *condition, const char *file, int line);
#else
#define ring_assert(condition) ((void)sizeof(condition))
#endif

/** Returns the status of @p expr to the caller unless it is RING_OK. */
#define RING_TRY(expr) \
    do { \
        const ring_status try_status = (expr); \
        if (try_status != RING_OK) \
            return try_status; \
    } while (0)

/** Sets this thread's error text (one line: what, where, why, what to do) and returns
 *  @p status. "%m" is the system's errno text, as in printf. Unprintable bytes become '?'. */
ring_status fail(ring_status status, const char *format, ...) RING_PRINTF(2, 3);

/** @return this thread's latest error text; "" if there was none. */
const char *fail_text(void);
/** Clears this thread's error text; for tests. */
void fail_clear(void);

/* ---- Log: "[ring r3/8] text" on stderr; RING_DEBUG = error, warn (default), info, debug. */

typedef enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG } log_level;

void log_set_level(log_level level);
/** @return false for an unknown name. */
bool log_level_parse(const char *name, log_level *level);
/** Sets the rank in the prefix of this thread's lines; ranks < 1 clears it. */
void log_set_rank(int rank, int ranks);
void log_at(log_level level, const char *format, ...) RING_PRINTF(2, 3);

#define log_error(...) log_at(LOG_ERROR, __VA_ARGS__)
#define log_warn(...) log_at(LOG_WARN, __VA_ARGS__)
#define log_info(...) log_at(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_at(LOG_DEBUG, __VA_ARGS__)

/* ---- Clock: CLOCK_MONOTONIC only, so that a jump of the wall clock changes nothing. */

/** @return seconds since some fixed moment. */
double clock_now(void);
void clock_sleep(double seconds);
/** @return milliseconds until @p deadline for poll(), at least 0, at most @p most_ms. */
int clock_ms_until(double deadline, int most_ms);

/** Hints to the core that this thread is spinning. */
static inline void cpu_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/** Yields the core. @return false if the yield took as long as a time slice, or was skipped because
 *  a recent yield did. In both cases another thread keeps the core busy without yielding, and the
 *  caller should sleep. */
bool clock_yield(void);
/** Makes one step of a wait that is polite to other threads: the first steps spin, the next ones
 *  yield the core as long as yields are quick, and after that the caller should sleep.
 *  @param[in,out] steps  the number of steps so far, 0 at the start of the wait.
 *  @param crowded  true if there are more ranks than cores. Slow yields then do not end the wait,
 *                  since another rank uses the core.
 *  @return true when the caller should sleep. */
bool wait_politely(unsigned *steps, bool crowded);
/** @return true if the next step of wait_politely() would return true. */
bool wait_is_sleepy(unsigned steps);

/* ---- Text ---------------------------------------------------------------------- */

/** Formats text as snprintf() does. @return false if the text was truncated. */
bool text_format(char *out, size_t size, const char *format, ...) RING_PRINTF(3, 4);
/** Appends formatted text to the text in @p out. @return false if the text was truncated. */
bool text_append(char *out, size_t size, const char *format, ...) RING_PRINTF(3, 4);
/** Makes text from outside printable: terminates it, and replaces bytes that are neither printable
 *  ASCII nor well-formed UTF-8 by '?'. */
void text_make_printable(char *text, size_t size);

/* ---- Files and descriptors -------------------------------------------------------- */

/** Waits up to a second for @p events, as in poll(). Callers must retry their operation in a loop,
 *  since the second may pass without an event.
 *  @return RING_OK after an event or the second; RING_ERR_TIMEOUT if @p deadline has passed without
 *  an event; RING_ERR_SYSTEM. */
ring_status fd_await(int fd, short events, double deadline);
/** Read or write exactly @p bytes on a socket, blocking or not, before @p deadline.
 *  @return RING_OK, RING_ERR_TIMEOUT, RING_ERR_PEER if the connection has ended, or
 *  RING_ERR_SYSTEM. */
ring_status fd_read_all(int fd, void *data, size_t bytes, double deadline);
ring_status fd_write_all(int fd, const void *data, size_t bytes, double deadline);
/** Sets the size of a memfd and seals it, so that no process can change the size. If @p bytes
 * exceed the process's limit on file sizes, it returns RING_ERR_MEMORY and does not raise SIGXFSZ.
 */
ring_status fd_size_and_seal(int fd, size_t bytes);

/** Registers @p fd to be closed in forked children, so that peers notice the end of this process
 *  even while its children are alive. After this, only fd_close() may close it. Do not guard a
 *  socket that a forked child may have to use, such as the one of a unique id.
 *  @return @p fd, so that the call can enclose the one that opens it; a negative value is
 *  ignored. */
int fd_guard(int fd);
void fd_close(int *fd);

/** @return the number of forks between the process that loaded libring and this one. An object that
 *  was created when the number was lower belongs to a parent process. */
unsigned fork_generation(void);

/* ---- Threads ------------------------------------------------------------------------ */

/** Starts a thread of the library, as pthread_create() does, with all signals blocked, so that
 *  signals are delivered to the program's own threads. @return 0 or an errno. */
int thread_start(pthread_t *thread, void *(*body)(void *), void *arg);
/** Takes a lock that another thread may hold for longer. @param deadline  of clock_now().
 *  @return false if the lock was not free by then. */
bool thread_lock_by(pthread_mutex_t *lock, double deadline);

/* ---- Arithmetic ------------------------------------------------------------------ */

static inline size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}
static inline size_t max_size(size_t a, size_t b)
{
    return a > b ? a : b;
}
static inline bool mul_size(size_t a, size_t b, size_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

#endif

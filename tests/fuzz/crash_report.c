/* SPDX-License-Identifier: Apache-2.0
 * The input that is being parsed, shown by calls that a signal handler may make. */
#include "crash_report.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#include <sanitizer/common_interface_defs.h>
#define HAS_SANITIZER 1
#endif
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/lsan_interface.h>
#endif

static report_input current;
static atomic_bool inside;
static atomic_int seconds; /* that the input has taken */

/* ---- The input ------------------------------------------------------------------ */

static void say(const char *text, size_t bytes)
{
    const ssize_t ignored = write(STDERR_FILENO, text, bytes);
    (void)ignored; /* nobody is left to tell */
}

static void say_hex(const unsigned char *bytes, size_t size)
{
    static const char digits[] = "0123456789abcdef";
    char part[128];
    for (size_t at = 0; at < size;) {
        size_t used = 0;
        for (; at < size && used < sizeof part; at++) {
            part[used++] = digits[bytes[at] >> 4];
            part[used++] = digits[bytes[at] & 15];
        }
        say(part, used);
    }
    say("\n", 1);
}

/* Once: what ends the run may end it in several ways. */
static void show_input(void)
{
    char head[256];
    if (!atomic_exchange(&inside, false))
        return;
    const int length = snprintf(head, sizeof head,
                                "input of %zu bytes; again by --only %s --seed %llu --at %llu\n",
                                current.size, current.target, (unsigned long long)current.seed,
                                (unsigned long long)current.number);
    say(head, (size_t)length);
    say_hex(current.bytes, current.size);
}

void fuzz_broken(const char *what, const char *file, int line)
{
    fprintf(stderr, "%s:%d: must hold: %s\n", file, line, what);
    show_input();
    exit(1);
}

/* ---- What may end it ------------------------------------------------------------ */

static void on_signal(int number)
{
    show_input();
    signal(number, SIG_DFL);
    raise(number);
}

/* A thread, for a signal would interrupt what the parser waits in, and a sanitizer holds it back
 * while the parser only computes. */
static void *watch_time(void *context)
{
    static const char text[] = "the parser takes too long\n";
    const int limit = *(const int *)context;
    do
        clock_sleep(1);
    while (!atomic_load(&inside) || atomic_fetch_add(&seconds, 1) < limit);
    say(text, sizeof text - 1);
    show_input();
    _exit(1);
}

static void on_exit_inside(void)
{
    static const char text[] = "the parser ended the program\n";
    if (!atomic_load(&inside))
        return;
    say(text, sizeof text - 1);
    show_input();
    _exit(1);
}

void report_prepare(int limit)
{
    static int seconds_most;
    pthread_t watcher;
    seconds_most = limit;
    must(thread_start(&watcher, watch_time, &seconds_most) == 0);
    atexit(on_exit_inside);
    signal(SIGABRT, on_signal);
#if defined(HAS_SANITIZER)
    __sanitizer_set_death_callback(show_input);
#else
    static const int deadly[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGSYS, SIGXFSZ};
    for (size_t i = 0; i < sizeof deadly / sizeof *deadly; i++)
        signal(deadly[i], on_signal);
#endif
}

void report_begin(const report_input *input)
{
    current = *input;
    atomic_store(&seconds, 0);
    atomic_store(&inside, true);
}

void report_end(void)
{
    atomic_store(&inside, false);
}

bool report_leaks(void)
{
#if defined(__SANITIZE_ADDRESS__)
    return __lsan_do_recoverable_leak_check() != 0;
#else
    return false;
#endif
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * System calls fail. If one call of one rank fails, either the rank can do without it, or all ranks
 * soon get an error that names it, and none waits for a deadline. Interrupted and short calls, on
 * all ranks, have no effect. RING_TEST_FAILING_CALLS: tests every n-th call (13).
 * Usage: test_fault_failing_calls TRANSPORT */
#include "harness.h"
#include "known_calls.h"

#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "unit_test.h"

enum { RANKS = 3, NEVER = -1, EVERYBODY = -1, NAME_MAX_BYTES = 32, ADDS = 1 /* EPOLL_CTL_ADD */ };

typedef struct trouble {
    int victim;
    long nth; /* call of the victim, from 0; NEVER */
    bool interrupts;
} trouble;

typedef struct findings {
    long calls;                /* of the victim, until it ended */
    double failed;             /* when, 0: never                */
    char name[NAME_MAX_BYTES]; /* of the call that failed       */
    known_outcome outcomes[RANKS];
} findings;

/* ---- Which calls fail ---------------------------------------------------------------------- */

static _Atomic bool counts, interrupts;
static _Atomic long calls, failing = NEVER;
static findings *noted;

/* @return false: this one fails. */
static bool may_call(const char *name)
{
    if (!atomic_load(&counts) || atomic_load(&interrupts) ||
        atomic_fetch_add(&calls, 1) != atomic_load(&failing))
        return true;
    noted->failed = harness_now();
    snprintf(noted->name, sizeof noted->name, "%s", name);
    return false;
}

/* @param as  what the call returns. */
static intptr_t fail_as(intptr_t as, int code)
{
    errno = code;
    return as;
}

typedef enum disturbance { GOES_WELL, IS_SHORT, IS_INTERRUPTED } disturbance;

/* In no order, so that no loop of three calls meets the same each time; with EINTR in errno where
 * it says so. */
static disturbance disturb(void)
{
    if (!atomic_load(&counts) || !atomic_load(&interrupts))
        return GOES_WELL;
    const uint32_t mixed = (uint32_t)atomic_fetch_add(&calls, 1) * UINT32_C(2654435761);
    errno = EINTR;
    return (disturbance)((mixed >> 16) % 3);
}

static size_t shortened(disturbance how, size_t size)
{
    return how == IS_SHORT && size > 1 ? size / 2 : size;
}

/* ---- In place of libc's -------------------------------------------------------------------- */

#define IN_PLACE_OF_LIBC __attribute__((visibility("default")))

/* Sets @p call to libc's function. */
#define FIND_REAL(call, name) \
    do { \
        const void *found_ = dlsym(RTLD_NEXT, name); \
        memcpy(&(call), &found_, sizeof(call)); \
    } while (0)

/* Under names of their own, so that libc's headers may declare theirs as they like. */
#define FAILING(type, name, params, args, failed, code) \
    type stand_in_##name params __asm__(#name); \
    IN_PLACE_OF_LIBC type stand_in_##name params \
    { \
        type(*call) params; \
        FIND_REAL(call, #name); \
        return may_call(#name) ? call args : (type)fail_as(failed, code); \
    }

FAILING(int, socket, (int domain, int type, int protocol), (domain, type, protocol), -1, EMFILE)
FAILING(int, bind, (int fd, const void *to, socklen_t size), (fd, to, size), -1, EADDRINUSE)
FAILING(int, listen, (int fd, int backlog), (fd, backlog), -1, EADDRINUSE)
FAILING(int, connect, (int fd, const void *to, socklen_t size), (fd, to, size), -1, ENETUNREACH)
FAILING(int, getsockname, (int fd, void *at, void *size), (fd, at, size), -1, ENOBUFS)
FAILING(int, getpeername, (int fd, void *at, void *size), (fd, at, size), -1, ENOTCONN)
FAILING(int, setsockopt, (int fd, int level, int name, const void *value, socklen_t size),
        (fd, level, name, value, size), -1, ENOBUFS)
FAILING(int, getsockopt, (int fd, int level, int name, void *value, void *size),
        (fd, level, name, value, size), -1, ENOBUFS)
FAILING(int, epoll_create1, (int flags), (flags), -1, EMFILE)
FAILING(int, eventfd, (unsigned start, int flags), (start, flags), -1, EMFILE)
FAILING(int, timerfd_create, (int clock, int flags), (clock, flags), -1, EMFILE)
FAILING(int, open, (const char *path, int flags, int mode), (path, flags, mode), -1, EMFILE)
FAILING(int, memfd_create, (const char *name, unsigned flags), (name, flags), -1, EMFILE)
FAILING(int, ftruncate, (int fd, off_t bytes), (fd, bytes), -1, ENOSPC)
FAILING(int, fallocate, (int fd, int mode, off_t at, off_t bytes), (fd, mode, at, bytes), -1,
        ENOSPC)
FAILING(int, fstat, (int fd, void *out), (fd, out), -1, ENOMEM)
FAILING(void *, mmap, (void *at, size_t bytes, int access, int flags, int fd, off_t from),
        (at, bytes, access, flags, fd, from), -1, ENOMEM)
FAILING(int, mkdir, (const char *path, mode_t mode), (path, mode), -1, ENOSPC)
FAILING(int, mkostemps, (char *path, int suffix, int flags), (path, suffix, flags), -1, ENOSPC)
FAILING(int, rename, (const char *from, const char *to), (from, to), -1, ENOSPC)
FAILING(int, getifaddrs, (void *list), (list), -1, ENOMEM)
FAILING(int, pthread_create, (void *thread, const void *how, void *(*body)(void *), void *arg),
        (thread, how, body, arg), EAGAIN, EAGAIN)
FAILING(int, getaddrinfo, (const char *host, const char *port, const void *hints, void *list),
        (host, port, hints, list), EAI_AGAIN, EAGAIN)

/* Members of a set can always be changed and removed. */
int stand_in_epoll_ctl(int set, int what, int fd, void *event) __asm__("epoll_ctl");
IN_PLACE_OF_LIBC int stand_in_epoll_ctl(int set, int what, int fd, void *event)
{
    int (*call)(int set, int what, int fd, void *event);
    FIND_REAL(call, "epoll_ctl");
    if (what == ADDS && !may_call("epoll_ctl"))
        return (int)fail_as(-1, ENOSPC);
    return call(set, what, fd, event);
}

/* Calls that wait or move bytes may also be interrupted, or move fewer. */
#define DISTURBED(type, name, params, call_args, failure) \
    type stand_in_##name params __asm__(#name); \
    IN_PLACE_OF_LIBC type stand_in_##name params \
    { \
        type(*call) params; \
        FIND_REAL(call, #name); \
        const disturbance how = disturb(); \
        (void)how; \
        if (how == IS_INTERRUPTED) \
            return -1; \
        return may_call(#name) ? call call_args : (type)fail_as(-1, failure); \
    }

/* A connection that was reset is gone for both directions, and for the peer. */
static int reset(int fd)
{
    shutdown(fd, SHUT_RDWR);
    return ECONNRESET;
}

DISTURBED(int, accept4, (int fd, void *from, void *size, int flags), (fd, from, size, flags),
          EMFILE)
DISTURBED(int, poll, (void *list, unsigned long count, int ms), (list, count, ms), ENOMEM)
DISTURBED(int, epoll_wait, (int set, void *events, int most, int ms), (set, events, most, ms),
          EINTR)
DISTURBED(ssize_t, send, (int fd, const void *bytes, size_t size, int flags),
          (fd, bytes, shortened(how, size), flags), reset(fd))
DISTURBED(ssize_t, recv, (int fd, void *bytes, size_t size, int flags),
          (fd, bytes, shortened(how, size), flags), reset(fd))
DISTURBED(ssize_t, readv, (int fd, const struct iovec *list, int count),
          (fd, list, (int)shortened(how, (size_t)count)), reset(fd))

static const struct msghdr *shortened_message(disturbance how, const struct msghdr *message,
                                              struct msghdr *room)
{
    *room = *message;
    room->msg_iovlen = shortened(how, room->msg_iovlen);
    return room;
}

DISTURBED(ssize_t, sendmsg, (int fd, const struct msghdr *message, int flags),
          (fd, shortened_message(how, message, &(struct msghdr){0}), flags), reset(fd))

/* ---- A rank -------------------------------------------------------------------------------- */

static void begin_trouble(const trouble *t, int rank)
{
    atomic_store(&failing, t->nth);
    atomic_store(&interrupts, t->interrupts);
    atomic_store(&counts, t->victim == rank || t->victim == EVERYBODY);
}

static int take_part(int rank, int ranks, harness_board *board, void *arg)
{
    const trouble *t = arg;
    findings *found = (findings *)(void *)board->data;
    known_outcome *mine = &found->outcomes[rank];
    ring_comm *comm = NULL;
    noted = found;
    if (rank == 0 && ring_get_unique_id(&board->id) != RING_OK)
        return 1;
    if (rank == 0)
        atomic_store(&board->id_ready, 1);
    while (atomic_load(&board->id_ready) == 0)
        sched_yield();
    begin_trouble(t, rank);
    mine->status = ring_comm_init(&comm, ranks, &board->id, rank);
    known_calls_note(comm, rank, ranks, mine);
    atomic_store(&counts, false);
    if (rank == t->victim)
        found->calls = atomic_load(&calls);
    ring_comm_destroy(comm);
    return 0;
}

/* ---- Runs ---------------------------------------------------------------------------------- */

static findings run(trouble t)
{
    harness_board *board;
    findings found;
    assert_int_equal(harness_run(HARNESS_PROCESSES, RANKS, take_part, &t, &board), 0);
    memcpy(&found, board->data, sizeof found);
    harness_board_free(board);
    return found;
}

/* The last call may have ended on some ranks before it failed on another. */
static bool is_well(const findings *f)
{
    bool well = true;
    for (int r = 0; r < RANKS; r++)
        well = well && known_outcome_is_told(&f->outcomes[r], f->failed);
    return well;
}

/* ---- Tests --------------------------------------------------------------------------------- */

static void a_call_that_fails_is_told_of(void **state)
{
    const long stride = (long)harness_number("RING_TEST_FAILING_CALLS", 13);
    int bad = 0;
    for (int victim = 0; victim < RANKS; victim++) {
        const long most = run((trouble){victim, NEVER, false}).calls;
        long hits = 0, errors = 0;
        for (long nth = victim % stride; nth < most; nth += stride) {
            const findings f = run((trouble){victim, nth, false});
            hits += f.failed > 0;
            errors += f.outcomes[victim].status != RING_OK;
            if (is_well(&f))
                continue;
            print_error("call %ld of rank %d, %s, failed:\n", nth, victim, f.name);
            known_outcomes_print(f.outcomes, RANKS, f.failed);
            bad++;
        }
        print_message("rank %d: %ld calls, %ld failed, %ld ended the run\n", victim, most, hits,
                      errors);
        assert_true(errors > 0);
    }
    assert_int_equal(bad, 0);
}

static void interrupted_and_short_calls_are_no_failures(void **state)
{
    const findings f = run((trouble){EVERYBODY, NEVER, true});
    for (int r = 0; r < RANKS; r++) {
        if (f.outcomes[r].status != RING_OK || f.outcomes[r].wrong)
            known_outcomes_print(f.outcomes, RANKS, f.failed);
        assert_int_equal(f.outcomes[r].status, RING_OK);
        assert_false(f.outcomes[r].wrong);
    }
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    setenv("RING_TRANSPORT", argv[1], 1);
    setenv("RING_TIMEOUT", "60", 1); /* no run ends by it */
    setenv("RING_INIT_TIMEOUT", "60", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(interrupted_and_short_calls_are_no_failures),
        cmocka_unit_test(a_call_that_fails_is_told_of),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

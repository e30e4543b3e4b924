/* SPDX-License-Identifier: Apache-2.0
 *
 * A peer dies right before or right after one of the calls by which UCX connects, accepts and sends
 * in this process: UCX does not end this process, which learns that the peer is lost. Each such
 * call of the opening and of a first collective is tried. */
#include "harness.h"

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "unit_test.h"

enum { RANKS = 2, COUNT = 1000, NEVER = -1 };

typedef struct plan {
    int survivor;
    bool connects; /* the survivor, not its peer: UCX has the lower port do so */
    long moment; /* of the survivor's UCX when the peer dies: 2 * call, or 2 * call + 1 after it */
} plan;

/** Findings of the ranks for the test, at the start of the board's data. */
typedef struct findings {
    pid_t pids[RANKS];
    bool struck, ended;
    long moments;
    char name[16]; /* of the call */
} findings;

/* ---- The peer's death ---------------------------------------------------------------------- */

static _Atomic bool counts;
static _Atomic long moments;
static _Atomic pid_t peer;
static long fatal = NEVER;
static findings *noted;

/* The peer's sockets are closed before its end is announced. */
static void end_peer(void)
{
    struct pollfd end = {.fd = pidfd_open(atomic_load(&peer), 0), .events = POLLIN};
    if (end.fd < 0)
        return;
    kill(atomic_load(&peer), SIGKILL);
    while (poll(&end, 1, -1) != 1)
        continue;
    close(end.fd);
}

static void pass_moment(const char *call)
{
    if (atomic_fetch_add(&moments, 1) != fatal)
        return;
    snprintf(noted->name, sizeof noted->name, "%s", call);
    noted->struck = true;
    end_peer();
}

/* @return true if @p code is UCX's, whose calls count. */
static bool is_of_ucx(const void *code)
{
    Dl_info info;
    return atomic_load(&counts) && dladdr(code, &info) != 0 && info.dli_fname != NULL &&
           strstr(info.dli_fname, "/libuc") != NULL;
}

/* ---- In place of libc's -------------------------------------------------------------------- */

#define IN_PLACE_OF_LIBC __attribute__((visibility("default")))

/* Under names of their own, so that libc's headers may declare theirs as they like. */
#define STAND_IN(type, name, params, args) \
    type stand_in_##name params __asm__(#name); \
    IN_PLACE_OF_LIBC type stand_in_##name params \
    { \
        type(*call) params; \
        const void *found_ = dlsym(RTLD_NEXT, #name); \
        const bool counted = is_of_ucx(__builtin_return_address(0)); \
        memcpy(&call, &found_, sizeof call); \
        if (counted) \
            pass_moment(#name); \
        const type result = call args; \
        const int code = errno; \
        if (counted) \
            pass_moment(#name); \
        errno = code; \
        return result; \
    }

STAND_IN(int, connect, (int fd, const void *to, socklen_t size), (fd, to, size))
STAND_IN(int, accept, (int fd, void *from, void *size), (fd, from, size))
STAND_IN(ssize_t, send, (int fd, const void *bytes, size_t size, int flags),
         (fd, bytes, size, flags))
STAND_IN(ssize_t, recv, (int fd, void *bytes, size_t size, int flags), (fd, bytes, size, flags))
STAND_IN(ssize_t, sendmsg, (int fd, const void *message, int flags), (fd, message, flags))

/* ---- A rank -------------------------------------------------------------------------------- */

static ring_status use_links(int rank, int ranks, harness_board *board)
{
    ring_comm *comm = NULL;
    float x[COUNT] = {0};
    ring_status status = harness_join(rank, ranks, board, &comm);
    if (status == RING_OK)
        status = ring_all_reduce(x, x, COUNT, RING_FLOAT32, RING_SUM, comm, NULL);
    atomic_store(&counts, false);
    if (status == RING_OK && noted->struck) /* when all was there */
        status = ring_barrier(comm, NULL);
    ring_comm_destroy(comm);
    return status;
}

static int take_part(int rank, int ranks, harness_board *board, void *arg)
{
    const plan *p = arg;
    noted = (findings *)(void *)board->data;
    noted->pids[rank] = getpid();
    atomic_fetch_add(&board->counters[0], 1);
    EXPECT(harness_await(board, 0, ranks), "the other rank did not start");
    atomic_store(&peer, noted->pids[1 - rank]);
    fatal = p->moment;
    setenv("UCX_TCP_PORT_RANGE",
           (rank == p->survivor) == p->connects ? "20000-25999" : "26000-31999", 1);
    atomic_store(&counts, rank == p->survivor);
    const ring_status status = use_links(rank, ranks, board);
    if (rank != p->survivor)
        return 0;
    noted->moments = atomic_load(&moments);
    noted->ended = true;
    EXPECT(status == (noted->struck ? RING_ERR_PEER : RING_OK), "%s: %s",
           ring_status_string(status), ring_last_error(NULL));
    return 0;
}

/* ---- Runs ---------------------------------------------------------------------------------- */

static findings run(plan p)
{
    harness_board *board;
    findings found;
    const int failed = harness_run(HARNESS_PROCESSES, RANKS, take_part, &p, &board);
    memcpy(&found, board->data, sizeof found);
    harness_board_free(board);
    if (failed != found.struck || !found.ended)
        print_error("rank %d, which %s: moment %ld, %s: %s\n", p.survivor,
                    p.connects ? "connects" : "accepts", p.moment, found.name,
                    found.ended ? "a wrong result" : "ended with its peer");
    found.ended = found.ended && failed == found.struck;
    return found;
}

/* @return how often it went wrong. */
static int try_all_moments(int survivor, bool connects)
{
    const long most = run((plan){survivor, connects, NEVER}).moments;
    int bad = 0, struck = 0;
    for (long moment = 0; moment < most; moment++) {
        const findings f = run((plan){survivor, connects, moment});
        struck += f.struck;
        bad += !f.ended;
    }
    print_message("rank %d, which %s: %d deaths\n", survivor, connects ? "connects" : "accepts",
                  struck);
    assert_true(struck > 0);
    return bad;
}

static void test_peer_dies_around_a_call_of_ucx(void **state)
{
    int bad = 0;
    for (int survivor = 0; survivor < RANKS; survivor++)
        bad += try_all_moments(survivor, true) + try_all_moments(survivor, false);
    assert_int_equal(bad, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_peer_dies_around_a_call_of_ucx),
    };
    setenv("RING_TRANSPORT", "ucx", 1);
    return cmocka_run_group_tests_name("fault.ucx_death", tests, NULL, NULL);
}

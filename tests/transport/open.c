/* SPDX-License-Identifier: Apache-2.0
 * open() against an other end that is silent, gone, wrong or hostile. */
#include "conformance.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void expect_text_names_peer(void)
{
    must(strstr(fail_text(), "rank 42") != NULL);
}

/* open() owns the socket, also when it fails. */
static void expect_closed(int fd)
{
    must(fcntl(fd, F_GETFD) == -1 && errno == EBADF);
}

void behaviour_open_deadline(void)
{
    int fds[2];
    transport_link *l;
    ends_sockets(fds);
    const double start = clock_now();
    must_be(end_try_open(RANK_A, TRANSPORT_COLLECTIVE, fds[0], 0.3, &l), RING_ERR_TIMEOUT);
    const double took = clock_now() - start;
    expect_text_names_peer();
    expect_closed(fds[0]);
    must(took >= 0.25 && took < 2);
    fd_close(&fds[1]);
}

void behaviour_open_rejects_garbage(void)
{
    for (uint64_t round = 0; round < 50; round++) {
        unsigned char noise[4096];
        int fds[2];
        transport_link *l;
        ends_sockets(fds);
        payload_fill(noise, round, sizeof noise);
        must(send(fds[1], noise, sizeof noise, MSG_NOSIGNAL) == (ssize_t)sizeof noise);
        must_be(end_try_open(RANK_A, TRANSPORT_COLLECTIVE, fds[0], 1.0, &l), RING_ERR_PEER);
        expect_text_names_peer();
        expect_closed(fds[0]);
        fd_close(&fds[1]);
    }
}

void behaviour_open_notices_closed_peer(void)
{
    int fds[2];
    transport_link *l;
    ends_sockets(fds);
    fd_close(&fds[1]);
    must_be(end_try_open(RANK_A, TRANSPORT_COLLECTIVE, fds[0], PATIENCE, &l), RING_ERR_PEER);
    expect_text_names_peer();
    expect_closed(fds[0]);
}

static int wrong_lane_fd;

static void *open_wrong_lane(void *status)
{
    transport_link *l;
    *(ring_status *)status =
        end_try_open(RANK_B, TRANSPORT_POINT_TO_POINT, wrong_lane_fd, 2.0, &l);
    return NULL;
}

void behaviour_open_rejects_wrong_lane(void)
{
    int fds[2];
    pthread_t thread;
    ring_status other = RING_OK;
    transport_link *l;
    ends_sockets(fds);
    wrong_lane_fd = fds[1];
    must(pthread_create(&thread, NULL, open_wrong_lane, &other) == 0);
    must_be(end_try_open(RANK_A, TRANSPORT_COLLECTIVE, fds[0], 2.0, &l), RING_ERR_PEER);
    expect_text_names_peer();
    must(pthread_join(thread, NULL) == 0 && other == RING_ERR_PEER);
}

/* SPDX-License-Identifier: Apache-2.0
 * Tests open() against a peer that is silent, has ended, or is hostile. */
#include "conformance.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Opens a link and peeks for frames for a while. The link owns the socket, even if it fails. */
static ring_status open_and_look(int fd, double seconds)
{
    const transport_peer peer = {.rank = RANK_A, .peer = RANK_B, .fd = fd};
    const double end = clock_now() + seconds;
    const transport_frame *frame;
    const void *payload;
    transport_link *l;
    RING_TRY(ends_transport()->open(&peer, &l));
    ring_status status;
    while ((status = l->transport->peek(l, &frame, &payload)) == RING_IN_PROGRESS &&
           clock_now() < end)
        clock_sleep(1e-5);
    must(status == RING_IN_PROGRESS || strstr(fail_text(), "rank 42") != NULL);
    end_close(l);
    must(fcntl(fd, F_GETFD) == -1 && errno == EBADF);
    return status;
}

void behaviour_open_does_not_wait(void)
{
    int fds[2];
    ends_sockets(fds);
    const double start = clock_now();
    must_be(open_and_look(fds[0], 0), RING_IN_PROGRESS);
    must(clock_now() - start < 2);
    fd_close(&fds[1]);
}

void behaviour_open_rejects_garbage(void)
{
    for (uint64_t round = 0; round < 50; round++) {
        unsigned char noise[4096];
        int fds[2];
        ends_sockets(fds);
        payload_fill(noise, round, sizeof noise);
        must(send(fds[1], noise, sizeof noise, MSG_NOSIGNAL) == (ssize_t)sizeof noise);
        const ring_status status = open_and_look(fds[0], PATIENCE);
        must(status == RING_ERR_PEER || status == RING_ERR_SYSTEM);
        fd_close(&fds[1]);
    }
}

void behaviour_open_notices_closed_peer(void)
{
    int fds[2];
    ends_sockets(fds);
    fd_close(&fds[1]);
    must_be(open_and_look(fds[0], PATIENCE), RING_ERR_PEER);
}

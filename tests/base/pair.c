/* SPDX-License-Identifier: Apache-2.0
 * Opening links for tests. */
#include "pair.h"

#include <dirent.h>
#include <sys/socket.h>

#include "unit_test.h"

static const double patience = 20;

static ring_status open_and_wait(opening *o)
{
    ring_status status;
    RING_TRY(o->transport->open(&o->peer, &o->link));
    while ((status = o->transport->progress(o->link)) == RING_IN_PROGRESS &&
           clock_now() < o->deadline)
        clock_sleep(1e-4);
    if (status == RING_OK)
        return RING_OK;
    o->transport->close(o->link);
    return status == RING_IN_PROGRESS ? RING_ERR_TIMEOUT : status;
}

static void *open_on_thread(void *context)
{
    opening *o = context;
    o->status = open_and_wait(o);
    if (o->status != RING_OK)
        (void)text_format(o->text, sizeof o->text, "%s", fail_text());
    return NULL;
}

void opening_start(opening *o, const transport *t, int rank, int fd, double seconds)
{
    *o = (opening){.transport = t,
                   .peer = {.rank = rank, .peer = 1 - rank, .fd = fd},
                   .deadline = clock_now() + seconds};
    assert_int_equal(pthread_create(&o->thread, NULL, open_on_thread, o), 0);
}

ring_status opening_end(opening *o)
{
    pthread_join(o->thread, NULL);
    return o->status;
}

void pair_sockets(int fds[2])
{
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
}

void pair_open(const transport *t, transport_link *ends[2])
{
    int fds[2];
    opening o[2];
    pair_sockets(fds);
    for (int rank = 0; rank < 2; rank++)
        opening_start(&o[rank], t, rank, fds[rank], patience);
    for (int rank = 0; rank < 2; rank++) {
        const ring_status status = opening_end(&o[rank]);
        if (status != RING_OK)
            fail_msg("%s", o[rank].text);
        ends[rank] = o[rank].link;
    }
}

void pair_close(transport_link *ends[2])
{
    for (int rank = 0; rank < 2; rank++)
        if (ends[rank] != NULL)
            ends[rank]->transport->close(ends[rank]);
}

size_t pair_count_fds(void)
{
    size_t count = 0;
    DIR *folder = opendir("/proc/self/fd");
    assert_non_null(folder);
    while (readdir(folder) != NULL)
        count++;
    closedir(folder);
    return count;
}

const transport_frame *pair_receive(transport_link *l, const void **payload)
{
    const transport_frame *frame = NULL;
    const double end = clock_now() + patience;
    while (l->transport->peek(l, &frame, payload) == RING_IN_PROGRESS && clock_now() < end)
        assert_int_equal(l->transport->progress(l), RING_OK);
    assert_non_null(frame);
    return frame;
}

ring_status pair_await_broken(transport_link *l)
{
    const double end = clock_now() + patience;
    ring_status status = RING_OK;
    while (status == RING_OK && clock_now() < end)
        status = l->transport->progress(l);
    return status;
}

/* SPDX-License-Identifier: Apache-2.0
 * Output of ranks, and input of rank 0. */
#include "local_ranks_inside.h"

#include <errno.h>
#include <unistd.h>

enum {
    READ_BYTES = 65536,
    PIPE_READS_MAX = 32 /* 2 MiB: more than any pipe holds, so less than all of a busy writer's */
};

void local_ranks_close_stream(stream *s, bool tell)
{
    if (s->fd < 0)
        return;
    fd_close(&s->fd);
    if (tell)
        s->owner->events.output(s->owner->events.context, s->owner->first_rank + s->index,
                                s->number, NULL, 0);
}

void local_ranks_close_rank(rank_slot *rank)
{
    for (int i = 0; i < STREAMS; i++)
        fd_close(&rank->streams[i].fd);
}

/* @return true if there may be more to read now. */
static bool read_some(stream *s)
{
    static char buffer[READ_BYTES];
    if (s->fd < 0)
        return false;
    const ssize_t got = read(s->fd, buffer, sizeof buffer);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (got <= 0) {
        local_ranks_close_stream(s, true);
        return false;
    }
    const launch_events *events = &s->owner->events;
    if (!events->output(events->context, s->owner->first_rank + s->index, s->number, buffer,
                        (size_t)got))
        local_ranks_close_stream(s, false);
    return true;
}

static void read_stream(void *context)
{
    read_some(context);
}

void local_ranks_read_rest(rank_slot *rank)
{
    for (int i = 0; i < STREAMS; i++) {
        int reads = PIPE_READS_MAX;
        while (reads-- > 0 && read_some(&rank->streams[i]))
            continue;
    }
}

static void feed_rank(void *context)
{
    local_ranks *c = context;
    if (c->input_fd < 0)
        return;
    const ssize_t put = write(c->input_fd, bytes_head(&c->input), bytes_count(&c->input));
    if (put >= 0)
        bytes_drop(&c->input, (size_t)put);
    else if (errno != EAGAIN && errno != EINTR)
        fd_close(&c->input_fd);
}

bool local_ranks_hungry(const host_ranks *h)
{
    const local_ranks *c = (const local_ranks *)h;
    return c->input_fd >= 0 && bytes_count(&c->input) == 0;
}

void local_ranks_feed(host_ranks *h, const char *data, size_t count)
{
    local_ranks *c = (local_ranks *)h;
    if (count == 0)
        fd_close(&c->input_fd);
    if (c->input_fd >= 0)
        bytes_add(&c->input, data, count);
}

void local_ranks_mute(host_ranks *h, int rank, int number)
{
    local_ranks *c = (local_ranks *)h;
    if (rank >= c->first_rank && rank < c->first_rank + c->count)
        local_ranks_close_stream(&c->ranks[rank - c->first_rank].streams[number == 1 ? 0 : 1],
                                 false);
}

void local_ranks_watch(host_ranks *h, poll_set *set)
{
    local_ranks *c = (local_ranks *)h;
    bool ready[STREAMS];
    for (int i = 0; i < STREAMS; i++)
        ready[i] = c->events.ready(c->events.context, i + 1);
    for (int i = 0; i < c->count; i++) {
        for (int k = 0; k < STREAMS; k++) {
            stream *s = &c->ranks[i].streams[k];
            if (s->fd >= 0 && ready[k])
                poll_set_add(set, s->fd, POLLIN, read_stream, s);
        }
    }
    if (c->input_fd >= 0 && bytes_count(&c->input) > 0)
        poll_set_add(set, c->input_fd, POLLOUT, feed_rank, c);
}

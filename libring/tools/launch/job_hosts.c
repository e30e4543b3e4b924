/* SPDX-License-Identifier: Apache-2.0
 * Applies operations to all ranks of a job, one host after the other: other hosts through
 * remote_ranks, this host through local_ranks. */
#include "job_hosts.h"

#include "local_ranks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

ring_status job_hosts_connect(job_hosts *t, const setup *plan, const options *o,
                              const rank_events *events, console *c)
{
    t->hosts = memory_grow(NULL, plan->places.count, sizeof *t->hosts);
    for (size_t i = 0; i < plan->places.count; i++) {
        const share *s = &plan->places.shares[i];
        texts command = {0};
        if (s->local || plan->alone)
            continue;
        remote_command(s->host, o->ssh_port, plan->ringrun, &command);
        const ring_status status = remote_open(s, &command, events, c, &t->hosts[t->count++]);
        t->others = t->count;
        texts_free(&command);
        RING_TRY(status);
    }
    return RING_OK;
}

bool job_hosts_ready(const job_hosts *t)
{
    for (size_t i = 0; i < t->others; i++) {
        if (!t->hosts[i]->ready)
            return false;
    }
    return true;
}

void job_hosts_silent_hosts(const job_hosts *t, char *out, size_t size)
{
    out[0] = '\0';
    for (size_t i = 0; i < t->others; i++) {
        const size_t used = strlen(out);
        if (!t->hosts[i]->ready && !text_format(out + used, size - used, "%s%s",
                                                used > 0 ? ", " : "", t->hosts[i]->s->host))
            return;
    }
}

ring_status job_hosts_start(job_hosts *t, const setup *plan, const int stdio[3],
                            const rank_events *events)
{
    for (size_t i = 0; i < t->others; i++)
        remote_start(t->hosts[i], &plan->j);
    if (plan->here == NULL)
        return RING_OK;
    RING_TRY(local_ranks_start(&plan->j, plan->here, stdio, events, &t->hosts[t->count]));
    t->count++;
    return RING_OK;
}

void job_hosts_free(job_hosts *t)
{
    for (size_t i = t->count; i > 0; i--)
        t->hosts[i - 1]->ops->free(t->hosts[i - 1]);
    free(t->hosts);
    *t = (job_hosts){0};
}

void job_hosts_watch(job_hosts *t, poll_set *set)
{
    for (size_t i = 0; i < t->count; i++)
        t->hosts[i]->ops->watch(t->hosts[i], set);
}

void job_hosts_tick(job_hosts *t)
{
    t->due = HUGE_VAL;
    t->alive = 0;
    t->done = true;
    t->hungry = NULL;
    const bool children = t->children;
    t->children = false;
    for (size_t i = 0; i < t->count; i++) {
        host_ranks *h = t->hosts[i];
        h->ops->tick(h, children);
        t->due = fmin(t->due, h->due);
        t->alive += h->alive;
        t->done = t->done && h->done;
        t->hungry = h->hungry ? h : t->hungry;
    }
}

void job_hosts_order(job_hosts *t, enum frame_type type, int number)
{
    for (size_t i = 0; i < t->count; i++)
        t->hosts[i]->ops->order(t->hosts[i], &(frame){.type = type, .rank = number});
}

void job_hosts_cut(job_hosts *t)
{
    for (size_t i = 0; i < t->others; i++)
        t->hosts[i]->ops->order(t->hosts[i], &(frame){.type = FRAME_KILL});
}

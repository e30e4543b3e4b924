/* SPDX-License-Identifier: Apache-2.0
 * Operations on all ranks, host by host. */
#include "job_hosts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Start and end ------------------------------------------------------------------------ */

ring_status job_hosts_connect(job_hosts *t, const setup *plan, const options *o,
                              const launch_events *events, console *c)
{
    t->hosts = memory_grow(NULL, plan->places.count, sizeof *t->hosts);
    for (size_t i = plan->first; i < plan->end; i++) {
        const share *s = &plan->places.shares[i];
        texts command = {0};
        if (s->local)
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
        if (!remote_ready(t->hosts[i]))
            return false;
    }
    return true;
}

const char *job_hosts_address(const job_hosts *t)
{
    return remote_address(t->hosts[0]);
}

void job_hosts_silent_hosts(const job_hosts *t, const setup *plan, char *out, size_t size)
{
    size_t used = 0, next = 0;
    out[0] = '\0';
    for (size_t i = plan->first; i < plan->end; i++) {
        const share *s = &plan->places.shares[i];
        if (s->local || remote_ready(t->hosts[next++]))
            continue;
        if (!text_format(out + used, size - used, "%s%s", used > 0 ? ", " : "", s->host))
            return;
        used = strlen(out);
    }
}

ring_status job_hosts_start(job_hosts *t, const setup *plan, const int stdio[3],
                            const launch_events *events)
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

/* ---- The loop's questions ----------------------------------------------------------------- */

void job_hosts_watch(job_hosts *t, poll_set *set)
{
    for (size_t i = 0; i < t->count; i++)
        t->hosts[i]->ops->watch(t->hosts[i], set);
}

void job_hosts_collect(job_hosts *t)
{
    for (size_t i = 0; i < t->count; i++)
        t->hosts[i]->ops->collect(t->hosts[i]);
}

void job_hosts_tick(job_hosts *t)
{
    for (size_t i = 0; i < t->count; i++)
        t->hosts[i]->ops->tick(t->hosts[i]);
}

double job_hosts_due(const job_hosts *t)
{
    double due = HUGE_VAL;
    for (size_t i = 0; i < t->count; i++)
        due = fmin(due, t->hosts[i]->ops->due(t->hosts[i]));
    return due;
}

int job_hosts_alive(const job_hosts *t)
{
    int alive = 0;
    for (size_t i = 0; i < t->count; i++)
        alive += t->hosts[i]->ops->alive(t->hosts[i]);
    return alive;
}

bool job_hosts_done(const job_hosts *t)
{
    for (size_t i = 0; i < t->count; i++) {
        if (!t->hosts[i]->ops->done(t->hosts[i]))
            return false;
    }
    return true;
}

/* ---- Orders to all ranks ------------------------------------------------------------------ */

void job_hosts_signal(job_hosts *t, int signal_number)
{
    for (size_t i = 0; i < t->count; i++)
        t->hosts[i]->ops->signal(t->hosts[i], signal_number);
}

void job_hosts_stop(job_hosts *t)
{
    for (size_t i = 0; i < t->count; i++)
        t->hosts[i]->ops->stop(t->hosts[i]);
}

void job_hosts_cut(job_hosts *t)
{
    for (size_t i = 0; i < t->others; i++)
        t->hosts[i]->ops->kill(t->hosts[i]);
}

void job_hosts_kill(job_hosts *t)
{
    for (size_t i = 0; i < t->count; i++)
        t->hosts[i]->ops->kill(t->hosts[i]);
}

/* ---- Input of rank 0, which is on one of them --------------------------------------------- */

static host_ranks *hungry_host(const job_hosts *t)
{
    for (size_t i = 0; i < t->count; i++) {
        if (t->hosts[i]->ops->hungry(t->hosts[i]))
            return t->hosts[i];
    }
    return NULL;
}

bool job_hosts_hungry(const job_hosts *t)
{
    return hungry_host(t) != NULL;
}

void job_hosts_feed(job_hosts *t, const char *data, size_t count)
{
    host_ranks *h = hungry_host(t);
    if (h != NULL)
        h->ops->feed(h, data, count);
}

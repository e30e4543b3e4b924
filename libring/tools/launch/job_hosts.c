/* SPDX-License-Identifier: Apache-2.0
 * What is done to all ranks is done here and to each other host. */
#include "job_hosts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Start and end ------------------------------------------------------------------------ */

ring_status job_hosts_connect(job_hosts *t, const setup *plan, const options *o,
                              const launch_events *events, console *c)
{
    t->remotes = memory_grow(NULL, plan->places.count, sizeof *t->remotes);
    for (size_t i = plan->first; i < plan->end; i++) {
        const share *s = &plan->places.shares[i];
        texts command = {0};
        if (s->local)
            continue;
        remote_command(s->host, o->ssh_port, plan->ringrun, &command);
        const ring_status status = remote_open(s, &command, events, c,
                                               &t->remotes[t->remote_count++]);
        texts_free(&command);
        RING_TRY(status);
    }
    return RING_OK;
}

bool job_hosts_ready(const job_hosts *t)
{
    for (size_t i = 0; i < t->remote_count; i++) {
        if (!remote_ready(t->remotes[i]))
            return false;
    }
    return true;
}

void job_hosts_silent_hosts(const job_hosts *t, const setup *plan, char *out, size_t size)
{
    size_t used = 0, next = 0;
    out[0] = '\0';
    for (size_t i = plan->first; i < plan->end; i++) {
        const share *s = &plan->places.shares[i];
        if (s->local || remote_ready(t->remotes[next++]))
            continue;
        if (!text_format(out + used, size - used, "%s%s", used > 0 ? ", " : "", s->host))
            return;
        used = strlen(out);
    }
}

static const share *local_share(const setup *plan)
{
    for (size_t i = plan->first; i < plan->end; i++) {
        if (plan->places.shares[i].local)
            return &plan->places.shares[i];
    }
    return NULL;
}

ring_status job_hosts_start(job_hosts *t, const setup *plan, const int stdio[3],
                            const launch_events *events)
{
    const share *here = local_share(plan);
    for (size_t i = 0; i < t->remote_count; i++)
        remote_start(t->remotes[i], &plan->j);
    return here != NULL ? local_ranks_start(&plan->j, here, stdio, events, &t->local_ranks)
                        : RING_OK;
}

void job_hosts_free(job_hosts *t)
{
    local_ranks_free(t->local_ranks);
    for (size_t i = 0; i < t->remote_count; i++)
        remote_free(t->remotes[i]);
    free(t->remotes);
    *t = (job_hosts){0};
}

/* ---- The loop's questions ----------------------------------------------------------------- */

void job_hosts_watch(job_hosts *t, poll_set *set)
{
    if (t->local_ranks != NULL)
        local_ranks_watch(t->local_ranks, set);
    for (size_t i = 0; i < t->remote_count; i++)
        remote_watch(t->remotes[i], set);
}

void job_hosts_collect(job_hosts *t)
{
    if (t->local_ranks != NULL)
        local_ranks_collect(t->local_ranks);
    for (size_t i = 0; i < t->remote_count; i++)
        remote_collect(t->remotes[i]);
}

void job_hosts_tick(job_hosts *t)
{
    if (t->local_ranks != NULL)
        local_ranks_tick(t->local_ranks);
}

double job_hosts_due(const job_hosts *t)
{
    return t->local_ranks != NULL ? local_ranks_due(t->local_ranks) : HUGE_VAL;
}

int job_hosts_alive(const job_hosts *t)
{
    int alive = t->local_ranks != NULL ? local_ranks_alive(t->local_ranks) : 0;
    for (size_t i = 0; i < t->remote_count; i++)
        alive += remote_alive(t->remotes[i]);
    return alive;
}

bool job_hosts_done(const job_hosts *t)
{
    for (size_t i = 0; i < t->remote_count; i++) {
        if (!remote_done(t->remotes[i]))
            return false;
    }
    return t->local_ranks == NULL || local_ranks_done(t->local_ranks);
}

/* ---- Orders to all ranks ------------------------------------------------------------------ */

void job_hosts_signal(job_hosts *t, int signal_number)
{
    if (t->local_ranks != NULL)
        local_ranks_signal(t->local_ranks, signal_number);
    for (size_t i = 0; i < t->remote_count; i++)
        remote_signal(t->remotes[i], signal_number);
}

void job_hosts_stop(job_hosts *t)
{
    if (t->local_ranks != NULL)
        local_ranks_stop(t->local_ranks);
    for (size_t i = 0; i < t->remote_count; i++)
        remote_stop(t->remotes[i]);
}

void job_hosts_cut(job_hosts *t)
{
    for (size_t i = 0; i < t->remote_count; i++)
        remote_kill(t->remotes[i]);
}

void job_hosts_kill(job_hosts *t)
{
    if (t->local_ranks != NULL)
        local_ranks_kill(t->local_ranks);
    job_hosts_cut(t);
}

/* ---- Input of rank 0, here or on the first other host ------------------------------------- */

bool job_hosts_hungry(const job_hosts *t)
{
    return (t->local_ranks != NULL && local_ranks_hungry(t->local_ranks)) ||
           (t->remote_count > 0 && remote_hungry(t->remotes[0]));
}

void job_hosts_feed(job_hosts *t, const char *data, size_t count)
{
    if (t->local_ranks != NULL && local_ranks_hungry(t->local_ranks))
        local_ranks_feed(t->local_ranks, data, count);
    else if (t->remote_count > 0 && remote_hungry(t->remotes[0]))
        remote_feed(t->remotes[0], data, count);
}

/* SPDX-License-Identifier: Apache-2.0
 * What is done to all ranks is done here and to each other host. */
#include "team.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Start and end ------------------------------------------------------------------------ */

ring_status team_connect(team *t, const setup *plan, const options *o,
                         const launch_events *events, console *c)
{
    t->remotes = memory_grow(NULL, plan->places.count, sizeof *t->remotes);
    for (size_t i = plan->first; i < plan->end; i++) {
        const share *s = &plan->places.shares[i];
        texts command = {0};
        if (s->local)
            continue;
        remote_command(s->host, o->ssh_port, plan->ringrun, &command);
        const ring_status status =
            remote_open(s, &command, events, c, &t->remotes[t->remote_count++]);
        texts_free(&command);
        RING_TRY(status);
    }
    return RING_OK;
}

bool team_ready(const team *t)
{
    for (size_t i = 0; i < t->remote_count; i++) {
        if (!remote_ready(t->remotes[i]))
            return false;
    }
    return true;
}

void team_silent_hosts(const team *t, const setup *plan, char *out, size_t size)
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

ring_status team_start(team *t, const setup *plan, const int stdio[3],
                       const launch_events *events)
{
    const share *here = local_share(plan);
    for (size_t i = 0; i < t->remote_count; i++)
        remote_start(t->remotes[i], &plan->j);
    return here != NULL ? crew_start(&plan->j, here, stdio, events, &t->crew) : RING_OK;
}

void team_free(team *t)
{
    crew_free(t->crew);
    for (size_t i = 0; i < t->remote_count; i++)
        remote_free(t->remotes[i]);
    free(t->remotes);
    *t = (team){0};
}

/* ---- The loop's questions ----------------------------------------------------------------- */

void team_watch(team *t, poll_set *set)
{
    if (t->crew != NULL)
        crew_watch(t->crew, set);
    for (size_t i = 0; i < t->remote_count; i++)
        remote_watch(t->remotes[i], set);
}

void team_collect(team *t)
{
    if (t->crew != NULL)
        crew_collect(t->crew);
    for (size_t i = 0; i < t->remote_count; i++)
        remote_collect(t->remotes[i]);
}

void team_tick(team *t)
{
    if (t->crew != NULL)
        crew_tick(t->crew);
}

double team_due(const team *t)
{
    return t->crew != NULL ? crew_due(t->crew) : HUGE_VAL;
}

int team_alive(const team *t)
{
    int alive = t->crew != NULL ? crew_alive(t->crew) : 0;
    for (size_t i = 0; i < t->remote_count; i++)
        alive += remote_alive(t->remotes[i]);
    return alive;
}

bool team_done(const team *t)
{
    for (size_t i = 0; i < t->remote_count; i++) {
        if (!remote_done(t->remotes[i]))
            return false;
    }
    return t->crew == NULL || crew_done(t->crew);
}

/* ---- Orders to all ranks ------------------------------------------------------------------ */

void team_signal(team *t, int signal_number)
{
    if (t->crew != NULL)
        crew_signal(t->crew, signal_number);
    for (size_t i = 0; i < t->remote_count; i++)
        remote_signal(t->remotes[i], signal_number);
}

void team_stop(team *t)
{
    if (t->crew != NULL)
        crew_stop(t->crew);
    for (size_t i = 0; i < t->remote_count; i++)
        remote_stop(t->remotes[i]);
}

void team_cut(team *t)
{
    for (size_t i = 0; i < t->remote_count; i++)
        remote_kill(t->remotes[i]);
}

void team_kill(team *t)
{
    if (t->crew != NULL)
        crew_kill(t->crew);
    team_cut(t);
}

/* ---- Input of rank 0, here or on the first other host ------------------------------------- */

bool team_hungry(const team *t)
{
    return (t->crew != NULL && crew_hungry(t->crew)) ||
           (t->remote_count > 0 && remote_hungry(t->remotes[0]));
}

void team_feed(team *t, const char *data, size_t count)
{
    if (t->crew != NULL && crew_hungry(t->crew))
        crew_feed(t->crew, data, count);
    else if (t->remote_count > 0 && remote_hungry(t->remotes[0]))
        remote_feed(t->remotes[0], data, count);
}

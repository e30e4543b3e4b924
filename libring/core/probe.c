/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements ring_barrier_probe(), a barrier that reports missing ranks without ending the
 * communicator. It uses only the control connections, so it opens no links and does not disturb
 * the calls in flight.
 */
#include "call_group.h"
#include "numbers.h"

#include <stdlib.h>
#include <string.h>

/* @param[out] missing  may be NULL. @return the number of missing ranks. */
static int list_missing(const ring_comm *comm, const bool *came, int *missing)
{
    int count = 0;
    for (int r = 0; r < comm->ranks; r++) {
        if (came[r])
            continue;
        if (missing != NULL)
            missing[count] = r;
        count++;
    }
    return count;
}

static ring_status probe(ring_comm *comm, double seconds, bool *came, int *missing, int *count)
{
    char names[300];
    if (came == NULL)
        return fail(RING_ERR_MEMORY, "ring_barrier_probe: out of memory while listing %d ranks",
                    comm->ranks);
    const ring_status status = control_meet(comm->world, clock_now() + seconds, came);
    if (status == RING_OK)
        return RING_OK;
    if (status != RING_IN_PROGRESS) {
        text_format(names, sizeof names, "%s", fail_text());
        RING_TRY(comm_check_alive(comm));
        return fail(status, "ring_barrier_probe: %s", names);
    }
    const int absent = list_missing(comm, came, missing);
    if (count != NULL)
        *count = absent;
    names[0] = '\0'; /* becomes "1 (host7), 4 (host9)", as far as there is room */
    bool fits = true;
    for (int r = 0; r < comm->ranks && fits; r++)
        if (!came[r])
            fits = text_append(names, sizeof names, "%s%d (%s)", names[0] != '\0' ? ", " : "", r,
                               comm_host(comm, r));
    return fail(RING_IN_PROGRESS,
                "ring_barrier_probe: timed out; %d of %d ranks had not called: %s", absent,
                comm->ranks, names);
}

ring_status ring_barrier_probe(ring_comm *comm, double seconds, int *missing, int *count)
{
    if (comm == NULL || !(seconds >= 0))
        return fail(RING_ERR_ARGUMENT, "ring_barrier_probe: comm is NULL, or seconds is negative");
    if (count != NULL)
        *count = 0;
    RING_TRY(comm_check_own(comm, "barrier_probe"));
    RING_TRY(call_group_refuse("barrier_probe"));
    RING_TRY(comm_check_alive(comm));
    bool *came = calloc((size_t)comm->ranks, sizeof *came);
    if (seconds > NUMBER_SECONDS_MOST)
        seconds = NUMBER_SECONDS_MOST;
    const ring_status status = probe(comm, seconds, came, missing, count);
    free(came);
    return status;
}

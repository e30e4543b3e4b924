/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements ring_comm_create() and ring_comm_exclude(), which only the members of the new
 * communicator call. The members agree on an id, and each creates its part of the communicator. No
 * member returns before all of them have created their parts.
 */
#include "call_group.h"
#include "init.h"

#include <stdlib.h>

/* The tags of lists of ranks that remain; callers' tags are 0 or more. */
enum { EXCLUDE_TAG = -1, EXCLUDE_ABORT_TAG = -2 };

/* ---- Lists --------------------------------------------------------------------------------- */

static bool is_listed(const int *ranks, int count, int rank)
{
    for (int i = 0; i < count; i++)
        if (ranks[i] == rank)
            return true;
    return false;
}

/* Compares all pairs instead of allocating memory, so that a rank without free memory still takes
 * part in the agreement and the other members learn of its failure. */
static ring_status check_list(const ring_comm *parent, const int *ranks, int count,
                              const char *call)
{
    for (int i = 0; i < count; i++) {
        if (ranks[i] < 0 || ranks[i] >= parent->ranks)
            return fail(RING_ERR_ARGUMENT,
                        "ring_%s: rank %d is not in the parent, which has ranks 0 to %d", call,
                        ranks[i], parent->ranks - 1);
        if (is_listed(ranks, i, ranks[i]))
            return fail(RING_ERR_ARGUMENT, "ring_%s: rank %d is in the list twice", call, ranks[i]);
    }
    return RING_OK;
}

static ring_status check_call(const ring_comm *parent, const int *ranks, int count, ring_comm **out,
                              const char *call)
{
    if (parent == NULL || out == NULL)
        return fail(RING_ERR_ARGUMENT, "ring_%s: parent or out is NULL", call);
    *out = NULL;
    RING_TRY(comm_check_own(parent, call));
    RING_TRY(call_group_refuse(call));
    if (count < 0 || count > parent->ranks || (ranks == NULL && count > 0))
        return fail(RING_ERR_ARGUMENT,
                    "ring_%s: count is %d%s; expected a list of 0 to %d ranks of the parent", call,
                    count, ranks == NULL ? " and ranks is NULL" : "", parent->ranks);
    return check_list(parent, ranks, count, call);
}

/* ---- Making -------------------------------------------------------------------------------- */

static ring_status make(ring_comm *parent, control_list *list, ring_comm **out)
{
    uint64_t id;
    if (!list->despite_end)
        RING_TRY(comm_check_alive(parent));
    list->deadline = clock_now() + parent->settings.timeout;
    RING_TRY(control_agree_id(parent->world, list, &id));
    const ring_status mine = comm_derive(parent, id, list->ranks, list->count, out);
    list->deadline = clock_now() + parent->settings.timeout;
    return control_agree_made(parent->world, list, id, mine == RING_OK ? (*out)->world : NULL,
                              mine);
}

static ring_status make_all(ring_comm *parent, control_list *list, ring_comm **out,
                            const char *call)
{
    ring_status status = make(parent, list, out);
    if (status == RING_OK)
        status = comm_open_seat(parent, out);
    else
        comm_undo(out, status);
    return status == RING_OK ? RING_OK : fail(status, "ring_%s: %s", call, fail_text());
}

/* ---- For callers --------------------------------------------------------------------------- */

ring_status ring_comm_create(ring_comm *parent, const int *ranks, int count, int tag,
                             ring_comm **out)
{
    RING_TRY(check_call(parent, ranks, count, out, "comm_create"));
    if (tag < 0)
        return fail(RING_ERR_ARGUMENT, "ring_comm_create: tag is %d; it must be 0 or more", tag);
    if (!is_listed(ranks, count, parent->rank))
        return fail(RING_ERR_ARGUMENT, "ring_comm_create: the list does not contain this rank (%d)",
                    parent->rank);
    control_list list = {.ranks = ranks, .count = count, .tag = tag};
    return make_all(parent, &list, out, "comm_create");
}

/* Ends the communicator and this rank's calls. Once all remaining ranks have done so, none of them
 * accesses the buffers of these calls any more. */
static ring_status end_calls(ring_comm *comm)
{
    comm_lock(comm);
    failure_await(comm);
    comm_unlock(comm);
    return ring_comm_abort(comm, "ring_comm_exclude_abort() leaves ranks out of it");
}

static ring_status exclude(ring_comm *comm, const int *ranks, int count, ring_comm **out,
                           bool aborts)
{
    const char *call = aborts ? "comm_exclude_abort" : "comm_exclude";
    RING_TRY(check_call(comm, ranks, count, out, call));
    if (is_listed(ranks, count, comm->rank))
        return fail(RING_ERR_ARGUMENT,
                    "ring_%s: the list contains this rank (%d); only ranks that are not in the "
                    "list may call ring_%s()",
                    call, comm->rank, call);
    int *staying = malloc((size_t)comm->ranks * sizeof *staying);
    if (staying == NULL)
        return fail(RING_ERR_MEMORY, "ring_%s: out of memory while listing %d ranks", call,
                    comm->ranks);
    control_list list = {.ranks = staying,
                         .tag = aborts ? EXCLUDE_ABORT_TAG : EXCLUDE_TAG,
                         .despite_end = aborts};
    for (int r = 0; r < comm->ranks; r++)
        if (!is_listed(ranks, count, r))
            staying[list.count++] = r;
    ring_status status = aborts ? end_calls(comm) : RING_OK;
    if (status == RING_OK)
        status = make_all(comm, &list, out, call);
    free(staying);
    return status;
}

ring_status ring_comm_exclude(ring_comm *comm, const int *ranks, int count, ring_comm **out)
{
    return exclude(comm, ranks, count, out, false);
}

ring_status ring_comm_exclude_abort(ring_comm *comm, const int *ranks, int count, ring_comm **out)
{
    return exclude(comm, ranks, count, out, true);
}

/* SPDX-License-Identifier: Apache-2.0
 * Attaches the ranks of a communicator to their accelerators and connects these with each other. A
 * seat is a rank's place on its accelerator; either all ranks get one or none does. */
#include "device_seats.h"

#include "calls.h"
#include "device_calls.h"

#include <stdlib.h>
#include <string.h>

static bool all_have_one(const ring_comm *comm)
{
    for (int r = 0; r < comm->ranks; r++)
        if (comm->world->cards[r].runs_programs == 0)
            return false;
    return comm->ranks > 1 && comm->plan_world.hosts == 1;
}

/* A rank's result and card in an exchange; ranks without a seat take part, too. */
typedef struct seat_notice {
    int32_t status;
    accelerator_card card;
} seat_notice;

static ring_status first_failure(const seat_notice *notices, int ranks, const char *did)
{
    for (int r = 0; r < ranks; r++)
        if (notices[r].status != RING_OK)
            return fail((ring_status)notices[r].status, "rank %d could not %s", r, did);
    return RING_OK;
}

static ring_status exchange(ring_comm *comm, seat_notice *notices, ring_status mine)
{
    notices[comm->rank].status = (int32_t)mine;
    return call_all_gather(comm, notices, sizeof *notices);
}

/* Attaches this rank. @param[out] card  the facts that the other ranks need to connect to it. */
static ring_status attach(const ring_comm *comm, struct device_calls *d, accelerator_card *card)
{
    RING_TRY(d->by->programs->attach(d->by, comm->rank, comm->ranks, comm->settings.device_blocks,
                                     &d->seat, card));
    memcpy(card->process, comm->world->cards[comm->rank].process, sizeof card->process);
    return RING_OK;
}

static ring_status connect_all(struct device_calls *d, const seat_notice *notices, int ranks)
{
    accelerator_card *cards = malloc((size_t)ranks * sizeof *cards);
    if (cards == NULL)
        return fail(RING_ERR_MEMORY, "connecting to the other GPUs");
    for (int r = 0; r < ranks; r++)
        cards[r] = notices[r].card;
    const ring_status status = d->by->programs->connect(d->seat, cards, &d->terms);
    free(cards);
    return status;
}

/* Attaches and connects this rank. It takes part in both exchanges even if its own step failed.
 * @param[out] why  RING_OK, or the reason why no rank gets a seat.
 * @return the result of the exchanges. */
static ring_status attach_and_connect(ring_comm *comm, struct device_calls *d, seat_notice *notices,
                                      ring_status *why)
{
    *why = attach(comm, d, &notices[comm->rank].card);
    RING_TRY(exchange(comm, notices, *why));
    if (*why == RING_OK)
        *why = first_failure(notices, comm->ranks, "attach to its GPU");
    if (*why == RING_OK)
        *why = connect_all(d, notices, comm->ranks);
    RING_TRY(exchange(comm, notices, *why));
    if (*why == RING_OK)
        *why = first_failure(notices, comm->ranks, "connect its GPU to the others");
    return RING_OK;
}

/* Gives the seats back before any run. The first exchange keeps memory from being freed while
 * another rank still reaches it. Freeing waits for all streams of the device, and the second
 * exchange keeps ranks from enqueueing calls there meanwhile. */
static ring_status disconnect(ring_comm *comm, struct device_calls *d, seat_notice *notices)
{
    if (d->seat != NULL)
        d->by->programs->disconnect(d->seat);
    const ring_status status = exchange(comm, notices, RING_OK);
    device_calls_end(d);
    return status == RING_OK ? exchange(comm, notices, RING_OK) : status;
}

/* Keeps the seat if all ranks have one, else gives it back. */
static ring_status open_or_disconnect(ring_comm *comm, struct device_calls *d, seat_notice *notices)
{
    ring_status why;
    const ring_status status = attach_and_connect(comm, d, notices, &why);
    if (status != RING_OK) {
        device_calls_end(d);
        return status;
    }
    if (why != RING_OK) {
        log_info("calls on GPUs are driven by the host: %s", fail_text());
        return disconnect(comm, d, notices);
    }
    log_info("%s runs calls on streams itself, with at most %d blocks", d->by->name,
             d->terms.lanes);
    comm->device_calls = d; /* now other threads may use it */
    return RING_OK;
}

ring_status device_calls_open(ring_comm *comm, const accelerator *a)
{
    if (a == NULL || a->programs == NULL || !all_have_one(comm))
        return RING_OK;
    seat_notice *notices = calloc((size_t)comm->ranks, sizeof *notices);
    struct device_calls *d = calloc(1, sizeof *d);
    if (notices == NULL || d == NULL) {
        free(notices);
        free(d);
        return fail(RING_ERR_MEMORY, "creating the communicator");
    }
    d->by = a;
    const ring_status status = open_or_disconnect(comm, d, notices);
    free(notices);
    return status;
}

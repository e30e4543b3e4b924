/* SPDX-License-Identifier: Apache-2.0
 * Attaches the ranks of a communicator to their accelerators and connects these with each other. A
 * seat is a rank's place on its accelerator; either all ranks get one or none does. */
#include "device_seats.h"

#include "calls.h"
#include "device_calls.h"
#include "device_proxy.h"
#include "numbers.h"
#include "streams.h"
#include "tuner.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* @return why no rank gets a seat, without any of them trying; NULL: they may try. All ranks of the
 * communicator return the same. */
static const char *find_obstacle(const ring_comm *comm, const ring_comm *parent)
{
    if (comm->ranks == 1)
        return "there is one rank";
    if (parent != NULL && parent->device_calls == NULL)
        return "it drives those of the communicator from which this one is derived";
    for (int r = 0; r < comm->ranks; r++)
        if (comm->world->cards[r].runs_programs == 0)
            return "a rank uses no GPU, or has RING_DEVICE_PROGRAMS=0";
    return NULL;
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

/* ---- Steps in time ------------------------------------------------------------------------ */

/* s: the time in which the driver must answer if RING_INIT_TIMEOUT has the value none. */
#define DRIVER_SECONDS 30.0
/* s: the pause between two looks whether the communicator has failed while the driver is busy. */
#define LOOK_SECONDS 0.02
/* s: the time in which a step may still end after the communicator has failed. */
#define REASON_SECONDS 0.5

typedef enum seat_task { ATTACH, OPEN, CONNECT } seat_task;

/* To attach, open or connect, in a thread of its own. The driver may wait for all streams of the
 * GPU, and one of them may be stopped until the program continues after the start. */
typedef struct seat_step {
    struct seat_step *next; /* of those that ended late */
    pthread_mutex_t lock;
    pthread_cond_t over;
    bool finished, abandoned; /* the thread is done; nothing waits for it, so it ends the step */
    bool failed;              /* it was abandoned because the communicator had failed */
    const accelerator *by;
    seat_task task;
    bool by_rooms; /* see accelerator_programs.connect() */
    int lanes;
    bool far;                /* ranks are on several hosts */
    accelerator_card *cards; /* [ranks], except to attach */
    accelerator_seat *seat;
    accelerator_card card;   /* of an attached seat */
    accelerator_terms terms; /* of a connected one  */
    ring_status status;
    char text[1024];
} seat_step;

/* Steps that ended late, with seats that the next rank to attach to their GPU detaches: until then,
 * the program may have stopped streams. */
static struct {
    pthread_mutex_t lock;
    seat_step *first;
} late = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void free_step(seat_step *s)
{
    if (s->task == ATTACH && s->seat != NULL) /* nothing uses it */
        s->by->programs->detach(s->seat);
    pthread_cond_destroy(&s->over);
    pthread_mutex_destroy(&s->lock);
    free(s->cards);
    free(s);
}

/* Other ranks may use the memory of a seat that they know of. If the communicator has failed, they
 * keep theirs until this seat is detached, as it does until theirs are. Otherwise they disconnect
 * without it, so it is kept. */
static void end_late(seat_step *s)
{
    if (s->seat == NULL || (s->task != ATTACH && !s->failed)) {
        free_step(s);
        return;
    }
    pthread_mutex_lock(&late.lock);
    s->next = late.first;
    late.first = s;
    pthread_mutex_unlock(&late.lock);
}

/* @return a step that ended late on @p by; NULL: there are no more. */
static seat_step *next_late(const accelerator *by)
{
    pthread_mutex_lock(&late.lock);
    seat_step **from = &late.first;
    while (*from != NULL && (*from)->by != by)
        from = &(*from)->next;
    seat_step *s = *from;
    if (s != NULL)
        *from = s->next;
    pthread_mutex_unlock(&late.lock);
    return s;
}

static void detach_late(const accelerator *by)
{
    for (seat_step *s; (s = next_late(by)) != NULL;) {
        by->programs->detach(s->seat);
        s->seat = NULL;
        free_step(s);
    }
}

/* The seat has what it needs of its parent, which may be freed before a late step has begun. */
static void *run_step(void *context)
{
    seat_step *s = context;
    const accelerator_programs *programs = s->by->programs;
    if (s->task == ATTACH) {
        detach_late(s->by);
        s->status = programs->attach(s->seat, s->lanes, s->far, &s->card);
    } else if (s->task == OPEN)
        s->status = programs->open(s->seat, s->cards);
    else
        s->status = programs->connect(s->seat, s->cards, s->by_rooms, &s->terms);
    text_format(s->text, sizeof s->text, "%s", s->status == RING_OK ? "" : fail_text());
    if (s->task == ATTACH && s->status != RING_OK) {
        programs->detach(s->seat); /* in this thread, as it may wait for the driver */
        s->seat = NULL;
    }
    pthread_mutex_lock(&s->lock);
    s->finished = true;
    const bool abandoned = s->abandoned;
    pthread_cond_signal(&s->over);
    pthread_mutex_unlock(&s->lock);
    if (abandoned)
        end_late(s);
    return NULL;
}

static seat_step *new_step(const ring_comm *comm, const struct device_calls *d, seat_task task)
{
    pthread_condattr_t monotonic;
    seat_step *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    pthread_mutex_init(&s->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&s->over, &monotonic);
    pthread_condattr_destroy(&monotonic);
    s->task = task;
    s->by = d->by;
    s->seat = d->seat;
    s->lanes = comm->settings.device_blocks;
    s->far = comm->plan_world.hosts > 1;
    return s;
}

/* Waits until the step has finished, or @p end. Once the communicator has failed, waits for
 * REASON_SECONDS: the step may fail, too, and its text may tell more than that of another rank. */
static bool await_step(const ring_comm *comm, seat_step *s, double end)
{
    bool fine = true;
    pthread_mutex_lock(&s->lock);
    while (!s->finished && clock_now() < end) {
        const double look = clock_now() + LOOK_SECONDS;
        const struct timespec until = {.tv_sec = (time_t)look,
                                       .tv_nsec = (long)((look - (double)(time_t)look) * 1e9)};
        if (fine && !comm_is_fine(comm)) {
            fine = false;
            end = clock_now() + REASON_SECONDS < end ? clock_now() + REASON_SECONDS : end;
        }
        (void)pthread_cond_timedwait(&s->over, &s->lock, &until);
    }
    const bool finished = s->finished;
    s->abandoned = !finished;
    s->failed = !finished && !comm_is_fine(comm);
    pthread_mutex_unlock(&s->lock);
    return finished;
}

/* Runs the step in a thread, and waits for it.
 * @param[out] finished  false: @p s must not be used any more. @return its result. */
static ring_status finish_in_time(ring_comm *comm, seat_step *s, bool *finished)
{
    const double limit = comm->settings.init_timeout;
    const double seconds = limit < NUMBER_NO_LIMIT ? limit / 2 : DRIVER_SECONDS;
    const char *name = s->by->name;
    pthread_t thread;
    *finished = true;
    if (thread_start(&thread, run_step, s) != 0)
        return fail(RING_ERR_SYSTEM, "cannot start a thread");
    *finished = await_step(comm, s, clock_now() + seconds);
    if (*finished)
        pthread_join(thread, NULL);
    else
        pthread_detach(thread);
    if (!*finished)
        RING_TRY(comm_check_alive(comm));
    if (!*finished)
        return fail(
            RING_ERR_TIMEOUT,
            "the driver of %s did not answer within %.3g s (half of RING_INIT_TIMEOUT, if that "
            "is not none); is a stream stopped?",
            name, seconds);
    return s->status == RING_OK ? RING_OK : fail(s->status, "%s", s->text);
}

/* Attaches this rank. @param[out] card  the facts that the other ranks need to connect to it. */
static ring_status attach(ring_comm *comm, struct device_calls *d, const accelerator_seat *parent,
                          accelerator_card *card)
{
    bool finished = true;
    seat_step *s = new_step(comm, d, ATTACH);
    if (s == NULL)
        return fail(RING_ERR_MEMORY, "attaching to a GPU");
    ring_status status = d->by->programs->create(d->by, parent, comm->rank, comm->ranks, &s->seat);
    if (status == RING_OK)
        status = finish_in_time(comm, s, &finished);
    if (!finished)
        return status;
    if (status == RING_OK) {
        d->seat = s->seat;
        s->seat = NULL;
    }
    *card = s->card;
    card->shuts = !comm->settings.p2p;
    card->host = plan_host_of(&comm->plan_world, comm->rank);
    memcpy(card->process, comm->world->cards[comm->rank].process, sizeof card->process);
    free_step(s);
    return status;
}

/* Opens the memory of the other ranks, or connects to it. */
static ring_status reach_all(ring_comm *comm, struct device_calls *d, seat_task task, bool by_rooms,
                             const seat_notice *notices)
{
    seat_step *s = new_step(comm, d, task);
    if (s == NULL || (s->cards = malloc((size_t)comm->ranks * sizeof *s->cards)) == NULL) {
        if (s != NULL)
            free_step(s);
        return fail(RING_ERR_MEMORY, "connecting to the other GPUs");
    }
    s->by_rooms = by_rooms;
    for (int r = 0; r < comm->ranks; r++)
        s->cards[r] = notices[r].card;
    bool finished;
    const ring_status status = finish_in_time(comm, s, &finished);
    if (!finished) {
        d->seat = NULL; /* the thread uses it */
        return status;
    }
    d->terms = s->terms;
    free_step(s);
    return status;
}

/* Exchanges the result of this rank's own step. If the GPU has failed, the exchange fails, too, and
 * the step's reason is returned. */
static ring_status exchange_step(ring_comm *comm, seat_notice *notices, ring_status why)
{
    char text[512];
    text_format(text, sizeof text, "%s", fail_text());
    const ring_status status = exchange(comm, notices, why);
    if (why != RING_OK)
        (void)fail(status == RING_OK ? why : status, "%s", text);
    return status;
}

/* Opens the memory of the other ranks' accelerators, unless the parent's seats have done so.
 * @param[out] by_rooms  true: a rank cannot reach that of another one, and memory of the host is
 * used instead. */
static ring_status open_all(ring_comm *comm, struct device_calls *d, const accelerator_seat *parent,
                            seat_notice *notices, ring_status *why, bool *by_rooms)
{
    *by_rooms = false;
    if (parent != NULL)
        return RING_OK;
    if (*why == RING_OK)
        *why = reach_all(comm, d, OPEN, false, notices);
    RING_TRY(exchange_step(comm, notices, *why));
    if (*why == RING_OK)
        *why = first_failure(notices, comm->ranks, "reach the memory of the others");
    *by_rooms = *why != RING_OK;
    for (int r = 0; r < comm->ranks; r++)
        *by_rooms &= notices[r].status == RING_OK || notices[r].status == RING_ERR_UNSUPPORTED;
    if (*by_rooms) {
        log_info("GPUs communicate through memory of the host: %s", fail_text());
        *why = RING_OK;
    }
    return RING_OK;
}

/* Attaches and connects this rank. It takes part in all exchanges even if its own step failed.
 * @param[out] why  RING_OK, or the reason why no rank gets a seat.
 * @return the result of the exchanges. */
static ring_status attach_and_connect(ring_comm *comm, struct device_calls *d,
                                      const accelerator_seat *parent, seat_notice *notices,
                                      ring_status *why)
{
    bool by_rooms = false;
    *why = attach(comm, d, parent, &notices[comm->rank].card);
    RING_TRY(exchange(comm, notices, *why));
    if (*why == RING_OK)
        *why = first_failure(notices, comm->ranks, "attach to its GPU");
    if (*why == RING_OK)
        RING_TRY(open_all(comm, d, parent, notices, why, &by_rooms));
    if (*why == RING_OK)
        *why = reach_all(comm, d, CONNECT, by_rooms, notices);
    if (*why == RING_OK)
        *why = device_proxy_new(comm, d);
    RING_TRY(exchange_step(comm, notices, *why));
    if (*why == RING_OK)
        *why = first_failure(notices, comm->ranks, "connect its GPU to the others");
    return RING_OK;
}

/* Gives the seats back before any run. The first exchange keeps memory from being freed while
 * another rank still reaches it. Freeing waits for all streams of the device, and the second
 * exchange keeps ranks from enqueueing calls there meanwhile. */
static ring_status disconnect(ring_comm *comm, struct device_calls *d, seat_notice *notices)
{
    device_proxy_free(d); /* its regions end before their memory does */
    if (d->seat != NULL)
        d->by->programs->disconnect(d->seat);
    const ring_status status = exchange(comm, notices, RING_OK);
    device_calls_end(d);
    return status == RING_OK ? exchange(comm, notices, RING_OK) : status;
}

/* Keeps the seat if all ranks have one, else gives it back. */
static ring_status open_or_disconnect(ring_comm *comm, struct device_calls *d,
                                      const accelerator_seat *parent, seat_notice *notices)
{
    ring_status why;
    const ring_status status = attach_and_connect(comm, d, parent, notices, &why);
    if (status != RING_OK) {
        char text[512];
        text_format(text, sizeof text, "%s", fail_text());
        device_calls_end(d); /* which fails, too, if the GPU has */
        return fail(status, "%s", text);
    }
    if (why != RING_OK) {
        const ring_status mine = (ring_status)notices[comm->rank].status;
        const bool expected = mine == RING_OK || mine == RING_ERR_UNSUPPORTED;
        log_at(expected ? LOG_INFO : LOG_WARN, "calls on GPUs are driven by the host: %s",
               fail_text());
        return disconnect(comm, d, notices);
    }
    log_info("%s runs calls itself, with at most %d blocks and %u KiB%s for each of them "
             "and each other rank",
             d->by->name, d->terms.shape.lanes, d->terms.shape.window >> 10,
             d->terms.by_rooms ? " in memory of the host" : "");
    tuner_use_device(comm->tuner, &d->terms);
    comm->device_calls = d; /* now other threads may use it */
    return RING_OK;
}

static ring_status open_seat(ring_comm *comm, const accelerator *a, const ring_comm *parent)
{
    const char *obstacle = find_obstacle(comm, parent);
    if (obstacle != NULL) {
        log_info("calls on GPUs are driven by the host: %s", obstacle);
        return RING_OK;
    }
    seat_notice *notices = calloc((size_t)comm->ranks, sizeof *notices);
    struct device_calls *d = calloc(1, sizeof *d);
    if (notices == NULL || d == NULL) {
        free(notices);
        free(d);
        return fail(RING_ERR_MEMORY, "creating the communicator");
    }
    d->by = a;
    const accelerator_seat *of = parent != NULL ? parent->device_calls->seat : NULL;
    const ring_status status = open_or_disconnect(comm, d, of, notices);
    free(notices);
    return status;
}

ring_status device_calls_open(ring_comm *comm, const accelerator *a, const ring_comm *parent)
{
    if (a == NULL || a->programs == NULL)
        return RING_OK;
    RING_TRY(open_seat(comm, a, parent));
    comm_lock(comm);
    if (streams_stay(comm)) {
        comm->streams.held_of = a;
        a->programs->count_holders(a, 1);
    }
    comm_unlock(comm);
    return RING_OK;
}

/* SPDX-License-Identifier: Apache-2.0
 * Passes completions to sinks, which it finds in a table by their handles. A handle combines a
 * place in the table with a generation number: a completion of a destroyed queue pair may still be
 * in the queue, and its old generation then matches no sink. */
#include "completions.h"

#include <stdlib.h>
#include <unistd.h>

enum { BATCH = 16, PLACE_BITS = 18, FIRST_PLACES = 64 };
#define PLACE_MASK ((1u << PLACE_BITS) - 1)

typedef struct place {
    completion_sink *sink; /* NULL: free */
    uint32_t given;        /* generation: how often the place was assigned; never 0 in a handle */
} place;

static struct {
    pthread_mutex_t lock;
    place *places;
    uint32_t count;
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void in_child(void)
{
    pthread_mutex_init(&table.lock, NULL);
    table.places = NULL; /* not freed: a thread of the parent may have been changing it */
    table.count = 0;
}

__attribute__((constructor)) static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, in_child);
}

/* ---- Handles ------------------------------------------------------------------------------ */

static bool grow(void)
{
    const uint32_t count = table.count > 0 ? 2 * table.count : FIRST_PLACES;
    place *places = count <= PLACE_MASK ? realloc(table.places, count * sizeof *places) : NULL;
    if (places == NULL)
        return false;
    memset(places + table.count, 0, (count - table.count) * sizeof *places);
    table.places = places;
    table.count = count;
    return true;
}

uint32_t completions_enter(completion_sink *sink)
{
    uint32_t handle = 0, at = 0;
    pthread_mutex_lock(&table.lock);
    while (at < table.count && table.places[at].sink != NULL)
        at++;
    if (at < table.count || grow()) {
        place *p = &table.places[at];
        p->sink = sink;
        p->given = (p->given + 1) & (UINT32_MAX >> PLACE_BITS);
        p->given += p->given == 0; /* no handle is 0 */
        handle = p->given << PLACE_BITS | at;
    }
    pthread_mutex_unlock(&table.lock);
    if (handle == 0)
        fail(RING_ERR_MEMORY, "no memory for another queue pair's completions");
    return handle;
}

void completions_leave(uint32_t handle)
{
    if (handle == 0)
        return;
    pthread_mutex_lock(&table.lock);
    if ((handle & PLACE_MASK) < table.count)
        table.places[handle & PLACE_MASK].sink = NULL;
    pthread_mutex_unlock(&table.lock);
}

/* The caller holds the table's lock. @return NULL if the queue pair no longer exists. */
static completion_sink *sink_of(uint32_t handle)
{
    const uint32_t at = handle & PLACE_MASK;
    return at < table.count && table.places[at].given == handle >> PLACE_BITS
               ? table.places[at].sink
               : NULL;
}

/* ---- Delivering --------------------------------------------------------------------------- */

/* Wakes the thread that sleeps on the sink's link, if there is one. */
static void wake(completion_sink *sink)
{
    const uint64_t one = 1;
    if (!atomic_exchange(sink->armed, false))
        return;
    const ssize_t ignored = write(sink->wake, &one, sizeof one);
    (void)ignored; /* fails only if the eventfd's counter is full, and then it is readable anyway */
}

static void note_request(const struct ibv_wc *wc)
{
    completion_sink *sink = sink_of((uint32_t)(wc->wr_id >> 32));
    int none = 0;
    if (sink == NULL)
        return;
    if (wc->status != IBV_WC_SUCCESS)
        (void)atomic_compare_exchange_strong(&sink->failed, &none, (int)wc->status);
    else
        atomic_store_explicit(&sink->done, (uint32_t)wc->wr_id, memory_order_release);
    wake(sink);
}

/* Completions without wr_id are wake-ups. Their receive requests are posted again at once, so
 * WAKE_UPS limits only how many may arrive between two polls. */
static void deliver(adapter_device *device, const struct ibv_wc *all, int count)
{
    struct ibv_recv_wr receive = {.wr_id = 0}, *bad;
    pthread_mutex_lock(&table.lock);
    for (int i = 0; i < count; i++) {
        if (all[i].wr_id != 0) {
            note_request(&all[i]);
            continue;
        }
        completion_sink *sink = sink_of(all[i].imm_data);
        if (all[i].status == IBV_WC_SUCCESS && sink != NULL) {
            atomic_store_explicit(&sink->woken, true, memory_order_release);
            wake(sink);
        }
        if (ibv_post_srq_recv(device->srq, &receive, &bad) != 0)
            atomic_store(&device->dead, true);
    }
    pthread_mutex_unlock(&table.lock);
}

static void poll_locked(adapter_device *device)
{
    struct ibv_wc all[BATCH];
    int count;
    do {
        count = ibv_poll_cq(device->cq, BATCH, all);
        if (count < 0)
            atomic_store(&device->dead, true);
        if (count > 0)
            deliver(device, all, count);
    } while (count == BATCH);
}

void completions_poll(adapter_device *device)
{
    if (pthread_mutex_trylock(&device->lock) != 0)
        return;
    poll_locked(device);
    pthread_mutex_unlock(&device->lock);
}

void completions_destroy(adapter_device *device, struct ibv_qp *qp)
{
    pthread_mutex_lock(&device->lock);
    poll_locked(device);
    (void)ibverbs_load()->destroy_qp(qp);
    pthread_mutex_unlock(&device->lock);
}

/* ---- Sleeping ----------------------------------------------------------------------------- */

void completions_arm(adapter_device *device, bool all)
{
    pthread_mutex_lock(&device->lock);
    if (ibv_req_notify_cq(device->cq, !all) != 0)
        atomic_store(&device->dead, true);
    poll_locked(device);
    pthread_mutex_unlock(&device->lock);
}

void completions_disarm(adapter_device *device)
{
    const ibverbs *api = ibverbs_load();
    struct ibv_cq *cq;
    void *own;
    unsigned events = 0;
    pthread_mutex_lock(&device->lock);
    while (api->get_cq_event(device->channel, &cq, &own) == 0)
        events++;
    if (events > 0) { /* threads that still sleep need the next event */
        api->ack_cq_events(device->cq, events);
        if (ibv_req_notify_cq(device->cq, 0) != 0)
            atomic_store(&device->dead, true);
    }
    poll_locked(device);
    pthread_mutex_unlock(&device->lock);
}

/* SPDX-License-Identifier: Apache-2.0
 * Implements the simulated adapter. One lock guards all of it, even while it moves bytes: so after
 * a port was stopped or a key was destroyed, no transfer uses it. */
#include "nic.h"

#include "base.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_KEYS = 4096 };

struct nic_port {
    uint64_t number, peer;
    bool stopped;
    _Atomic bool failed;
    _Atomic uint64_t gets;
    void (*event)(void *context);
    void *context;
    nic_port *next;
};

typedef struct registration {
    uint64_t key; /* 0: free */
    char *base;
    size_t bytes;
    const nic_port *owner;
} registration;

/* A transfer that is waiting to be executed, or to be completed. */
typedef struct job {
    nic_port *port;
    bool moved;
    ring_status status;
    nic_transfer transfer;
} job;

static struct {
    pthread_mutex_t lock;
    pthread_cond_t posted, idle;
    bool running;
    uint64_t ports_made, keys_made, dice;
    double delay;
    nic_port *ports;
    registration keys[MOST_KEYS];
    job *jobs;
    size_t count, capacity;
} nic = {.lock = PTHREAD_MUTEX_INITIALIZER,
         .posted = PTHREAD_COND_INITIALIZER,
         .idle = PTHREAD_COND_INITIALIZER,
         .dice = 88172645463325252u};

static uint64_t roll(void)
{
    nic.dice ^= nic.dice << 13;
    nic.dice ^= nic.dice >> 7;
    nic.dice ^= nic.dice << 17;
    return nic.dice;
}

/* ---- Keys ------------------------------------------------------------------------- */

uint64_t nic_register(void *base, size_t bytes, nic_port *owner)
{
    uint64_t key = 0;
    pthread_mutex_lock(&nic.lock);
    for (size_t i = 0; i < MOST_KEYS && key == 0; i++) {
        if (nic.keys[i].key != 0)
            continue;
        key = ++nic.keys_made << 16 | (roll() & 0xffff);
        nic.keys[i] = (registration){.key = key, .base = base, .bytes = bytes, .owner = owner};
    }
    pthread_mutex_unlock(&nic.lock);
    if (key == 0)
        abort(); /* a test that needs more has to say so in MOST_KEYS */
    return key;
}

void nic_deregister(uint64_t key)
{
    pthread_mutex_lock(&nic.lock);
    for (size_t i = 0; i < MOST_KEYS; i++)
        if (nic.keys[i].key == key)
            nic.keys[i].key = 0;
    pthread_mutex_unlock(&nic.lock);
}

static char *find(const nic_port *by, nic_place at, size_t bytes)
{
    for (size_t i = 0; i < MOST_KEYS; i++) {
        const registration *r = &nic.keys[i];
        if (r->key == 0 || r->key != at.key)
            continue;
        const bool allowed = r->owner == NULL || r->owner->number == by->peer;
        return allowed && bytes <= r->bytes && at.offset <= r->bytes - bytes ? r->base + at.offset
                                                                             : NULL;
    }
    return NULL;
}

/* ---- Moving ----------------------------------------------------------------------- */

/* RING_IN_PROGRESS: the other end has not connected yet. */
static ring_status find_peer(const nic_port *port, nic_port **out)
{
    nic_port *peer = nic.ports;
    while (peer != NULL && peer->number != port->peer)
        peer = peer->next;
    *out = peer;
    if (peer == NULL || peer->stopped)
        return RING_ERR_PEER;
    if (peer->peer == 0)
        return RING_IN_PROGRESS;
    return peer->peer == port->number ? RING_OK : RING_ERR_PEER;
}

/* The notice's first word is written after all other bytes. */
static void write_notice(char *at, const unsigned char *notice)
{
    uint32_t first;
    memcpy(&first, notice, sizeof first);
    memcpy(at + sizeof first, notice + sizeof first, NIC_NOTICE_BYTES - sizeof first);
    __atomic_store_n((uint32_t *)(void *)at, first, __ATOMIC_RELEASE);
}

static void move_words(char *to, const nic_transfer *t)
{
    const uint64_t *from = t->local;
    uint64_t *words = (uint64_t *)(void *)to;
    atomic_store(t->taken, false);
    for (int i = 0; i < NIC_WORDS; i++)
        __atomic_store_n(&words[i], __atomic_load_n(&from[i], __ATOMIC_SEQ_CST), __ATOMIC_RELEASE);
}

static ring_status move(const job *j)
{
    const nic_transfer *t = &j->transfer;
    nic_port *peer;
    RING_TRY(find_peer(j->port, &peer));
    char *remote = find(j->port, t->remote, t->bytes);
    char *notice = t->kind == NIC_PUT ? find(j->port, t->notice_at, NIC_NOTICE_BYTES) : remote;
    if (remote == NULL || notice == NULL)
        return RING_ERR_PEER;
    if (t->kind == NIC_GET)
        memcpy(t->local, remote, t->bytes);
    else if (t->kind == NIC_PUT_WORDS)
        move_words(remote, t);
    else if (t->bytes > 0)
        memcpy(remote, t->local, t->bytes);
    if (t->kind == NIC_PUT)
        write_notice(notice, t->notice);
    if (t->kind != NIC_GET)
        peer->event(peer->context);
    return RING_OK;
}

static void complete(const job *j)
{
    if (j->status != RING_OK)
        atomic_store(&j->port->failed, true);
    if (j->transfer.over != NULL)
        ticket_close(j->transfer.over, j->status);
    atomic_fetch_add(&j->port->gets, j->transfer.kind == NIC_GET);
    j->port->event(j->port->context);
}

static void drop(size_t i)
{
    nic.jobs[i] = nic.jobs[--nic.count];
}

static void advance(size_t i)
{
    job *j = &nic.jobs[i];
    if (!j->moved) {
        j->status = j->port->failed ? RING_ERR_PEER : move(j);
        j->moved = j->status != RING_IN_PROGRESS;
        return;
    }
    const job done = *j;
    drop(i);
    complete(&done);
}

/* Releases the lock now and then, so that other threads may stop ports or free memory. */
static void let_others_in(double delay)
{
    pthread_mutex_unlock(&nic.lock);
    if (delay > 0)
        clock_sleep(delay);
    else
        (void)clock_yield(); /* a core that is shared is not given up for each transfer */
    pthread_mutex_lock(&nic.lock);
}

/* Executes or completes any one transfer at a time. */
static void *run(void *unused)
{
    pthread_mutex_lock(&nic.lock);
    for (;;) {
        while (nic.count == 0) {
            pthread_cond_broadcast(&nic.idle);
            pthread_cond_wait(&nic.posted, &nic.lock);
        }
        if (nic.delay > 0 || roll() % 32 == 0)
            let_others_in(nic.delay);
        if (nic.count > 0)
            advance(roll() % nic.count);
    }
    return NULL;
}

/* ---- Ports ------------------------------------------------------------------------ */

nic_port *nic_port_new(void (*event)(void *context), void *context)
{
    nic_port *port = calloc(1, sizeof *port);
    if (port == NULL)
        return NULL;
    port->event = event;
    port->context = context;
    pthread_mutex_lock(&nic.lock);
    port->number = ++nic.ports_made;
    port->next = nic.ports;
    nic.ports = port;
    pthread_mutex_unlock(&nic.lock);
    return port;
}

uint64_t nic_port_number(const nic_port *port)
{
    return port->number;
}

void nic_port_connect(nic_port *port, uint64_t peer)
{
    pthread_mutex_lock(&nic.lock);
    port->peer = peer;
    pthread_mutex_unlock(&nic.lock);
}

void nic_port_stop(nic_port *port)
{
    pthread_mutex_lock(&nic.lock);
    port->stopped = true;
    for (size_t i = nic.count; i-- > 0;)
        if (nic.jobs[i].port == port)
            drop(i);
    pthread_mutex_unlock(&nic.lock);
}

void nic_port_free(nic_port *port)
{
    nic_port_stop(port);
    pthread_mutex_lock(&nic.lock);
    nic_port **at = &nic.ports;
    while (*at != port)
        at = &(*at)->next;
    *at = port->next;
    pthread_mutex_unlock(&nic.lock);
    free(port);
}

uint64_t nic_port_gets(const nic_port *port)
{
    return atomic_load(&port->gets);
}

bool nic_port_is_busy(const nic_port *port)
{
    bool busy = false;
    pthread_mutex_lock(&nic.lock);
    for (size_t i = 0; i < nic.count && !busy; i++)
        busy = nic.jobs[i].port == port;
    pthread_mutex_unlock(&nic.lock);
    return busy;
}

bool nic_port_failed(const nic_port *port)
{
    return atomic_load(&port->failed);
}

static void start(void)
{
    pthread_t thread;
    if (nic.running)
        return;
    if (thread_start(&thread, run, NULL) != 0)
        abort();
    pthread_detach(thread);
    nic.running = true;
}

static void append(const job *j)
{
    if (nic.count == nic.capacity) {
        nic.capacity = nic.capacity > 0 ? 2 * nic.capacity : 64;
        nic.jobs = realloc(nic.jobs, nic.capacity * sizeof *nic.jobs);
        if (nic.jobs == NULL)
            abort();
    }
    nic.jobs[nic.count++] = *j;
}

void nic_post(nic_port *port, const nic_transfer *transfer)
{
    const job j = {.port = port, .transfer = *transfer};
    if (transfer->over != NULL)
        ticket_open(transfer->over);
    pthread_mutex_lock(&nic.lock);
    start();
    if (!port->stopped)
        append(&j);
    pthread_cond_signal(&nic.posted);
    pthread_mutex_unlock(&nic.lock);
}

void nic_delay(double seconds)
{
    pthread_mutex_lock(&nic.lock);
    nic.delay = seconds;
    pthread_mutex_unlock(&nic.lock);
}

void nic_settle(void)
{
    pthread_mutex_lock(&nic.lock);
    while (nic.count > 0)
        pthread_cond_wait(&nic.idle, &nic.lock);
    pthread_mutex_unlock(&nic.lock);
}

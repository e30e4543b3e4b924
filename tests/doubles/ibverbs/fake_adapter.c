/* SPDX-License-Identifier: Apache-2.0
 * The adapter's thread, and the order in which a queue pair's requests are done and completed. */
#include "fake.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static struct {
    fake_qp **list; /* those with something to do */
    size_t count, capacity;
    bool running;
} adapter;

/* ---- Turns ---- */

/* In a failed completion only this is valid; the rest is not what it seems. */
static struct ibv_wc outcome(const fake_qp *q, uint64_t wr_id, enum ibv_wc_status status)
{
    struct ibv_wc wc;
    memset(&wc, status == IBV_WC_SUCCESS ? 0 : 0xa5, sizeof wc);
    wc.wr_id = wr_id;
    wc.status = status;
    wc.vendor_err = status == IBV_WC_SUCCESS ? 0 : 0x100 + (uint32_t)status;
    wc.qp_num = q->base.qp_num;
    return wc;
}

static enum ibv_wc_opcode opcode_of(enum ibv_wr_opcode opcode)
{
    if (opcode == IBV_WR_RDMA_READ)
        return IBV_WC_RDMA_READ;
    return opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM ? IBV_WC_SEND
                                                                   : IBV_WC_RDMA_WRITE;
}

/* The oldest request is over. */
static void retire(fake_qp *q, enum ibv_wc_status status)
{
    const fake_send *s = fake_qp_send(q, q->retired++);
    if (status == IBV_WC_SUCCESS && (s->wr.send_flags & IBV_SEND_SIGNALED) == 0)
        return;
    fake_completion c = {.wc = outcome(q, s->wr.wr_id, status), .frees = q->retired};
    if (status == IBV_WC_SUCCESS) {
        c.wc.opcode = opcode_of(s->wr.opcode);
        c.wc.byte_len = (uint32_t)s->bytes;
    }
    fake_cq_add(q->base.send_cq, &c);
}

static void flush_one_receive(fake_qp *q)
{
    fake_receive r;
    if (!fake_receives_take(&q->receives, &r))
        return;
    const fake_completion c = {.wc = outcome(q, r.wr_id, IBV_WC_WR_FLUSH_ERR),
                               .receives = q->receives.id};
    fake_cq_add(q->base.recv_cq, &c);
}

static void flush_one(fake_qp *q)
{
    if (q->retired == q->posted) {
        flush_one_receive(q);
        return;
    }
    const fake_send *s = fake_qp_send(q, q->retired);
    retire(q, s->phase == DONE ? IBV_WC_SUCCESS : IBV_WC_WR_FLUSH_ERR);
}

/* @return the number of the request that may go on; q->posted: none. Only reads are overtaken
 * before their data is there, and not by what waits at a fence. */
static uint64_t next_to_advance(const fake_qp *q)
{
    unsigned reads = 0;
    for (uint64_t i = q->retired; i < q->posted; i++) {
        const fake_send *s = fake_qp_send(q, i);
        const bool is_read = s->wr.opcode == IBV_WR_RDMA_READ;
        if (s->phase == DONE)
            continue;
        if (s->phase == FAILED)
            return q->posted;
        if (reads > 0 && (s->wr.send_flags & IBV_SEND_FENCE) != 0)
            return q->posted;
        if (is_read && reads >= q->attr.max_rd_atomic && reads > 0)
            return q->posted;
        if (!is_read || s->phase != MOVING || fake_roll() % 2 == 0)
            return i;
        reads++;
    }
    return q->posted;
}

/* @return true if the oldest request is over and its completion came. */
static bool retire_oldest(fake_qp *q)
{
    const fake_send *s = fake_qp_send(q, q->retired);
    if (s->phase != DONE && s->phase != FAILED)
        return false;
    if (s->phase == DONE) {
        retire(q, IBV_WC_SUCCESS);
    } else {
        retire(q, s->status);
        fake_qp_break(q);
    }
    return true;
}

void fake_qp_turn(fake_qp *q, double now)
{
    if (q->attr.qp_state == IBV_QPS_ERR) {
        flush_one(q);
        return;
    }
    if (fake_roll() % 2 == 0 && retire_oldest(q))
        return;
    const uint64_t next = next_to_advance(q);
    if (next != q->posted)
        fake_send_advance(q, fake_qp_send(q, next), now);
}

bool fake_qp_has_work(const fake_qp *q)
{
    const bool sends = q->retired != q->posted, failed = q->attr.qp_state == IBV_QPS_ERR;
    return (sends && (failed || q->attr.qp_state == IBV_QPS_RTS)) ||
           (failed && q->receives.taken != q->receives.posted);
}

/* ---- The thread ---- */

/* @return one that may go on, at random; NULL: none before *until. */
static fake_qp *choose(double now, double *until)
{
    const size_t first = fake_roll() % adapter.count;
    *until = 0;
    for (size_t i = 0; i < adapter.count; i++) {
        fake_qp *q = adapter.list[(first + i) % adapter.count];
        if (q->wake_at <= now)
            return q;
        if (*until == 0 || q->wake_at < *until)
            *until = q->wake_at;
    }
    return NULL;
}

static void work(void)
{
    double until;
    const double now = fake_now();
    fake_qp *q = choose(now, &until);
    if (q == NULL) {
        fake_wait_for_work(until);
        return;
    }
    fake_qp_turn(q, now);
    if (!fake_qp_has_work(q))
        fake_adapter_drop(q);
    fake_lock_yield();
}

static void *run(void *unused)
{
    fake_lock();
    for (;;) {
        if (adapter.count == 0)
            fake_wait_for_work(0);
        else
            work();
    }
    return NULL;
}

/* The program's signals are not for this thread. */
static void start(void)
{
    pthread_t thread;
    sigset_t all, old;
    if (adapter.running)
        return;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    if (pthread_create(&thread, NULL, run, NULL) != 0)
        fake_misuse("no thread", "adapter");
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_detach(thread);
    adapter.running = true;
}

static void append(fake_qp *q)
{
    if (adapter.count == adapter.capacity) {
        adapter.capacity = adapter.capacity > 0 ? 2 * adapter.capacity : 64;
        adapter.list = realloc(adapter.list, adapter.capacity * sizeof *adapter.list);
        if (adapter.list == NULL)
            abort();
    }
    adapter.list[adapter.count++] = q;
    q->active = adapter.count;
}

void fake_adapter_add(fake_qp *q)
{
    start();
    if (q->active == 0)
        append(q);
    fake_tell_of_work();
}

void fake_adapter_drop(fake_qp *q)
{
    if (q->active == 0)
        return;
    fake_qp *last = adapter.list[--adapter.count];
    adapter.list[q->active - 1] = last;
    last->active = q->active;
    q->active = 0;
}

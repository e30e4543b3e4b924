/* SPDX-License-Identifier: Apache-2.0 */
#include "verbs_bed.h"

#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

verbs_functions verbs;
struct bed_wishes bed_wishes = {.qp_access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
                                .depth = BED_DEPTH,
                                .inlined = 64,
                                .completions = 64,
                                .mtu = IBV_MTU_1024,
                                .timeout = 12, /* 17 ms */
                                .retry_cnt = 1,
                                .rnr_retry = 7,
                                .min_rnr_timer = 1,
                                .reads = 4,
                                .access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                                          IBV_ACCESS_REMOTE_READ};

static void *find(void *library, const char *name)
{
    void *found = dlsym(library, name);
    if (found == NULL)
        fail_msg("no %s in libibverbs.so.1: is LD_LIBRARY_PATH the folder of the fake one?", name);
    return found;
}

void bed_load(const char *options)
{
    setenv("FAKE_IBVERBS", options, 1);
    void *library = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        fail_msg("%s", dlerror());
#define FIND(name) verbs.name = (__typeof__(&(name)))find(library, #name);
    VERBS_FUNCTIONS(FIND)
#undef FIND
}

struct ibv_context *bed_open_device(int number)
{
    int count = 0;
    struct ibv_device **list = verbs.ibv_get_device_list(&count);
    assert_non_null(list);
    assert_in_range(number, 0, count - 1);
    struct ibv_context *context = verbs.ibv_open_device(list[number]);
    verbs.ibv_free_device_list(list);
    return context;
}

/* ---- Ends ---- */

static void make_pair(bed_end *e)
{
    struct ibv_srq_init_attr shared = {.attr = {.max_wr = BED_DEPTH, .max_sge = 2}};
    e->srq = verbs.ibv_create_srq(e->pd, &shared);
    assert_non_null(e->srq);
    struct ibv_qp_init_attr init = {.send_cq = e->cq,
                                    .recv_cq = e->cq,
                                    .srq = e->srq,
                                    .qp_type = IBV_QPT_RC,
                                    .sq_sig_all = bed_wishes.signal_all,
                                    .cap = {.max_send_wr = bed_wishes.depth,
                                            .max_send_sge = 4,
                                            .max_inline_data = bed_wishes.inlined}};
    e->qp = verbs.ibv_create_qp(e->pd, &init);
    assert_non_null(e->qp);
}

static bed_end make_end(int device)
{
    bed_end e = {.context = bed_open_device(device)};
    assert_non_null(e.context);
    e.pd = verbs.ibv_alloc_pd(e.context);
    e.channel = verbs.ibv_create_comp_channel(e.context);
    e.cq = verbs.ibv_create_cq(e.context, bed_wishes.completions, &verbs, e.channel, 0);
    assert_non_null(e.cq);
    make_pair(&e);
    e.memory = aligned_alloc(4096, BED_BYTES);
    assert_non_null(e.memory);
    memset(e.memory, 0, BED_BYTES);
    e.mr = (verbs.ibv_reg_mr)(e.pd, e.memory, BED_BYTES, (int)bed_wishes.access);
    assert_non_null(e.mr);
    return e;
}

bed bed_open_apart(void)
{
    return (bed){make_end(0), make_end(1)};
}

bed bed_open(void)
{
    bed b = bed_open_apart();
    bed_connect(&b.a, &b.b);
    bed_connect(&b.b, &b.a);
    return b;
}

static void close_end(bed_end *e)
{
    if (e->qp != NULL)
        assert_int_equal(verbs.ibv_destroy_qp(e->qp), 0);
    assert_int_equal(verbs.ibv_destroy_srq(e->srq), 0);
    if (e->cq != NULL)
        assert_int_equal(verbs.ibv_destroy_cq(e->cq), 0);
    assert_int_equal(verbs.ibv_destroy_comp_channel(e->channel), 0);
    if (e->mr != NULL)
        assert_int_equal(verbs.ibv_dereg_mr(e->mr), 0);
    assert_int_equal(verbs.ibv_dealloc_pd(e->pd), 0);
    assert_int_equal(verbs.ibv_close_device(e->context), 0);
    free(e->memory);
}

void bed_close_one(bed *b)
{
    close_end(&b->a);
    close_end(&b->b);
}

void bed_close(bed *b)
{
    fake_ibverbs_counts counts;
    bed_close_one(b);
    verbs.fake_ibverbs_counters(&counts);
    assert_int_equal(counts.contexts + counts.domains + counts.registrations + counts.channels +
                         counts.completion_queues + counts.receive_queues + counts.queue_pairs +
                         counts.registered_bytes,
                     0);
}

/* ---- States ---- */

int bed_query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *out)
{
    return verbs_get_ctx_op(context, query_port)->query_port(context, port, out, sizeof *out);
}

struct ibv_qp_attr bed_attr(const bed_end *end, const bed_end *peer)
{
    struct ibv_qp_attr a = {.path_mtu = bed_wishes.mtu,
                            .rq_psn = peer->qp->qp_num & 0xff,
                            .sq_psn = end->qp->qp_num & 0xff,
                            .dest_qp_num = peer->qp->qp_num,
                            .qp_access_flags = bed_wishes.qp_access,
                            .port_num = 1,
                            .timeout = bed_wishes.timeout,
                            .retry_cnt = bed_wishes.retry_cnt,
                            .rnr_retry = bed_wishes.rnr_retry,
                            .min_rnr_timer = bed_wishes.min_rnr_timer,
                            .max_rd_atomic = bed_wishes.reads,
                            .max_dest_rd_atomic = bed_wishes.reads};
    struct ibv_port_attr port;
    assert_int_equal(bed_query_port(peer->context, 1, &port), 0);
    a.ah_attr.port_num = 1;
    a.ah_attr.dlid = port.lid;
    if (port.link_layer == IBV_LINK_LAYER_ETHERNET) {
        a.ah_attr.is_global = 1;
        a.ah_attr.grh.sgid_index = 1;
        assert_int_equal(verbs.ibv_query_gid(peer->context, 1, 1, &a.ah_attr.grh.dgid), 0);
    }
    return a;
}

int bed_modify(const bed_end *end, struct ibv_qp_attr attr, enum ibv_qp_state state, int mask)
{
    attr.qp_state = state;
    return verbs.ibv_modify_qp(end->qp, &attr, mask);
}

void bed_connect_as(const bed_end *end, struct ibv_qp_attr attr)
{
    assert_int_equal(bed_modify(end, attr, IBV_QPS_INIT, BED_INIT), 0);
    assert_int_equal(bed_modify(end, attr, IBV_QPS_RTR, BED_RTR), 0);
    assert_int_equal(bed_modify(end, attr, IBV_QPS_RTS, BED_RTS), 0);
}

void bed_connect(const bed_end *end, const bed_end *peer)
{
    bed_connect_as(end, bed_attr(end, peer));
}

enum ibv_qp_state bed_state(const bed_end *end)
{
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    assert_int_equal(verbs.ibv_query_qp(end->qp, &attr, IBV_QP_STATE, &init), 0);
    return attr.qp_state;
}

/* ---- Requests ---- */

void bed_request_make(bed_request *r, const bed *b, enum ibv_wr_opcode opcode, size_t from,
                      size_t to, uint32_t bytes)
{
    memset(r, 0, sizeof *r);
    r->sge[0] = (struct ibv_sge){(uintptr_t)b->a.memory + from, bytes, b->a.mr->lkey};
    r->wr.sg_list = r->sge;
    r->wr.num_sge = 1;
    r->wr.opcode = opcode;
    r->wr.send_flags = IBV_SEND_SIGNALED;
    r->wr.wr.rdma.remote_addr = (uintptr_t)b->b.memory + to;
    r->wr.wr.rdma.rkey = b->b.mr->rkey;
}

int bed_post(const bed *b, bed_request *r)
{
    struct ibv_send_wr *bad = NULL;
    const int error = ibv_post_send(b->a.qp, &r->wr, &bad);
    assert_ptr_equal(bad, error != 0 ? &r->wr : NULL);
    return error;
}

void bed_must_post(const bed *b, enum ibv_wr_opcode opcode, size_t from, size_t to, uint32_t bytes,
                   unsigned flags)
{
    bed_request r;
    bed_request_make(&r, b, opcode, from, to, bytes);
    r.wr.send_flags = flags;
    assert_int_equal(bed_post(b, &r), 0);
}

void bed_post_receive(const bed_end *end, uint64_t number)
{
    struct ibv_sge sge = {(uintptr_t)end->memory, 64, end->mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = number, .sg_list = &sge, .num_sge = 1}, *bad;
    assert_int_equal(ibv_post_srq_recv(end->srq, &wr, &bad), 0);
}

/* ---- Waiting ---- */

double bed_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void bed_sleep(double seconds)
{
    const struct timespec t = {.tv_sec = (time_t)seconds,
                               .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&t, NULL);
}

struct ibv_wc bed_poll(const bed_end *end)
{
    struct ibv_wc wc;
    const double deadline = bed_now() + 30;
    int n;
    while ((n = ibv_poll_cq(end->cq, 1, &wc)) == 0) {
        if (bed_now() > deadline)
            fail_msg("no completion");
        sched_yield();
    }
    assert_int_equal(n, 1);
    return wc;
}

void bed_expect(const bed_end *end, enum ibv_wc_status status)
{
    const struct ibv_wc wc = bed_poll(end);
    assert_string_equal(verbs.ibv_wc_status_str(wc.status), verbs.ibv_wc_status_str(status));
    assert_int_equal(wc.status, status);
}

void bed_await_completions(uint64_t count)
{
    fake_ibverbs_counts counts;
    const double deadline = bed_now() + 30;
    do {
        verbs.fake_ibverbs_counters(&counts);
        assert_true(bed_now() < deadline);
    } while (counts.completions < count);
}

void bed_expect_none(const bed_end *end)
{
    struct ibv_wc wc;
    bed_sleep(0.02);
    assert_int_equal(ibv_poll_cq(end->cq, 1, &wc), 0);
}

uint64_t bed_word(const char *at)
{
    return __atomic_load_n((const uint64_t *)(const void *)at, __ATOMIC_ACQUIRE);
}

void bed_set_word(char *at, uint64_t value)
{
    __atomic_store_n((uint64_t *)(void *)at, value, __ATOMIC_RELEASE);
}

void bed_await_word(const char *at, uint64_t value)
{
    const double deadline = bed_now() + 30;
    while (bed_word(at) != value) {
        if (bed_now() > deadline)
            fail_msg("the word did not come");
        sched_yield();
    }
}

void bed_await_half(const char *at, uint32_t value)
{
    const double deadline = bed_now() + 30;
    while (__atomic_load_n((const uint32_t *)(const void *)at, __ATOMIC_ACQUIRE) != value) {
        if (bed_now() > deadline)
            fail_msg("half the word did not come");
        sched_yield();
    }
}

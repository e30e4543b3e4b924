/* SPDX-License-Identifier: Apache-2.0
 * The fake libibverbs: states of queue pairs, protection, and peers that do not answer. */
#include "fake_tests.h"
#include "verbs_bed.h"

#include <errno.h>
#include <string.h>

/* ---- States ---- */

static void expect_all_required(const bed_end *end, struct ibv_qp_attr attr,
                                enum ibv_qp_state state, int mask)
{
    for (int bit = 1; bit <= mask; bit <<= 1)
        if ((mask & bit) != 0 && bit != IBV_QP_STATE)
            assert_int_equal(bed_modify(end, attr, state, mask & ~bit), EINVAL);
    assert_int_equal(bed_modify(end, attr, state, mask | IBV_QP_QKEY), EINVAL);
    assert_int_equal(bed_modify(end, attr, state, mask), 0);
}

void test_required_attributes(void)
{
    bed_load("");
    bed b = bed_open_apart();
    const struct ibv_qp_attr attr = bed_attr(&b.a, &b.b);
    assert_int_equal(bed_modify(&b.a, attr, IBV_QPS_RTR, BED_RTR), EINVAL);
    expect_all_required(&b.a, attr, IBV_QPS_INIT, BED_INIT);
    expect_all_required(&b.a, attr, IBV_QPS_RTR, BED_RTR);
    expect_all_required(&b.a, attr, IBV_QPS_RTS, BED_RTS);
    assert_int_equal(bed_state(&b.a), IBV_QPS_RTS);
    assert_int_equal(bed_modify(&b.a, attr, IBV_QPS_RESET, IBV_QP_STATE), 0);
    assert_int_equal(bed_state(&b.a), IBV_QPS_RESET);
    bed_close(&b);
}

static void expect_refused(const bed_end *end, struct ibv_qp_attr attr)
{
    assert_int_equal(bed_modify(end, attr, IBV_QPS_RTR, BED_RTR), EINVAL);
}

void test_wrong_values(void)
{
    bed_load("");
    bed b = bed_open_apart();
    const struct ibv_qp_attr good = bed_attr(&b.a, &b.b);
    struct ibv_qp_attr wrong = good;
    wrong.port_num = 2;
    assert_int_equal(bed_modify(&b.a, wrong, IBV_QPS_INIT, BED_INIT), EINVAL);
    assert_int_equal(bed_modify(&b.a, good, IBV_QPS_INIT, BED_INIT), 0);
    wrong = good;
    wrong.dest_qp_num = 0;
    expect_refused(&b.a, wrong);
    wrong = good;
    wrong.ah_attr.is_global = 0; /* RoCE needs a GRH */
    expect_refused(&b.a, wrong);
    wrong = good;
    wrong.ah_attr.grh.sgid_index = 2; /* empty */
    expect_refused(&b.a, wrong);
    wrong = good;
    wrong.path_mtu = IBV_MTU_2048; /* more than the active one */
    expect_refused(&b.a, wrong);
    wrong = good;
    wrong.rq_psn = 1 << 24;
    expect_refused(&b.a, wrong);
    assert_int_equal(bed_modify(&b.a, good, IBV_QPS_RTR, BED_RTR), 0);
    bed_close(&b);
}

void test_posting_by_state(void)
{
    bed_request r;
    bed_load("");
    bed b = bed_open_apart();
    const struct ibv_qp_attr attr = bed_attr(&b.a, &b.b);
    bed_request_make(&r, &b, IBV_WR_RDMA_WRITE, 0, 0, 8);
    assert_int_equal(bed_post(&b, &r), EINVAL);
    assert_int_equal(bed_modify(&b.a, attr, IBV_QPS_INIT, BED_INIT), 0);
    assert_int_equal(bed_post(&b, &r), EINVAL);
    assert_int_equal(bed_modify(&b.a, attr, IBV_QPS_RTR, BED_RTR), 0);
    assert_int_equal(bed_post(&b, &r), EINVAL);
    assert_int_equal(bed_modify(&b.a, attr, IBV_QPS_ERR, IBV_QP_STATE), 0);
    r.wr.send_flags = 0; /* a flushed one completes all the same */
    assert_int_equal(bed_post(&b, &r), 0);
    bed_expect(&b.a, IBV_WC_WR_FLUSH_ERR);
    bed_close(&b);
}

/* ---- Peers that do not answer ---- */

void test_peer_comes_late(void)
{
    bed_load("");
    bed_wishes.timeout = 18; /* 1 s, twice */
    bed b = bed_open_apart();
    bed_connect(&b.a, &b.b);
    bed_must_post(&b, IBV_WR_RDMA_WRITE, 0, 0, 8, IBV_SEND_SIGNALED);
    bed_expect_none(&b.a);
    assert_int_equal(bed_modify(&b.b, bed_attr(&b.b, &b.a), IBV_QPS_INIT, BED_INIT), 0);
    bed_expect_none(&b.a);
    assert_int_equal(bed_modify(&b.b, bed_attr(&b.b, &b.a), IBV_QPS_RTR, BED_RTR), 0);
    bed_expect(&b.a, IBV_WC_SUCCESS);
    struct ibv_async_event event;
    assert_int_equal(verbs.ibv_get_async_event(b.b.context, &event), 0);
    assert_int_equal(event.event_type, IBV_EVENT_COMM_EST);
    assert_ptr_equal(event.element.qp, b.b.qp);
    verbs.ibv_ack_async_event(&event);
    bed_close(&b);
}

void test_peer_never_comes(void)
{
    bed_load("");
    bed b = bed_open_apart();
    bed_connect(&b.a, &b.b);
    const double start = bed_now();
    bed_must_post(&b, IBV_WR_RDMA_WRITE, 0, 0, 8, 0);
    bed_expect(&b.a, IBV_WC_RETRY_EXC_ERR);
    assert_true(bed_now() - start > 0.03); /* 17 ms, twice */
    assert_int_equal(bed_state(&b.a), IBV_QPS_ERR);
    bed_close(&b);
}

/* The peer in error does not answer. */
void test_peer_in_error(void)
{
    bed_load("");
    bed b = bed_open();
    assert_int_equal(bed_modify(&b.b, bed_attr(&b.b, &b.a), IBV_QPS_ERR, IBV_QP_STATE), 0);
    bed_must_post(&b, IBV_WR_RDMA_WRITE, 0, 0, 8, 0);
    bed_expect(&b.a, IBV_WC_RETRY_EXC_ERR);
    bed_close(&b);
}

/* When it has seen what came: that was acknowledged. */
void test_peer_goes(void)
{
    bed_load("");
    for (int round = 0; round < 50; round++) {
        bed b = bed_open();
        bed_set_word(b.a.memory, 1);
        bed_must_post(&b, IBV_WR_RDMA_WRITE, 0, 0, 8, IBV_SEND_SIGNALED);
        bed_await_word(b.b.memory, 1);
        assert_int_equal(verbs.ibv_destroy_qp(b.b.qp), 0);
        b.b.qp = NULL;
        bed_expect(&b.a, IBV_WC_SUCCESS);
        bed_close(&b);
    }
}

static void expect_no_answer(const bed *b, struct ibv_qp_attr attr)
{
    bed_connect_as(&b->a, attr);
    bed_must_post(b, IBV_WR_RDMA_WRITE, 0, 0, 8, 0);
    bed_expect(&b->a, IBV_WC_RETRY_EXC_ERR);
}

void test_wrong_lids(void)
{
    bed_load("link=ib");
    bed b = bed_open_apart();
    struct ibv_qp_attr attr = bed_attr(&b.a, &b.b);
    bed_connect(&b.b, &b.a);
    attr.ah_attr.dlid++;
    expect_no_answer(&b, attr);
    bed_close(&b);
}

void test_wrong_gids(void)
{
    bed_load("");
    bed b = bed_open_apart();
    struct ibv_qp_attr attr = bed_attr(&b.a, &b.b);
    bed_connect(&b.b, &b.a);
    attr.ah_attr.grh.dgid.raw[15]++;
    expect_no_answer(&b, attr);
    bed_close(&b);
}

/* A third queue pair knows b, which is connected to another. */
void test_stranger(void)
{
    bed_load("");
    bed b = bed_open(), more = bed_open_apart();
    const bed stranger = {more.a, b.b};
    struct ibv_qp_attr attr = bed_attr(&stranger.a, &b.b);
    attr.sq_psn = bed_attr(&b.a, &b.b).sq_psn;
    expect_no_answer(&stranger, attr);
    bed_close_one(&more);
    bed_close(&b);
}

void test_wrong_sequence_numbers(void)
{
    bed_load("");
    bed b = bed_open_apart();
    struct ibv_qp_attr attr = bed_attr(&b.b, &b.a);
    bed_connect(&b.a, &b.b);
    assert_int_equal(bed_modify(&b.b, attr, IBV_QPS_INIT, BED_INIT), 0);
    attr.rq_psn ^= 1;
    assert_int_equal(bed_modify(&b.b, attr, IBV_QPS_RTR, BED_RTR), 0);
    bed_must_post(&b, IBV_WR_RDMA_WRITE, 0, 0, 8, 0);
    bed_expect(&b.a, IBV_WC_RETRY_EXC_ERR);
    bed_close(&b);
}

void test_cut(void)
{
    bed_load("");
    bed b = bed_open();
    assert_false(verbs.fake_ibverbs_cut("fake9", true));
    assert_true(verbs.fake_ibverbs_cut("fake1", true));
    bed_must_post(&b, IBV_WR_RDMA_WRITE, 0, 0, 8, IBV_SEND_SIGNALED);
    bed_must_post(&b, IBV_WR_RDMA_WRITE, 0, 0, 8, 0);
    bed_expect(&b.a, IBV_WC_RETRY_EXC_ERR);
    bed_expect(&b.a, IBV_WC_WR_FLUSH_ERR);
    bed_must_post(&b, IBV_WR_RDMA_WRITE, 0, 0, 8, 0);
    bed_expect(&b.a, IBV_WC_WR_FLUSH_ERR);
    assert_int_equal(bed_state(&b.b), IBV_QPS_RTS); /* it does not know */
    bed_close(&b);
}

void test_cut_for_a_moment(void)
{
    bed_load("");
    bed_wishes.timeout = 18; /* 1 s, twice */
    bed b = bed_open();
    verbs.fake_ibverbs_cut("fake0", true);
    bed_must_post(&b, IBV_WR_RDMA_WRITE, 0, 0, 8, IBV_SEND_SIGNALED);
    bed_expect_none(&b.a);
    verbs.fake_ibverbs_cut("fake0", false);
    bed_expect(&b.a, IBV_WC_SUCCESS);
    bed_close(&b);
}

/* ---- Protection ---- */

static void expect_event(const bed_end *end, enum ibv_event_type type)
{
    struct ibv_async_event event;
    do {
        assert_int_equal(verbs.ibv_get_async_event(end->context, &event), 0);
        verbs.ibv_ack_async_event(&event);
    } while (event.event_type != type);
}

static void connect_again(const bed_end *end, const bed_end *peer)
{
    assert_int_equal(bed_modify(end, bed_attr(end, peer), IBV_QPS_RESET, IBV_QP_STATE), 0);
    bed_connect(end, peer);
}

static void expect_remote_error(const bed *b, bed_request *r)
{
    bed_request next;
    bed_request_make(&next, b, IBV_WR_RDMA_WRITE, 0, 8, 8);
    assert_int_equal(bed_post(b, r), 0);
    assert_int_equal(bed_post(b, &next), 0);
    bed_expect(&b->a, IBV_WC_REM_ACCESS_ERR);
    bed_expect(&b->a, IBV_WC_WR_FLUSH_ERR);
    expect_event(&b->b, IBV_EVENT_QP_ACCESS_ERR);
    assert_int_equal(bed_state(&b->a), IBV_QPS_ERR);
    assert_int_equal(bed_state(&b->b), IBV_QPS_ERR);
    assert_int_equal(bed_word(b->b.memory), 0);
    connect_again(&b->a, &b->b);
    connect_again(&b->b, &b->a);
}

static void expect_wrong_keys(bed *b)
{
    bed_request r, good;
    bed_request_make(&good, b, IBV_WR_RDMA_WRITE, 0, 0, 8);
    r = good;
    r.wr.sg_list = r.sge;
    r.wr.wr.rdma.rkey++;
    expect_remote_error(b, &r);
    r.wr.wr.rdma.rkey = b->b.mr->lkey;
    expect_remote_error(b, &r);
    r.wr.wr.rdma.rkey = b->a.mr->rkey; /* of another domain */
    r.wr.wr.rdma.remote_addr = (uintptr_t)b->a.memory;
    expect_remote_error(b, &r);
    r = good;
    r.wr.sg_list = r.sge;
    r.wr.wr.rdma.remote_addr += BED_BYTES - 7;
    expect_remote_error(b, &r);
    r.wr.wr.rdma.remote_addr = (uintptr_t)b->b.memory - 1;
    expect_remote_error(b, &r);
}

static void register_again(bed_end *end, int access)
{
    assert_int_equal(verbs.ibv_dereg_mr(end->mr), 0);
    end->mr = (verbs.ibv_reg_mr)(end->pd, end->memory, BED_BYTES, access);
    assert_non_null(end->mr);
}

void test_remote_protection(void)
{
    bed_request r;
    bed_load("delay=500"); /* both requests are there before the first one begins */
    bed b = bed_open();
    bed_set_word(b.a.memory, 1);
    expect_wrong_keys(&b);
    bed_request_make(&r, &b, IBV_WR_RDMA_WRITE, 0, 0, 8);
    register_again(&b.b, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
    expect_remote_error(&b, &r); /* the old key */
    bed_request_make(&r, &b, IBV_WR_RDMA_WRITE, 0, 0, 8);
    expect_remote_error(&b, &r);
    register_again(&b.b, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    for (int round = 0; round < 20; round++) {
        bed_request_make(&r, &b, IBV_WR_RDMA_READ, 0, 0, 8);
        expect_remote_error(&b, &r);
    }
    bed_must_post(&b, IBV_WR_RDMA_WRITE, 0, 0, 8, IBV_SEND_SIGNALED);
    bed_expect(&b.a, IBV_WC_SUCCESS);
    bed_close(&b);
}

static void expect_local_error(const bed *b, bed_request *r)
{
    r->wr.send_flags = 0; /* told all the same */
    assert_int_equal(bed_post(b, r), 0);
    bed_expect(&b->a, IBV_WC_LOC_PROT_ERR);
    assert_int_equal(bed_state(&b->a), IBV_QPS_ERR);
    assert_int_equal(bed_state(&b->b), IBV_QPS_RTS);
    connect_again(&b->a, &b->b);
}

void test_local_protection(void)
{
    bed_request r;
    bed_load("");
    bed b = bed_open();
    bed_request_make(&r, &b, IBV_WR_RDMA_WRITE, BED_BYTES - 4, 0, 8);
    expect_local_error(&b, &r);
    bed_request_make(&r, &b, IBV_WR_RDMA_WRITE, 0, 0, 8);
    r.sge[0].lkey = b.a.mr->rkey;
    expect_local_error(&b, &r);
    r.wr.opcode = IBV_WR_SEND;
    bed_post_receive(&b.b, 0);
    expect_local_error(&b, &r);
    register_again(&b.a, IBV_ACCESS_REMOTE_READ);
    bed_request_make(&r, &b, IBV_WR_RDMA_READ, 0, 0, 8); /* would write here */
    expect_local_error(&b, &r);
    bed_must_post(&b, IBV_WR_RDMA_WRITE, 0, 0, 8, IBV_SEND_SIGNALED);
    bed_expect(&b.a, IBV_WC_SUCCESS);
    bed_close(&b);
}

/* Access flags of the queue pair, and the reads that it answers. */
void test_pair_protection(void)
{
    bed_request r;
    bed_load("");
    bed b = bed_open_apart();
    bed_connect(&b.a, &b.b);
    bed_wishes.qp_access = IBV_ACCESS_REMOTE_READ;
    bed_connect(&b.b, &b.a);
    bed_set_word(b.a.memory, 1);
    bed_request_make(&r, &b, IBV_WR_RDMA_WRITE, 0, 0, 8);
    assert_int_equal(bed_post(&b, &r), 0);
    const struct ibv_wc wc = bed_poll(&b.a);
    assert_int_equal(wc.status, IBV_WC_REM_ACCESS_ERR);
    assert_true((unsigned)wc.opcode > IBV_WC_DRIVER3); /* only the status is valid */
    assert_int_equal(bed_word(b.b.memory), 0);
    bed_wishes.reads = 0;
    connect_again(&b.a, &b.b);
    connect_again(&b.b, &b.a);
    bed_must_post(&b, IBV_WR_RDMA_READ, 0, 0, 8, 0);
    bed_expect(&b.a, IBV_WC_LOC_QP_OP_ERR);
    bed_wishes.reads = 4;
    connect_again(&b.a, &b.b);
    bed_must_post(&b, IBV_WR_RDMA_READ, 0, 0, 8, 0);
    bed_expect(&b.a, IBV_WC_REM_INV_REQ_ERR);
    bed_close(&b);
}

void test_different_mtus(void)
{
    bed_load("");
    bed b = bed_open_apart();
    bed_connect(&b.a, &b.b);
    bed_wishes.mtu = IBV_MTU_512;
    bed_connect(&b.b, &b.a);
    bed_must_post(&b, IBV_WR_RDMA_WRITE, 0, 0, 64, IBV_SEND_SIGNALED);
    bed_expect(&b.a, IBV_WC_SUCCESS);
    bed_must_post(&b, IBV_WR_RDMA_WRITE, 0, 0, 4096, IBV_SEND_SIGNALED);
    bed_expect(&b.a, IBV_WC_REM_INV_REQ_ERR);
    bed_close(&b);
}

/* Those of its own come back, shared ones stay. */
void test_flushed_receives(void)
{
    struct ibv_recv_wr wr = {.wr_id = 5}, *bad;
    bed_load("");
    bed b = bed_open();
    bed_post_receive(&b.a, 3);
    struct ibv_qp_init_attr init = {.send_cq = b.a.cq,
                                    .recv_cq = b.a.cq,
                                    .qp_type = IBV_QPT_RC,
                                    .cap = {.max_send_wr = 1, .max_recv_wr = 1}};
    bed_end own = b.a;
    own.qp = verbs.ibv_create_qp(b.a.pd, &init);
    assert_non_null(own.qp);
    bed_connect(&own, &b.b);
    assert_int_equal(ibv_post_recv(own.qp, &wr, &bad), 0);
    assert_int_equal(ibv_post_recv(own.qp, &wr, &bad), ENOMEM);
    const struct ibv_qp_attr none = {0};
    assert_int_equal(bed_modify(&own, none, IBV_QPS_ERR, IBV_QP_STATE), 0);
    assert_int_equal(bed_modify(&b.a, none, IBV_QPS_ERR, IBV_QP_STATE), 0);
    const struct ibv_wc wc = bed_poll(&own);
    assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
    assert_int_equal(wc.wr_id, 5);
    bed_expect_none(&b.a);
    expect_event(&b.a, IBV_EVENT_QP_LAST_WQE_REACHED);
    assert_int_equal(verbs.ibv_destroy_qp(own.qp), 0);
    bed_close(&b);
}

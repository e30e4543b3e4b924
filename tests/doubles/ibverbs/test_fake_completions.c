/* SPDX-License-Identifier: Apache-2.0
 * The fake libibverbs: receives, completions, and events. */
#include "fake_tests.h"
#include "verbs_bed.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- Receives ---- */

static void post_immediate(const bed *b, uint32_t value, unsigned flags)
{
    bed_request r;
    bed_request_make(&r, b, IBV_WR_RDMA_WRITE_WITH_IMM, 0, 64, 8);
    r.wr.imm_data = htonl(value);
    r.wr.send_flags = flags;
    assert_int_equal(bed_post(b, &r), 0);
}

static void expect_immediate(const bed_end *end, uint32_t value, uint64_t number)
{
    const struct ibv_wc wc = bed_poll(end);
    assert_int_equal(wc.status, IBV_WC_SUCCESS);
    assert_int_equal(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
    assert_int_equal(wc.wc_flags, IBV_WC_WITH_IMM);
    assert_int_equal(ntohl(wc.imm_data), value);
    assert_int_equal(wc.wr_id, number);
    assert_int_equal(wc.qp_num, end->qp->qp_num);
    assert_int_equal(wc.byte_len, 8);
}

static uint64_t rnr_naks(void)
{
    fake_ibverbs_counts counts;
    verbs.fake_ibverbs_counters(&counts);
    return counts.rnr_naks;
}

void test_immediates(void)
{
    struct ibv_recv_wr wr = {0}, *bad;
    bed_load("");
    bed b = bed_open();
    for (uint64_t i = 0; i < BED_DEPTH; i++)
        bed_post_receive(&b.b, i);
    assert_int_equal(ibv_post_srq_recv(b.b.srq, &wr, &bad), ENOMEM);
    assert_ptr_equal(bad, &wr);
    for (uint32_t i = 0; i < BED_DEPTH; i++) {
        bed_set_word(b.a.memory, i);
        post_immediate(&b, i, IBV_SEND_SIGNALED);
        bed_expect(&b.a, IBV_WC_SUCCESS);
        expect_immediate(&b.b, i, i);
        assert_int_equal(bed_word(b.b.memory + 64), i); /* not in the receive's own place */
        assert_int_equal(bed_word(b.b.memory), 0);
    }
    bed_post_receive(&b.b, 0);
    assert_int_equal(rnr_naks(), 0);
    bed_close(&b);
}

void test_not_ready(void)
{
    bed_load("");
    bed b = bed_open();
    post_immediate(&b, 9, IBV_SEND_SIGNALED);
    bed_expect_none(&b.a);
    assert_true(rnr_naks() > 0);
    bed_post_receive(&b.b, 4);
    bed_expect(&b.a, IBV_WC_SUCCESS);
    expect_immediate(&b.b, 9, 4);
    bed_close(&b);
}

void test_never_ready(void)
{
    bed_load("");
    bed_wishes.rnr_retry = 3;
    bed b = bed_open();
    post_immediate(&b, 9, 0);
    bed_expect(&b.a, IBV_WC_RNR_RETRY_EXC_ERR);
    assert_int_equal(rnr_naks(), 4);
    assert_int_equal(bed_state(&b.a), IBV_QPS_ERR);
    bed_close(&b);
}

void test_sends(void)
{
    bed_load("");
    bed b = bed_open();
    memset(b.a.memory, 3, 65);
    bed_post_receive(&b.b, 1);
    bed_post_receive(&b.b, 2);
    bed_must_post(&b, IBV_WR_SEND, 0, 0, 64, IBV_SEND_SIGNALED);
    bed_expect(&b.a, IBV_WC_SUCCESS);
    const struct ibv_wc wc = bed_poll(&b.b);
    assert_int_equal(wc.opcode, IBV_WC_RECV);
    assert_int_equal(wc.byte_len, 64);
    assert_memory_equal(b.b.memory, b.a.memory, 64);
    bed_request r;
    bed_request_make(&r, &b, IBV_WR_SEND_WITH_INV, 0, 0, 64);
    assert_int_equal(bed_post(&b, &r), EINVAL);                  /* not supported */
    bed_must_post(&b, IBV_WR_SEND, 0, 0, 65, IBV_SEND_SIGNALED); /* 64 have room */
    bed_expect(&b.a, IBV_WC_REM_INV_REQ_ERR);
    bed_expect(&b.b, IBV_WC_LOC_LEN_ERR);
    bed_close(&b);
}

/* ---- Events ---- */

static bool readable(int fd, int milliseconds)
{
    struct pollfd entry = {.fd = fd, .events = POLLIN};
    return poll(&entry, 1, milliseconds) == 1;
}

static void take_event(const bed_end *end)
{
    struct ibv_cq *cq;
    void *context;
    assert_int_equal(verbs.ibv_get_cq_event(end->channel, &cq, &context), 0);
    assert_ptr_equal(cq, end->cq);
    assert_ptr_equal(context, &verbs);
}

static void write_one(const bed *b)
{
    bed_must_post(b, IBV_WR_RDMA_WRITE, 0, 0, 8, IBV_SEND_SIGNALED);
}

/* Each request causes one event, and only for a later completion. */
void test_notification(void)
{
    struct ibv_cq *cq;
    void *context;
    bed_load("");
    bed b = bed_open();
    const int fd = b.a.channel->fd;
    assert_int_equal(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK), 0);
    assert_int_equal(verbs.ibv_get_cq_event(b.a.channel, &cq, &context), -1);
    assert_int_equal(errno, EAGAIN);
    write_one(&b);
    bed_await_completions(1);
    assert_false(readable(fd, 20)); /* not armed */
    assert_int_equal(ibv_req_notify_cq(b.a.cq, 0), 0);
    assert_false(readable(fd, 20)); /* it came before */
    write_one(&b);
    assert_true(readable(fd, 30000));
    write_one(&b);
    take_event(&b.a);
    bed_await_completions(3);
    assert_false(readable(fd, 20)); /* once */
    verbs.ibv_ack_cq_events(b.a.cq, 1);
    for (int i = 0; i < 3; i++)
        bed_expect(&b.a, IBV_WC_SUCCESS);
    assert_int_equal(ibv_req_notify_cq(b.a.cq, 0), 0);
    write_one(&b);
    assert_true(readable(fd, 30000)); /* dropped with its queue */
    bed_close(&b);
}

void test_solicited(void)
{
    bed_load("");
    bed b = bed_open();
    const int fd = b.b.channel->fd;
    for (uint64_t i = 0; i < 3; i++)
        bed_post_receive(&b.b, i);
    assert_int_equal(ibv_req_notify_cq(b.b.cq, 1), 0);
    post_immediate(&b, 0, 0);
    bed_await_completions(1);
    assert_false(readable(fd, 20));
    post_immediate(&b, 1, IBV_SEND_SOLICITED);
    assert_true(readable(fd, 30000));
    take_event(&b.b);
    assert_int_equal(ibv_req_notify_cq(b.b.cq, 0), 0);
    assert_int_equal(ibv_req_notify_cq(b.b.cq, 1), 0); /* all are wanted still */
    post_immediate(&b, 2, 0);
    assert_true(readable(fd, 30000));
    take_event(&b.b);
    verbs.ibv_ack_cq_events(b.b.cq, 2);
    bed_close(&b);
}

/* The real one would wait for ever. */
void test_unacknowledged(void)
{
    int status;
    bed_load("");
    bed b = bed_open();
    assert_int_equal(ibv_req_notify_cq(b.a.cq, 0), 0);
    write_one(&b);
    take_event(&b.a);
    const pid_t child = fork();
    if (child == 0) {
        signal(SIGABRT, SIG_DFL);
        verbs.ibv_destroy_qp(b.a.qp);
        verbs.ibv_destroy_cq(b.a.cq);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    verbs.ibv_ack_cq_events(b.a.cq, 1);
    bed_close(&b);
}

/* Unread events are dropped with their queue, and the descriptor is no longer readable. */
void test_events_go(void)
{
    struct ibv_cq *cq;
    void *context;
    bed_load("");
    bed b = bed_open();
    const int fd = b.a.channel->fd;
    assert_int_equal(ibv_req_notify_cq(b.a.cq, 0), 0);
    write_one(&b);
    assert_true(readable(fd, 30000));
    assert_int_equal(verbs.ibv_destroy_qp(b.a.qp), 0);
    assert_int_equal(verbs.ibv_destroy_cq(b.a.cq), 0);
    b.a.qp = NULL;
    b.a.cq = NULL;
    assert_false(readable(fd, 0));
    assert_int_equal(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK), 0);
    assert_int_equal(verbs.ibv_get_cq_event(b.a.channel, &cq, &context), -1);
    bed_close(&b);
}

static struct ibv_async_event next_event(const bed_end *end)
{
    struct ibv_async_event event;
    assert_int_equal(verbs.ibv_get_async_event(end->context, &event), 0);
    verbs.ibv_ack_async_event(&event);
    return event;
}

void test_overrun(void)
{
    struct ibv_wc wc[8];
    bed_load("");
    bed_wishes.completions = 4;
    bed b = bed_open();
    for (int i = 0; i < 5; i++)
        write_one(&b);
    struct ibv_async_event event = next_event(&b.a);
    assert_int_equal(event.event_type, IBV_EVENT_CQ_ERR);
    assert_ptr_equal(event.element.cq, b.a.cq);
    event = next_event(&b.a);
    assert_int_equal(event.event_type, IBV_EVENT_QP_FATAL);
    assert_int_equal(bed_state(&b.a), IBV_QPS_ERR);
    assert_int_equal(ibv_poll_cq(b.a.cq, 8, wc), 4);
    write_one(&b);
    bed_expect_none(&b.a); /* dead */
    bed_close(&b);
}

/* Of a queue pair that is gone. */
void test_completions_stay(void)
{
    bed_load("");
    bed b = bed_open();
    const uint32_t number = b.a.qp->qp_num;
    assert_int_equal(ibv_req_notify_cq(b.a.cq, 0), 0);
    write_one(&b);
    assert_true(readable(b.a.channel->fd, 30000));
    assert_int_equal(verbs.ibv_destroy_qp(b.a.qp), 0);
    b.a.qp = NULL;
    assert_int_equal(bed_poll(&b.a).qp_num, number);
    bed_close(&b);
}

/* SPDX-License-Identifier: Apache-2.0
 * The fake libibverbs: what is moved, in which order, and when. */
#include "fake_tests.h"
#include "verbs_bed.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>

enum { ROUNDS = 300 };

/* ---- Order ---- */

/* The second write is seen only with all of the first, also by who looks at half a word. */
void test_writes_in_order(void)
{
    enum { PAYLOAD = 4096, FLAG = 8192, HIGH = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 4 : 0 };
    bed_load("");
    bed b = bed_open();
    for (int round = 1; round <= ROUNDS; round++) {
        memset(b.a.memory, round & 0x7f, PAYLOAD);
        bed_set_word(b.a.memory + FLAG, (uint64_t)round << 32);
        bed_must_post(&b, IBV_WR_RDMA_WRITE, 0, 0, PAYLOAD, 0);
        bed_must_post(&b, IBV_WR_RDMA_WRITE, FLAG, FLAG, 8, IBV_SEND_SIGNALED);
        if (round % 2 == 0)
            bed_await_word(b.b.memory + FLAG, (uint64_t)round << 32);
        else
            bed_await_half(b.b.memory + FLAG + HIGH, (uint32_t)round);
        assert_memory_equal(b.b.memory, b.a.memory, PAYLOAD);
        bed_expect(&b.a, IBV_WC_SUCCESS);
    }
    bed_close(&b);
}

/* @return true if the last word of a line was seen before its first one; sets the reverse. */
static bool last_came_first(const bed *b, uint64_t value, bool *first_came_first)
{
    for (;;) {
        const uint64_t last = bed_word(b->b.memory + 56), first = bed_word(b->b.memory);
        const uint64_t last_again = bed_word(b->b.memory + 56);
        if (last == value && first != value)
            return true;
        *first_came_first |= first == value && last_again != value;
        if (last_again == value && first == value)
            return false;
    }
}

void test_pieces_in_any_order(void)
{
    bool seen = false, reverse = false;
    bed_load("");
    bed b = bed_open();
    const double deadline = bed_now() + 60;
    for (uint64_t value = 1; !seen || !reverse; value++) {
        for (size_t at = 0; at < 64; at += 8)
            bed_set_word(b.a.memory + at, value);
        bed_must_post(&b, IBV_WR_RDMA_WRITE, 0, 0, 64, IBV_SEND_SIGNALED);
        seen |= last_came_first(&b, value, &reverse);
        bed_expect(&b.a, IBV_WC_SUCCESS);
        assert_true(bed_now() < deadline);
    }
    bed_close(&b);
}

/* Two queue pairs have no order between them. @return true if the first one was done first. */
static bool first_is_first(const bed *b, const bed *other)
{
    struct ibv_wc wc;
    bed_must_post(b, IBV_WR_RDMA_WRITE, 0, 0, 64, IBV_SEND_SIGNALED);
    bed_must_post(other, IBV_WR_RDMA_WRITE, 0, 0, 64, IBV_SEND_SIGNALED);
    bed_expect(&other->a, IBV_WC_SUCCESS);
    if (ibv_poll_cq(b->a.cq, 1, &wc) == 1)
        return true;
    bed_expect(&b->a, IBV_WC_SUCCESS);
    return false;
}

void test_pairs_at_random(void)
{
    bool first = false, second = false;
    bed_load("seed=7");
    bed b = bed_open(), other = bed_open();
    const double deadline = bed_now() + 60;
    while (!first || !second) {
        if (first_is_first(&b, &other))
            first = true;
        else
            second = true;
        assert_true(bed_now() < deadline);
    }
    bed_close_one(&other);
    bed_close(&b);
}

/* ---- Threads ---- */

enum { THREADS = 4, WRITES = 500 };

/* On a queue pair of its own, at once with others. @return whether all was well. */
static void *write_many(void *argument)
{
    bed_request r;
    struct ibv_send_wr *bad;
    struct ibv_wc wc;
    const bed *b = argument;
    bool well = true;
    bed_request_make(&r, b, IBV_WR_RDMA_WRITE, 0, 0, 256);
    for (int i = 0; i < WRITES; i++) {
        int n = 0;
        bed_set_word(b->a.memory, (uint64_t)i);
        well &= ibv_post_send(b->a.qp, &r.wr, &bad) == 0;
        while (well && (n = ibv_poll_cq(b->a.cq, 1, &wc)) == 0)
            sched_yield();
        well &= n == 1 && wc.status == IBV_WC_SUCCESS;
        well &= bed_word(b->b.memory) == (uint64_t)i;
    }
    return well ? argument : NULL;
}

void test_threads(void)
{
    bed beds[THREADS];
    pthread_t threads[THREADS];
    bed_load("devices=4");
    for (int i = 0; i < THREADS; i++)
        beds[i] = bed_open();
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, write_many, &beds[i]), 0);
    for (int i = 0; i < THREADS; i++) {
        void *well;
        pthread_join(threads[i], &well);
        assert_non_null(well);
    }
    for (int i = 1; i < THREADS; i++)
        bed_close_one(&beds[i]);
    bed_close(&beds[0]);
}

/* ---- Places ---- */

static void fill(char *at, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        at[i] = (char)(i * 7 + i / 251);
}

/* Exactly those bytes come, whatever words they lie in. */
void test_any_alignment(void)
{
    enum { AROUND = 64 };
    static char expected[BED_BYTES];
    bed_load("");
    bed b = bed_open();
    fill(b.a.memory, BED_BYTES);
    for (uint32_t n = 0; n < ROUNDS; n++) {
        const uint32_t bytes = n < 40 ? n : n * 97 % 5000;
        const size_t from = n % 17, to = AROUND + n * 5 % 19;
        memset(b.b.memory, 0x55, AROUND + 8192);
        memset(expected, 0x55, AROUND + 8192);
        memcpy(expected + to, b.a.memory + from, bytes);
        bed_must_post(&b, IBV_WR_RDMA_WRITE, from, to, bytes, IBV_SEND_SIGNALED);
        bed_expect(&b.a, IBV_WC_SUCCESS);
        assert_memory_equal(b.b.memory, expected, AROUND + 8192);
    }
    bed_close(&b);
}

static void expect_gathered(const bed *b, enum ibv_wr_opcode opcode)
{
    bed_request r;
    const char *far = b->b.memory + 4096;
    bed_request_make(&r, b, opcode, 0, 4096, 5);
    r.sge[1] = (struct ibv_sge){(uintptr_t)b->a.memory + 100, 0, 0}; /* empty: no key */
    r.sge[2] = (struct ibv_sge){(uintptr_t)b->a.memory + 203, 1000, b->a.mr->lkey};
    r.wr.num_sge = 3;
    assert_int_equal(bed_post(b, &r), 0);
    bed_expect(&b->a, IBV_WC_SUCCESS);
    assert_memory_equal(far, b->a.memory, 5);
    assert_memory_equal(far + 5, b->a.memory + 203, 1000);
}

void test_several_elements(void)
{
    bed_request r;
    bed_load("");
    bed b = bed_open();
    fill(b.a.memory, 4096);
    expect_gathered(&b, IBV_WR_RDMA_WRITE);
    memset(b.a.memory, 0, 4096);
    expect_gathered(&b, IBV_WR_RDMA_READ);
    assert_int_equal(b.a.memory[5], 0);
    bed_request_make(&r, &b, IBV_WR_RDMA_WRITE, 0, 0, 8);
    r.wr.num_sge = 5;
    assert_int_equal(bed_post(&b, &r), EINVAL);
    bed_close(&b);
}

/* ---- Reads ---- */

void test_reads(void)
{
    fake_ibverbs_counts counts;
    bed_load("");
    bed b = bed_open();
    fill(b.b.memory, BED_BYTES);
    bed_must_post(&b, IBV_WR_RDMA_READ, 0, 0, BED_BYTES, IBV_SEND_SIGNALED);
    const struct ibv_wc wc = bed_poll(&b.a);
    assert_int_equal(wc.status, IBV_WC_SUCCESS);
    assert_int_equal(wc.opcode, IBV_WC_RDMA_READ);
    assert_int_equal(wc.byte_len, BED_BYTES);
    assert_memory_equal(b.a.memory, b.b.memory, BED_BYTES);
    verbs.fake_ibverbs_counters(&counts);
    assert_int_equal(counts.reads, 1);
    assert_int_equal(counts.bytes, BED_BYTES);
    bed_close(&b);
}

/* @return true if writing the bytes that were read transferred all of them. */
static bool forwards(const bed *b, unsigned flags)
{
    bool all = true;
    memset(b->a.memory, 0, 4096);
    memset(b->b.memory, 1, 4096);
    bed_must_post(b, IBV_WR_RDMA_READ, 0, 0, 4096, 0);
    bed_must_post(b, IBV_WR_RDMA_WRITE, 0, 8192, 4096, IBV_SEND_SIGNALED | flags);
    bed_expect(&b->a, IBV_WC_SUCCESS);
    for (size_t i = 0; i < 4096; i++)
        all &= b->b.memory[8192 + i] == 1;
    return all;
}

/* A write may begin before the data of a read is there, but not after a fence. */
void test_fence(void)
{
    int stale = 0;
    bed_load("");
    bed b = bed_open();
    for (int round = 0; round < ROUNDS; round++) {
        stale += !forwards(&b, 0);
        assert_true(forwards(&b, IBV_SEND_FENCE));
    }
    assert_true(stale > 0);
    bed_close(&b);
}

/* ---- Inline data, and others' ---- */

void test_inline_data(void)
{
    bed_request r;
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    bed_load("delay=20000,inline=48");
    bed b = bed_open();
    assert_int_equal(verbs.ibv_query_qp(b.a.qp, &attr, IBV_QP_CAP, &init), 0);
    assert_int_equal(init.cap.max_inline_data, 48); /* not the 64 that were asked for */
    bed_request_make(&r, &b, IBV_WR_RDMA_WRITE, 0, 0, 49);
    r.wr.send_flags |= IBV_SEND_INLINE;
    assert_int_equal(bed_post(&b, &r), EINVAL);
    r.sge[0].length = 48;
    r.sge[0].lkey = 0; /* not needed */
    bed_set_word(b.a.memory, 1);
    assert_int_equal(bed_post(&b, &r), 0);
    bed_set_word(b.a.memory, 2);
    bed_expect(&b.a, IBV_WC_SUCCESS);
    assert_int_equal(bed_word(b.b.memory), 1);
    bed_close(&b);
}

/* Data that is not inline is read when it is sent. */
void test_late(void)
{
    int late = 0;
    bed_load("delay=2000");
    bed b = bed_open();
    const double start = bed_now();
    for (int round = 0; round < 20; round++) {
        bed_set_word(b.a.memory, 1);
        bed_must_post(&b, IBV_WR_RDMA_WRITE, 0, 0, 8, IBV_SEND_SIGNALED);
        bed_set_word(b.a.memory, 2);
        bed_expect(&b.a, IBV_WC_SUCCESS);
        late += bed_word(b.b.memory) == 2;
    }
    assert_true(late > 0);
    assert_true(bed_now() - start > 20 * 0.5e-3);
    bed_close(&b);
}

/* ---- Places in the queue ---- */

void test_places(void)
{
    bed_request r;
    bed_load("");
    bed_wishes.depth = 4;
    bed b = bed_open();
    bed_request_make(&r, &b, IBV_WR_RDMA_WRITE, 0, 0, 8);
    for (int i = 0; i < 3; i++)
        bed_must_post(&b, IBV_WR_RDMA_WRITE, 0, 0, 8, 0);
    assert_int_equal(bed_post(&b, &r), 0);
    bed_await_completions(1); /* all are done, but nobody has looked */
    assert_int_equal(bed_post(&b, &r), ENOMEM);
    bed_expect(&b.a, IBV_WC_SUCCESS);
    for (int i = 0; i < 4; i++)
        bed_must_post(&b, IBV_WR_RDMA_WRITE, 0, 0, 8, 0);
    bed_expect_none(&b.a);
    assert_int_equal(bed_post(&b, &r), ENOMEM); /* none was signalled: for ever */
    bed_close(&b);
}

void test_lists(void)
{
    bed_request r[3];
    struct ibv_send_wr *bad;
    bed_load("");
    bed_wishes.depth = 2;
    bed b = bed_open();
    for (int i = 0; i < 3; i++) {
        bed_request_make(&r[i], &b, IBV_WR_RDMA_WRITE, 0, 0, 8);
        r[i].wr.wr_id = (uint64_t)i;
        r[i].wr.next = i < 2 ? &r[i + 1].wr : NULL;
    }
    assert_int_equal(ibv_post_send(b.a.qp, &r[0].wr, &bad), ENOMEM);
    assert_ptr_equal(bad, &r[2].wr);
    assert_int_equal(bed_poll(&b.a).wr_id, 0);
    assert_int_equal(bed_poll(&b.a).wr_id, 1);
    bed_expect_none(&b.a);
    bed_close(&b);
}

void test_all_signalled(void)
{
    bed_load("");
    bed_wishes.signal_all = true;
    bed b = bed_open();
    bed_must_post(&b, IBV_WR_RDMA_WRITE, 0, 0, 8, 0);
    bed_expect(&b.a, IBV_WC_SUCCESS);
    bed_close(&b);
}

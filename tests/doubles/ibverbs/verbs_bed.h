/* SPDX-License-Identifier: Apache-2.0
 *
 * verbs_bed: two connected queue pairs over the fake libibverbs, which is loaded as a program loads
 * rdma-core's. A test sets what it wants otherwise before. */
#ifndef TEST_DOUBLES_VERBS_BED_H
#define TEST_DOUBLES_VERBS_BED_H

#include "fake_ibverbs.h"

#include <infiniband/verbs.h>

#include "unit_test.h"

#define VERBS_FUNCTIONS(F) \
    F(ibv_get_device_list) \
    F(ibv_free_device_list) \
    F(ibv_get_device_name) \
    F(ibv_open_device) \
    F(ibv_close_device) \
    F(ibv_query_device) \
    F(ibv_query_port) \
    F(ibv_query_gid) \
    F(_ibv_query_gid_ex) \
    F(ibv_query_pkey) \
    F(ibv_get_pkey_index) \
    F(ibv_alloc_pd) \
    F(ibv_dealloc_pd) \
    F(ibv_reg_mr) \
    F(ibv_reg_mr_iova2) \
    F(ibv_reg_dmabuf_mr) \
    F(ibv_dereg_mr) \
    F(ibv_create_comp_channel) \
    F(ibv_destroy_comp_channel) \
    F(ibv_create_cq) \
    F(ibv_destroy_cq) \
    F(ibv_get_cq_event) \
    F(ibv_ack_cq_events) \
    F(ibv_create_srq) \
    F(ibv_destroy_srq) \
    F(ibv_create_qp) \
    F(ibv_modify_qp) \
    F(ibv_query_qp) \
    F(ibv_destroy_qp) \
    F(ibv_get_async_event) \
    F(ibv_ack_async_event) \
    F(ibv_event_type_str) \
    F(ibv_wc_status_str) \
    F(ibv_port_state_str) \
    F(ibv_fork_init) \
    F(ibv_is_fork_initialized) \
    F(fake_ibverbs_fail) \
    F(fake_ibverbs_cut) \
    F(fake_ibverbs_port_event) \
    F(fake_ibverbs_counters) \
    F(fake_ibverbs_dmabuf_calls)

#define DECLARE(name) __typeof__(&(name)) name;
typedef struct verbs_functions {
    VERBS_FUNCTIONS(DECLARE)
} verbs_functions;
#undef DECLARE
/** Functions found by dlsym(). */
extern verbs_functions verbs;

/** Loads the library. @param options  FAKE_IBVERBS. */
void bed_load(const char *options);
struct ibv_context *bed_open_device(int number);
/** ibv_query_port() as the header defines it. */
int bed_query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *out);

enum { BED_BYTES = 1 << 16, BED_DEPTH = 16 };

typedef struct bed_end {
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_comp_channel *channel;
    struct ibv_cq *cq;
    struct ibv_srq *srq;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    char *memory; /* BED_BYTES, all of it registered */
} bed_end;

typedef struct bed {
    bed_end a, b;
} bed;

/** Set before bed_open(). */
extern struct bed_wishes {
    uint32_t depth, inlined;
    int completions; /* of a queue */
    bool signal_all;
    enum ibv_mtu mtu;
    uint8_t timeout, retry_cnt, rnr_retry, min_rnr_timer, reads;
    unsigned access, qp_access; /* of memory, of the queue pair */
} bed_wishes;

/** Devices 0 and 1, both ends ready. */
bed bed_open(void);
/** As far as bed_connect() is needed. */
bed bed_open_apart(void);
/** INIT, RTR and RTS of one end. */
void bed_connect(const bed_end *end, const bed_end *peer);
/** The same with other attributes than bed_attr()'s. */
void bed_connect_as(const bed_end *end, struct ibv_qp_attr attr);
/** Closes both ends; no object of the library may remain. */
void bed_close(bed *b);
/** One of several. */
void bed_close_one(bed *b);

struct ibv_qp_attr bed_attr(const bed_end *end, const bed_end *peer);
enum {
    BED_INIT = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
    BED_RTR = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
              IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
    BED_RTS = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
              IBV_QP_MAX_QP_RD_ATOMIC,
};
/** @return the errno of ibv_modify_qp(). */
int bed_modify(const bed_end *end, struct ibv_qp_attr attr, enum ibv_qp_state state, int mask);
enum ibv_qp_state bed_state(const bed_end *end);

/** A request between the memories of the ends, signalled; 0 is its number. */
typedef struct bed_request {
    struct ibv_send_wr wr;
    struct ibv_sge sge[4];
} bed_request;
void bed_request_make(bed_request *r, const bed *b, enum ibv_wr_opcode opcode, size_t from,
                      size_t to, uint32_t bytes);
/** @return the errno of ibv_post_send() at end a. */
int bed_post(const bed *b, bed_request *r);
/** Makes it and posts it. */
void bed_must_post(const bed *b, enum ibv_wr_opcode opcode, size_t from, size_t to, uint32_t bytes,
                   unsigned flags);
void bed_post_receive(const bed_end *end, uint64_t number);

/** Waits for one completion. */
struct ibv_wc bed_poll(const bed_end *end);
void bed_expect(const bed_end *end, enum ibv_wc_status status);
/** Until so many have come since the process began, polled or not. */
void bed_await_completions(uint64_t count);
/** None comes for a moment. */
void bed_expect_none(const bed_end *end);
double bed_now(void);
void bed_sleep(double seconds);
/** A word that the adapter writes. */
uint64_t bed_word(const char *at);
void bed_set_word(char *at, uint64_t value);
/** Until it is that value. */
void bed_await_word(const char *at, uint64_t value);
/** The same of half a word. */
void bed_await_half(const char *at, uint32_t value);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * fake: declares the parts that the files of the fake libibverbs share. One lock guards all of
 * them, even while the adapter moves bytes: so after a key or a queue pair was destroyed, no
 * transfer uses it. Functions are called with the lock held unless their comments say otherwise. */
#ifndef TEST_DOUBLES_IBVERBS_FAKE_H
#define TEST_DOUBLES_IBVERBS_FAKE_H

#include "fake_ibverbs.h"

#include <stddef.h>
#include <sys/types.h>

#pragma GCC visibility push(default)
#include <infiniband/verbs.h>
#pragma GCC visibility pop
#undef ibv_query_port /* macros of the header around functions that are defined here */
#undef ibv_reg_mr

enum {
    MOST_DEVICES = 16,
    MOST_PORTS = 2, /* of a device */
    MOST_SGES = 16,
    MOST_PIECES = 16, /* of one message */
    MOST_SLOTS = 1 << 16,
    MOST_MESSAGE = 1 << 30,
    GID_ENTRIES = 8,
};

/* ---- Settings: FAKE_IBVERBS ---- */

typedef struct fake_settings {
    int devices, ports;
    bool infiniband, strict_inline, no_dmabuf, no_copy_on_fork;
    char down[IBV_SYSFS_NAME_MAX];
    uint32_t most_inline, mtu, most_wrs, most_reads;
    uint64_t memlock, seed;
    double delay;
} fake_settings;
/** Read at the first call. Without the lock. */
const fake_settings *fake_settings_get(void);

/* ---- Lock, dice, clock ---- */

/** Called without the lock, of course. */
void fake_lock(void);
void fake_unlock(void);
/** Lets those in who wait for the lock. */
void fake_lock_yield(void);
/** With the lock held; lets it go meanwhile. @param until  of fake_now(); 0: for ever. */
void fake_wait_for_work(double until);
void fake_tell_of_work(void);
uint64_t fake_roll(void);
/** @return seconds since some moment. */
double fake_now(void);
/** A line on stderr, then abort(). */
_Noreturn void fake_misuse(const char *what, const char *of);

extern fake_ibverbs_counts fake_counts;

/* ---- Failures ---- */

/** One call of ibv_ @p function. @return the errno that it fails with, also in errno; 0: none.
 *  Takes the lock itself. */
int fake_failure(const char *function);

/* ---- Events: a queue with a descriptor ---- */

typedef struct fake_event {
    void *of;
    int type;
} fake_event;

typedef struct fake_events {
    int fd;
    fake_event *list;
    size_t count, capacity;
} fake_events;
bool fake_events_open(fake_events *events);
void fake_events_close(fake_events *events);
void fake_events_add(fake_events *events, void *of, int type);
/** Those of @p of. */
void fake_events_drop(fake_events *events, const void *of);
/** Without the lock; reads the descriptor, and waits as its flags say. @return true, with the lock
 *  held then; false: errno tells why. */
bool fake_events_take(fake_events *events, fake_event *out);

/* ---- Devices and contexts ---- */

typedef struct fake_context fake_context;

typedef struct fake_device {
    struct ibv_device base;
    int number;
    bool cut;
    enum ibv_port_state state[MOST_PORTS];
    fake_context *contexts;
} fake_device;

struct fake_context {
    struct verbs_context verbs;
    fake_device *device;
    fake_events events;
    int users; /* domains, channels and queues */
    fake_context *next;
};

fake_device *fake_device_find(const char *name);
/** Ports are counted from 1. */
bool fake_device_has_port(uint32_t port);
fake_context *fake_context_of(const struct ibv_context *context);
union ibv_gid fake_device_gid(const fake_device *device);
uint16_t fake_device_lid(const fake_device *device);
/** Of one entry of the GID table. @return false: the entry is empty. */
bool fake_device_gid_entry(const fake_device *device, uint32_t index, struct ibv_gid_entry *out);
enum ibv_mtu fake_mtu(void);
uint32_t fake_mtu_bytes(enum ibv_mtu mtu);
void fake_async_event(struct ibv_context *context, enum ibv_event_type type, void *of);

/* ---- Memory ---- */

typedef struct fake_domain {
    struct ibv_pd base;
    int users; /* regions, receive queues and queue pairs */
} fake_domain;

/** @return where @p bytes at @p address lie for who holds that key; NULL: not allowed.
 *  @param remote  it is an rkey. @param access  IBV_ACCESS_ flags that are needed. */
char *fake_memory_at(const struct ibv_pd *pd, uint32_t key, bool remote, uint64_t address,
                     size_t bytes, unsigned access);

/** Memory in pieces, taken as one. */
typedef struct fake_spans {
    int count;
    struct {
        char *at;
        size_t bytes;
    } span[MOST_SGES];
} fake_spans;
/** @return false: a local key does not allow it. */
bool fake_spans_of(fake_spans *out, const struct ibv_pd *pd, const struct ibv_sge *sges, int count,
                   unsigned access);
size_t fake_spans_bytes(const fake_spans *spans);
/** Moves bytes as an adapter does: what lies there is read and written by aligned words. */
void fake_copy(const fake_spans *to, const fake_spans *from, size_t offset, size_t bytes);

/* ---- Completions ---- */

typedef struct fake_channel {
    struct ibv_comp_channel base;
    fake_events events;
} fake_channel;

typedef struct fake_completion {
    struct ibv_wc wc;
    bool solicited;
    uint64_t frees;    /* places of the queue pair's sends, up to here; 0: none */
    uint64_t receives; /* the receive queue one place of which gets free; 0: none */
} fake_completion;

typedef struct fake_cq {
    struct ibv_cq base;
    fake_completion *list;
    int first;
    _Atomic int count;
    enum { UNARMED, ARMED_SOLICITED, ARMED } armed;
    bool dead;
    int users; /* queue pairs */
    unsigned unacked, unacked_async;
} fake_cq;

void fake_cq_add(struct ibv_cq *cq, const fake_completion *completion);
int fake_poll_cq(struct ibv_cq *cq, int most, struct ibv_wc *wc); /* takes the lock */
int fake_req_notify_cq(struct ibv_cq *cq, int solicited_only);    /* takes the lock */

/* ---- Receives ---- */

typedef struct fake_receive {
    uint64_t wr_id;
    int sges;
    struct ibv_sge sge[MOST_SGES];
} fake_receive;

typedef struct fake_receives {
    uint64_t id;
    fake_receive *list; /* a ring; the numbers below only grow */
    uint32_t capacity, most_sges;
    uint64_t posted, taken, freed;
    struct fake_receives *next;
} fake_receives;

typedef struct fake_srq {
    struct ibv_srq base;
    fake_receives receives;
    int users;
} fake_srq;

bool fake_receives_open(fake_receives *queue, uint32_t capacity, uint32_t most_sges);
void fake_receives_close(fake_receives *queue);
/** The oldest. @return false: there is none. */
bool fake_receives_take(fake_receives *queue, fake_receive *out);
/** @return an errno; *bad is the first request that was not posted. */
int fake_receives_post(fake_receives *queue, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
void fake_receives_free_one(uint64_t id);
/* Both take the lock. */
int fake_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int fake_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

/* ---- Queue pairs ---- */

typedef struct fake_send {
    struct ibv_send_wr wr;
    struct ibv_sge sge[MOST_SGES];
    char *inlined; /* NULL: read when it is sent */
    size_t bytes;
    double not_before;
    enum { POSTED, MOVING, LANDED, DONE, FAILED } phase;
    enum ibv_wc_status status; /* of one that FAILED */
    uint8_t order[MOST_PIECES];
    int pieces, moved;
    size_t piece_bytes, skew; /* pieces begin at multiples of a word, where they go */
} fake_send;

typedef struct fake_qp {
    struct ibv_qp base;
    struct ibv_qp_attr attr; /* attr.qp_state is the state */
    struct ibv_qp_init_attr init;
    fake_send *sends;  /* a ring; the numbers below only grow */
    char *inline_data; /* of all sends */
    uint64_t posted, retired, freed;
    fake_receives receives; /* if it has no shared ones */
    double wake_at;         /* the adapter leaves it alone before */
    double unheard_since;   /* 0: the peer answers */
    int naks;               /* of the send under way */
    size_t active;          /* its number in the adapter's list, from 1; 0: it has nothing to do */
    bool established;
    unsigned unacked_async;
} fake_qp;

fake_qp *fake_qp_find(uint32_t number);
fake_send *fake_qp_send(const fake_qp *qp, uint64_t index);
fake_receives *fake_qp_receives(fake_qp *qp);
/** It goes to the error state. */
void fake_qp_break(fake_qp *qp);
void fake_qps_break_with(const struct ibv_cq *cq);
void fake_qp_free_sends(uint32_t number, uint64_t up_to);
int fake_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
                   struct ibv_send_wr **bad); /* takes the lock */

/* ---- The adapter ---- */

/** There is something to do for the queue pair. */
void fake_adapter_add(fake_qp *qp);
void fake_adapter_drop(fake_qp *qp);
bool fake_qp_has_work(const fake_qp *qp);
/** Does a little of it. */
void fake_qp_turn(fake_qp *qp, double now);
/** Does a little of one request of a queue pair that is ready to send. */
void fake_send_advance(fake_qp *qp, fake_send *send, double now);

#endif

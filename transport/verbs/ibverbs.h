/* SPDX-License-Identifier: Apache-2.0
 *
 * ibverbs: loads rdma-core's libibverbs when it is first needed, so that one build runs with and
 * without it. Posting and polling are inline functions of its header, and need no symbol.
 */
#ifndef RING_IBVERBS_H
#define RING_IBVERBS_H

#include "base.h"

#include <infiniband/verbs.h>

/* The header defines these as macros that call functions of the library by name. */
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova
#undef ibv_get_device_list

/** One row per function: its name without "ibv_", its result, its parameters. */
#define IBVERBS_FUNCTIONS(ROW) \
    ROW(get_device_list, struct ibv_device **, (int *count)) \
    ROW(free_device_list, void, (struct ibv_device * *list)) \
    ROW(get_device_name, const char *, (struct ibv_device * device)) \
    ROW(open_device, struct ibv_context *, (struct ibv_device * device)) \
    ROW(close_device, int, (struct ibv_context * context)) \
    ROW(query_device, int, (struct ibv_context * context, struct ibv_device_attr * out)) \
    ROW(query_port, int, (struct ibv_context * context, uint8_t port, void *out)) \
    ROW(query_gid, int, \
        (struct ibv_context * context, uint8_t port, int index, union ibv_gid *out)) \
    ROW(query_pkey, int, (struct ibv_context * context, uint8_t port, int index, __be16 *out)) \
    ROW(alloc_pd, struct ibv_pd *, (struct ibv_context * context)) \
    ROW(dealloc_pd, int, (struct ibv_pd * pd)) \
    ROW(reg_mr, struct ibv_mr *, (struct ibv_pd * pd, void *base, size_t bytes, int access)) \
    ROW(reg_mr_iova2, struct ibv_mr *, \
        (struct ibv_pd * pd, void *base, size_t bytes, uint64_t iova, unsigned access)) \
    ROW(dereg_mr, int, (struct ibv_mr * mr)) \
    ROW(create_comp_channel, struct ibv_comp_channel *, (struct ibv_context * context)) \
    ROW(destroy_comp_channel, int, (struct ibv_comp_channel * channel)) \
    ROW(create_cq, struct ibv_cq *, \
        (struct ibv_context * context, int entries, void *own, struct ibv_comp_channel *channel, \
         int vector)) \
    ROW(destroy_cq, int, (struct ibv_cq * cq)) \
    ROW(get_cq_event, int, (struct ibv_comp_channel * channel, struct ibv_cq * *cq, void **own)) \
    ROW(ack_cq_events, void, (struct ibv_cq * cq, unsigned count)) \
    ROW(create_srq, struct ibv_srq *, (struct ibv_pd * pd, struct ibv_srq_init_attr * attributes)) \
    ROW(destroy_srq, int, (struct ibv_srq * srq)) \
    ROW(create_qp, struct ibv_qp *, (struct ibv_pd * pd, struct ibv_qp_init_attr * attributes)) \
    ROW(modify_qp, int, (struct ibv_qp * qp, struct ibv_qp_attr * attributes, int mask)) \
    ROW(destroy_qp, int, (struct ibv_qp * qp)) \
    ROW(get_async_event, int, (struct ibv_context * context, struct ibv_async_event * event)) \
    ROW(ack_async_event, void, (struct ibv_async_event * event)) \
    ROW(event_type_str, const char *, (enum ibv_event_type type)) \
    ROW(wc_status_str, const char *, (enum ibv_wc_status status)) \
    ROW(fork_init, int, (void))

/** Functions that newer versions of the library have; NULL with an older one. */
#define IBVERBS_OPTIONAL(ROW) \
    ROW(is_fork_initialized, enum ibv_fork_status, (void)) \
    ROW(reg_dmabuf_mr, struct ibv_mr *, \
        (struct ibv_pd * pd, uint64_t offset, size_t bytes, uint64_t iova, int fd, int access))

typedef struct ibverbs {
#define ROW(name, result, parameters) result(*name) parameters;
    IBVERBS_FUNCTIONS(ROW)
    IBVERBS_OPTIONAL(ROW)
#undef ROW
    int (*query_gid_ex)(struct ibv_context *context, uint32_t port, uint32_t index,
                        struct ibv_gid_entry *out, uint32_t flags, size_t size); /* or NULL */
} ibverbs;

/** Loads the library once per process, and keeps it. @return its functions; NULL, with the reason
 *  passed to fail(), if the library is missing or too old. */
const ibverbs *ibverbs_load(void);

/** @return the cause of a completion status, and what the user can do, in one line. */
const char *ibverbs_explain(enum ibv_wc_status status);

#endif

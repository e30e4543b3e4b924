/* SPDX-License-Identifier: Apache-2.0
 * Devices and their ports, contexts, and the events of a context. */
#include "fake.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static fake_device devices[MOST_DEVICES];
static pthread_once_t made = PTHREAD_ONCE_INIT;

static void make(void)
{
    const fake_settings *settings = fake_settings_get();
    for (int i = 0; i < settings->devices; i++) {
        fake_device *d = &devices[i];
        d->number = i;
        d->base.node_type = IBV_NODE_CA;
        d->base.transport_type = IBV_TRANSPORT_IB;
        snprintf(d->base.name, sizeof d->base.name, "fake%d", i);
        snprintf(d->base.dev_name, sizeof d->base.dev_name, "uverbs%d", i);
        d->cut = strcmp(settings->down, d->base.name) == 0;
        for (int port = 0; port < settings->ports; port++)
            d->state[port] = d->cut ? IBV_PORT_DOWN : IBV_PORT_ACTIVE;
    }
}

fake_device *fake_device_find(const char *name)
{
    pthread_once(&made, make);
    for (int i = 0; i < fake_settings_get()->devices; i++)
        if (strcmp(devices[i].base.name, name) == 0)
            return &devices[i];
    return NULL;
}

bool fake_device_has_port(uint32_t port)
{
    return port >= 1 && port <= (uint32_t)fake_settings_get()->ports;
}

struct ibv_device **ibv_get_device_list(int *count)
{
    if (fake_failure("get_device_list") != 0)
        return NULL;
    pthread_once(&made, make);
    const int n = fake_settings_get()->devices;
    struct ibv_device **list = calloc((size_t)n + 1, sizeof *list);
    for (int i = 0; list != NULL && i < n; i++)
        list[i] = &devices[i].base;
    if (list != NULL && count != NULL)
        *count = n;
    return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
    free(list);
}

const char *ibv_get_device_name(struct ibv_device *device)
{
    return device->name;
}

/* ---- Addresses ---- */

/* fe80::1:N on InfiniBand, else ::ffff:10.77.0.N. */
union ibv_gid fake_device_gid(const fake_device *device)
{
    union ibv_gid gid = {.raw = {[15] = (uint8_t)(device->number + 1)}};
    static const uint8_t infiniband[] = {0xfe, 0x80}, mapped[] = {0xff, 0xff, 10, 77, 0};
    if (fake_settings_get()->infiniband) {
        memcpy(gid.raw, infiniband, sizeof infiniband);
        gid.raw[13] = 1;
    } else {
        memcpy(gid.raw + 10, mapped, sizeof mapped);
    }
    return gid;
}

uint16_t fake_device_lid(const fake_device *device)
{
    return fake_settings_get()->infiniband ? (uint16_t)(device->number + 1) : 0;
}

bool fake_device_gid_entry(const fake_device *device, uint32_t index, struct ibv_gid_entry *out)
{
    const bool infiniband = fake_settings_get()->infiniband;
    if (index >= (infiniband ? 1 : 2))
        return false;
    memset(out, 0, sizeof *out);
    out->gid = fake_device_gid(device);
    out->gid_index = index;
    out->port_num = 1;
    out->gid_type = index == 0 ? IBV_GID_TYPE_ROCE_V1 : IBV_GID_TYPE_ROCE_V2;
    if (infiniband)
        out->gid_type = IBV_GID_TYPE_IB;
    else
        out->ndev_ifindex = 1;
    return true;
}

uint32_t fake_mtu_bytes(enum ibv_mtu mtu)
{
    return 128u << mtu;
}

enum ibv_mtu fake_mtu(void)
{
    enum ibv_mtu mtu = IBV_MTU_256;
    while (fake_mtu_bytes(mtu) < fake_settings_get()->mtu)
        mtu++;
    return mtu;
}

/* ---- Contexts ---- */

fake_context *fake_context_of(const struct ibv_context *context)
{
    return (fake_context *)(void *)((char *)(void *)context -
                                    offsetof(fake_context, verbs.context));
}

static int query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *out,
                      size_t bytes);

static void fill(fake_context *c)
{
    struct ibv_context *base = &c->verbs.context;
    c->verbs.sz = sizeof c->verbs;
    c->verbs.query_port = query_port;
    base->device = &c->device->base;
    base->cmd_fd = -1;
    base->async_fd = c->events.fd;
    base->num_comp_vectors = 2;
    base->abi_compat = __VERBS_ABI_IS_EXTENDED;
    pthread_mutex_init(&base->mutex, NULL);
    base->ops.post_send = fake_post_send;
    base->ops.post_recv = fake_post_recv;
    base->ops.post_srq_recv = fake_post_srq_recv;
    base->ops.poll_cq = fake_poll_cq;
    base->ops.req_notify_cq = fake_req_notify_cq;
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
    if (fake_failure("open_device") != 0)
        return NULL;
    fake_context *c = calloc(1, sizeof *c);
    if (c == NULL || !fake_events_open(&c->events)) {
        free(c);
        return NULL;
    }
    c->device = (fake_device *)(void *)device;
    fill(c);
    fake_lock();
    c->next = c->device->contexts;
    c->device->contexts = c;
    fake_counts.contexts++;
    fake_unlock();
    return &c->verbs.context;
}

static bool unlink_context(fake_context *c)
{
    fake_context **at = &c->device->contexts;
    if (c->users > 0)
        return false;
    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    fake_counts.contexts--;
    return true;
}

int ibv_close_device(struct ibv_context *context)
{
    fake_context *c = fake_context_of(context);
    fake_lock();
    const bool done = unlink_context(c);
    fake_unlock();
    if (!done) {
        errno = EBUSY;
        return EBUSY;
    }
    fake_events_close(&c->events);
    pthread_mutex_destroy(&context->mutex);
    free(c);
    return 0;
}

/* ---- Queries ---- */

static void fill_limits(struct ibv_device_attr *out)
{
    const fake_settings *settings = fake_settings_get();
    out->max_mr_size = UINT64_MAX;
    out->page_size_cap = 4096;
    out->max_qp = MOST_SLOTS - 1;
    out->max_qp_wr = (int)settings->most_wrs;
    out->device_cap_flags = IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_PORT_ACTIVE_EVENT;
    out->max_sge = out->max_sge_rd = MOST_SGES;
    out->max_cq = 1 << 16;
    out->max_cqe = 1 << 20;
    out->max_mr = MOST_SLOTS - 1;
    out->max_pd = 1 << 16;
    out->max_qp_rd_atom = out->max_qp_init_rd_atom = (int)settings->most_reads;
    out->max_res_rd_atom = out->max_qp * out->max_qp_rd_atom;
    out->atomic_cap = IBV_ATOMIC_NONE;
    out->max_srq = 1 << 16;
    out->max_srq_wr = (int)settings->most_wrs;
    out->max_srq_sge = MOST_SGES;
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *out)
{
    const int error = fake_failure("query_device");
    if (error != 0)
        return error;
    memset(out, 0, sizeof *out);
    strcpy(out->fw_ver, "0.0.0");
    out->node_guid = fake_device_gid(fake_context_of(context)->device).global.interface_id;
    out->sys_image_guid = out->node_guid;
    fill_limits(out);
    out->max_pkeys = 1;
    out->local_ca_ack_delay = 15;
    out->phys_port_cnt = (uint8_t)fake_settings_get()->ports;
    return 0;
}

static void fill_port(const fake_device *device, uint8_t port, struct ibv_port_attr *out)
{
    const bool infiniband = fake_settings_get()->infiniband;
    out->state = device->state[port - 1];
    out->max_mtu = IBV_MTU_4096;
    out->active_mtu = fake_mtu();
    out->gid_tbl_len = GID_ENTRIES;
    out->max_msg_sz = MOST_MESSAGE;
    out->pkey_tbl_len = 1;
    out->lid = fake_device_lid(device);
    out->sm_lid = infiniband ? 1 : 0;
    out->active_width = 2;  /* 4 lanes */
    out->active_speed = 32; /* of 25 Gb/s */
    out->phys_state = out->state == IBV_PORT_ACTIVE ? 5 : 3;
    out->link_layer = infiniband ? IBV_LINK_LAYER_INFINIBAND : IBV_LINK_LAYER_ETHERNET;
}

static int query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *out,
                      size_t bytes)
{
    struct ibv_port_attr all = {0};
    const int error = fake_failure("query_port");
    if (error != 0 || !fake_device_has_port(port))
        return error != 0 ? error : EINVAL;
    fake_lock();
    fill_port(fake_context_of(context)->device, port, &all);
    fake_unlock();
    memset(out, 0, bytes);
    memcpy(out, &all, bytes < sizeof all ? bytes : sizeof all);
    return 0;
}

/* Old programs have a struct without the newest field. */
int ibv_query_port(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *out)
{
    return query_port(context, port, (struct ibv_port_attr *)(void *)out,
                      offsetof(struct ibv_port_attr, port_cap_flags2));
}

int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index,
                      struct ibv_gid_entry *out, uint32_t flags, size_t bytes)
{
    struct ibv_gid_entry all;
    const int error = fake_failure("query_gid");
    if (error != 0)
        return error;
    if (!fake_device_has_port(port) || index >= GID_ENTRIES || flags != 0 || bytes < sizeof all)
        return EINVAL;
    if (!fake_device_gid_entry(fake_context_of(context)->device, index, &all))
        return ENODATA;
    all.port_num = port;
    memset(out, 0, bytes);
    memcpy(out, &all, sizeof all);
    return 0;
}

int ibv_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid)
{
    struct ibv_gid_entry entry = {0};
    const int error = _ibv_query_gid_ex(context, port, (uint32_t)index, &entry, 0, sizeof entry);
    if (error != 0 && error != ENODATA) {
        errno = error;
        return -1;
    }
    *gid = entry.gid; /* of an empty entry: 0 */
    return 0;
}

int ibv_query_pkey(struct ibv_context *context, uint8_t port, int index, __be16 *pkey)
{
    if (fake_failure("query_pkey") != 0)
        return -1;
    if (!fake_device_has_port(port) || index != 0) {
        errno = EINVAL;
        return -1;
    }
    *pkey = htons(0xffff);
    return 0;
}

int ibv_get_pkey_index(struct ibv_context *context, uint8_t port, __be16 pkey)
{
    return fake_device_has_port(port) && pkey == htons(0xffff) ? 0 : -1;
}

/* ---- Asynchronous events ---- */

void fake_async_event(struct ibv_context *context, enum ibv_event_type type, void *of)
{
    fake_events_add(&fake_context_of(context)->events, of, (int)type);
}

/* @return where the element's unacknowledged events are counted; NULL: of a port. */
static unsigned *unacked_of(const struct ibv_async_event *event)
{
    switch (event->event_type) {
    case IBV_EVENT_CQ_ERR:
        return &((fake_cq *)(void *)event->element.cq)->unacked_async;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
        return &((fake_qp *)(void *)event->element.qp)->unacked_async;
    default:
        return NULL;
    }
}

int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
    fake_event taken;
    if (fake_failure("get_async_event") != 0)
        return -1;
    if (!fake_events_take(&fake_context_of(context)->events, &taken))
        return -1;
    event->event_type = (enum ibv_event_type)taken.type;
    event->element.qp = taken.of;
    unsigned *unacked = unacked_of(event);
    if (unacked != NULL)
        ++*unacked;
    else
        event->element.port_num = 1;
    fake_unlock();
    return 0;
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
    fake_lock();
    unsigned *unacked = unacked_of(event);
    if (unacked != NULL && (*unacked)-- == 0)
        fake_misuse("acknowledged more than once", ibv_event_type_str(event->event_type));
    fake_unlock();
}

/* ---- For tests ---- */

bool fake_ibverbs_cut(const char *name, bool cut)
{
    fake_device *device = fake_device_find(name);
    if (device == NULL)
        return false;
    fake_lock();
    device->cut = cut;
    fake_unlock();
    return true;
}

bool fake_ibverbs_port_event(const char *name, int event)
{
    fake_device *device = fake_device_find(name);
    if (device == NULL)
        return false;
    fake_lock();
    if (event == IBV_EVENT_PORT_ERR)
        device->state[0] = IBV_PORT_DOWN;
    if (event == IBV_EVENT_PORT_ACTIVE)
        device->state[0] = IBV_PORT_ACTIVE;
    for (fake_context *c = device->contexts; c != NULL; c = c->next)
        fake_events_add(&c->events, NULL, event);
    fake_unlock();
    return true;
}

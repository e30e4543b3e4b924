/* SPDX-License-Identifier: Apache-2.0
 *
 * adapter: opens the RDMA devices of this process once and keeps them open. Each device has one
 * protection domain, one completion queue and one shared receive queue for all its links. The
 * active ports of the devices are the *rails* that links may use. They are sorted by name, which
 * gives the same order on hosts with the same hardware.
 *
 * The thread that holds a device's lock polls its completions and records them at their queue pairs
 * (completions.h), so one thread may poll for all links.
 */
#ifndef RING_ADAPTER_H
#define RING_ADAPTER_H

#include "ibverbs.h"
#include "pci_distance.h"

#include <pthread.h>
#include <stdatomic.h>

enum { ADAPTER_MOST_DEVICES = 16, ADAPTER_MOST_PORTS = 16 };

typedef struct adapter_device {
    char name[64];
    int index; /* in the list of open devices */
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_srq *srq; /* holds receive requests without memory, for wake-ups */
    struct ibv_comp_channel *channel;
    struct ibv_device_attr attributes;
    pci_place place;
    enum { DMABUF_UNKNOWN, DMABUF_NO, DMABUF_YES } dmabuf; /* see device_memory.h */
    bool said;            /* the warning that it cannot access accelerators was logged */
    pthread_mutex_t lock; /* held while completions are polled and events are read */
    _Atomic bool dead;    /* the device has reported a fatal error */
} adapter_device;

typedef struct adapter_port {
    adapter_device *device;
    char name[72]; /* "mlx5_0:1" */
    uint8_t number;
    bool ethernet;   /* RoCE */
    uint16_t lid;    /* 0: RoCE */
    int mtu;         /* enum ibv_mtu */
    int gid_index;   /* the chosen entry of the GID table */
    const char *why; /* the kind of that entry, for logs: "RoCE v2, IPv4" */
    union ibv_gid gid;
    size_t longest;    /* largest transfer in bytes */
    double rate;       /* bytes per second; 0: unknown */
    _Atomic bool down; /* it went down after it was opened, and is still down */
} adapter_port;

/** Opens the devices at the first call.
 *  @param[out] out  all active ports of this process's devices, sorted by name.
 *  @return the number of ports; if it is 0, the reason was passed to fail(). */
int adapter_ports(const adapter_port **out);

/** @return true if @p list selects the port. The syntax is that of NCCL_IB_HCA: "mlx5",
 *  "=mlx5_0:1,mlx5_1" or "^mlx5_2". An empty list selects all ports. */
bool adapter_list_has(const char *list, const adapter_port *port);

/** @return the index of the first port on this thread's NUMA node; 0 if there is no such port. */
int adapter_nearest(const adapter_port *const *ports, int count);
/** @return the index of the port that is nearest to a place on the PCI bus; the first of several
 *  equally near ones. */
int adapter_nearest_to(const pci_place *place, const adapter_port *const *ports, int count);

/** Registers memory. @param access  IBV_ACCESS_*. @return NULL with errno set on failure. */
struct ibv_mr *adapter_register(const adapter_device *device, void *base, size_t bytes,
                                unsigned access);

/** Reads and logs the device's asynchronous events, and updates `dead` and `down`. Never blocks. */
void adapter_look_at_events(adapter_device *device);

/** Writes a port's description for logs and ringinfo. */
void adapter_describe(const adapter_port *port, char *out, size_t size);

#endif

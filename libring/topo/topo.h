/* SPDX-License-Identifier: Apache-2.0
 *
 * topo: reads this machine's cores, NUMA nodes, memory, network interfaces and accelerators,
 * without changing anything. An unknown value is 0, -1 or "", as documented below; no value is
 * guessed. Unless a comment says otherwise, CPUs are those that this process may run on.
 */
#ifndef RING_TOPO_H
#define RING_TOPO_H

#include "base.h"

#include <netinet/in.h>
#include <sched.h>

/* ---- CPU ------------------------------------------------------------------------ */

/** One physical core. */
typedef struct topo_core {
    int package;    /* socket number, 0 if unknown           */
    int numa;       /* NUMA node number, 0 if unknown        */
    cpu_set_t cpus; /* its logical CPUs that this process may run on */
} topo_core;

typedef struct topo_cpu {
    char source[32];     /* of the list of cores: "hwloc API 2.9.0" or "/sys"   */
    char model[128];     /* "" if unknown                                       */
    int online;          /* logical CPUs of the machine                         */
    int allowed;         /* logical CPUs that this process may run on           */
    double quota;        /* the CPU time that the cgroups grant, in CPUs; 0: no limit */
    int packages, numas; /* the number of sockets, and of NUMA nodes */
    topo_core *cores;    /* [core_count], sorted by package, then by logical CPU */
    size_t core_count;
} topo_cpu;

/** Fills in @p cpu, which topo_cpu_free() frees. @return RING_OK, RING_ERR_MEMORY, RING_ERR_SYSTEM.
 */
ring_status topo_cpu_read(topo_cpu *cpu);
void topo_cpu_free(topo_cpu *cpu);

/* ---- Memory --------------------------------------------------------------------- */

typedef struct topo_memory {
    size_t total, available; /* bytes of the machine */
    size_t limit;            /* bytes that the cgroups allow; 0: no limit below total */
} topo_memory;

void topo_memory_read(topo_memory *memory);

/* ---- Network -------------------------------------------------------------------- */

enum { TOPO_ADDRESS_MAX = INET6_ADDRSTRLEN, TOPO_ADDRESSES = 8 };

typedef struct topo_interface {
    char name[16];
    bool up, loopback;
    int mtu;          /* -1 if unknown                     */
    long speed_mbits; /* Mbit/s; -1 if the driver reports none */
    size_t address_count;
    char addresses[TOPO_ADDRESSES][TOPO_ADDRESS_MAX]; /* IPv4 first, no link-local IPv6 */
} topo_interface;

typedef struct topo_net {
    topo_interface *interfaces;
    size_t count;
} topo_net;

/** Fills in @p net, which topo_net_free() frees. @return RING_OK, RING_ERR_MEMORY, RING_ERR_SYSTEM.
 */
ring_status topo_net_read(topo_net *net);
void topo_net_free(topo_net *net);

/** @return the address that ranks announce to other hosts, chosen by interface.h; NULL if the host
 *  has only the loopback. */
const char *topo_net_public_address(const topo_net *net);

/** Writes this host's name, truncated to @p size. */
void topo_hostname(char *out, size_t size);

/* ---- Accelerators and adapters ---------------------------------------------------- */

enum { TOPO_DEVICES = 16 };

typedef struct topo_device {
    char name[64];  /* "mlx5_0", "0000:01:00.0" */
    char state[64]; /* "port 1 ACTIVE, 100 Gb/sec (4X EDR)", "NVIDIA" … */
} topo_device;

/** Fill in the first TOPO_DEVICES GPUs or InfiniBand adapters. @return the number of all of them.
 */
size_t topo_gpus(topo_device devices[TOPO_DEVICES]);
size_t topo_infiniband(topo_device devices[TOPO_DEVICES]);

#endif

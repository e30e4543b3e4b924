/* SPDX-License-Identifier: Apache-2.0
 *
 * facts: what the doctor reads before it judges: limits, memory, cores, interfaces, adapters, the
 * PCI bus, versions. Files come from below a root, so that a copied or made tree is read like a
 * machine; what is not known is -1 or "".
 */
#ifndef DOCTOR_FACTS_H
#define DOCTOR_FACTS_H

#include "base.h"
#include "pci_distance.h"

enum {
    FACTS_INTERFACES = 64,
    FACTS_SUBNETS = 8,
    FACTS_PORTS = 32,
    FACTS_GIDS = 64,
    FACTS_PKEYS = 128,
    FACTS_GPUS = 16,
    FACTS_BRIDGES = 64,
    FACTS_LEFTOVERS = 8,
};

/** Of a resource; HUGE_VAL: unlimited. */
typedef struct fact_limit {
    double soft, hard;
} fact_limit;

typedef struct facts_limits {
    fact_limit locked, files, processes, address_space;
    bool may_lock;  /* the limit on locked memory does not hold for this process */
    bool container; /* of Docker or Podman */
} facts_limits;

typedef struct facts_memory {
    double total;                   /* of the machine                             */
    double shm;                     /* bytes that /dev/shm can take; -1: not there */
    double group_limit, group_used; /* of the cgroup that leaves least; -1: none   */
    int group_version;
    char group_folder[256];
    char heap_error[320]; /* why ring_mem_alloc cannot work; "": it can */
} facts_memory;

typedef struct facts_cpu {
    int cpus; /* that this process may run on */
    int numas, local_ranks;
    bool hyper_threads;
    double quota;               /* CPUs' worth of time; 0: no limit                      */
    double pids_max, pids_used; /* of the cgroup that leaves least; -1: no limit         */
    char pids_folder[256];
    int slow_cpus; /* whose governor saves power                            */
    char governor[32], driver[32], preference[40]; /* of a slow one, else of the first   */
} facts_cpu;

typedef struct fact_interface {
    char name[16], state[24], duplex[16];
    bool enabled, carrier, physical, loopback;
    long mtu, speed;     /* Mbit/s                                  */
    double errors[2];    /* received and sent, first and last reading */
    size_t subnet_count; /* IPv4, "192.168.1.0/24"                  */
    char subnets[FACTS_SUBNETS][24];
} fact_interface;

typedef struct facts_net {
    char hostname[256], own_address[64]; /* what /etc/hosts says for the name  */
    char chosen[16];                     /* interface that other hosts reach   */
    char wish[64];                       /* RING_SOCKET_IFNAME                 */
    char address[64];                    /* its address; "" below a root       */
    size_t count;
    fact_interface interfaces[FACTS_INTERFACES];
} facts_net;

typedef struct fact_gid {
    int index;
    char gid[48], type[24], netdev[16];
} fact_gid;

/** Counters of a port that stand still in a sound network. */
enum { FACTS_COUNTERS = 12 };
extern const char *const fact_counters[FACTS_COUNTERS]; /* "counters/symbol_error" ... */

typedef struct fact_port {
    char device[32], model[32], board[40], firmware[40], pci[16];
    int number;
    char state[24], phys_state[32], link_layer[24], rate[48];
    long sm_lid;
    int traffic_class;                  /* that the device sets by itself, -1: not told */
    double counters[2][FACTS_COUNTERS]; /* first and last reading, -1: there is none */
    size_t gid_count, pkey_count;
    fact_gid gids[FACTS_GIDS];
    unsigned pkeys[FACTS_PKEYS];
} fact_port;

/** How an active port does when it sends to itself. */
typedef struct fact_trial {
    char port[72], error[400]; /* "": it works */
    double rate;               /* bytes a second that the port is made for; 0: not known */
    double median_us, slow_us; /* 8 bytes there and back: the median, and one of a hundred */
    double bytes_per_second;
} fact_trial;

/** A place on the PCI bus. */
typedef struct fact_pci {
    char address[16];
    pci_place place;
    long width, max_width;
    double speed, max_speed; /* GT/s */
} fact_pci;

typedef struct fact_bridge {
    char address[16];
    int access_control; /* 1: redirects what devices send to each other; 0: not; -1: unknown */
} fact_bridge;

typedef struct facts_pci {
    char driver[160]; /* first line of NVIDIA's */
    bool peer_memory; /* nvidia-peermem or nv_peer_mem is loaded */
    bool translates;  /* the kernel was told to use the IOMMU for devices of its own */
    size_t gpu_count, adapter_count, bridge_count;
    fact_pci gpus[FACTS_GPUS], adapters[FACTS_PORTS];
    fact_bridge bridges[FACTS_BRIDGES];
} facts_pci;

typedef struct fact_leftover {
    int pid;
    char name[32];
} fact_leftover;

typedef struct facts_versions {
    char kernel[80], glibc[24];
    size_t leftover_count;
    fact_leftover leftovers[FACTS_LEFTOVERS];
} facts_versions;

typedef struct facts {
    const char *root; /* "": this machine */
    double seconds;   /* between the two readings of the counters; 0: read once */
    unsigned pkey;    /* partition that jobs shall use */
    facts_limits limits;
    facts_memory memory;
    facts_cpu cpu;
    facts_net net;
    facts_pci pci;
    facts_versions versions;
    size_t port_count;
    fact_port ports[FACTS_PORTS];
    char no_trial[400]; /* why no port can be tried; "": some can */
    size_t trial_count;
    fact_trial trials[FACTS_PORTS];
} facts;

/** Reads everything; sleeps f->seconds between two readings of the counters. root, seconds and pkey
 *  are set. */
void facts_read(facts *f);

/* Parts of it. */
void facts_read_limits(facts *f);
void facts_read_memory(facts *f);
void facts_read_cpu(facts *f);
void facts_read_pids(facts *f);
void facts_read_net(facts *f);
void facts_read_ports(facts *f);
void facts_read_pci(facts *f); /* after the ports */
void facts_read_versions(facts *f);
/** Uses each active port of this machine, but none below a root. */
void facts_try_ports(facts *f);
/** @param reading  0 or 1. */
void facts_read_port_counters(facts *f, int reading);
void facts_read_net_counters(facts *f, int reading);

/* ---- For the readers */

/** Calls @p take for each name in a folder below the root, sorted, without those that begin with a
 *  dot. */
void facts_each(facts *f, void (*take)(facts *f, const char *name, void *context), void *context,
                const char *folder_format, ...) RING_PRINTF(4, 5);
/** A number at the start of a file below the root; -1 if there is none. */
double facts_number(const facts *f, const char *path_format, ...) RING_PRINTF(2, 3);
/** First line of a file below the root. @return false, and "", if it cannot be read. */
bool facts_line(const facts *f, char *out, size_t size, const char *path_format, ...)
    RING_PRINTF(4, 5);
bool facts_exists(const facts *f, const char *path);

#endif

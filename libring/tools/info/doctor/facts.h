/* SPDX-License-Identifier: Apache-2.0
 *
 * facts: reads the state of interfaces, adapters and the PCI bus, which the checks judge and which
 * are compared between hosts. All files are looked for in a root folder, so that a copy of another
 * host's /sys, /proc and /etc can be examined, too. Unknown values are -1 or "".
 */
#ifndef DOCTOR_FACTS_H
#define DOCTOR_FACTS_H

#include "link_trial.h"
#include "pci_distance.h"

enum {
    FACTS_INTERFACES = 64,
    FACTS_SUBNETS = 8,
    FACTS_PORTS = 32,
    FACTS_GIDS = 64,
    FACTS_PKEYS = 128,
    FACTS_GPUS = 16,
    FACTS_COUNTERS = 12,
};

typedef struct fact_interface {
    char name[16], duplex[16];
    bool enabled, carrier, physical, loopback;
    long mtu, speed;     /* bytes, and Mbit/s                       */
    double errors[2];    /* of receiving and sending, at the first and last reading */
    size_t subnet_count; /* number of subnets of IPv4, "192.168.1.0/24" */
    char subnets[FACTS_SUBNETS][24];
} fact_interface;

typedef struct facts_net {
    char hostname[256], own_address[64]; /* the host's name, and its address in /etc/hosts */
    char wish[64];                       /* value of RING_SOCKET_IFNAME                    */
    char address[64];                    /* of `chosen`; "" in a copied tree               */
    const fact_interface *chosen;        /* interface that other hosts connect to, or NULL */
    size_t count;
    fact_interface interfaces[FACTS_INTERFACES];
} facts_net;

typedef struct fact_gid {
    int index;
    char gid[48], type[24], netdev[16];
} fact_gid;

/** Counters of a port that do not rise in a healthy network. */
extern const char *const fact_counters[FACTS_COUNTERS]; /* "counters/symbol_error" ... */

typedef struct fact_port {
    char name[48], folder[1024]; /* "mlx5_0:1", and the folder of the port's files */
    char device[32], model[32], board[40], firmware[40], pci[16];
    int number;
    bool is_active, is_roce;
    char state[24], phys_state[32], link_layer[24], rate[48];
    const fact_interface *net; /* RoCE: the interface of its GIDs, or NULL */
    int mtu;                   /* the largest that fits the interface's MTU; 0: unknown */
    int traffic_class;         /* the device's default; -1: unknown */
    int sent_class;            /* the class of packets: of the setting, else the device's, else 0 */
    double counters[2][FACTS_COUNTERS]; /* first and last reading; -1: the port lacks it */
    size_t gid_count, pkey_count;
    fact_gid gids[FACTS_GIDS];
    unsigned pkeys[FACTS_PKEYS];
} fact_port;

/** The result of the test of an active port, which sends to itself. */
typedef struct fact_trial {
    char port[72], error[400]; /* error "": the port works */
    double rate;               /* nominal bytes per second of the port; 0: unknown */
    link_trial measured;
} fact_trial;

/** A GPU or an adapter on the PCI bus. */
typedef struct fact_pci {
    char address[16];
    bool is_gpu;
    pci_place place;
    long width, max_width;
    double speed, max_speed; /* GT/s */
} fact_pci;

typedef struct facts_pci {
    char driver[160];   /* first line of the version of NVIDIA's driver; "": no driver */
    size_t count, gpus; /* numbers of devices, and of GPUs, which come first */
    fact_pci devices[FACTS_GPUS + FACTS_PORTS];
} facts_pci;

typedef struct facts {
    const char *root; /* folder that is read instead of "/"; "": this machine */
    double seconds;   /* time between the two readings of the counters */
    unsigned pkey;    /* partition that jobs should use */
    int set_class;    /* RING_IB_TC; 0: not set */
    bool container;   /* true in a container of Docker or Podman */
    char kernel[80];
    facts_net net;
    facts_pci pci;
    size_t port_count;
    fact_port ports[FACTS_PORTS];
    char no_trial[400]; /* the reason why no port can be tested, or "" */
    size_t trial_count;
    fact_trial trials[FACTS_PORTS];
} facts;

/** Reads all facts, tests the ports, and sleeps f->seconds between the two readings of the
 *  counters. The caller sets root, seconds and pkey; all other members are 0. */
void facts_read(facts *f);

#endif

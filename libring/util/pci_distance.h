/* SPDX-License-Identifier: Apache-2.0
 *
 * pci_distance: reads the places of devices on the PCI bus from /sys, and computes the distance
 * between two of them.
 */
#ifndef RING_PCI_DISTANCE_H
#define RING_PCI_DISTANCE_H

#include <stdbool.h>

/** Distances by the names of nvidia-smi, nearest first. A distance names the highest part of the
 *  machine that the path between two devices passes through. */
typedef enum pci_distance {
    PCI_LOC,  /* only a limit, below the distance of any two devices               */
    PCI_PIX,  /* through one PCI switch                                           */
    PCI_PXB,  /* through several PCI switches                                     */
    PCI_PHB,  /* through one of the host's bridges                                */
    PCI_NODE, /* through several bridges of one NUMA node, or unknown             */
    PCI_SYS   /* through the link between NUMA nodes                              */
} pci_distance;

typedef struct pci_place {
    char path[256]; /* "pci0000:00/0000:00:01.0/0000:01:00.0"; "": unknown, or not on the bus */
    int numa;       /* number of the NUMA node; -1: not known */
} pci_place;

/** Finds the place of a device.
 *  @param root    a folder in which /sys is looked for; "": this machine's /sys.
 *  @param folder  the folder of the device, or a link to it: "/sys/class/infiniband/mlx5_0/device".
 */
pci_place pci_place_of(const char *root, const char *folder);
/** Finds the place by address: "0000:01:00.0", in upper or lower case. */
pci_place pci_place_at(const char *root, const char *address);

/** @return the distance between two devices. */
pci_distance pci_distance_between(const pci_place *a, const pci_place *b);

/** @return the name of a distance, such as "PIX". */
const char *pci_distance_word(pci_distance distance);
/** Parses a limit in the words of NCCL_NET_GDR_LEVEL: LOC, PIX, PXB, PHB (any bridge of one NUMA
 *  node), SYS, or its older numbers 0 to 5. @return false if the word is unknown. */
bool pci_distance_parse(const char *word, pci_distance *out);

#endif

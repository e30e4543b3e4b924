/* SPDX-License-Identifier: Apache-2.0
 * Computes distances from folder names: /sys nests the folders of devices in those of the bridges
 * that they are attached to, so the common part of two paths shows what two devices share. */
#include "pci_distance.h"

#include "sysfs.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- Places ---------------------------------------------------------------------------------- */

/* Stores the device's path from "pci" on; leaves @p out unchanged if it is not on the bus. */
static void read_path(char *out, size_t size, const char *root, const char *folder)
{
    char link[512];
    const int written = snprintf(link, sizeof link, "%s%s", root, folder);
    char *real = written > 0 && (size_t)written < sizeof link ? realpath(link, NULL) : NULL;
    const char *from = real != NULL ? strstr(real, "/devices/pci") : NULL;
    if (from != NULL && strlen(from + strlen("/devices/")) < size)
        strcpy(out, from + strlen("/devices/"));
    free(real);
}

pci_place pci_place_of(const char *root, const char *folder)
{
    pci_place place = {.numa = (int)sysfs_number(-1, "%s%s/numa_node", root, folder)};
    read_path(place.path, sizeof place.path, root, folder);
    return place;
}

pci_place pci_place_at(const char *root, const char *address)
{
    char folder[64];
    snprintf(folder, sizeof folder, "/sys/bus/pci/devices/%.32s", address);
    for (char *c = folder; *c != '\0'; c++)
        *c = (char)tolower((unsigned char)*c);
    return pci_place_of(root, folder);
}

/* ---- Distances ------------------------------------------------------------------------------- */

/* @return the number of path components after the first @p length characters. */
static int components_after(const char *path, size_t length)
{
    int parts = 0;
    for (path += length; *path != '\0'; path++)
        parts += *path == '/';
    return parts;
}

/* @return the length of the common beginning of both paths, in whole components. */
static size_t common_path(const char *a, const char *b)
{
    size_t length = 0;
    for (size_t i = 0;; i++) {
        const bool end_a = a[i] == '/' || a[i] == '\0', end_b = b[i] == '/' || b[i] == '\0';
        if (end_a && end_b)
            length = i;
        if (a[i] != b[i] || a[i] == '\0')
            return length;
    }
}

pci_distance pci_distance_between(const pci_place *a, const pci_place *b)
{
    /* Components after the common part, for two devices below one switch: the switch's port and the
     * device itself, for each of the two. */
    enum { ONE_SWITCH = 4 };
    const size_t common = common_path(a->path, b->path);
    const bool below_bridge = memchr(a->path, '/', common) != NULL;
    if (common == 0)
        return a->numa >= 0 && b->numa >= 0 && a->numa != b->numa ? PCI_SYS : PCI_NODE;
    if (!below_bridge)
        return PCI_PHB; /* only the host's bridge is common to both paths */
    const int parts = components_after(a->path, common) + components_after(b->path, common);
    return parts <= ONE_SWITCH ? PCI_PIX : PCI_PXB;
}

/* ---- Words ----------------------------------------------------------------------------------- */

const char *pci_distance_word(pci_distance distance)
{
    static const char *const words[] = {"LOC", "PIX", "PXB", "PHB", "NODE", "SYS"};
    return words[distance];
}

bool pci_distance_parse(const char *word, pci_distance *out)
{
    static const struct {
        const char *word;
        char digit;
        pci_distance means;
    } known[] = {{"LOC", '0', PCI_LOC},  {"PIX", '1', PCI_PIX},  {"PXB", '2', PCI_PXB},
                 {"PHB", '3', PCI_NODE}, {"PHB", '4', PCI_NODE}, {"SYS", '5', PCI_SYS}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcasecmp(word, known[i].word) != 0 && (word[0] != known[i].digit || word[1] != '\0'))
            continue;
        *out = known[i].means;
        return true;
    }
    return false;
}

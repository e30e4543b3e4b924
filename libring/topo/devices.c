/* SPDX-License-Identifier: Apache-2.0
 * Lists the graphics processors and InfiniBand adapters of the machine for ringinfo. It reads /sys,
 * which needs neither a driver's library nor privileges. */
#include "sysfs.h"
#include "topo.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Calls describe() for each entry of a folder, and stores the first TOPO_DEVICES devices that it
 * accepts. @return the number of accepted devices, which may be greater. */
static size_t list_devices(const char *folder, topo_device *devices,
                           bool (*describe)(const char *name, topo_device *device))
{
    DIR *dir = opendir(folder);
    size_t count = 0;
    if (dir == NULL)
        return 0;
    for (const struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        topo_device device = {.name = ""};
        if (entry->d_name[0] == '.' || !describe(entry->d_name, &device))
            continue;
        if (count < TOPO_DEVICES)
            devices[count] = device;
        count++;
    }
    closedir(dir);
    return count;
}

static void copy_name(topo_device *device, const char *name)
{
    snprintf(device->name, sizeof device->name, "%.*s", (int)sizeof device->name - 1, name);
}

static const char *vendor_name(const char *vendor)
{
    static const struct {
        const char *id, *name;
    } vendors[] = {{"0x10de", "NVIDIA"}, {"0x1002", "AMD"}, {"0x8086", "Intel"}};
    for (size_t i = 0; i < sizeof vendors / sizeof vendors[0]; i++) {
        if (strcmp(vendors[i].id, vendor) == 0)
            return vendors[i].name;
    }
    return NULL;
}

/* Accepts display controllers (PCI class 0x03) of NVIDIA, AMD and Intel. That leaves out the VGA
 * chips of servers, which are of other vendors. */
static bool describe_gpu(const char *name, topo_device *device)
{
    char class[32], vendor[32];
    sysfs_line(class, sizeof class, "/sys/bus/pci/devices/%s/class", name);
    sysfs_line(vendor, sizeof vendor, "/sys/bus/pci/devices/%s/vendor", name);
    const char *maker = vendor_name(vendor);
    if (strncmp(class, "0x03", 4) != 0 || maker == NULL)
        return false;
    copy_name(device, name);
    snprintf(device->state, sizeof device->state, "%s", maker);
    return true;
}

static bool describe_adapter(const char *name, topo_device *device)
{
    char state[64], rate[64];
    sysfs_line(state, sizeof state, "/sys/class/infiniband/%s/ports/1/state", name);
    sysfs_line(rate, sizeof rate, "/sys/class/infiniband/%s/ports/1/rate", name);
    const char *word = strchr(state, ':'); /* "4: ACTIVE" */
    copy_name(device, name);
    if (!text_format(device->state, sizeof device->state, "port 1%s%s%s",
                     word != NULL ? word + 1 : " unknown", rate[0] != '\0' ? ", " : "", rate))
        device->state[sizeof device->state - 1] = '\0';
    return true;
}

size_t topo_gpus(topo_device devices[TOPO_DEVICES])
{
    return list_devices("/sys/bus/pci/devices", devices, describe_gpu);
}

size_t topo_infiniband(topo_device devices[TOPO_DEVICES])
{
    return list_devices("/sys/class/infiniband", devices, describe_adapter);
}

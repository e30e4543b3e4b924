/* SPDX-License-Identifier: Apache-2.0
 * Reports the GPUs that NVIDIA's driver lists: the model of each GPU, whether libring can use it,
 * and if not, the reason. To find out, each GPU is opened in the same way as by a communicator. */
#include "info_report.h"

#include "cuda_device.h"
#include "cuda_images.h"
#include "topo.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define SECTION "gpu"

/* The name of a row about a device, such as "cuda:0" or "cuda:0 memory". */
typedef struct row_name {
    char text[64];
} row_name;

static row_name name_of(int ordinal, const char *what)
{
    row_name name;
    (void)text_format(name.text, sizeof name.text, "cuda:%d%s", ordinal, what);
    return name;
}

/* Adds the rows with the model and the memory of a GPU. */
static ring_status describe(report *r, const cuda_driver *api, int ordinal)
{
    CUdevice device;
    char name[128], place[32];
    int major = 0, minor = 0;
    size_t memory;
    RING_TRY(cuda_check(api->device_get(&device, ordinal), "finding the GPU"));
    RING_TRY(cuda_check(api->device_get_name(name, sizeof name, device), "reading the GPU's name"));
    RING_TRY(cuda_check(api->device_get_pci_bus_id(place, sizeof place, device),
                        "reading its PCI address"));
    RING_TRY(
        cuda_check(api->device_total_memory(&memory, device), "reading the size of its memory"));
    RING_TRY(
        cuda_check(api->device_get_attribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                                             device),
                   "reading its compute capability"));
    RING_TRY(
        cuda_check(api->device_get_attribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
                                             device),
                   "reading its compute capability"));
    for (char *c = place; *c != '\0'; c++)
        *c = (char)tolower((unsigned char)*c); /* /sys writes addresses in lower case */
    report_text(r, SECTION, name_of(ordinal, "").text, "%s, compute capability %d.%d, PCI %s", name,
                major, minor, place);
    report_bytes(r, SECTION, name_of(ordinal, " memory").text, (double)memory);
    return RING_OK;
}

static void report_use(report *r, int ordinal, ring_status status)
{
    const row_name name = name_of(ordinal, " used");
    if (status == RING_OK) {
        report_text(r, SECTION, name.text, "yes");
        return;
    }
    report_text(r, SECTION, name.text, "no: %s", fail_text());
    report_judge(r, VERDICT_WARN, "collectives cannot use its memory");
}

static void gather_one(report *r, const cuda_driver *api, int ordinal)
{
    cuda_device *opened = NULL;
    ring_status status = describe(r, api, ordinal);
    if (status == RING_OK) {
        report_text(r, SECTION, name_of(ordinal, " kernels").text, "%s",
                    cuda_image("fold") != NULL ? "built in" : "none in this build");
        status = cuda_device_open(ordinal, "", &opened);
    }
    report_use(r, ordinal, status);
    cuda_device_close(opened);
}

/* ---- Access between GPUs ---- */

/* @return "yes" if the GPU @p from can access the memory of @p to, "no", "?" if that is unknown. */
static const char *reaches(const cuda_driver *api, int from, int to)
{
    CUdevice device, peer;
    int can = 0;
    if (from == to)
        return "-";
    if (api->device_get(&device, from) != CUDA_SUCCESS ||
        api->device_get(&peer, to) != CUDA_SUCCESS ||
        api->device_can_access_peer(&can, device, peer) != CUDA_SUCCESS)
        return "?";
    return can != 0 ? "yes" : "no";
}

/* Adds a row of the matrix that shows which GPUs can access each other's memory. @param from  -1
 * for the head of the matrix. Cells that do not fit in the row are omitted. */
static void gather_peers(report *r, const cuda_driver *api, int count, int from)
{
    char cells[512] = "";
    size_t used = 0;
    for (int to = 0; to < count; to++) {
        const row_name head = name_of(to, "");
        if (!text_format(cells + used, sizeof cells - used, "%-8s",
                         from < 0 ? head.text : reaches(api, from, to)))
            break;
        used = strlen(cells);
    }
    while (used > 0 && cells[used - 1] == ' ')
        cells[--used] = '\0';
    report_text(r, SECTION, from < 0 ? "peer access to" : name_of(from, " reaches").text, "%s",
                cells);
}

/* ---- All GPUs ---- */

/* Loads the driver, and asks it for the number of GPUs and its version. */
static ring_status count_gpus(const cuda_driver **api, int *count, int *version)
{
    *api = cuda_driver_load();
    if (*api == NULL)
        return RING_ERR_UNSUPPORTED;
    RING_TRY(cuda_check((*api)->driver_version(version), "reading the driver's version"));
    return cuda_check((*api)->device_count(count), "counting GPUs");
}

void gather_gpus(report *r)
{
    const cuda_driver *api;
    int count = 0, version = 0;
    if (count_gpus(&api, &count, &version) != RING_OK) {
        topo_device devices[TOPO_DEVICES];
        const size_t on_bus = min_size(topo_gpus(devices), TOPO_DEVICES);
        size_t i = 0;
        report_text(r, SECTION, "devices", "none (%s)", fail_text());
        while (i < on_bus && strcmp(devices[i].state, "NVIDIA") != 0)
            i++;
        if (i < on_bus)
            report_judge(r, VERDICT_WARN,
                         "this host has NVIDIA GPUs; 'ringinfo doctor' checks their driver");
        return;
    }
    report_text(r, SECTION, "devices", "%d, driver for CUDA %d.%d", count, version / 1000,
                version % 1000 / 10);
    for (int i = 0; i < count; i++)
        gather_one(r, api, i);
    for (int from = -1; count > 1 && from < count; from++)
        gather_peers(r, api, count, from);
}

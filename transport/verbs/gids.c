/* SPDX-License-Identifier: Apache-2.0
 * Ranks the GIDs in a port's table, and chooses the best one. */
#include "gids.h"

#include <arpa/inet.h>

static bool is_mapped_ipv4(const union ibv_gid *gid)
{
    static const unsigned char prefix[12] = {[10] = 0xff, [11] = 0xff};
    return memcmp(gid->raw, prefix, sizeof prefix) == 0;
}

static bool is_link_local(const union ibv_gid *gid)
{
    return gid->raw[0] == 0xfe && (gid->raw[1] & 0xc0) == 0x80;
}

static bool is_zero(const union ibv_gid *gid)
{
    static const union ibv_gid zero;
    return memcmp(gid->raw, zero.raw, sizeof zero.raw) == 0;
}

/* @return how good a GID is: higher is better; 0: not usable. @param[out] why  its kind. */
static int rank_of(const struct ibv_gid_entry *entry, const char **why)
{
    if (is_zero(&entry->gid))
        return 0;
    *why = "InfiniBand";
    if (entry->gid_type == IBV_GID_TYPE_IB)
        return 1;
    *why = "RoCE v1, there is no v2";
    if (entry->gid_type != IBV_GID_TYPE_ROCE_V2)
        return 1;
    *why = is_mapped_ipv4(&entry->gid)  ? "RoCE v2, IPv4"
           : is_link_local(&entry->gid) ? "RoCE v2, link-local"
                                        : "RoCE v2, IPv6";
    return is_mapped_ipv4(&entry->gid) ? 4 : is_link_local(&entry->gid) ? 2 : 3;
}

/* If the library does not report the types of GIDs, they follow from the kernel's order: entries
 * for RoCE v1 and v2 alternate. */
static bool read_entry(const ibverbs *api, const adapter_port *port, int index,
                       struct ibv_gid_entry *out)
{
    if (api->query_gid_ex != NULL)
        return api->query_gid_ex(port->device->context, port->number, (uint32_t)index, out, 0,
                                 sizeof *out) == 0;
    out->gid_type = port->ethernet ? (index % 2 == 1 ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_ROCE_V1)
                                   : IBV_GID_TYPE_IB;
    return api->query_gid(port->device->context, port->number, index, &out->gid) == 0;
}

bool gid_choose(const ibverbs *api, adapter_port *port, int entries)
{
    int best = 0;
    port->why = "none";
    for (int i = 0; i < entries; i++) {
        struct ibv_gid_entry entry = {.gid_index = 0};
        const char *why = "";
        const int rank = read_entry(api, port, i, &entry) ? rank_of(&entry, &why) : 0;
        if (rank <= best)
            continue;
        best = rank;
        port->gid = entry.gid;
        port->gid_index = i;
        port->why = why;
    }
    return best > 0;
}

bool gid_take(const adapter_port *port, int index, union ibv_gid *out)
{
    const ibverbs *api = ibverbs_load();
    if (api->query_gid(port->device->context, port->number, index, out) == 0 && !is_zero(out))
        return true;
    fail(RING_ERR_CONFIG,
         "RING_IB_GID_INDEX=%d: port %s has no such GID; unset the variable, or choose a GID that "
         "'ringinfo doctor' lists",
         index, port->name);
    return false;
}

void gid_write(const union ibv_gid *gid, char *out, size_t size)
{
    if (inet_ntop(AF_INET6, gid->raw, out, (socklen_t)size) == NULL)
        out[0] = '\0';
}

/* SPDX-License-Identifier: Apache-2.0
 * Addresses of ports, and what RoCE needs beside them. */
#include "checks.h"

#include "settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_v2(const fact_gid *g)
{
    return strcmp(g->type, "RoCE v2") == 0;
}

static bool is_link_local(const fact_gid *g)
{
    return strncmp(g->gid, "fe80", 4) == 0;
}

static bool is_ipv4(const fact_gid *g)
{
    return strncmp(g->gid, "0000:0000:0000:0000:0000:ffff:", 30) == 0;
}

static int worth(const fact_gid *g)
{
    return 4 * is_v2(g) + 2 * !is_link_local(g) + is_ipv4(g);
}

const fact_gid *check_best_gid(const fact_port *p)
{
    const fact_gid *best = NULL;
    for (size_t i = 0; i < p->gid_count; i++)
        if (best == NULL || worth(&p->gids[i]) > worth(best))
            best = &p->gids[i];
    return best;
}

static size_t count_v2(const fact_port *p)
{
    size_t count = 0;
    for (size_t i = 0; i < p->gid_count; i++)
        count += is_v2(&p->gids[i]);
    return count;
}

static void judge_gids(checking *c, const fact_port *p)
{
    char name[48];
    const fact_gid *best = check_best_gid(p);
    if (best == NULL) {
        check_found(c, check_port_name(p, name), "none");
        check_judge(c, VERDICT_FAIL, "a port without an address cannot be reached");
        check_mend(c, "sudo ip link set $(ls /sys/class/infiniband/%s/device/net) up", p->device);
        return;
    }
    check_found(c, check_port_name(p, name), "%zu; the best is %d, %s%s%s", p->gid_count,
                best->index, check_is_roce(p) ? best->type : "InfiniBand",
                *best->netdev != '\0' ? " of " : "", best->netdev);
    if (!check_is_roce(p) || count_v2(p) > 0)
        return;
    check_judge(c, VERDICT_WARN,
                "RoCE v1 only: it does not pass routers, and does not understand hosts with v2");
    if (strncmp(p->device, "mlx4", 4) == 0)
        check_mend(c, "echo 'options mlx4_core roce_mode=2' | sudo tee /etc/modprobe.d/roce.conf   "
                      "# then restart the host");
    else
        check_mend(c, "sudo mstconfig -d %s set ROCE_CONTROL=2   # then restart the host", p->pci);
}

void check_gids(const facts *f, checking *c)
{
    for (size_t i = 0; i < f->port_count; i++)
        if (strcmp(f->ports[i].state, "ACTIVE") == 0)
            judge_gids(c, &f->ports[i]);
}

/* ---- Their interfaces and addresses ---------------------------------------------------------- */

static void judge_devices(checking *c, const fact_port *p)
{
    char name[48];
    const fact_gid *lost = NULL;
    size_t count = 0;
    for (size_t i = 0; i < p->gid_count; i++) {
        const bool none = p->gids[i].netdev[0] == '\0';
        lost = none && lost == NULL ? &p->gids[i] : lost;
        count += none;
    }
    if (lost == NULL) {
        check_found(c, check_port_name(p, name), "each GID has an interface");
        return;
    }
    check_found(c, check_port_name(p, name), "GID %d has no interface", lost->index);
    check_judge(c, count == p->gid_count ? VERDICT_FAIL : VERDICT_WARN,
                "its interface is gone or belongs to another network namespace, such as a "
                "container's: queues that use it cannot connect (ibv_modify_qp: Invalid argument)");
    check_mend(c,
               "sudo rdma system set netns shared   # or start the container with --network=host");
}

void check_gid_devices(const facts *f, checking *c)
{
    for (size_t i = 0; i < f->port_count; i++) {
        const fact_port *p = &f->ports[i];
        if (check_is_roce(p) && p->gid_count > 0 && strcmp(p->state, "ACTIVE") == 0)
            judge_devices(c, p);
    }
}

void check_gid_addresses(const facts *f, checking *c)
{
    char name[48];
    for (size_t i = 0; i < f->port_count; i++) {
        const fact_port *p = &f->ports[i];
        const fact_gid *best = check_best_gid(p);
        if (!check_is_roce(p) || best == NULL || strcmp(p->state, "ACTIVE") != 0)
            continue;
        const bool local = is_link_local(best);
        check_found(c, check_port_name(p, name), "%s", best->gid);
        if (!local)
            continue;
        check_judge(c, VERDICT_WARN,
                    "link-local only: the interface has no address of its own, so the port reaches "
                    "no other network");
        check_mend(c, "sudo ip address add ADDRESS/24 dev %s",
                   *best->netdev != '\0' ? best->netdev : "eth0");
    }
}

/* ---- Traffic class --------------------------------------------------------------------------- */

enum { CLASS_LOSSLESS = 106 }; /* DSCP 26, which switches set up for RoCE keep without loss */

/* The setting is known by NCCL's name for it. @return -1 if it is not set. */
static int class_set(void)
{
    int value = -1;
    size_t count;
    settings_row *rows = settings_rows(&count);
    const char *text = getenv("NCCL_IB_TC");
    for (size_t i = 0; rows != NULL && i < count; i++)
        if (rows[i].nccl != NULL && strcmp(rows[i].nccl, "NCCL_IB_TC") == 0)
            text = rows[i].value;
    if (text != NULL && *text != '\0')
        value = (int)strtol(text, NULL, 10);
    free(rows);
    return value;
}

int check_traffic_class_of(const fact_port *p)
{
    const int set = class_set();
    const int value = set > 0 ? set : p->traffic_class;
    return value > 0 ? value : 0;
}

void check_traffic_class(const facts *f, checking *c)
{
    char name[48];
    for (size_t i = 0; i < f->port_count; i++) {
        const fact_port *p = &f->ports[i];
        if (!check_is_roce(p) || strcmp(p->state, "ACTIVE") != 0)
            continue;
        const int value = check_traffic_class_of(p);
        check_found(c, check_port_name(p, name), "%d", value);
        if (value > 0)
            continue;
        check_judge(c, VERDICT_WARN,
                    "RoCE in the class of all other traffic: a switch that is full drops its "
                    "packets, and each loss costs a time-out");
        if (p->traffic_class >= 0)
            check_mend(c, "echo %d | sudo tee /sys/class/infiniband/%s/tc/%d/traffic_class",
                       CLASS_LOSSLESS, p->device, p->number);
        else
            check_mend(c, "export NCCL_IB_TC=%d   # if the switches keep this class without loss",
                       CLASS_LOSSLESS);
    }
}

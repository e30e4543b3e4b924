/* SPDX-License-Identifier: Apache-2.0
 * Compares each value of all hosts, the clocks of the hosts with this host's clock, and the
 * counters of the hosts before and after the tests. */
#include "compare.h"

#include "doctor_json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define SECTION "between hosts"

/** A value that should be the same on all hosts. */
typedef struct subject {
    const char *name;                   /* of the value in the object "alike" */
    enum { EQUAL, COMMON_WORD } wanted; /* all values are equal, or have a word in common */
    verdict otherwise;
    const char *why, *command; /* INTERFACE in the command stands for a name on a host */
} subject;

static const subject subjects[] = {
    {"libring", EQUAL, VERDICT_FAIL, "ranks of different versions reject each other",
     "sudo cmake --install build --prefix /usr/local && sudo ldconfig   # one version everywhere"},
    {"settings", EQUAL, VERDICT_WARN,
     "ranks with different settings may reject each other, or use a slower path",
     "grep -rn 'RING_\\|NCCL_' ~/.bashrc ~/.profile /etc/environment /etc/profile.d"},
    {"kernel", EQUAL, VERDICT_WARN,
     "different kernels are rarely the cause of a problem, but easy to rule out",
     "sudo apt update && sudo apt full-upgrade   # then restart the host"},
    {"glibc", EQUAL, VERDICT_WARN,
     "a program that was built with the newer glibc does not start with the older",
     "sudo apt update && sudo apt full-upgrade"},
    {"nvidia_driver", EQUAL, VERDICT_WARN, "GPUs of one job should have the same driver",
     "sudo apt install --only-upgrade nvidia-driver   # then restart the host"},
    {"mtu", EQUAL, VERDICT_WARN,
     "full packets of the larger MTU may be dropped: short messages pass, long messages hang",
     "sudo ip link set INTERFACE mtu 1500   # the same everywhere"},
    {"speed", EQUAL, VERDICT_WARN, "the slowest link (Mbit/s) sets the pace for all",
     "sudo ethtool -s INTERFACE autoneg on   # on the slower host; else another cable"},
    {"networks", COMMON_WORD, VERDICT_WARN,
     "no network in common: packets pass through routers, or through an unintended interface",
     "export RING_SOCKET_IFNAME=eth1   # an interface of a network that all hosts are in"},
    {"link_layers", COMMON_WORD, VERDICT_FAIL,
     "adapters of InfiniBand and of Ethernet (RoCE) cannot communicate with each other",
     "export RING_TRANSPORT=shm,tcp   # or: sudo mstconfig -d ADDRESS set "
     "LINK_TYPE_P1=2"},
    {"gid_types", COMMON_WORD, VERDICT_FAIL, "no version of RoCE in common",
     "sudo mstconfig -d ADDRESS set ROCE_CONTROL=2   # then restart; for mlx4: options mlx4_core "
     "roce_mode=2 in /etc/modprobe.d/roce.conf"},
    {"subnet_prefixes", COMMON_WORD, VERDICT_FAIL,
     "different InfiniBand subnets: they are not connected without a router",
     "sudo sed -i 's/^subnet_prefix .*/subnet_prefix 0xfe80000000000000/' /etc/opensm/opensm.conf "
     "&& sudo systemctl restart opensm   # where the subnet manager runs"},
    {"rates", EQUAL, VERDICT_WARN, "the slowest port sets the pace for all",
     "iblinkinfo   # of infiniband-diags; for RoCE: ethtool INTERFACE. Which port is slower? Then "
     "try "
     "another cable"},
    {"roce_mtus", EQUAL, VERDICT_WARN, "a connection uses the smaller MTU",
     "sudo ip link set INTERFACE mtu 4200   # on all hosts"},
    {"traffic_classes", EQUAL, VERDICT_WARN,
     "switches treat the two directions of a connection differently", "export NCCL_IB_TC=106"},
    {"firmware", EQUAL, VERDICT_WARN, "adapters of one job should have the same firmware",
     "sudo mstflint -d ADDRESS -i FIRMWARE.bin burn   # then restart the host"},
};

/* ---- Values ---------------------------------------------------------------------------------- */

typedef struct compared {
    const doctor_host *hosts;
    size_t count;
    const subject *s;
} compared;

static const char *value_of(const compared *c, size_t host)
{
    return told_text(c->hosts[host].told, "alike", c->s->name);
}

/* @return true if a word of the first host's list is in the lists of all hosts that have one. */
static bool have_common_word(const compared *c, const char *first)
{
    for (const char *at = first; *at != '\0';) {
        const size_t length = strcspn(at, " ");
        bool everywhere = true;
        for (size_t i = 0; i < c->count; i++)
            everywhere &= value_of(c, i) == NULL || words_have(value_of(c, i), at, length);
        if (everywhere)
            return true;
        at += length + (at[length] == ' ');
    }
    return false;
}

/* Adds the command; INTERFACE becomes the interface that the first host has reported for this
 * value. */
static void add_command(const compared *all, checking *c)
{
    static const char word[] = "INTERFACE";
    const char *command = all->s->command, *at = strstr(command, word), *name = NULL;
    for (size_t i = 0; i < all->count && name == NULL; i++)
        name = told_text(all->hosts[i].told, "interfaces", all->s->name);
    if (at == NULL)
        check_command(c, "%s", command);
    else
        check_command(c, "%.*s%s%s", (int)(at - command), command, name != NULL ? name : word,
                      at + strlen(word));
}

/* Adds a row with the values of all hosts if they differ, else with the common value. Adds none if
 * fewer than two hosts have a value. */
static void compare_subject(const compared *all, report *r)
{
    char text[480] = "";
    const char *first = NULL;
    size_t known = 0;
    bool equal = true;
    checking c = {.r = r, .section = SECTION, .name = all->s->name};
    for (size_t i = 0; i < all->count; i++) {
        const char *value = value_of(all, i);
        if (value == NULL)
            continue;
        first = first == NULL ? value : first;
        equal &= strcmp(value, first) == 0;
        text_append(text, sizeof text, "%s%s: %s", known > 0 ? "; " : "", all->hosts[i].name,
                    value);
        known++;
    }
    if (known < 2)
        return;
    check_found(&c, "%s", equal ? first : text);
    if (equal || (all->s->wanted == COMMON_WORD && have_common_word(all, first)))
        return;
    check_judge(&c, all->s->otherwise, "%s", all->s->why);
    add_command(all, &c);
}

/* ---- Clocks ---------------------------------------------------------------------------------- */

/* This host noted the time before it asked the other host and after the answer had come. The other
 * host read its clock in between, so that the two times bound the offset of its clock. */
static void judge_clock(const doctor_host *h, report *r)
{
    checking c = {.r = r, .section = SECTION, .name = "clock", .subject = h->name};
    const double time = cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(h->told, "time"));
    const double least = time - h->done, most = time - h->began;
    const double off = least > 0 ? least : most < 0 ? most : 0;
    if (isnan(time))
        return;
    check_found(&c, "within %.3g s of this host's clock", fmax(fabs(least), fabs(most)));
    if (fabs(off) < 1)
        return;
    check_judge(&c, VERDICT_WARN,
                "the clock is %.3g s %s: times in the logs of the hosts cannot be compared",
                fabs(off), off > 0 ? "fast" : "slow");
    check_command(&c, "ssh %s sudo timedatectl set-ntp true", h->name);
}

void compare_hosts(const doctor_host *hosts, size_t count, report *r)
{
    for (size_t i = 0; i < sizeof subjects / sizeof subjects[0]; i++)
        compare_subject(&(compared){hosts, count, &subjects[i]}, r);
    for (size_t i = 0; i < count; i++)
        if (hosts[i].told != NULL)
            judge_clock(&hosts[i], r);
}

/* ---- Counters -------------------------------------------------------------------------------- */

void compare_counters(const doctor_host *h, const cJSON *after, report *r)
{
    char risen[400] = "";
    size_t used = 0;
    const cJSON *one;
    checking c = {.r = r, .section = "during the test", .name = "counters", .subject = h->name};
    cJSON_ArrayForEach(one, cJSON_GetObjectItemCaseSensitive(after, "counters"))
    {
        const double before = cJSON_GetNumberValue(told_item(h->told, "counters", one->string));
        const double rise = cJSON_GetNumberValue(one) - before;
        if (rise > 0 && used < sizeof risen)
            used += (size_t)snprintf(risen + used, sizeof risen - used, "%s%s +%.0f",
                                     used > 0 ? ", " : "", one->string, rise);
    }
    check_found(&c, "%s", used > 0 ? risen : "no counter rose during the test");
    if (used > 0)
        check_warn(&c, "packets were damaged, lost or late while the hosts were tested",
                   "ssh %s ringinfo doctor --seconds 10   # do they still rise?", h->name);
}

/* SPDX-License-Identifier: Apache-2.0
 * Side by side. */
#include "compare.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define SECTION "between hosts"

typedef enum likeness { EQUAL, COMMON_WORD } likeness;

/** A thing that should be the same. */
typedef struct subject {
    const char *name; /* in the object "alike" */
    likeness wanted;
    verdict otherwise;
    const char *why, *command; /* INTERFACE in it stands for a name that a host told */
} subject;

static const subject subjects[] = {
    {"libring", EQUAL, VERDICT_FAIL, "ranks of unlike versions refuse each other",
     "sudo cmake --install build --prefix /usr/local && sudo ldconfig   # one version everywhere"},
    {"settings", EQUAL, VERDICT_WARN,
     "ranks that are set differently may refuse each other, or wait for the slower way",
     "grep -rn 'RING_\\|NCCL_' ~/.bashrc ~/.profile /etc/environment /etc/profile.d   # there, and "
     "make them alike"},
    {"kernel", EQUAL, VERDICT_WARN, "unlike kernels are seldom a reason, but the first to rule out",
     "sudo apt update && sudo apt full-upgrade   # then restart the host"},
    {"glibc", EQUAL, VERDICT_WARN,
     "a program that was built against the newer one does not start with the older",
     "sudo apt update && sudo apt full-upgrade"},
    {"nvidia_driver", EQUAL, VERDICT_WARN, "GPUs of one job should run by one driver",
     "sudo apt install --only-upgrade nvidia-driver   # then restart the host"},
    {"mtu", EQUAL, VERDICT_WARN,
     "what the larger one sends in full packets may be dropped: short messages pass, long ones "
     "hang",
     "sudo ip link set INTERFACE mtu 1500   # the same everywhere; more if the switch lets it "
     "pass"},
    {"speed", EQUAL, VERDICT_WARN, "the slowest link (Mbit/s) sets the pace for all",
     "sudo ethtool -s INTERFACE autoneg on   # on the slower host; else another cable"},
    {"networks", COMMON_WORD, VERDICT_WARN,
     "no network in common: packets go through routers, or by another interface than they should",
     "export RING_SOCKET_IFNAME=eth1   # an interface of a network that all hosts are in"},
    {"link_layers", COMMON_WORD, VERDICT_FAIL,
     "adapters of InfiniBand and of Ethernet (RoCE) cannot talk to each other",
     "export RING_TRANSPORT=shm,tcp   # or set the ports alike: sudo mstconfig -d ADDRESS set "
     "LINK_TYPE_P1=2"},
    {"gid_types", COMMON_WORD, VERDICT_FAIL, "no version of RoCE in common",
     "echo 'options mlx4_core roce_mode=2' | sudo tee /etc/modprobe.d/roce.conf   # where v2 is "
     "missing; then restart the host"},
    {"subnet_prefixes", COMMON_WORD, VERDICT_FAIL,
     "unlike InfiniBand subnets: without a router nothing gets from one to the other",
     "sudo sed -i 's/^subnet_prefix .*/subnet_prefix 0xfe80000000000000/' /etc/opensm/opensm.conf "
     "&& sudo systemctl restart opensm"},
    {"rates", EQUAL, VERDICT_WARN, "the slowest port sets the pace for all",
     "iblinkinfo   # of infiniband-diags: which link came up slower; then another cable"},
    {"roce_mtus", EQUAL, VERDICT_WARN, "a connection uses the smaller one",
     "sudo ip link set INTERFACE mtu 4200   # on all hosts"},
    {"traffic_classes", EQUAL, VERDICT_WARN,
     "the two directions are treated differently by the switches", "export NCCL_IB_TC=106"},
    {"firmware", EQUAL, VERDICT_WARN, "adapters of one job should run one firmware",
     "sudo mstflint -d ADDRESS -i FIRMWARE.bin burn   # then restart the host"},
};

enum { SUBJECTS = sizeof subjects / sizeof subjects[0] };

/* ---- Values ---------------------------------------------------------------------------------- */

static const char *value_of(const doctor_host *h, const char *name)
{
    const cJSON *alike = cJSON_GetObjectItemCaseSensitive(h->told, "alike");
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(alike, name));
}

static bool has_word(const char *text, const char *word, size_t length)
{
    for (const char *at = text; at != NULL && *at != '\0';) {
        const size_t here = strcspn(at, " ");
        if (here == length && strncmp(at, word, length) == 0)
            return true;
        at += here + (at[here] == ' ');
    }
    return false;
}

/* Whether some word of the first is everywhere. */
static bool have_common_word(const doctor_host *hosts, size_t count, const subject *s,
                             const char *first)
{
    for (const char *at = first; *at != '\0';) {
        const size_t length = strcspn(at, " ");
        bool everywhere = true;
        for (size_t i = 0; i < count; i++) {
            const char *value = value_of(&hosts[i], s->name);
            everywhere = everywhere && (value == NULL || has_word(value, at, length));
        }
        if (everywhere)
            return true;
        at += length + (at[length] == ' ');
    }
    return false;
}

static bool are_equal(const doctor_host *hosts, size_t count, const subject *s, const char *first)
{
    for (size_t i = 0; i < count; i++) {
        const char *value = value_of(&hosts[i], s->name);
        if (value != NULL && strcmp(value, first) != 0)
            return false;
    }
    return true;
}

static void side_by_side(const doctor_host *hosts, size_t count, const subject *s, char *out,
                         size_t size)
{
    size_t used = 0;
    for (size_t i = 0; i < count && used < size; i++) {
        const char *value = value_of(&hosts[i], s->name);
        if (value != NULL)
            used += (size_t)snprintf(out + used, size - used, "%s%s: %s", used > 0 ? "; " : "",
                                     hosts[i].name, value);
    }
}

/* The command, with the interface that the first host named for it. */
static void mend(const doctor_host *hosts, size_t count, const subject *s, checking *c)
{
    static const char word[] = "INTERFACE";
    const char *at = strstr(s->command, word), *name = NULL;
    for (size_t i = 0; i < count && name == NULL; i++) {
        const cJSON *all = cJSON_GetObjectItemCaseSensitive(hosts[i].told, "interfaces");
        name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(all, s->name));
    }
    if (at == NULL)
        check_mend(c, "%s", s->command);
    else
        check_mend(c, "%.*s%s%s", (int)(at - s->command), s->command, name != NULL ? name : word,
                   at + strlen(word));
}

/* What only one host has is no difference. */
static void compare_subject(const doctor_host *hosts, size_t count, const subject *s, report *r)
{
    char text[480] = "";
    const char *first = NULL;
    size_t known = 0;
    checking c = {r, SECTION, s->name};
    for (size_t i = 0; i < count; i++) {
        const char *value = value_of(&hosts[i], s->name);
        first = first == NULL ? value : first;
        known += value != NULL;
    }
    if (known < 2)
        return;
    const bool alike = s->wanted == EQUAL ? are_equal(hosts, count, s, first)
                                          : have_common_word(hosts, count, s, first);
    side_by_side(hosts, count, s, text, sizeof text);
    check_found(&c, NULL, "%s", are_equal(hosts, count, s, first) ? first : text);
    if (alike)
        return;
    check_judge(&c, s->otherwise, "%s", s->why);
    mend(hosts, count, s, &c);
}

/* ---- Clocks ---------------------------------------------------------------------------------- */

/* The host's clock was read between the two moments, so that its lead is between these. */
static void judge_clock(const doctor_host *h, checking *c)
{
    const double time = cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(h->told, "time"));
    const double least = time - h->done, most = time - h->began;
    const double off = least > 0 ? least : most < 0 ? most : 0;
    if (isnan(time))
        return;
    check_found(c, h->name, "within %.3g s of this host's", fmax(fabs(least), fabs(most)));
    if (fabs(off) < 1)
        return;
    check_judge(c, VERDICT_WARN,
                "%.3g s %s: logs cannot be put side by side, and files seem older or newer than "
                "they are",
                fabs(off), off > 0 ? "ahead" : "behind");
    check_mend(c, "ssh %s sudo timedatectl set-ntp true", h->name);
}

void compare_hosts(const doctor_host *hosts, size_t count, report *r)
{
    for (size_t i = 0; i < SUBJECTS; i++)
        compare_subject(hosts, count, &subjects[i], r);
    for (size_t i = 0; i < count; i++)
        if (hosts[i].told != NULL)
            judge_clock(&hosts[i], &(checking){r, SECTION, "clock"});
}

/* ---- Counters -------------------------------------------------------------------------------- */

static void compare_one(const doctor_host *h, const cJSON *after, report *r)
{
    char risen[400] = "";
    size_t used = 0;
    const cJSON *old = cJSON_GetObjectItemCaseSensitive(h->told, "counters");
    const cJSON *new = cJSON_GetObjectItemCaseSensitive(after, "counters"), *one;
    checking c = {r, "during the test", "counters"};
    cJSON_ArrayForEach(one, new)
    {
        const cJSON *before = cJSON_GetObjectItemCaseSensitive(old, one->string);
        const double rise = cJSON_GetNumberValue(one) - cJSON_GetNumberValue(before);
        if (rise > 0 && used < sizeof risen)
            used += (size_t)snprintf(risen + used, sizeof risen - used, "%s%s +%.0f",
                                     used > 0 ? ", " : "", one->string, rise);
    }
    check_found(&c, h->name, "%s", used > 0 ? risen : "none has risen during the test");
    if (used == 0)
        return;
    check_judge(&c, VERDICT_WARN,
                "packets were damaged, lost or late while the hosts were tested: a cable, a port, "
                "or a switch that is full");
    check_mend(&c,
               "ssh %s ringinfo doctor --seconds 10   # does it go on? then another cable or port",
               h->name);
}

void compare_counters(const doctor_host *hosts, cJSON *const *after, size_t count, report *r)
{
    for (size_t i = 0; i < count; i++)
        if (after[i] != NULL)
            compare_one(&hosts[i], after[i], r);
}

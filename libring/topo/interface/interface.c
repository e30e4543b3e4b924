/* SPDX-License-Identifier: Apache-2.0
 * Chooses the interface whose name matches the earliest word of a list, and IPv4 before IPv6. */
#include "interface.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>

static bool word_matches(const char *word, size_t length, bool exactly, const char *name)
{
    return length > 0 && strncmp(word, name, length) == 0 && (!exactly || strlen(name) == length);
}

/* @return the position of the first word that matches; -1 if none does. After "^", interfaces that
 * do not match have position 0, and the loopback 1. */
static int match_position(const char *list, const struct ifaddrs *i)
{
    const bool exclude = list[0] == '^', exactly = list[exclude] == '=';
    int position = 0;
    for (const char *word = list + exclude + exactly; *word != '\0'; position++) {
        const size_t length = strcspn(word, ",");
        if (word_matches(word, length, exactly, i->ifa_name))
            return exclude ? -1 : position;
        word += length + (word[length] != '\0');
    }
    return exclude ? (i->ifa_flags & IFF_LOOPBACK) != 0 : -1;
}

static bool usable(const struct ifaddrs *i)
{
    if (i->ifa_addr == NULL || (i->ifa_flags & (IFF_UP | IFF_RUNNING)) != (IFF_UP | IFF_RUNNING))
        return false;
    if (i->ifa_addr->sa_family != AF_INET6)
        return i->ifa_addr->sa_family == AF_INET;
    struct sockaddr_in6 v6;
    memcpy(&v6, i->ifa_addr, sizeof v6);
    return !IN6_IS_ADDR_LINKLOCAL(&v6.sin6_addr); /* its scope is valid only on this host */
}

bool interface_choose(const char *list, struct sockaddr_storage *out)
{
    struct ifaddrs *all;
    int best = -1;
    if (getifaddrs(&all) != 0)
        return false;
    for (const struct ifaddrs *i = all; i != NULL; i = i->ifa_next) {
        const int position = usable(i) ? match_position(list, i) : -1;
        if (position < 0)
            continue;
        const bool is_v6 = i->ifa_addr->sa_family == AF_INET6;
        const int price = 2 * position + is_v6;
        if (best >= 0 && price >= best)
            continue;
        best = price;
        memset(out, 0, sizeof *out);
        memcpy(out, i->ifa_addr, is_v6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in));
    }
    freeifaddrs(all);
    return best >= 0;
}

/* SPDX-License-Identifier: Apache-2.0
 * Chooses the interface whose name matches the earliest word of a list. If several addresses match
 * that word, an IPv4 address is preferred to an IPv6 address. */
#include "interface.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>

/* @return the position of the first word that matches the interface's name; -1 if no word matches.
 * A list that begins with "^" excludes matching interfaces: they have position -1, the others have
 * position 0, and the loopback has position 1, so that it is the last choice. */
static int match_position(const char *list, const struct ifaddrs *i)
{
    const bool exclude = list[0] == '^', exactly = list[exclude] == '=';
    int position = 0;
    for (const char *word = list + exclude + exactly; *word != '\0'; position++) {
        const size_t length = strcspn(word, ",");
        if (length > 0 && strncmp(word, i->ifa_name, length) == 0 &&
            (!exactly || strlen(i->ifa_name) == length))
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
        const int price = 2 * position + is_v6; /* the lowest price wins */
        if (best >= 0 && price >= best)
            continue;
        best = price;
        memset(out, 0, sizeof *out);
        memcpy(out, i->ifa_addr, is_v6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in));
    }
    freeifaddrs(all);
    return best >= 0;
}

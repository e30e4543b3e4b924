/* SPDX-License-Identifier: Apache-2.0
 * Interfaces by name: the earliest word of a list, IPv4 before IPv6. */
#include "interface.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>

static bool word_matches(const char *word, size_t length, bool exactly, const char *name)
{
    return length > 0 && strncmp(word, name, length) == 0 && (!exactly || strlen(name) == length);
}

/* @return position of the first word that matches, -1 if none; of what "^" leaves over, the
 * loopback comes last. */
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
    return !IN6_IS_ADDR_LINKLOCAL(&v6.sin6_addr); /* its scope does not travel */
}

static void take(const struct ifaddrs *i, struct sockaddr_storage *out)
{
    memset(out, 0, sizeof *out);
    memcpy(out, i->ifa_addr,
           i->ifa_addr->sa_family == AF_INET ? sizeof(struct sockaddr_in)
                                             : sizeof(struct sockaddr_in6));
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
        const int price = 2 * position + (i->ifa_addr->sa_family == AF_INET6);
        if (best >= 0 && price >= best)
            continue;
        best = price;
        take(i, out);
    }
    freeifaddrs(all);
    return best >= 0;
}

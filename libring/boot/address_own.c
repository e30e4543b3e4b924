/* SPDX-License-Identifier: Apache-2.0
 * Which of this host's addresses to listen on: what the user chose, or a sensible one. */
#include "address.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <string.h>

/* Bridges and containers' ends: other hosts cannot reach them. */
#define VIRTUAL_INTERFACES "^lo,docker,virbr,br-,veth,cni,flannel"

static bool word_matches(const char *word, size_t length, bool exactly, const char *name)
{
    return length > 0 && strncmp(word, name, length) == 0 && (!exactly || strlen(name) == length);
}

/* NCCL's syntax: "eth,ib" prefixes, "=eth0" exact names, "^docker" all but these.
 * @return position of the first word that matches, -1 if none. */
static int match_position(const char *list, const char *name)
{
    const bool exclude = list[0] == '^', exactly = list[exclude] == '=';
    int position = 0;
    for (const char *word = list + exclude + exactly; *word != '\0'; position++) {
        const size_t length = strcspn(word, ",");
        if (word_matches(word, length, exactly, name))
            return exclude ? -1 : position;
        word += length + (word[length] != '\0');
    }
    return exclude ? 0 : -1;
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

static void take(const struct ifaddrs *i, boot_address *out)
{
    memset(out, 0, sizeof *out);
    out->length = i->ifa_addr->sa_family == AF_INET ? sizeof out->at.v4 : sizeof out->at.v6;
    memcpy(&out->at, i->ifa_addr, out->length);
}

/* The earlier word of the list wins, then IPv4 over IPv6, then the system's order. */
static bool best_interface(const char *list, boot_address *out)
{
    struct ifaddrs *all;
    int best = -1;
    if (getifaddrs(&all) != 0)
        return false;
    for (const struct ifaddrs *i = all; i != NULL; i = i->ifa_next) {
        const int position = usable(i) ? match_position(list, i->ifa_name) : -1;
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

static ring_status given_address(const char *name, boot_address *out)
{
    size_t count;
    RING_TRY(address_resolve(name, 0, 0, out, 1, &count));
    if (out->at.any.sa_family == AF_INET ? out->at.v4.sin_addr.s_addr == htonl(INADDR_ANY)
                                         : IN6_IS_ADDR_UNSPECIFIED(&out->at.v6.sin6_addr))
        return fail(RING_ERR_CONFIG, "RING_ADDR=%.100s: want one address, never all of them", name);
    return address_is_here(out) ? RING_OK : fail(RING_ERR_CONFIG, "RING_ADDR=%.100s is not an "
                                                 "address of this host", name);
}

ring_status address_chosen(const settings *s, boot_address *out)
{
    out->length = 0;
    if (s->address[0] != '\0')
        return given_address(s->address, out);
    if (s->interface[0] == '\0' || best_interface(s->interface, out))
        return RING_OK;
    return fail(RING_ERR_CONFIG, "RING_SOCKET_IFNAME=%s: no interface that is up and has an "
                "address matches", s->interface);
}

boot_address address_of_host(void)
{
    boot_address a;
    return best_interface(VIRTUAL_INTERFACES, &a) ? a : address_loopback(0);
}

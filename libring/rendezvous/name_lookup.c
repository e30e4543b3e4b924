/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the addresses of the host name in a variable. Loopback addresses come last, since a host's
 * own name often resolves to a loopback address, which other hosts cannot use.
 */
#include "name_lookup.h"

#include "name_question.h"

#include <string.h>

/* Appends the addresses of one family that are loopback addresses, or that are not, to @p out. */
static void add_found(const struct addrinfo *found, int family, bool loopback, int port,
                      net_address *out, size_t most, size_t *count)
{
    for (; found != NULL && *count < most; found = found->ai_next) {
        net_address a = {.length = found->ai_addrlen};
        if (found->ai_family != family || found->ai_addrlen > sizeof a.at)
            continue;
        memcpy(&a.at, found->ai_addr, found->ai_addrlen);
        if (address_is_loopback(&a) != loopback)
            continue;
        address_set_port(&a, port);
        out[(*count)++] = a;
    }
}

ring_status name_lookup(const char *variable, const char *name, int port, double deadline,
                        net_address *out, size_t most, size_t *count)
{
    const struct addrinfo streams = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    int error;
    *count = 1;
    out[0] = address_loopback(port);
    if (strcmp(name, "localhost") == 0)
        return RING_OK;
    while ((error = name_ask(name, NULL, &streams, deadline, &found)) == EAI_AGAIN &&
           clock_now() < deadline)
        clock_sleep(0.2); /* the server may not be ready yet */
    if (error == EAI_AGAIN)
        return fail(RING_ERR_TIMEOUT,
                    "%s=%.100s: no name server answered in time (RING_INIT_TIMEOUT); give a "
                    "numeric address",
                    variable, name);
    if (error != 0)
        return fail(RING_ERR_CONFIG, "%s=%.100s: %s", variable, name, gai_strerror(error));
    *count = 0;
    for (int loopback = 0; loopback < 2; loopback++) {
        add_found(found, AF_INET, loopback, port, out, most, count);
        add_found(found, AF_INET6, loopback, port, out, most, count);
    }
    freeaddrinfo(found);
    if (*count == 0)
        return fail(RING_ERR_CONFIG, "%s=%.100s has no IP address", variable, name);
    for (size_t i = 0; i < *count; i++)
        if (address_is_unspecified(&out[i]))
            return fail(RING_ERR_CONFIG,
                        "%s=%.100s: want the address of one host, not the wildcard address",
                        variable, name);
    return RING_OK;
}

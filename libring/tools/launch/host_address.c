/* SPDX-License-Identifier: Apache-2.0
 * The address where ranks meet: names, addresses, ports. */
#include "host_address.h"

#include "name_question.h"
#include "topo.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* s; a question that the resolver repeats after its usual 5 s is still heard. */
static const double patience = 6;

bool host_address_is_here(const char *host)
{
    static const char *const loopbacks[] = {"localhost", "127.0.0.1", "::1"};
    char name[256];
    topo_net net;
    for (size_t i = 0; i < sizeof loopbacks / sizeof loopbacks[0]; i++) {
        if (strcmp(host, loopbacks[i]) == 0)
            return true;
    }
    topo_hostname(name, sizeof name);
    if (strcmp(host, name) == 0)
        return true;
    name[strcspn(name, ".")] = '\0';
    if (strcmp(host, name) == 0)
        return true;
    if (topo_net_read(&net) != RING_OK)
        return false;
    const bool ours = topo_net_has(&net, host);
    topo_net_free(&net);
    return ours;
}

ring_status host_address_free_port(int *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const bool got = fd >= 0 && bind(fd, (const struct sockaddr *)&address, length) == 0 &&
                     getsockname(fd, (struct sockaddr *)&address, &length) == 0;
    const ring_status status =
        got ? RING_OK
            : fail(RING_ERR_SYSTEM,
                   "looking for a free port on 127.0.0.1: %m; give one with --master-port");
    fd_close(&fd);
    *port = ntohs(address.sin_port);
    return status;
}

static struct addrinfo *look_up(const char *host)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_DGRAM};
    const char *at = strrchr(host, '@'); /* ssh's user@host */
    struct addrinfo *list;
    const int error = name_ask(at != NULL ? at + 1 : host, "9", &hints, clock_now() + patience,
                               &list);
    return error == 0 ? list : NULL;
}

/* @return false also for a loopback one. */
static bool numeric(const struct sockaddr *address, socklen_t length, char *out, size_t size)
{
    return getnameinfo(address, length, out, (socklen_t)size, NULL, 0, NI_NUMERICHOST) == 0 &&
           strncmp(out, "127.", 4) != 0 && strcmp(out, "::1") != 0;
}

bool host_address_resolve(const char *host, char *out, size_t size)
{
    struct addrinfo *list = look_up(host);
    bool found = false;
    for (const struct addrinfo *at = list; at != NULL && !found; at = at->ai_next)
        found = numeric(at->ai_addr, at->ai_addrlen, out, size);
    if (list != NULL)
        freeaddrinfo(list);
    return found;
}

/* connect() of a datagram socket sends nothing, but finds the route. */
static bool facing(const struct addrinfo *to, char *out, size_t size)
{
    struct sockaddr_storage address;
    socklen_t length = sizeof address;
    int fd = socket(to->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const bool found = fd >= 0 && connect(fd, to->ai_addr, to->ai_addrlen) == 0 &&
                       getsockname(fd, (struct sockaddr *)&address, &length) == 0 &&
                       numeric((const struct sockaddr *)&address, length, out, size);
    fd_close(&fd);
    return found;
}

bool host_address_public(char *out, size_t size)
{
    topo_net net;
    if (topo_net_read(&net) != RING_OK)
        return false;
    const char *address = topo_net_public_address(&net);
    const bool found = address != NULL && text_format(out, size, "%s", address);
    topo_net_free(&net);
    return found;
}

bool host_address_towards(const char *host, char *out, size_t size)
{
    struct addrinfo *list = look_up(host);
    const bool found = list != NULL && facing(list, out, size);
    if (list != NULL)
        freeaddrinfo(list);
    return found || host_address_public(out, size);
}

/* SPDX-License-Identifier: Apache-2.0
 * Finds the address and the port at which rank 0 listens, and converts addresses to text. */
#include "host_address.h"

#include "topo.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

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
                   "cannot find a free port on 127.0.0.1: %m; give one with --master-port");
    fd_close(&fd);
    *port = ntohs(address.sin_port);
    return status;
}

bool host_address_text(const struct sockaddr *address, char out[HOST_ADDRESS_MAX])
{
    static const char mapped[] = "::ffff:";
    const bool is_v4 = address->sa_family == AF_INET, is_v6 = address->sa_family == AF_INET6;
    const socklen_t length = is_v4 ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
    if ((!is_v4 && !is_v6) ||
        getnameinfo(address, length, out, HOST_ADDRESS_MAX, NULL, 0, NI_NUMERICHOST) != 0)
        return false;
    if (strncmp(out, mapped, strlen(mapped)) == 0)
        memmove(out, out + strlen(mapped), strlen(out + strlen(mapped)) + 1);
    return strncmp(out, "127.", 4) != 0 && strcmp(out, "::1") != 0 && strcmp(out, "0.0.0.0") != 0 &&
           strcmp(out, "::") != 0;
}

/* Finds the address of this host on the route to another: connect() of a datagram socket sends
 * nothing, but chooses the route. */
static bool facing(const struct addrinfo *to, char out[HOST_ADDRESS_MAX])
{
    struct sockaddr_storage address;
    socklen_t length = sizeof address;
    int fd = socket(to->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const bool found = fd >= 0 && connect(fd, to->ai_addr, to->ai_addrlen) == 0 &&
                       getsockname(fd, (struct sockaddr *)&address, &length) == 0 &&
                       host_address_text((const struct sockaddr *)&address, out);
    fd_close(&fd);
    return found;
}

bool host_address_public(char out[HOST_ADDRESS_MAX])
{
    topo_net net;
    if (topo_net_read(&net) != RING_OK)
        return false;
    const char *address = topo_net_public_address(&net);
    const bool found = address != NULL && text_format(out, HOST_ADDRESS_MAX, "%s", address);
    topo_net_free(&net);
    return found;
}

bool host_address_towards(const char *address, char out[HOST_ADDRESS_MAX])
{
    const struct addrinfo number = {.ai_socktype = SOCK_DGRAM, .ai_flags = AI_NUMERICHOST};
    struct addrinfo *list;
    if (address == NULL || getaddrinfo(address, "9", &number, &list) != 0)
        return host_address_public(out);
    const bool found = facing(list, out);
    freeaddrinfo(list);
    return found || host_address_public(out);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Chooses the address on which a rank listens. There are three sources: the user's settings, the
 * interfaces that other hosts may reach, and the kernel's route to rank 0.
 */
#include "own_address.h"

#include "interface.h"
#include "name_lookup.h"

#include <string.h>

static bool best_interface(const char *list, net_address *out)
{
    struct sockaddr_storage found;
    if (!interface_choose(list, &found))
        return false;
    memset(out, 0, sizeof *out);
    out->length = found.ss_family == AF_INET ? sizeof out->at.v4 : sizeof out->at.v6;
    memcpy(&out->at, &found, out->length);
    return true;
}

static ring_status given_address(const settings *s, net_address *out)
{
    size_t count;
    RING_TRY(
        name_lookup("RING_ADDR", s->address, 0, clock_now() + s->init_timeout, out, 1, &count));
    return address_is_here(out)
               ? RING_OK
               : fail(RING_ERR_CONFIG, "RING_ADDR=%.100s is not an address of this host",
                      s->address);
}

ring_status address_chosen(const settings *s, net_address *out)
{
    out->length = 0;
    if (s->address[0] != '\0')
        return given_address(s, out);
    static const char none[] = "no interface that is up and has an address matches";
    if (s->interface[0] == '\0' || best_interface(s->interface, out) ||
        settings_leave_out(s, "RING_SOCKET_IFNAME", none)) /* set for another library: ignored */
        return RING_OK;
    return fail(RING_ERR_CONFIG, "RING_SOCKET_IFNAME=%s: %s", s->interface, none);
}

net_address address_of_host(void)
{
    net_address a;
    return best_interface(INTERFACES_FOR_OTHERS, &a) ? a : address_loopback(0);
}

ring_status address_towards(const net_address *to, net_address *own)
{
    char text[ADDRESS_TEXT_MAX];
    int fd = socket(to->at.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ring_status status = RING_OK;
    if (fd < 0 || connect(fd, &to->at.any, to->length) != 0)
        status = fail(RING_ERR_SYSTEM, "no route to %s: %m", address_text(to, text));
    else
        status = address_of_socket(fd, own);
    fd_close(&fd);
    return status;
}

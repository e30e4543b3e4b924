/* SPDX-License-Identifier: Apache-2.0
 *
 * address: holds the address of a listener as a value: IPv4, IPv6, or an abstract AF_UNIX name. The
 * functions compare addresses, pack them for the wire, and listen on exactly one of them.
 */
#ifndef RING_RENDEZVOUS_ADDRESS_H
#define RING_RENDEZVOUS_ADDRESS_H

#include "base.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

enum {
    ADDRESS_TEXT_MAX = 128, /* bytes of the result of address_text(), with the NUL */
    ADDRESS_PACKED = 20,    /* bytes: 2 of the family, 2 of the port, 16 of the address */
    ADDRESS_NAME_MAX = 64   /* bytes of an abstract socket's name, with the NUL */
};

typedef struct net_address {
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
        struct sockaddr_un local;
    } at;
    socklen_t length; /* bytes used in `at`; 0: there is no address */
} net_address;

/** @return 127.0.0.1 with the port @p port. */
net_address address_loopback(int port);
/** Gets the local address of a connected socket, with port 0. */
ring_status address_of_socket(int fd, net_address *out);

int address_port(const net_address *a);
void address_set_port(net_address *a, int port);
bool address_equal(const net_address *a, const net_address *b);
bool address_is_loopback(const net_address *a);
/** @return true for the wildcard address (0.0.0.0 or ::). */
bool address_is_unspecified(const net_address *a);
/** @return true if @p a is an address of this host. */
bool address_is_here(const net_address *a);
/** Writes e.g. "127.0.0.1:29500" to @p out. @return @p out. */
const char *address_text(const net_address *a, char out[ADDRESS_TEXT_MAX]);

/** Packs an IPv4 or IPv6 address for the wire. */
void address_pack(const net_address *a, unsigned char out[ADDRESS_PACKED]);
/** Unpacks an address. @return false if the bytes are not a packed address. */
bool address_unpack(const unsigned char in[ADDRESS_PACKED], net_address *out);

/** @return the abstract AF_UNIX address with the printable name @p name. */
net_address address_unix(const char *name);
/** Draws a random name for address_unix(). */
void address_unix_name(char name[ADDRESS_NAME_MAX]);

/** Opens a non-blocking stream socket of the family of @p a.
 *  @return RING_ERR_SYSTEM if no descriptor is free, RING_ERR_UNSUPPORTED if the kernel lacks the
 *  family. */
ring_status address_socket(const net_address *a, int *fd);
/** Opens a socket that is bound to exactly @p a. A port 0 in @p a is replaced by the port that the
 *  kernel has assigned.
 *  @return RING_IN_PROGRESS, with fail_text(), if the port is in use. */
ring_status address_bind(net_address *a, int *fd);
/** Opens a socket that listens on exactly @p a; otherwise the same as address_bind().
 *  @return RING_IN_PROGRESS, with fail_text(), if the port is in use. */
ring_status address_listen(net_address *a, int *fd);

#endif

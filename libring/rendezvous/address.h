/* SPDX-License-Identifier: Apache-2.0
 *
 * address: the address of a listener, as a value. IPv4, IPv6, or an abstract AF_UNIX name;
 * comparing, packing for the wire, and listening on exactly one of them.
 */
#ifndef RING_RENDEZVOUS_ADDRESS_H
#define RING_RENDEZVOUS_ADDRESS_H

#include "base.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

enum {
    ADDRESS_TEXT_MAX = 128, /* for address_text()               */
    ADDRESS_PACKED = 20,    /* family 2, port 2, address 16     */
    ADDRESS_NAME_MAX = 64   /* of an abstract socket, with NUL  */
};

typedef struct net_address {
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
        struct sockaddr_un local;
    } at;
    socklen_t length; /* 0: none */
} net_address;

/** 127.0.0.1 */
net_address address_loopback(int port);
/** The local end of a connected socket, port 0. */
ring_status address_of_socket(int fd, net_address *out);

int address_port(const net_address *a);
void address_set_port(net_address *a, int port);
bool address_equal(const net_address *a, const net_address *b);
bool address_is_loopback(const net_address *a);
/** @return true if it stands for all addresses of a host (0.0.0.0). */
bool address_is_unspecified(const net_address *a);
/** @return true if this host has it. */
bool address_is_here(const net_address *a);
/** "127.0.0.1:29500"; returns @p out. */
const char *address_text(const net_address *a, char out[ADDRESS_TEXT_MAX]);

void address_pack(const net_address *a, unsigned char out[ADDRESS_PACKED]);
/** @return false if it is no address. */
bool address_unpack(const unsigned char in[ADDRESS_PACKED], net_address *out);

/** An abstract AF_UNIX address from its printable name / with a new random name. */
net_address address_unix(const char *name);
void address_unix_name(char name[ADDRESS_NAME_MAX]);

/** A new non-blocking stream socket of the family of @p a.
 *  @return RING_ERR_SYSTEM if no descriptor is free, RING_ERR_UNSUPPORTED without the family. */
ring_status address_socket(const net_address *a, int *fd);
/** Binds to exactly @p a; port 0 becomes the port got.
 *  @return RING_IN_PROGRESS if the port is taken, with the text set. */
ring_status address_bind(net_address *a, int *fd);
/** The same, and listens; port 0 becomes the port got.
 *  @return RING_IN_PROGRESS if the port is taken, with the text set. */
ring_status address_listen(net_address *a, int *fd);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * address: where somebody listens. IPv4, IPv6, or an abstract AF_UNIX name; resolving
 * (resolve.c), choosing this host's own (address_own.c), packing for the wire, and listening on
 * exactly one of them.
 */
#ifndef RING_BOOT_ADDRESS_H
#define RING_BOOT_ADDRESS_H

#include "settings.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

enum {
    ADDRESS_TEXT_MAX = 128, /* for address_text()               */
    ADDRESS_PACKED = 20,    /* family 2, port 2, address 16     */
    ADDRESS_NAME_MAX = 64   /* of an abstract socket, with NUL  */
};

typedef struct boot_address {
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
        struct sockaddr_un local;
    } at;
    socklen_t length; /* 0: none */
} boot_address;

/** 127.0.0.1 */
boot_address address_loopback(int port);
/** All that @p name, the value of @p variable, means: what other hosts may reach before the
 *  loopback, then IPv4 before IPv6; "localhost" is 127.0.0.1. Refuses what means all addresses
 *  of a host. Waits for a name server until @p deadline.
 *  @param[out] count  1 … @p most on success. */
ring_status address_resolve(const char *variable, const char *name, int port, double deadline,
                            boot_address *out, size_t most, size_t *count);
/** The address of this host that RING_ADDR or RING_SOCKET_IFNAME asks for; out->length is 0
 *  if neither is set. */
ring_status address_chosen(const settings *s, boot_address *out);
/** An address of this host that others may reach: of the first interface that is up and not
 *  the loopback nor a virtual bridge; 127.0.0.1 without any. */
boot_address address_of_host(void);
/** The address of this host, port 0, that packets to @p to leave from. Nothing is sent. */
ring_status address_towards(const boot_address *to, boot_address *own);
/** The local end of a connected socket, port 0. */
ring_status address_of_socket(int fd, boot_address *out);

int address_port(const boot_address *a);
void address_set_port(boot_address *a, int port);
bool address_equal(const boot_address *a, const boot_address *b);
bool address_is_loopback(const boot_address *a);
/** @return true if it stands for all addresses of a host (0.0.0.0). */
bool address_is_unspecified(const boot_address *a);
/** @return true if this host has it. */
bool address_is_here(const boot_address *a);
/** "127.0.0.1:29500"; returns @p out. */
const char *address_text(const boot_address *a, char out[ADDRESS_TEXT_MAX]);

void address_pack(const boot_address *a, unsigned char out[ADDRESS_PACKED]);
/** @return false if it is no address. */
bool address_unpack(const unsigned char in[ADDRESS_PACKED], boot_address *out);

/** An abstract AF_UNIX address from its printable name / with a new random name. */
boot_address address_unix(const char *name);
void address_unix_name(char name[ADDRESS_NAME_MAX]);

/** A new non-blocking stream socket of the family of @p a.
 *  @return RING_ERR_SYSTEM if no descriptor is free, RING_ERR_UNSUPPORTED without the family. */
ring_status address_socket(const boot_address *a, int *fd);
/** Binds to exactly @p a and listens; port 0 becomes the port got.
 *  @return RING_IN_PROGRESS if the port is taken, with the text set. */
ring_status address_listen(boot_address *a, int *fd);

#endif

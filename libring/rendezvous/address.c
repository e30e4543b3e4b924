/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares, prints and packs addresses, and opens sockets that are bound to exactly one of them.
 * IPv4, IPv6 and abstract AF_UNIX addresses share one type, so most callers need no cases.
 */
#include "address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <sodium.h>
#include <string.h>
#include <unistd.h>

net_address address_loopback(int port)
{
    net_address a = {.length = sizeof a.at.v4};
    a.at.v4.sin_family = AF_INET;
    a.at.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address_set_port(&a, port);
    return a;
}

int address_port(const net_address *a)
{
    return ntohs(a->at.any.sa_family == AF_INET6 ? a->at.v6.sin6_port : a->at.v4.sin_port);
}

void address_set_port(net_address *a, int port)
{
    if (a->at.any.sa_family == AF_INET6)
        a->at.v6.sin6_port = htons((uint16_t)port);
    else
        a->at.v4.sin_port = htons((uint16_t)port);
}

bool address_equal(const net_address *a, const net_address *b)
{
    unsigned char pa[ADDRESS_PACKED], pb[ADDRESS_PACKED];
    address_pack(a, pa);
    address_pack(b, pb);
    return memcmp(pa, pb, sizeof pa) == 0;
}

/* Extracts an IPv4 address in host byte order. It may be mapped into an IPv6 address
 * ("::ffff:127.0.0.1"). @return false if @p a is any other IPv6 address. */
static bool as_v4(const net_address *a, uint32_t *v4)
{
    const bool mapped = a->at.any.sa_family == AF_INET6 &&
                        IN6_IS_ADDR_V4MAPPED(&a->at.v6.sin6_addr);
    const void *at = mapped ? (const void *)&a->at.v6.sin6_addr.s6_addr[12]
                            : (const void *)&a->at.v4.sin_addr;
    memcpy(v4, at, sizeof *v4);
    *v4 = ntohl(*v4);
    return mapped || a->at.any.sa_family == AF_INET;
}

bool address_is_loopback(const net_address *a)
{
    uint32_t v4;
    return as_v4(a, &v4) ? v4 >> 24 == 127 : IN6_IS_ADDR_LOOPBACK(&a->at.v6.sin6_addr);
}

bool address_is_unspecified(const net_address *a)
{
    uint32_t v4;
    return as_v4(a, &v4) ? v4 == INADDR_ANY : IN6_IS_ADDR_UNSPECIFIED(&a->at.v6.sin6_addr);
}

const char *address_text(const net_address *a, char out[ADDRESS_TEXT_MAX])
{
    char host[INET6_ADDRSTRLEN] = "?";
    if (a->at.any.sa_family == AF_UNIX) {
        const size_t head = offsetof(struct sockaddr_un, sun_path) + 1;
        text_format(out, ADDRESS_TEXT_MAX, "@%.*s", a->length > head ? (int)(a->length - head) : 0,
                    a->at.local.sun_path + 1);
    } else if (a->at.any.sa_family == AF_INET6) {
        inet_ntop(AF_INET6, &a->at.v6.sin6_addr, host, sizeof host);
        text_format(out, ADDRESS_TEXT_MAX, "[%s]:%d", host, address_port(a));
    } else {
        inet_ntop(AF_INET, &a->at.v4.sin_addr, host, sizeof host);
        text_format(out, ADDRESS_TEXT_MAX, "%s:%d", host, address_port(a));
    }
    return out;
}

/* ---- For the wire ------------------------------------------------------------------ */

void address_pack(const net_address *a, unsigned char out[ADDRESS_PACKED])
{
    const uint16_t head[2] = {a->at.any.sa_family, htons((uint16_t)address_port(a))};
    memset(out, 0, ADDRESS_PACKED);
    memcpy(out, head, sizeof head);
    if (a->at.any.sa_family == AF_INET6)
        memcpy(out + 4, &a->at.v6.sin6_addr, 16);
    else
        memcpy(out + 4, &a->at.v4.sin_addr, 4);
}

bool address_unpack(const unsigned char in[ADDRESS_PACKED], net_address *out)
{
    uint16_t head[2];
    memcpy(head, in, sizeof head);
    memset(out, 0, sizeof *out);
    out->at.any.sa_family = head[0];
    if (head[0] == AF_INET6) {
        out->length = sizeof out->at.v6;
        memcpy(&out->at.v6.sin6_addr, in + 4, 16);
    } else if (head[0] == AF_INET) {
        out->length = sizeof out->at.v4;
        memcpy(&out->at.v4.sin_addr, in + 4, 4);
    } else {
        return false;
    }
    address_set_port(out, ntohs(head[1]));
    return true;
}

/* ---- AF_UNIX ----------------------------------------------------------------------- */

net_address address_unix(const char *name)
{
    net_address a = {.length = 0};
    const size_t length = strnlen(name, ADDRESS_NAME_MAX - 1);
    a.at.local.sun_family = AF_UNIX;
    memcpy(a.at.local.sun_path + 1, name, length); /* the leading NUL makes it abstract */
    a.length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length);
    return a;
}

void address_unix_name(char name[ADDRESS_NAME_MAX])
{
    unsigned char random[16]; /* 128 bits: no other process can guess the name */
    char hex[2 * sizeof random + 1];
    randombytes_buf(random, sizeof random);
    sodium_bin2hex(hex, sizeof hex, random, sizeof random);
    text_format(name, ADDRESS_NAME_MAX, "ring-%s", hex);
}

/* ---- Sockets ----------------------------------------------------------------------- */

ring_status address_socket(const net_address *a, int *fd)
{
    const int on = 1;
    *fd = socket(a->at.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (*fd < 0 && (errno == EMFILE || errno == ENFILE))
        return fail(RING_ERR_SYSTEM,
                    "opening a socket: %m; raise the limit on open files (ulimit -n)");
    if (*fd < 0)
        return fail(RING_ERR_UNSUPPORTED, "opening a socket: %m");
    if (a->at.any.sa_family != AF_UNIX)
        setsockopt(*fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on); /* a failure costs only speed */
    return RING_OK;
}

ring_status address_of_socket(int fd, net_address *out)
{
    memset(out, 0, sizeof *out);
    out->length = sizeof out->at;
    if (getsockname(fd, &out->at.any, &out->length) != 0)
        return fail(RING_ERR_SYSTEM, "reading the address of a socket (getsockname): %m");
    if (out->at.any.sa_family != AF_UNIX)
        address_set_port(out, 0);
    return RING_OK;
}

bool address_is_here(const net_address *a)
{
    net_address try = *a;
    int fd;
    address_set_port(&try, 0);
    if (address_socket(&try, &fd) != RING_OK)
        return false;
    const bool here = bind(fd, &try.at.any, try.length) == 0;
    fd_close(&fd);
    return here;
}

/* Fails by errno: RING_IN_PROGRESS if the address is in use. @param what  begins the text. */
static ring_status cannot_use(const net_address *a, const char *what)
{
    char text[ADDRESS_TEXT_MAX];
    return fail(errno == EADDRINUSE ? RING_IN_PROGRESS : RING_ERR_SYSTEM, "%s %s: %m", what,
                address_text(a, text));
}

static ring_status bind_to(net_address *a, int fd)
{
    const int on = 1;
    if (a->at.any.sa_family != AF_UNIX &&
        address_port(a) != 0) /* ended connections may still occupy the port */
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, &a->at.any, a->length) != 0)
        return cannot_use(a, "binding a socket to");
    a->length = sizeof a->at;
    return getsockname(fd, &a->at.any, &a->length) == 0
               ? RING_OK
               : fail(RING_ERR_SYSTEM, "reading the address of a socket (getsockname): %m");
}

ring_status address_bind(net_address *a, int *fd)
{
    RING_TRY(address_socket(a, fd));
    const ring_status status = bind_to(a, *fd);
    if (status != RING_OK)
        fd_close(fd);
    return status;
}

ring_status address_listen(net_address *a, int *fd)
{
    RING_TRY(address_bind(a, fd));
    if (listen(*fd, SOMAXCONN) == 0)
        return RING_OK;
    const ring_status status = cannot_use(a, "listening on");
    fd_close(fd);
    return status;
}

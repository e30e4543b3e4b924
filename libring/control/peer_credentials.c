/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the user of the process at the other end of a local connection. For AF_UNIX a socket option
 * has it; for TCP over 127.0.0.1 it is in the kernel's table of connections.
 */
#include "peer_credentials.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

typedef struct connection {
    struct sockaddr_in here, there;
} connection;

static bool ends_of(int fd, connection *c)
{
    socklen_t a = sizeof c->here, b = sizeof c->there;
    return getsockname(fd, (struct sockaddr *)&c->here, &a) == 0 &&
           getpeername(fd, (struct sockaddr *)&c->there, &b) == 0 &&
           c->here.sin_family == AF_INET && c->there.sin_family == AF_INET;
}

FILE *peer_table(void)
{
    return fopen("/proc/thread-self/net/tcp", "re");
}

/* Looks for the other end's row. The table has addresses as hexadecimal numbers in network byte
 * order, and ports in host byte order. */
static bool uid_by_table(FILE *table, const connection *c, unsigned *uid)
{
    char row[512], other_end[40];
    text_format(other_end, sizeof other_end, " %08X:%04X %08X:%04X ", c->there.sin_addr.s_addr,
                ntohs(c->there.sin_port), c->here.sin_addr.s_addr, ntohs(c->here.sin_port));
    rewind(table);
    while (fgets(row, sizeof row, table) != NULL)
        if (strstr(row, other_end) != NULL)
            return sscanf(row, " %*u: %*s %*s %*X %*X:%*X %*X:%*X %*X %u", uid) == 1;
    return false;
}

static bool uid_by_socket(int fd, unsigned *uid)
{
    struct ucred peer;
    socklen_t length = sizeof peer;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0)
        return false;
    *uid = peer.uid;
    return true;
}

ring_status peer_check(int fd, FILE *table)
{
    int family = AF_UNSPEC;
    socklen_t size = sizeof family;
    const bool local = getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &size) == 0 &&
                       family == AF_UNIX;
    connection c;
    unsigned uid;
    if (!local && table == NULL)
        return RING_OK;
    if (local ? !uid_by_socket(fd, &uid) : !(ends_of(fd, &c) && uid_by_table(table, &c, &uid)))
        return fail(RING_ERR_AUTH, "cannot determine which user connects; set RING_SECRET_FILE");
    if (uid != (unsigned)geteuid())
        return fail(RING_ERR_AUTH, "the other side is user %u, this is user %u", uid,
                    (unsigned)geteuid());
    return RING_OK;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Whose process is at the other end of a local connection. AF_UNIX tells by itself; for TCP
 * over 127.0.0.1 the kernel's table of connections has the user of the other end.
 */
#include "hand.h"

#include <netinet/in.h>
#include <stdio.h>
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

/* Addresses stand in the table as the raw number in network order, ports in host order. */
static bool row_is_other_end(const char *row, const connection *c, unsigned *uid)
{
    unsigned local, local_port, remote, remote_port;
    return sscanf(row, " %*u: %8X:%4X %8X:%4X %*X %*X:%*X %*X:%*X %*X %u", &local, &local_port,
                  &remote, &remote_port, uid) == 5 &&
           local == c->there.sin_addr.s_addr && local_port == ntohs(c->there.sin_port) &&
           remote == c->here.sin_addr.s_addr && remote_port == ntohs(c->here.sin_port);
}

static bool uid_by_table(const connection *c, unsigned *uid)
{
    char row[512];
    bool found = false;
    FILE *table = fopen("/proc/thread-self/net/tcp", "re");
    if (table == NULL)
        return false;
    while (!found && fgets(row, sizeof row, table) != NULL)
        found = row_is_other_end(row, c, uid);
    fclose(table);
    return found;
}

static bool is_unix(int fd)
{
    int family = AF_UNSPEC;
    socklen_t size = sizeof family;
    return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &size) == 0 && family == AF_UNIX;
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

ring_status owner_check(int fd, bool tcp_too)
{
    const bool local = is_unix(fd);
    connection c;
    unsigned uid;
    if (!local && !tcp_too)
        return RING_OK;
    if (local ? !uid_by_socket(fd, &uid) : !(ends_of(fd, &c) && uid_by_table(&c, &uid)))
        return fail(RING_ERR_AUTH, "cannot find out which user connects; set RING_SECRET_FILE");
    if (uid != (unsigned)geteuid())
        return fail(RING_ERR_AUTH, "the other side is user %u, this is user %u", uid,
                    (unsigned)geteuid());
    return RING_OK;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the user of the process at the other end of a local connection. For AF_UNIX a socket option
 * has the user; for TCP over 127.0.0.1 the user is in the kernel's table of connections.
 */
#include "peer_credentials.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

FILE *peer_table(void)
{
    return fopen("/proc/thread-self/net/tcp", "re");
}

/* Finds the user of a TCP connection in the row of the table that belongs to the other end: its
 * local address is this end's remote address. A row has addresses as hexadecimal numbers in network
 * byte order, and ports in host byte order. @return false if the user cannot be found. */
static bool uid_by_table(FILE *table, int fd, unsigned *uid)
{
    struct sockaddr_in here, there;
    socklen_t here_size = sizeof here, there_size = sizeof there;
    char row[512], ends[40];
    if (getsockname(fd, (struct sockaddr *)&here, &here_size) != 0 ||
        getpeername(fd, (struct sockaddr *)&there, &there_size) != 0 ||
        here.sin_family != AF_INET || there.sin_family != AF_INET)
        return false;
    text_format(ends, sizeof ends, " %08X:%04X %08X:%04X ", there.sin_addr.s_addr,
                ntohs(there.sin_port), here.sin_addr.s_addr, ntohs(here.sin_port));
    rewind(table);
    while (fgets(row, sizeof row, table) != NULL)
        if (strstr(row, ends) != NULL)
            return sscanf(row, " %*u: %*s %*s %*X %*X:%*X %*X:%*X %*X %u", uid) == 1;
    return false;
}

ring_status peer_check(int fd, FILE *table)
{
    int family = AF_UNSPEC;
    struct ucred peer = {.uid = 0};
    socklen_t size = sizeof family, peer_size = sizeof peer;
    const bool local = getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &size) == 0 &&
                       family == AF_UNIX;
    if (!local && table == NULL)
        return RING_OK;
    if (local ? getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &peer_size) != 0
              : !uid_by_table(table, fd, &peer.uid))
        return fail(RING_ERR_AUTH,
                    "cannot determine the user of the connecting process; set RING_SECRET_FILE");
    if (peer.uid != geteuid())
        return fail(RING_ERR_AUTH, "the peer runs as user %u, but this process runs as user %u",
                    (unsigned)peer.uid, (unsigned)geteuid());
    return RING_OK;
}

/* SPDX-License-Identifier: Apache-2.0
 * The command that reaches another host. Only the path of ringrun meets the shell there. */
#include "remote.h"

#include <stdlib.h>

char *remote_quoted(const char *word)
{
    bytes out = {0};
    bytes_add(&out, "'", 1);
    for (; *word != '\0'; word++)
        bytes_add(&out, *word == '\'' ? "'\\''" : word, *word == '\'' ? 4 : 1);
    bytes_add(&out, "'", 2);
    return out.data;
}

void remote_command(const char *host, int ssh_port, const char *path, texts *out)
{
    char *there = remote_quoted(path);
    texts_add(out, "ssh");
    texts_add(out, "-oBatchMode=yes");
    texts_add(out, "-oConnectTimeout=10");
    texts_add(out, "-oServerAliveInterval=5");
    texts_add(out, "-oServerAliveCountMax=3");
    if (ssh_port > 0)
        texts_add(out, "-oPort=%d", ssh_port);
    texts_add(out, "%s", host);
    texts_add(out, "%s --remote-child", there);
    free(there);
}

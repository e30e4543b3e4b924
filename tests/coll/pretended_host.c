/* SPDX-License-Identifier: Apache-2.0
 * A stat() that stands before the C library's. */
#include "pretended_host.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

static _Thread_local int own_host;

void pretended_host_set(int host)
{
    own_host = host;
}

__attribute__((visibility("default"))) int stat(const char *restrict path,
                                                struct stat *restrict file)
{
    const int result = fstatat(AT_FDCWD, path, file, 0);
    if (result == 0 && strcmp(path, "/proc/thread-self/ns/net") == 0)
        file->st_ino += (ino_t)own_host;
    return result;
}

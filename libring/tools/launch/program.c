/* SPDX-License-Identifier: Apache-2.0
 * Finding the program that a word means. */
#include "spawn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool may_run(const char *path)
{
    struct stat file;
    if (stat(path, &file) != 0 || access(path, X_OK) != 0)
        return false;
    if (S_ISREG(file.st_mode))
        return true;
    errno = EACCES;
    return false;
}

static bool beside_us(const char *name, char *out, size_t size)
{
    char self[4096];
    const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length <= 0)
        return false;
    self[length] = '\0';
    *strrchr(self, '/') = '\0';
    return text_format(out, size, "%s/%s", self, name) && may_run(out);
}

bool spawn_find(const char *name, char *out, size_t size)
{
    const char *path = getenv("PATH");
    if (strchr(name, '/') != NULL)
        return text_format(out, size, "%s", name) && may_run(out);
    for (const char *at = path != NULL ? path : "/usr/bin:/bin"; *at != '\0';) {
        const int length = (int)strcspn(at, ":");
        if (text_format(out, size, "%.*s%s%s", length, at, length > 0 ? "/" : "./", name) &&
            may_run(out))
            return true;
        at += length + (at[length] == ':');
    }
    if (beside_us(name, out, size))
        return true;
    errno = ENOENT;
    return false;
}

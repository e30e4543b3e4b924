/* SPDX-License-Identifier: Apache-2.0
 * Small files of /proc and /sys, and the cgroup's limits among them. */
#include "sysfs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool first_line(const char *path, char *out, size_t size)
{
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return false;
    const bool read = fgets(out, (int)size, file) != NULL;
    fclose(file);
    if (read)
        out[strcspn(out, "\n")] = '\0';
    return read;
}

bool sysfs_line(char *out, size_t size, const char *path_format, ...)
{
    char path[512];
    va_list args;
    va_start(args, path_format);
    const int length = vsnprintf(path, sizeof path, path_format, args);
    va_end(args);
    out[0] = '\0';
    return length > 0 && (size_t)length < sizeof path && first_line(path, out, size);
}

long sysfs_number(long fallback, const char *path_format, ...)
{
    char path[512], line[64], *end;
    va_list args;
    va_start(args, path_format);
    const int length = vsnprintf(path, sizeof path, path_format, args);
    va_end(args);
    if (length <= 0 || (size_t)length >= sizeof path || !first_line(path, line, sizeof line))
        return fallback;
    const long value = strtol(line, &end, 10);
    return end == line ? fallback : value;
}

bool sysfs_value(char *out, size_t size, const char *path, const char *key)
{
    char line[512];
    const size_t length = strlen(key);
    FILE *file = fopen(path, "re");
    bool found = false;
    out[0] = '\0';
    if (file == NULL)
        return false;
    while (!found && fgets(line, sizeof line, file) != NULL)
        found = strncmp(line, key, length) == 0;
    fclose(file);
    if (!found)
        return false;
    const char *value = line + length + strspn(line + length, " \t:");
    snprintf(out, size, "%.*s", (int)strcspn(value, "\n"), value);
    return true;
}

/* cgroup v2 has one line "0::/path". In a container the path may not exist here; then the
 * root of what is mounted holds the container's own limits. */
double sysfs_cgroup_limit(const char *file, double (*read)(const char *line))
{
    char path[400], line[128];
    double least = 0;
    if (!sysfs_value(path, sizeof path, "/proc/self/cgroup", "0::"))
        return 0;
    for (;;) {
        const double limit =
            sysfs_line(line, sizeof line, "/sys/fs/cgroup%s/%s", path, file) ? read(line) : 0;
        if (limit > 0 && (least <= 0 || limit < least))
            least = limit;
        char *slash = strrchr(path, '/');
        if (slash == NULL)
            return least;
        *slash = '\0';
    }
}

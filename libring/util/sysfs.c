/* SPDX-License-Identifier: Apache-2.0
 * Small files of /proc and /sys. */
#include "sysfs.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool find_line(char *out, size_t size, const char *key, const char *path_format,
                      va_list args)
{
    char path[2048], line[4096];
    const size_t length = strlen(key);
    const int written = vsnprintf(path, sizeof path, path_format, args);
    FILE *file = written > 0 && (size_t)written < sizeof path ? fopen(path, "re") : NULL;
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

bool sysfs_line(char *out, size_t size, const char *path_format, ...)
{
    va_list args;
    va_start(args, path_format);
    const bool found = find_line(out, size, "", path_format, args);
    va_end(args);
    return found;
}

long sysfs_number(long fallback, const char *path_format, ...)
{
    char line[64], *end;
    va_list args;
    va_start(args, path_format);
    const bool found = find_line(line, sizeof line, "", path_format, args);
    va_end(args);
    const long value = found ? strtol(line, &end, 10) : 0;
    return !found || end == line ? fallback : value;
}

bool sysfs_value(char *out, size_t size, const char *key, const char *path_format, ...)
{
    va_list args;
    va_start(args, path_format);
    const bool found = find_line(out, size, key, path_format, args);
    va_end(args);
    return found;
}

/* SPDX-License-Identifier: Apache-2.0
 * Reads small files of /proc and /sys, whose paths are given as printf formats. */
#include "sysfs.h"

#include "numbers.h"

#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 2048 };

/* @return the path, or "" if it is too long. */
__attribute__((format(printf, 2, 0))) static const char *path_of(char path[PATH_BYTES],
                                                                 const char *format, va_list args)
{
    const int written = vsnprintf(path, PATH_BYTES, format, args);
    return written > 0 && written < PATH_BYTES ? path : "";
}

__attribute__((format(printf, 3, 0))) static bool
find(bool (*take)(char *line, void *context), void *context, const char *path_format, va_list args)
{
    char path[PATH_BYTES], line[4096];
    FILE *file = fopen(path_of(path, path_format, args), "re");
    bool found = false;
    if (file == NULL)
        return false;
    while (!found && fgets(line, sizeof line, file) != NULL)
        found = take(line, context);
    fclose(file);
    return found;
}

bool sysfs_find(bool (*take)(char *line, void *context), void *context, const char *path_format,
                ...)
{
    va_list args;
    va_start(args, path_format);
    const bool found = find(take, context, path_format, args);
    va_end(args);
    return found;
}

/* ---- One value ------------------------------------------------------------------------------- */

typedef struct wanted {
    const char *key;
    char *out;
    size_t size;
} wanted;

static bool take_value(char *line, void *context)
{
    const wanted *w = context;
    const size_t length = strlen(w->key);
    if (strncmp(line, w->key, length) != 0)
        return false;
    const char *value = line + length + strspn(line + length, " \t:");
    snprintf(w->out, w->size, "%.*s", (int)strcspn(value, "\n"), value);
    return true;
}

bool sysfs_line(char *out, size_t size, const char *path_format, ...)
{
    va_list args;
    out[0] = '\0';
    va_start(args, path_format);
    const bool found = find(take_value, &(wanted){"", out, size}, path_format, args);
    va_end(args);
    return found;
}

double sysfs_number(double fallback, const char *path_format, ...)
{
    char line[64] = "", *end;
    va_list args;
    va_start(args, path_format);
    find(take_value, &(wanted){"", line, sizeof line}, path_format, args);
    va_end(args);
    const double value = number_leading(line, &end);
    return end == line ? fallback : value;
}

bool sysfs_value(char *out, size_t size, const char *key, const char *path_format, ...)
{
    va_list args;
    out[0] = '\0';
    va_start(args, path_format);
    const bool found = find(take_value, &(wanted){key, out, size}, path_format, args);
    va_end(args);
    return found;
}

/* ---- Folders --------------------------------------------------------------------------------- */

void sysfs_each(void (*take)(const char *name, void *context), void *context,
                const char *folder_format, ...)
{
    char path[PATH_BYTES];
    struct dirent **names = NULL;
    va_list args;
    va_start(args, folder_format);
    const int count = scandir(path_of(path, folder_format, args), &names, NULL, versionsort);
    va_end(args);
    for (int i = 0; i < count; i++) {
        if (names[i]->d_name[0] != '.')
            take(names[i]->d_name, context);
        free(names[i]);
    }
    free(names);
}

bool sysfs_exists(const char *path_format, ...)
{
    char path[PATH_BYTES];
    va_list args;
    va_start(args, path_format);
    const bool there = access(path_of(path, path_format, args), F_OK) == 0;
    va_end(args);
    return there;
}

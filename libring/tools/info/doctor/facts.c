/* SPDX-License-Identifier: Apache-2.0
 * Reads all parts, and the small files that they are made of. */
#include "facts.h"

#include "sysfs.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 1024 };

void facts_each(facts *f, void (*take)(facts *f, const char *name, void *context), void *context,
                const char *folder_format, ...)
{
    char inner[PATH_BYTES], folder[PATH_BYTES];
    struct dirent **names = NULL;
    va_list args;
    va_start(args, folder_format);
    vsnprintf(inner, sizeof inner, folder_format, args);
    va_end(args);
    if (!text_format(folder, sizeof folder, "%s%s", f->root, inner))
        return;
    const int count = scandir(folder, &names, NULL, versionsort);
    for (int i = 0; i < count; i++) {
        if (names[i]->d_name[0] != '.')
            take(f, names[i]->d_name, context);
        free(names[i]);
    }
    free(names);
}

bool facts_line(const facts *f, char *out, size_t size, const char *path_format, ...)
{
    char path[PATH_BYTES];
    va_list args;
    va_start(args, path_format);
    vsnprintf(path, sizeof path, path_format, args);
    va_end(args);
    return sysfs_line(out, size, "%s%s", f->root, path);
}

double facts_number(const facts *f, const char *path_format, ...)
{
    char path[PATH_BYTES], line[64], *end;
    va_list args;
    va_start(args, path_format);
    vsnprintf(path, sizeof path, path_format, args);
    va_end(args);
    if (!sysfs_line(line, sizeof line, "%s%s", f->root, path))
        return -1;
    const double value = strtod(line, &end);
    return end == line ? -1 : value;
}

bool facts_exists(const facts *f, const char *path)
{
    char full[PATH_BYTES];
    return text_format(full, sizeof full, "%s%s", f->root, path) && access(full, F_OK) == 0;
}

void facts_read(facts *f)
{
    facts_read_limits(f);
    facts_read_memory(f);
    facts_read_cpu(f);
    facts_read_net(f);
    facts_read_ports(f);
    facts_read_pci(f);
    facts_read_versions(f);
    facts_read_port_counters(f, 0);
    facts_read_net_counters(f, 0);
    facts_try_ports(f);
    if (f->seconds > 0)
        clock_sleep(f->seconds);
    facts_read_port_counters(f, 1);
    facts_read_net_counters(f, 1);
}

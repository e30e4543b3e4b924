/* SPDX-License-Identifier: Apache-2.0
 * Reads /proc/PID/maps and /proc/PID/fd. */
#include "traces.h"

#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char memory_file[] = "/memfd:ring-";

static void mappings_of(const char *process, traces_visitor visit, void *context)
{
    char path[64], line[PATH_MAX];
    unsigned long inode;
    snprintf(path, sizeof path, "/proc/%.20s/maps", process);
    FILE *maps = fopen(path, "re");
    if (maps == NULL)
        return; /* it has ended, or belongs to somebody else */
    while (fgets(line, sizeof line, maps) != NULL)
        if (strstr(line, memory_file) != NULL && sscanf(line, "%*s %*s %*s %*s %lu", &inode) == 1)
            visit(inode, context);
    fclose(maps);
}

static void descriptors_of(const char *process, traces_visitor visit, void *context)
{
    char path[64], link[PATH_MAX];
    struct stat file;
    snprintf(path, sizeof path, "/proc/%.20s/fd", process);
    DIR *folder = opendir(path);
    if (folder == NULL)
        return;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        const ssize_t length = readlinkat(dirfd(folder), entry->d_name, link, sizeof link - 1);
        link[length > 0 ? length : 0] = '\0';
        if (strncmp(link, memory_file, strlen(memory_file)) == 0 &&
            fstatat(dirfd(folder), entry->d_name, &file, 0) == 0)
            visit(file.st_ino, context);
    }
    closedir(folder);
}

void traces_of(const char *process, traces_visitor visit, void *context)
{
    mappings_of(process, visit, context);
    descriptors_of(process, visit, context);
}

void traces_everywhere(traces_visitor visit, void *context)
{
    DIR *folder = opendir("/proc");
    if (folder == NULL)
        return;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;)
        if (isdigit((unsigned char)entry->d_name[0]))
            traces_of(entry->d_name, visit, context);
    closedir(folder);
}

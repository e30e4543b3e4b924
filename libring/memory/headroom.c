/* SPDX-License-Identifier: Apache-2.0
 * Reads /proc/meminfo, /proc/self/cgroup, /proc/self/mountinfo and the cgroups' own files. */
#include "headroom.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_BYTES = 1024 };

/* What the two versions of cgroups call the same things. */
typedef struct cgroup_version {
    const char *mount_type, *controller; /* NULL: the line without controllers */
    const char *limit, *usage;
    const char *cache[2]; /* keys of memory.stat: what can be given back */
} cgroup_version;

static const cgroup_version versions[] = {
    {"cgroup", "memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
     {"total_inactive_file", "total_active_file"}},
    {"cgroup2", NULL, "memory.max", "memory.current", {"inactive_file", "active_file"}},
};

static void take_least(headroom *h, size_t bytes, const char *what, const char *name)
{
    if (bytes >= h->bytes)
        return;
    h->bytes = bytes;
    (void)text_format(h->bound, sizeof h->bound, "%s%s", what, name);
}

/* ---- Files ------------------------------------------------------------------------ */

static FILE *open_file(const char *folder, const char *name)
{
    char path[PATH_BYTES];
    return text_format(path, sizeof path, "%s/%s", folder, name) ? fopen(path, "re") : NULL;
}

/* The number behind @p key, which starts a line; "" for a file that is one number.
 * @return false: not there, or no number ("max"). */
static bool read_number(const char *folder, const char *name, const char *key, size_t *value)
{
    char line[256], *end = line;
    FILE *file = open_file(folder, name);
    bool found = false;
    while (file != NULL && !found && fgets(line, sizeof line, file) != NULL) {
        const char *at = line + strlen(key);
        if (strncmp(line, key, strlen(key)) != 0)
            continue;
        *value = (size_t)strtoull(at, &end, 10);
        found = end != at;
    }
    if (file != NULL)
        fclose(file);
    return found;
}

/* ---- The machine ------------------------------------------------------------------- */

static void consider_machine(const char *root, headroom *h)
{
    size_t kib;
    if (read_number(root, "proc/meminfo", "MemAvailable:", &kib))
        take_least(h, kib << 10, "the machine's available memory", "");
}

/* ---- Cgroups ----------------------------------------------------------------------- */

/* @return true if @p word is among those that commas join. */
static bool has_word(const char *list, const char *word)
{
    const size_t length = strlen(word);
    for (const char *at = list; (at = strstr(at, word)) != NULL; at += length)
        if ((at == list || at[-1] == ',') && (at[length] == '\0' || at[length] == ','))
            return true;
    return false;
}

/* "7:memory,cpu:/user/job" or "0::/user/job": this process's cgroup of that version. */
static bool find_cgroup(const char *root, const cgroup_version *v, char path[PATH_BYTES])
{
    char line[PATH_BYTES + 256];
    bool found = false;
    FILE *file = open_file(root, "proc/self/cgroup");
    while (file != NULL && !found && fgets(line, sizeof line, file) != NULL) {
        char *at = line, *number = strsep(&at, ":"), *controllers = strsep(&at, ":");
        if (controllers == NULL || at == NULL || number == NULL)
            continue;
        at[strcspn(at, "\n")] = '\0';
        found = v->controller != NULL ? has_word(controllers, v->controller) : *controllers == '\0';
        found = found && text_format(path, PATH_BYTES, "%s", at);
    }
    if (file != NULL)
        fclose(file);
    return found;
}

/* "31 23 0:28 /ROOT /POINT rw - TYPE SOURCE OPTIONS": where cgroups of that version are to be
 * seen, and which of them is to be seen there. */
static bool parse_mount(char *line, const cgroup_version *v, char *top, char *point)
{
    char type[32], options[512] = "";
    const char *tail = strstr(line, " - ");
    if (tail == NULL || sscanf(tail, " - %31s %*s %511s", type, options) < 1 ||
        strcmp(type, v->mount_type) != 0 ||
        (v->controller != NULL && !has_word(options, v->controller)))
        return false;
    return sscanf(line, "%*s %*s %*s %1023s %1023s", top, point) == 2;
}

static bool find_mount(const char *root, const cgroup_version *v, char *top, char *point)
{
    char *line = NULL;
    size_t room = 0;
    bool found = false;
    FILE *file = open_file(root, "proc/self/mountinfo");
    while (file != NULL && !found && getline(&line, &room, file) > 0)
        found = parse_mount(line, v, top, point);
    free(line);
    if (file != NULL)
        fclose(file);
    return found;
}

static void consider_cgroup(const char *folder, const char *name, const cgroup_version *v,
                            headroom *h)
{
    size_t limit, usage, bytes;
    if (!read_number(folder, v->limit, "", &limit) || !read_number(folder, v->usage, "", &usage))
        return;
    for (int i = 0; i < 2; i++)
        if (read_number(folder, "memory.stat", v->cache[i], &bytes))
            usage -= min_size(usage, bytes);
    take_least(h, limit - min_size(limit, usage), "the memory limit of the cgroup ", name);
}

/* From the process's cgroup up to the topmost one that can be seen. A container may see its own
 * cgroup as the topmost, or be told a path that it cannot see. */
static void consider_cgroups(const char *root, const cgroup_version *v, headroom *h)
{
    char path[PATH_BYTES], top[PATH_BYTES], point[PATH_BYTES], folder[2 * PATH_BYTES];
    if (!find_cgroup(root, v, path) || !find_mount(root, v, top, point))
        return;
    const size_t hidden = strcmp(top, "/") == 0 ? 0 : strlen(top);
    const bool inside = strncmp(path, top, hidden) == 0 &&
                        (path[hidden] == '/' || path[hidden] == '\0');
    char *seen = inside ? path + hidden : strcpy(path, "");
    for (char *end = seen + strlen(seen); end != NULL; end = strrchr(seen, '/')) {
        *end = '\0';
        if (text_format(folder, sizeof folder, "%s%s%s", root, point, seen))
            consider_cgroup(folder, *seen != '\0' ? seen : "/", v, h);
    }
}

void headroom_read(const char *root, headroom *out)
{
    *out = (headroom){.bytes = SIZE_MAX};
    consider_machine(root, out);
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++)
        consider_cgroups(root, &versions[i], out);
}

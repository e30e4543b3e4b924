/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the folders of this process's cgroups. /proc/self/cgroup has the path of its cgroup, and
 * /proc/self/mountinfo has the folder under which cgroup paths are mounted.
 */
#include "cgroup.h"

#include "base.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_BYTES = 1024 };

/* The criteria of a search in the two files, and the values that it has found. */
typedef struct search {
    int version;
    const char *controller;
    char path[PATH_BYTES];  /* this process's cgroup */
    char top[PATH_BYTES];   /* the cgroup that is mounted; the process's cgroup is below it */
    char point[PATH_BYTES]; /* the folder where that cgroup is mounted */
} search;

/* @return true if the comma-separated list contains @p word. */
static bool has_word(const char *list, const char *word)
{
    const size_t length = strlen(word);
    for (const char *at = list; (at = strstr(at, word)) != NULL; at += length)
        if ((at == list || at[-1] == ',') && (at[length] == '\0' || at[length] == ','))
            return true;
    return false;
}

/* Parses "7:memory,cpu:/user/job" or "0::/user/job". */
static bool parse_cgroup(char *line, search *s)
{
    char *at = line, *number = strsep(&at, ":"), *controllers = strsep(&at, ":");
    if (controllers == NULL || at == NULL || number == NULL)
        return false;
    at[strcspn(at, "\n")] = '\0';
    const bool found = s->version == 1 ? has_word(controllers, s->controller)
                                       : *controllers == '\0';
    return found && text_format(s->path, sizeof s->path, "%s", at);
}

/* Parses "31 23 0:28 /TOP /POINT rw - TYPE SOURCE OPTIONS". */
static bool parse_mount(char *line, search *s)
{
    char type[32], options[512] = "";
    const char *tail = strstr(line, " - ");
    if (tail == NULL || sscanf(tail, " - %31s %*s %511s", type, options) < 1 ||
        strcmp(type, s->version == 1 ? "cgroup" : "cgroup2") != 0 ||
        (s->version == 1 && !has_word(options, s->controller)))
        return false;
    return sscanf(line, "%*s %*s %*s %1023s %1023s", s->top, s->point) == 2;
}

/* Opens @p name under @p root, and parses line by line. @return true if parse() accepted a line. */
static bool find(const char *root, const char *name, bool (*parse)(char *line, search *s),
                 search *s)
{
    char path[PATH_BYTES], *line = NULL;
    size_t room = 0;
    bool found = false;
    FILE *file = text_format(path, sizeof path, "%s%s", root, name) ? fopen(path, "re") : NULL;
    while (file != NULL && !found && getline(&line, &room, file) > 0)
        found = parse(line, s);
    free(line);
    if (file != NULL)
        fclose(file);
    return found;
}

void cgroup_visit(const char *root, const char *controller,
                  void (*visit)(const cgroup *at, void *context), void *context)
{
    char folder[2 * PATH_BYTES];
    for (int version = 1; version <= 2; version++) {
        search s = {.version = version, .controller = controller};
        if (!find(root, "/proc/self/cgroup", parse_cgroup, &s) ||
            !find(root, "/proc/self/mountinfo", parse_mount, &s))
            continue;
        /* In a container the mounted cgroup may be the container's own, so its path is cut off; or
         * the process's path may be outside of it, and only the mounted cgroup is visited. */
        const size_t hidden = strcmp(s.top, "/") == 0 ? 0 : strlen(s.top);
        const bool inside = strncmp(s.path, s.top, hidden) == 0 &&
                            (s.path[hidden] == '/' || s.path[hidden] == '\0');
        char *seen = inside ? s.path + hidden : strcpy(s.path, "");
        for (char *end = seen + strlen(seen); end != NULL; end = strrchr(seen, '/')) {
            *end = '\0';
            const cgroup at = {version, folder, *seen != '\0' ? seen : "/"};
            if (text_format(folder, sizeof folder, "%s%s%s", root, s.point, seen))
                visit(&at, context);
        }
    }
}

/* SPDX-License-Identifier: Apache-2.0
 * Looks up each setting of one list in the other list, first for new values, then for removed
 * names. */
#include "settings_diff.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const char *next_line(const char *line)
{
    line += strcspn(line, "\n");
    return line + (*line == '\n');
}

/* @return the line of @p list with the same name as @p line, or "". */
static const char *find_name(const char *list, const char *line)
{
    const size_t length = strcspn(line, "=\n");
    for (; *list != '\0'; list = next_line(list)) {
        if (strcspn(list, "=\n") == length && strncmp(list, line, length) == 0)
            break;
    }
    return list;
}

static bool is_same_line(const char *a, const char *b)
{
    const size_t length = strcspn(a, "\n");
    return strcspn(b, "\n") == length && strncmp(a, b, length) == 0;
}

static const char *value_of(const char *line)
{
    const char *mark = line + strcspn(line, "=\n");
    return *mark == '=' ? mark + 1 : "none";
}

static void report_change(const char *name, const char *before, const char *now,
                          void (*note)(void *context, const char *text), void *context)
{
    char text[1024];
    const char *old = value_of(before), *new = value_of(now);
    snprintf(text, sizeof text, "%.*s is %.*s, was %.*s", (int)strcspn(name, "=\n"), name,
             (int)strcspn(new, "\n"), new, (int)strcspn(old, "\n"), old);
    note(context, text);
}

void settings_tell_changes(const char *before, const char *now,
                           void (*note)(void *context, const char *text), void *context)
{
    before = before != NULL ? before : "";
    now = now != NULL ? now : "";
    for (const char *line = now; *line != '\0'; line = next_line(line)) {
        const char *old = find_name(before, line);
        if (!is_same_line(old, line))
            report_change(line, old, line, note, context);
    }
    for (const char *line = before; *line != '\0'; line = next_line(line)) {
        const char *new = find_name(now, line);
        if (*new == '\0')
            report_change(line, line, new, note, context);
    }
}

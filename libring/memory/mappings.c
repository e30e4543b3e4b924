/* SPDX-License-Identifier: Apache-2.0
 * Reads /proc/self/maps, whose lines are sorted by address: "FROM-TO rwxp OFFSET DEVICE INODE
 * NAME".
 */
#include "mappings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 512 }; /* longer names are cut off */

/* Parses "FROM-TO ". @param[out] rest  the rest of the line. */
static bool parse_range(const char *line, mappings_range *out, const char **rest)
{
    char *end;
    out->from = strtoull(line, &end, 16);
    if (*end != '-')
        return false;
    out->to = strtoull(end + 1, &end, 16);
    *rest = end;
    return *end == ' ' && out->from < out->to;
}

/* @return true for writable, private, anonymous memory, whose inode is 0. */
static bool is_plain(const char *rest)
{
    char rights[5];
    unsigned long inode;
    return sscanf(rest, "%4s %*s %*s %lu", rights, &inode) == 2 && inode == 0 &&
           strncmp(rights, "rw", 2) == 0 && rights[3] == 'p';
}

/* Walks the mappings until they cover the range up to @p to.
 * @param[in,out] next  the first byte that no mapping has covered so far. */
static bool cover(FILE *file, uintptr_t *next, uintptr_t to, mappings_range *out)
{
    char line[LINE];
    mappings_range at;
    const char *rest;
    *out = (mappings_range){0};
    while (*next < to && fgets(line, LINE, file) != NULL) {
        for (int c = 0; strchr(line, '\n') == NULL && c != '\n' && c != EOF;)
            c = getc_unlocked(file); /* skips the part of a line that does not fit */
        if (!parse_range(line, &at, &rest))
            return false;
        if (at.to <= *next)
            continue;
        if (at.from > *next || !is_plain(rest))
            return false;
        out->from = out->to == 0 ? at.from : out->from;
        *next = out->to = at.to;
    }
    return *next >= to;
}

bool mappings_around(const void *base, size_t bytes, mappings_range *out)
{
    uintptr_t next = (uintptr_t)base;
    FILE *file = fopen("/proc/self/maps", "re");
    if (file == NULL)
        return false;
    const bool covered = cover(file, &next, next + bytes, out);
    fclose(file);
    return covered;
}

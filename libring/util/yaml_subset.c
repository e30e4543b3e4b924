/* SPDX-License-Identifier: Apache-2.0
 * Line after line. */
#include "yaml_subset.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* The current line, and the section that earlier lines opened. */
typedef struct yaml_reader {
    yaml_subset *out;
    const char *text, *line, *end; /* the line's bytes, without its end */
    size_t number;                 /* of the line */
    const yaml_entry *open;        /* the key that indented lines belong to; NULL: none */
    size_t indent;                 /* of the open section's lines; 0: none seen yet */
} yaml_reader;

static bool refuse(const yaml_reader *reader, const char *at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static bool refuse(const yaml_reader *reader, const char *at, const char *format, ...)
{
    yaml_subset *out = reader->out;
    va_list args;
    va_start(args, format);
    vsnprintf(out->problem, sizeof out->problem, format, args);
    va_end(args);
    out->line = reader->number;
    out->column = (size_t)(at - reader->line) + 1;
    out->at = (size_t)(at - reader->text);
    return false;
}

static const char *skip_blanks(const char *at, const char *end)
{
    while (at < end && *at == ' ')
        at++;
    return at;
}

/* ---- Values -------------------------------------------------------------------------------- */

static bool is_printable(char c)
{
    return c >= ' ' && c < 0x7f;
}

static bool append(yaml_reader *reader, yaml_entry *entry, size_t *used, const char *at)
{
    if (!is_printable(*at))
        return refuse(reader, at, "values are printable ASCII here");
    if (*used + 1 == sizeof entry->value)
        return refuse(reader, at, "the value is longer than %d letters", YAML_VALUE_MAX - 1);
    entry->value[(*used)++] = *at;
    return true;
}

static bool only_comment(yaml_reader *reader, const char *at)
{
    const char *rest = skip_blanks(at, reader->end);
    if (rest == reader->end || (*rest == '#' && rest > at))
        return true;
    return refuse(reader, rest, "nothing may follow the value");
}

/* In single quotes '' is one; in double quotes \" and \\ are read, other escapes refused. */
static bool take_quoted(yaml_reader *reader, yaml_entry *entry, const char *at)
{
    const char quote = *at++;
    size_t used = 0;
    for (; at < reader->end; at++) {
        const bool more = at + 1 < reader->end;
        if (*at == quote && !(quote == '\'' && more && at[1] == quote)) {
            entry->kind = YAML_QUOTED;
            return only_comment(reader, at + 1);
        }
        if (quote == '"' && *at == '\\' && !(more && (at[1] == '"' || at[1] == '\\')))
            return refuse(reader, at, "of escapes only \\\" and \\\\ are read here");
        if (*at == quote || *at == '\\')
            at += quote == '\'' ? *at == quote : 1;
        if (!append(reader, entry, &used, at))
            return false;
    }
    return refuse(reader, reader->end, "the quote is not closed");
}

static bool ends_plain(const char *at, const char *end)
{
    return *at == ' ' && skip_blanks(at, end) < end && *skip_blanks(at, end) == '#';
}

static bool take_plain(yaml_reader *reader, yaml_entry *entry, const char *at)
{
    size_t used = 0;
    entry->kind = YAML_PLAIN;
    for (; at < reader->end && !ends_plain(at, reader->end); at++) {
        if (*at == ':' && (at + 1 == reader->end || at[1] == ' '))
            return refuse(reader, at, "a value that holds ':' needs quotes");
        if (!append(reader, entry, &used, at))
            return false;
    }
    while (used > 0 && entry->value[used - 1] == ' ')
        entry->value[--used] = '\0';
    return true;
}

static bool take_value(yaml_reader *reader, yaml_entry *entry, const char *after)
{
    const char *at = skip_blanks(after, reader->end);
    if (at == reader->end || *at == '#')
        return true;
    if (at == after)
        return refuse(reader, at, "a blank must follow ':'");
    if (*at == '\'' || *at == '"')
        return take_quoted(reader, entry, at);
    if (reader->end - at >= 2 && at[0] == '[' && at[1] == ']') {
        entry->kind = YAML_EMPTY_LIST;
        return only_comment(reader, at + 2);
    }
    if (*at == '-' && at + 1 < reader->end && at[1] == ' ')
        return refuse(reader, at, "lists are not read here");
    if (strchr("[]{},&*!|>%@`?", *at) != NULL)
        return refuse(reader, at, "values that begin with '%c' are not read here; use quotes", *at);
    return take_plain(reader, entry, at);
}

/* ---- Lines --------------------------------------------------------------------------------- */

/* @return the byte behind the key; NULL: refused. */
static const char *take_key(yaml_reader *reader, yaml_entry *entry, const char *at)
{
    const char *begin = at;
    while (at < reader->end && (isalnum((unsigned char)*at) || *at == '_' || *at == '-'))
        at++;
    const size_t length = (size_t)(at - begin);
    if (length == 0 || at == reader->end || *at != ':') {
        refuse(reader, begin, "expected a line \"key: value\"");
        return NULL;
    }
    if (length >= sizeof entry->key) {
        refuse(reader, begin, "no key is that long");
        return NULL;
    }
    memcpy(entry->key, begin, length);
    entry->at = (size_t)(begin - reader->text);
    return at + 1;
}

/* Which section a line belongs to follows from its indentation. */
static bool place(yaml_reader *reader, yaml_entry *entry, const char *at)
{
    const size_t indent = (size_t)(at - reader->line);
    if (indent == 0) {
        reader->open = NULL;
        return true;
    }
    if (reader->open == NULL || reader->open->kind != YAML_NOTHING)
        return refuse(reader, at, "the line is indented, but no section is open before it");
    if (reader->indent != 0 && reader->indent != indent)
        return refuse(reader, at,
                      "the line is indented by %zu blanks, those before it by %zu; "
                      "sections have one level here",
                      indent, reader->indent);
    reader->indent = indent;
    reader->out->list[reader->open - reader->out->list].is_section = true;
    memcpy(entry->section, reader->open->key, sizeof entry->section);
    return true;
}

static bool take_entry(yaml_reader *reader, const char *at)
{
    yaml_subset *out = reader->out;
    if (out->count == YAML_ENTRIES_MAX)
        return refuse(reader, at, "more than %d lines", YAML_ENTRIES_MAX);
    yaml_entry *entry = &out->list[out->count];
    *entry = (yaml_entry){0};
    if (!place(reader, entry, at))
        return false;
    const char *after = take_key(reader, entry, at);
    if (after == NULL || !take_value(reader, entry, after))
        return false;
    if (yaml_find(out, entry->section, entry->key) != NULL)
        return refuse(reader, at, "\"%s\" is given twice; keep one", entry->key);
    out->count++;
    if (at == reader->line) {
        reader->open = entry;
        reader->indent = 0;
    }
    return true;
}

static bool is_marker(const yaml_reader *reader)
{
    return reader->end - reader->line == 3 && strncmp(reader->line, "---", 3) == 0 &&
           reader->out->count == 0;
}

static bool take_line(yaml_reader *reader)
{
    const char *at = skip_blanks(reader->line, reader->end);
    if (at == reader->end || *at == '#' || is_marker(reader))
        return true;
    if (*at == '\t')
        return refuse(reader, at, "YAML is indented by blanks, not by tabs");
    if (*at == '{')
        return refuse(reader, at, "expected a line \"key: value\", not '{'");
    if (*at == '-')
        return refuse(reader, at, "lists are not read here");
    return take_entry(reader, at);
}

bool yaml_read(yaml_subset *out, const char *text, size_t length)
{
    yaml_reader reader = {.out = out, .text = text};
    const char *end = text + length;
    out->count = 0;
    for (const char *line = text; line < end; line = reader.end + (reader.end < end)) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        reader.line = line;
        reader.end = newline != NULL ? newline : end;
        reader.number++;
        const char *next = reader.end;
        if (reader.end > line && reader.end[-1] == '\r')
            reader.end--;
        if (!take_line(&reader))
            return false;
        reader.end = next;
    }
    return true;
}

/* ---- Entries ------------------------------------------------------------------------------- */

const yaml_entry *yaml_find(const yaml_subset *yaml, const char *section, const char *key)
{
    for (size_t i = 0; i < yaml->count; i++) {
        const yaml_entry *entry = &yaml->list[i];
        if (strcmp(entry->key, key) == 0 && strcmp(entry->section, section) == 0)
            return entry;
    }
    return NULL;
}

bool yaml_is_null(const yaml_entry *entry)
{
    return (entry->kind == YAML_NOTHING && !entry->is_section) ||
           (entry->kind == YAML_PLAIN &&
            (strcmp(entry->value, "~") == 0 || strcasecmp(entry->value, "null") == 0));
}

bool yaml_bool(const yaml_entry *entry, bool *value)
{
    static const char *const words[] = {"false", "true", "no", "yes", "off", "on"};
    for (size_t i = 0; i < sizeof words / sizeof words[0] && entry->kind == YAML_PLAIN; i++) {
        if (strcasecmp(entry->value, words[i]) == 0) {
            *value = i % 2 == 1;
            return true;
        }
    }
    return false;
}

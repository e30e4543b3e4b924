/* SPDX-License-Identifier: Apache-2.0
 * Parses the text line by line. JSON goes through the same code: each pair of an object is treated
 * as a line, whose indentation is the number of open braces. */
#include "yaml_subset.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* The state of the parser: the current line, and the section that earlier lines opened. */
typedef struct yaml_reader {
    yaml_subset *out;
    const char *text, *line,
        *end;               /* the whole text; begin and end of the current line, without newline */
    size_t number;          /* of the current line, from 1 */
    const yaml_entry *open; /* the top-level key that indented lines belong to, or NULL */
    size_t indent;          /* blanks before the lines of the open section; 0: it has no line yet */
    size_t item;            /* blanks before the items of the latest list */
    size_t depth;           /* number of open braces of JSON; 0: the text is YAML */
} yaml_reader;

/* Stores the problem and its position. @return false. */
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

/* @return true if the text from @p at to @p end begins with @p word. */
static bool begins(const char *at, const char *end, const char *word)
{
    const size_t length = strlen(word);
    return (size_t)(end - at) >= length && memcmp(at, word, length) == 0;
}

/* ---- Values -------------------------------------------------------------------------------- */

/* Appends the character *at to the value, which has *used characters. */
static bool append(yaml_reader *reader, yaml_entry *entry, size_t *used, const char *at)
{
    if (*at < ' ' || *at >= 0x7f)
        return refuse(reader, at, "a value may contain printable ASCII characters only");
    if (*used + 1 == sizeof entry->value)
        return refuse(reader, at, "the value is longer than %d letters", YAML_VALUE_MAX - 1);
    entry->value[(*used)++] = *at;
    return true;
}

/* @return true if only blanks and a comment follow at @p at. */
static bool only_comment(yaml_reader *reader, const char *at)
{
    const char *rest = skip_blanks(at, reader->end);
    if (rest == reader->end || (*rest == '#' && rest > at))
        return true;
    return refuse(reader, rest, "unexpected text after the value");
}

/* Parses a quoted value from its opening quote. In single quotes, '' is a quote. In double quotes,
 * \" and \\ are the only escapes. */
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
            return refuse(reader, at, "only the escapes \\\" and \\\\ are supported");
        if (*at == quote || *at == '\\')
            at += quote == '\'' ? *at == quote : 1;
        if (!append(reader, entry, &used, at))
            return false;
    }
    return refuse(reader, reader->end, "the quote is not closed");
}

/* @return true if a blank and a comment follow at @p at, which end a plain value. */
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
            return refuse(reader, at, "a value that contains ':' needs quotes");
        if (!append(reader, entry, &used, at))
            return false;
    }
    while (used > 0 && entry->value[used - 1] == ' ')
        entry->value[--used] = '\0';
    return true;
}

/* Makes an entry a list and reads one or more items. The value becomes "items" unless all items are
 * empty or null. */
static void take_items(yaml_entry *list, const char *at, const char *end)
{
    list->kind = YAML_LIST;
    while (at < end && strchr(" \t\r\n[]{},'\"", *at) != NULL)
        at++;
    if (at < end && !begins(at, end, "null"))
        strcpy(list->value, "items");
}

static bool take_value(yaml_reader *reader, yaml_entry *entry, const char *after)
{
    const char *at = skip_blanks(after, reader->end);
    if (at == reader->end || *at == '#')
        return true;
    if (at == after && reader->depth == 0)
        return refuse(reader, at, "a blank must follow ':'");
    if (*at == '\'' || *at == '"')
        return take_quoted(reader, entry, at);
    if (reader->depth > 0 && *at == '[' && reader->end[-1] == ']') {
        take_items(entry, at, reader->end);
        return true;
    }
    if (begins(at, reader->end, "[]") || begins(at, reader->end, "{}")) {
        entry->kind = YAML_LIST;
        return only_comment(reader, at + 2);
    }
    if (*at == '-' && at + 1 < reader->end && at[1] == ' ')
        return refuse(reader, at, "lists are not supported here");
    if (strchr("[]{},&*!|>%@`?", *at) != NULL)
        return refuse(reader, at, "a value that begins with '%c' needs quotes", *at);
    return take_plain(reader, entry, at);
}

/* ---- Lines --------------------------------------------------------------------------------- */

/* Parses the key at @p at. @return the text after its colon; NULL if the line is rejected. */
static const char *take_key(yaml_reader *reader, yaml_entry *entry, const char *at)
{
    const bool quoted = reader->depth > 0 && at < reader->end && *at == '"';
    const char *begin = at += quoted;
    while (at < reader->end && (isalnum((unsigned char)*at) || *at == '_' || *at == '-'))
        at++;
    const size_t length = (size_t)(at - begin);
    if (quoted && at < reader->end && *at == '"')
        at = skip_blanks(at + 1, reader->end);
    if (length == 0 || at == reader->end || *at != ':') {
        refuse(reader, begin, "expected a line \"key: value\"");
        return NULL;
    }
    if (length >= sizeof entry->key) {
        refuse(reader, begin, "the key is longer than %d letters", YAML_KEY_MAX - 1);
        return NULL;
    }
    memcpy(entry->key, begin, length);
    entry->at = (size_t)(begin - reader->text);
    return at + 1;
}

/* @return the level of indentation: braces around a pair of JSON but the first, or blanks of a
 * line. */
static size_t indentation(const yaml_reader *reader, const char *at)
{
    return reader->depth > 0 ? reader->depth - 1 : (size_t)(at - reader->line);
}

/* Finds by its indentation the section that a line belongs to, and checks the indentation. */
static bool find_section(yaml_reader *reader, yaml_entry *entry, const char *at)
{
    const size_t indent = indentation(reader, at);
    if (indent == 0) {
        reader->open = NULL;
        return true;
    }
    if (reader->open == NULL || reader->open->kind != YAML_NOTHING)
        return refuse(reader, at, "the line is indented, but no section begins before it");
    if (reader->indent != 0 && reader->indent != indent)
        return refuse(reader, at,
                      "the line is indented by %zu blanks, the lines before it by %zu; "
                      "only one level of sections is supported",
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
    if (!find_section(reader, entry, at))
        return false;
    const char *after = take_key(reader, entry, at);
    if (after == NULL || !take_value(reader, entry, after))
        return false;
    if (yaml_find(out, entry->section, entry->key) != NULL)
        return refuse(reader, at, "\"%s\" is given twice; keep one", entry->key);
    out->count++;
    if (indentation(reader, at) == 0) {
        reader->open = entry;
        reader->indent = 0;
    }
    return true;
}

/* @return true if the line is an item of a list, or continues an item of several lines. */
static bool is_of_list(const yaml_reader *reader, const char *at)
{
    const size_t count = reader->out->count;
    const yaml_entry *last = count > 0 ? &reader->out->list[count - 1] : NULL;
    if (last == NULL || last->is_section)
        return false;
    if (last->kind == YAML_LIST && (size_t)(at - reader->line) > reader->item)
        return true;
    return *at == '-' && (at + 1 == reader->end || at[1] == ' ') &&
           (last->kind == YAML_NOTHING || last->kind == YAML_LIST);
}

static bool take_line(yaml_reader *reader)
{
    const char *at = skip_blanks(reader->line, reader->end);
    const bool is_marker = reader->end - reader->line == 3 && reader->out->count == 0 &&
                           begins(reader->line, reader->end, "---");
    if (at == reader->end || *at == '#' || is_marker)
        return true;
    if (*at == '\t')
        return refuse(reader, at, "YAML is indented with blanks, not with tabs");
    if (is_of_list(reader, at)) {
        reader->item = *at == '-' ? (size_t)(at - reader->line) : reader->item;
        take_items(&reader->out->list[reader->out->count - 1], at + (*at == '-'), reader->end);
        return true;
    }
    if (*at == '-')
        return refuse(reader, at, "lists are not supported here");
    return take_entry(reader, at);
}

/* ---- JSON ---------------------------------------------------------------------------------- */

/* Skips white space, and counts lines for messages. */
static const char *skip_space(yaml_reader *reader, const char *at, const char *end)
{
    for (; at < end && isspace((unsigned char)*at); at++) {
        if (*at == '\n') {
            reader->line = at + 1;
            reader->number++;
        }
    }
    return at;
}

/* @return the end of a pair: the next comma or brace that is not in a text or list, or @p end. */
static const char *pair_end(const char *at, const char *end)
{
    bool text = false, list = false;
    for (; at < end; at++) {
        if (text && *at == '\\' && at + 1 < end)
            at++;
        else if (*at == '"')
            text = !text;
        else if (!text && (*at == '[' || *at == ']'))
            list = *at == '[';
        else if (!text && !list && (*at == ',' || *at == '{' || *at == '}'))
            break;
    }
    return at;
}

/* Reads an object: each pair is read as a line in the section whose brace is open. */
static bool read_json(yaml_reader *reader, const char *at, const char *end)
{
    for (bool first = true; first || reader->depth > 0; first = false) {
        const char *next = pair_end(at, end);
        for (reader->end = next; reader->end > at && isspace((unsigned char)reader->end[-1]);)
            reader->end--;
        if (reader->end > at && !take_entry(reader, at))
            return false;
        at = skip_space(reader, reader->end, end);
        if (at == end)
            return refuse(reader, at, "a brace is not closed");
        reader->depth += *at == '{';
        reader->depth -= *at == '}';
        at = skip_space(reader, at + 1, end);
    }
    return at == end || refuse(reader, at, "unexpected text after the closing brace");
}

bool yaml_read(yaml_subset *out, const char *text, size_t length)
{
    const char *end = text + length;
    yaml_reader reader = {.out = out, .text = text, .line = text, .number = 1};
    const char *begin = skip_space(&reader, text, end);
    out->count = 0;
    if (begin < end && *begin == '{')
        return read_json(&reader, begin, end);
    reader.number = 0;
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

/* SPDX-License-Identifier: Apache-2.0
 * One pass over the source; what it does not understand it copies, for cJSON to refuse. */
#include "lenient.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "errors.h"

/* Where the pass is. */
typedef struct lenient_cursor {
    lenient_text *text;
    size_t at;
} lenient_cursor;

ring_status lenient_fail(const lenient_text *text, size_t at, ring_status status,
                         const char *format, ...)
{
    size_t line = 1, column = 1;
    for (size_t i = 0; i < at && i < text->source_length; i++) {
        const bool line_end = text->source[i] == '\n';
        line += line_end;
        column = line_end ? 1 : column + 1;
    }
    char message[TRAIN_ERROR_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    return train_fail(status, "%s:%zu:%zu: %s", text->name, line, column, message);
}

static char peek(const lenient_text *text, size_t at)
{
    return at < text->source_length ? text->source[at] : '\0';
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '+' || c == '.' || c == '$';
}

/* "...", where a manual leaves something out. */
static bool is_ellipsis(const lenient_text *text, size_t at)
{
    return peek(text, at) == '.' && peek(text, at + 1) == '.' && peek(text, at + 2) == '.' &&
           !is_word(peek(text, at + 3));
}

static bool starts_comment(const lenient_text *text, size_t at)
{
    const char c = peek(text, at), next = peek(text, at + 1);
    return c == '#' || (c == '/' && (next == '/' || next == '*')) || is_ellipsis(text, at);
}

/* @return the byte behind the comment; past the end if a block comment is never closed. */
static size_t comment_end(const lenient_text *text, size_t at)
{
    const bool block = peek(text, at) == '/' && peek(text, at + 1) == '*';
    if (is_ellipsis(text, at))
        return at + 3;
    size_t i = at + (block ? 2 : 0);
    for (; i < text->source_length; i++) {
        if (!block && text->source[i] == '\n')
            return i;
        if (block && text->source[i] == '*' && peek(text, i + 1) == '/')
            return i + 2;
    }
    return block ? i + 1 : i;
}

/* @return the first byte from @p at that is neither space nor comment. */
static size_t skip_blank(const lenient_text *text, size_t at)
{
    for (;;) {
        if (is_space(peek(text, at)))
            at++;
        else if (starts_comment(text, at))
            at = comment_end(text, at);
        else
            return at;
    }
}

static void emit(lenient_cursor *cursor, char c, size_t origin)
{
    lenient_text *text = cursor->text;
    text->json[text->length] = c;
    text->origin[text->length++] = (uint32_t)origin;
}

static void emit_until(lenient_cursor *cursor, size_t end)
{
    while (cursor->at < end) {
        emit(cursor, cursor->text->source[cursor->at], cursor->at);
        cursor->at++;
    }
}

static bool is_key(const lenient_text *text, size_t end)
{
    return peek(text, skip_blank(text, end)) == ':';
}

static void note_key(lenient_text *text, size_t at)
{
    text->keys[text->key_count++] = (uint32_t)at;
}

/* "[0|1|2|3]", in the manual's notation: a list of choices where one must be written.
 * @return the byte behind it, 0 if there is none at @p open. Writes the choices as a sentence has
 * them. */
static size_t choices_end(const lenient_text *text, size_t open, char choices[64])
{
    size_t length = 0, bars = 0, i = open + 1;
    for (; i < text->source_length && length + 2 < 64; i++) {
        const char c = text->source[i];
        if (!(is_word(c) || c == ' ' || c == '|'))
            break;
        bars += c == '|';
        if (c == '|')
            choices[length++] = ',';
        if (c != ' ')
            choices[length++] = c == '|' ? ' ' : c;
    }
    choices[length] = '\0';
    return peek(text, open) == '[' && peek(text, i) == ']' && bars > 0 ? i + 1 : 0;
}

/* Notes a list of choices. @return true if there is one at @p open. */
static bool note_choices(const lenient_text *text, size_t open)
{
    char choices[64];
    const size_t end = choices_end(text, open, choices);
    if (end == 0)
        return false;
    faults_note(text->faults, open,
                lenient_fail(text, open, RING_ERR_CONFIG,
                             "`%.*s` is the manual's list of choices; write one of %s",
                             (int)(end - open), text->source + open, choices));
    return true;
}

/* In its place nothing is said, so that reading goes on. */
static void copy_null(lenient_cursor *cursor, size_t end)
{
    for (const char *c = "null"; *c != '\0'; c++)
        emit(cursor, *c, cursor->at);
    cursor->at = end;
}

static ring_status copy_string(lenient_cursor *cursor)
{
    lenient_text *text = cursor->text;
    size_t end = cursor->at + 1;
    while (peek(text, end) != '"') {
        if (end >= text->source_length || text->source[end] == '\n')
            return lenient_fail(text, cursor->at, RING_ERR_CONFIG,
                                "this text has no closing quote on its line");
        end += peek(text, end) == '\\' ? 2 : 1;
    }
    end++;
    if (is_key(text, end)) {
        note_key(text, cursor->at);
    } else if (note_choices(text, cursor->at + 1)) {
        copy_null(cursor, end);
        return RING_OK;
    }
    emit_until(cursor, end);
    return RING_OK;
}

static void copy_list(lenient_cursor *cursor)
{
    char choices[64];
    if (note_choices(cursor->text, cursor->at))
        copy_null(cursor, choices_end(cursor->text, cursor->at, choices));
    else
        emit_until(cursor, cursor->at + 1);
}

/* A number, true, false, null, or a key without quotes. */
static void copy_word(lenient_cursor *cursor)
{
    const size_t start = cursor->at;
    size_t end = start;
    while (is_word(peek(cursor->text, end)))
        end++;
    const bool key = is_key(cursor->text, end);
    if (key) {
        note_key(cursor->text, start);
        emit(cursor, '"', start);
    }
    emit_until(cursor, end);
    if (key)
        emit(cursor, '"', end);
}

static ring_status skip_comment(lenient_cursor *cursor)
{
    const size_t end = comment_end(cursor->text, cursor->at);
    if (end > cursor->text->source_length)
        return lenient_fail(cursor->text, cursor->at, RING_ERR_CONFIG,
                            "this comment is never closed");
    cursor->at = end;
    return RING_OK;
}

static void copy_comma(lenient_cursor *cursor)
{
    const char next = peek(cursor->text, skip_blank(cursor->text, cursor->at + 1));
    if (next == '}' || next == ']')
        cursor->at++;
    else
        emit_until(cursor, cursor->at + 1);
}

static ring_status copy_next(lenient_cursor *cursor)
{
    const char c = cursor->text->source[cursor->at];
    if (c == '\0')
        return lenient_fail(cursor->text, cursor->at, RING_ERR_CONFIG,
                            "a zero byte: this is not a text file");
    if (c == '"')
        return copy_string(cursor);
    if (is_ellipsis(cursor->text, cursor->at))
        faults_note(cursor->text->faults, cursor->at,
                    lenient_fail(cursor->text, cursor->at, RING_ERR_CONFIG,
                                 "`...` stands for more in a manual; write it, or leave it out"));
    if (starts_comment(cursor->text, cursor->at))
        return skip_comment(cursor);
    if (c == '[')
        copy_list(cursor);
    else if (c == ',')
        copy_comma(cursor);
    else if (is_word(c))
        copy_word(cursor);
    else
        emit_until(cursor, cursor->at + 1);
    return RING_OK;
}

/* A key without quotes of one letter and its colon become four bytes, and a list of choices, which
 * has at least three, "null": twice is enough. */
static ring_status allocate(lenient_text *text)
{
    const size_t most = 2 * text->source_length + 2;
    text->json = malloc(most);
    text->origin = malloc(most * sizeof *text->origin);
    text->keys = malloc(most * sizeof *text->keys);
    if (text->json == NULL || text->origin == NULL || text->keys == NULL)
        return train_fail(RING_ERR_MEMORY, "%s: no memory to read it", text->name);
    return RING_OK;
}

ring_status lenient_read(lenient_text *text, const char *name, const char *source, size_t length,
                         faults *list)
{
    static const char byte_order_mark[] = "\xef\xbb\xbf";
    *text = (lenient_text){.name = name, .source = source, .source_length = length, .faults = list};
    RING_TRY(allocate(text));
    const bool marked = length >= 3 && memcmp(source, byte_order_mark, 3) == 0;
    lenient_cursor cursor = {.text = text, .at = marked ? 3 : 0};
    while (cursor.at < length)
        RING_TRY(copy_next(&cursor));
    text->json[text->length] = '\0';
    text->origin[text->length] = (uint32_t)length;
    return RING_OK;
}

void lenient_free(lenient_text *text)
{
    free(text->json);
    free(text->origin);
    free(text->keys);
    *text = (lenient_text){0};
}

static char last_before(const lenient_text *text, size_t at)
{
    while (at > 0 && is_space(text->json[at - 1]))
        at--;
    return at > 0 ? text->json[at - 1] : '\0';
}

ring_status lenient_syntax_error(const lenient_text *text, size_t at)
{
    while (at < text->length && is_space(text->json[at]))
        at++;
    const char here = text->json[at], before = last_before(text, at);
    const size_t origin = text->origin[at];
    if (text->length == 0)
        return lenient_fail(text, 0, RING_ERR_CONFIG, "the file is empty; write { … }");
    if (here == '\0')
        return lenient_fail(text, origin, RING_ERR_CONFIG,
                            "the file ends too early: a } or ] is missing");
    if ((here == '"' || here == '{' || is_word(here)) && before != '\0' &&
        strchr("{[,:", before) == NULL)
        return lenient_fail(text, origin, RING_ERR_CONFIG, "a comma is missing before this");
    if (here < ' ' || here > '~')
        return lenient_fail(text, origin, RING_ERR_CONFIG, "this character is not expected here");
    return lenient_fail(text, origin, RING_ERR_CONFIG, "`%c` is not expected here", here);
}

/* SPDX-License-Identifier: Apache-2.0
 * One pass over the source, by the grammar of Hjson; what it does not understand it copies, for
 * cJSON to refuse. */
#include "lenient.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "errors.h"

enum { COMMAS_KEPT = 4, SHOWN_MAX = 40 };

/* Where the pass is. */
typedef struct lenient_cursor {
    lenient_text *text;
    size_t at;
    char last;                  /* emitted that is no space; '\0': none yet */
    bool line_passed;           /* since that one */
    bool open;                  /* the file leaves out the outermost { } */
    size_t commas, missing;     /* commas that are there, and that a new line stands for */
    size_t places[COMMAS_KEPT]; /* of the first missing ones */
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

/* @return the first byte from @p at that is no space, or the end of its line. */
static size_t skip_spaces(const lenient_text *text, size_t at)
{
    while (is_space(peek(text, at)) && peek(text, at) != '\n')
        at++;
    return at;
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
    if (!is_space(c)) {
        cursor->last = c;
        cursor->line_passed = false;
    } else if (c == '\n') {
        cursor->line_passed = true;
    }
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

/* @return the byte behind the text in quotes at @p at, 0 if nothing closes it on its line. */
static size_t quoted_end(const lenient_text *text, size_t at)
{
    const char quote = peek(text, at);
    size_t end = at + 1;
    while (peek(text, end) != quote) {
        if (end >= text->source_length || text->source[end] == '\n')
            return 0;
        end += peek(text, end) == '\\' ? 2 : 1;
    }
    return end + 1;
}

/* Copies the bytes before @p end as a text of JSON. */
static void emit_text(lenient_cursor *cursor, size_t end)
{
    emit(cursor, '"', cursor->at);
    for (; cursor->at < end; cursor->at++) {
        const char c = cursor->text->source[cursor->at];
        if (c == '"' || c == '\\')
            emit(cursor, '\\', cursor->at);
        emit(cursor, c, cursor->at);
    }
    emit(cursor, '"', end);
}

/* The same of what lies between single quotes, where \' is one of them. */
static void emit_single_quoted(lenient_cursor *cursor, size_t end)
{
    emit(cursor, '"', cursor->at++);
    while (cursor->at < end - 1) {
        const char c = cursor->text->source[cursor->at];
        const char next = peek(cursor->text, cursor->at + 1);
        if (c == '\\' && next != '\'')
            emit(cursor, c, cursor->at++);
        else if (c == '"')
            emit(cursor, '\\', cursor->at);
        cursor->at += c == '\\' && next == '\'';
        emit(cursor, cursor->text->source[cursor->at], cursor->at);
        cursor->at++;
    }
    emit(cursor, '"', cursor->at++);
}

static ring_status copy_quoted(lenient_cursor *cursor)
{
    lenient_text *text = cursor->text;
    const size_t end = quoted_end(text, cursor->at);
    const bool single = text->source[cursor->at] == '\'';
    if (single && end == cursor->at + 2 && peek(text, end) == '\'')
        return lenient_fail(text, cursor->at, RING_ERR_CONFIG,
                            "no value has several lines; write it between \" and \"");
    if (end == 0)
        return lenient_fail(text, cursor->at, RING_ERR_CONFIG,
                            "this text has no closing quote on its line");
    if (is_key(text, end)) {
        note_key(text, cursor->at);
    } else if (note_choices(text, cursor->at + 1)) {
        copy_null(cursor, end);
        return RING_OK;
    }
    if (single)
        emit_single_quoted(cursor, end);
    else
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

static bool copy_key(lenient_cursor *cursor)
{
    size_t end = cursor->at;
    while (is_word(peek(cursor->text, end)))
        end++;
    if (end == cursor->at || !is_key(cursor->text, end))
        return false;
    note_key(cursor->text, cursor->at);
    emit_text(cursor, end);
    return true;
}

/* @return true if the bytes from @p at to @p end are a number, true, false or null. */
static bool is_json_word(const lenient_text *text, size_t at, size_t end)
{
    static const char *const words[] = {"true", "false", "null"};
    const size_t length = end - at;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (length == strlen(words[i]) && memcmp(text->source + at, words[i], length) == 0)
            return true;
    }
    size_t digits = 0;
    while (at < end && strchr("+-.eE0123456789", text->source[at]) != NULL)
        digits += text->source[at] >= '0' && text->source[at] <= '9', at++;
    return at == end && digits > 0;
}

/* @return the byte behind the last of its line from @p at that is no space. */
static size_t line_end(const lenient_text *text, size_t at)
{
    size_t end = at;
    for (; peek(text, at) != '\n' && peek(text, at) != '\0'; at++)
        end = is_space(text->source[at]) ? end : at + 1;
    return end;
}

/* Where a text without quotes goes on to the end of its line, as Hjson has it, with what closes
 * an object behind it, no such text was meant. */
static size_t note_unquoted(lenient_cursor *cursor, size_t end)
{
    const lenient_text *text = cursor->text;
    if (strchr(",}]", text->source[end - 1]) == NULL)
        return end;
    size_t meant = cursor->at;
    while (strchr(",}]", text->source[meant]) == NULL)
        meant++;
    const char *start = text->source + cursor->at;
    int shown = 0;
    while (shown < SHOWN_MAX && cursor->at + (size_t)shown < meant && start[shown] >= ' ' &&
           start[shown] <= '~')
        shown++;
    faults_note(text->faults, cursor->at,
                lenient_fail(text, cursor->at, RING_ERR_CONFIG,
                             "`%.*s%s` is no number, true, false or null; put a text in quotes",
                             shown, start, cursor->at + (size_t)shown < meant ? "…" : ""));
    return meant;
}

static bool starts_key(const lenient_text *text, size_t at)
{
    const char c = peek(text, at);
    size_t end = c == '"' || c == '\'' ? quoted_end(text, at) : at;
    while (end >= at && is_word(peek(text, end)))
        end++;
    return end > at && is_key(text, end);
}

/* @return true if a value ends before @p at: behind it, a text is none without quotes. */
static bool ends_value(const lenient_text *text, size_t at)
{
    return strchr(",}]\n", peek(text, at)) != NULL || starts_comment(text, at) ||
           starts_key(text, at);
}

/* Copies an unquoted value: a number, true, false, null, or a text. */
static void copy_unquoted(lenient_cursor *cursor)
{
    const lenient_text *text = cursor->text;
    size_t end = cursor->at;
    while (is_word(peek(text, end)))
        end++;
    if (is_json_word(text, cursor->at, end) && ends_value(text, skip_spaces(text, end)))
        emit_until(cursor, end);
    else
        emit_text(cursor, note_unquoted(cursor, line_end(text, cursor->at)));
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
    cursor->commas++;
    if (next == '}' || next == ']' || (next == '\0' && cursor->open))
        cursor->at++;
    else
        emit_until(cursor, cursor->at + 1);
}

/* Between what stands on lines of its own. */
static void add_comma(lenient_cursor *cursor)
{
    const char c = cursor->text->source[cursor->at];
    if (!cursor->line_passed || is_space(c) || strchr(",:}]", c) != NULL || cursor->last == '\0' ||
        strchr("{[,:", cursor->last) != NULL)
        return;
    if (cursor->missing < COMMAS_KEPT)
        cursor->places[cursor->missing] = cursor->at;
    cursor->missing++;
    emit(cursor, ',', cursor->at);
}

/* Any other byte, or a word that stands where none may, for cJSON to refuse. */
static void copy_other(lenient_cursor *cursor)
{
    size_t end = cursor->at;
    while (is_word(peek(cursor->text, end)))
        end++;
    emit_until(cursor, end > cursor->at ? end : end + 1);
}

static ring_status copy_token(lenient_cursor *cursor)
{
    const char c = cursor->text->source[cursor->at];
    add_comma(cursor);
    if (c == '"' || c == '\'')
        return copy_quoted(cursor);
    if (c == '[')
        copy_list(cursor);
    else if (c == ',')
        copy_comma(cursor);
    else if (cursor->last == ':' && !is_space(c) && strchr("{}]:", c) == NULL)
        copy_unquoted(cursor);
    else if (!copy_key(cursor))
        copy_other(cursor);
    return RING_OK;
}

static ring_status copy_next(lenient_cursor *cursor)
{
    const lenient_text *text = cursor->text;
    if (text->source[cursor->at] == '\0')
        return lenient_fail(text, cursor->at, RING_ERR_CONFIG,
                            "a zero byte: this is not a text file");
    if (is_ellipsis(text, cursor->at))
        faults_note(text->faults, cursor->at,
                    lenient_fail(text, cursor->at, RING_ERR_CONFIG,
                                 "`...` stands for more in a manual; write it, or leave it out"));
    return starts_comment(text, cursor->at) ? skip_comment(cursor) : copy_token(cursor);
}

/* A file that has other faults as well was not meant to leave out commas, if it has most of them.
 */
static void note_missing_commas(const lenient_cursor *cursor)
{
    const lenient_text *text = cursor->text;
    if (text->faults->count == 0 || cursor->missing > cursor->commas)
        return;
    for (size_t i = 0; i < cursor->missing && i < COMMAS_KEPT; i++)
        faults_note(text->faults, cursor->places[i],
                    lenient_fail(text, cursor->places[i], RING_ERR_CONFIG,
                                 "a comma is missing before this"));
}

/* A colon and a text without quotes of one byte become five bytes at most, a line end and a key of
 * one letter with its colon six: three times is enough. */
static ring_status allocate(lenient_text *text)
{
    const size_t most = 3 * text->source_length + 8;
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
    cursor.open = starts_key(text, skip_blank(text, cursor.at)); /* no outermost { } */
    if (cursor.open)
        emit(&cursor, '{', cursor.at);
    while (cursor.at < length)
        RING_TRY(copy_next(&cursor));
    if (cursor.open)
        emit(&cursor, '}', length);
    note_missing_commas(&cursor);
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
    if (origin == text->source_length) /* of those that the file leaves out */
        return lenient_fail(text, origin, RING_ERR_CONFIG,
                            "a } too many, or the { at the start is missing");
    const char shown = text->source[origin];
    if (shown < ' ' || shown > '~')
        return lenient_fail(text, origin, RING_ERR_CONFIG, "this character is not expected here");
    return lenient_fail(text, origin, RING_ERR_CONFIG, "`%c` is not expected here", shown);
}

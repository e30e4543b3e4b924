/* SPDX-License-Identifier: Apache-2.0
 * Parses by recursive descent, with the grammar of Hjson, and leaves numbers and quoted texts to
 * cJSON. Between calls the reader is at the start of a token, past spaces and comments. */
#include "lenient.h"

#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "errors.h"
#include "numbers.h"

enum { COMMAS_KEPT = 4, SHOWN_MAX = 40, CHOICES_MAX = 64 };

#define SPACES " \t\r\n"
#define QUOTES "\"'"
#define DIGITS "0123456789"
#define WORD "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_$-+." DIGITS

typedef struct lenient_reader {
    lenient_text *text;
    faults *faults;                  /* errors after which reading continues */
    char *source;                    /* a copy terminated by '\0'; it has no other '\0' */
    const char *at;                  /* the current token */
    const char *previous_end;        /* the end of the token before at; NULL: at is the first */
    bool line_passed;                /* there is a line break between previous_end and at */
    bool open;                       /* the file leaves out the outermost { } */
    int depth;                       /* number of lists and objects around at */
    size_t commas, missing;          /* commas so far, and line breaks in place of a comma */
    const char *places[COMMAS_KEPT]; /* places of the first missing commas */
} lenient_reader;

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

#define PLACE(reader, at) ((size_t)((at) - (reader)->source))
#define REFUSE(reader, at, ...) \
    lenient_fail((reader)->text, PLACE(reader, at), RING_ERR_CONFIG, __VA_ARGS__)
/* Notes an error after which reading continues. */
#define NOTE(reader, at, ...) \
    faults_note((reader)->faults, PLACE(reader, at), REFUSE(reader, at, __VA_ARGS__))

static ring_status no_memory(const lenient_reader *reader)
{
    return train_fail(RING_ERR_MEMORY, "%s: no memory to read it", reader->text->name);
}

/* ---- Looking ahead ------------------------------------------------------------------------- */

/* @return true if @p c is one of @p set; the '\0' at the end of the source never is. */
static bool is_one_of(char c, const char *set)
{
    return c != '\0' && strchr(set, c) != NULL;
}

/* @return whether there is a "...", which stands for an omission in examples of the manual. */
static bool is_ellipsis(const char *at)
{
    return strncmp(at, "...", 3) == 0 && !is_one_of(at[3], WORD);
}

/* @return the end of the comment at @p at; @p at if there is no comment; NULL if it is not closed.
 */
static const char *comment_end(const char *at)
{
    if (is_ellipsis(at))
        return at + 3;
    if (at[0] == '#' || (at[0] == '/' && at[1] == '/'))
        return at + strcspn(at, "\n");
    if (at[0] != '/' || at[1] != '*')
        return at;
    const char *end = strstr(at + 2, "*/");
    return end != NULL ? end + 2 : NULL;
}

/* @return true if @p at, the end of a word, is followed by a colon, possibly after spaces and
 * comments. */
static bool is_key(const char *at)
{
    const char *before;
    do {
        before = at;
        at = comment_end(at + strspn(at, SPACES));
    } while (at != NULL && at != before);
    return at != NULL && *at == ':';
}

/* @return the end of the quoted text at @p at, or NULL if it is not closed on its line. */
static const char *quoted_end(const char *at)
{
    const char quote = *at++;
    while (*at != quote) {
        if (*at == '\0' || *at == '\n')
            return NULL;
        at += at[0] == '\\' && at[1] != '\0' ? 2 : 1;
    }
    return at + 1;
}

/* @return true if a word or quoted text and a colon begin at @p at. */
static bool starts_key(const char *at)
{
    const char *end = is_one_of(*at, QUOTES) ? quoted_end(at) : at + strspn(at, WORD);
    return end != NULL && end != at && is_key(end);
}

/* ---- Moving -------------------------------------------------------------------------------- */

/* Moves to the next token. @param end  end of the current token */
static ring_status move_on(lenient_reader *reader, const char *end)
{
    reader->at = reader->previous_end = end;
    reader->line_passed = false;
    for (;;) {
        const size_t spaces = strspn(reader->at, SPACES);
        reader->line_passed |= memchr(reader->at, '\n', spaces) != NULL;
        reader->at += spaces;
        end = comment_end(reader->at);
        if (end == NULL)
            return REFUSE(reader, reader->at, "this comment is not closed; end it with */");
        if (end == reader->at)
            return RING_OK;
        if (is_ellipsis(reader->at))
            NOTE(
                reader, reader->at,
                "`...` stands for an omission in the manual; write the omitted part, or delete it");
        reader->at = end;
    }
}

/* @return the first unclosed quote from @p at to the end of the line; NULL if all are closed. */
static const char *open_quote(const char *at)
{
    for (;;) {
        at += strcspn(at, QUOTES "#/\n");
        if (!is_one_of(*at, QUOTES))
            return NULL;
        const char *end = quoted_end(at);
        if (end == NULL)
            return at;
        at = end;
    }
}

/* Refuses the current token, with the most likely reason. */
static ring_status unexpected(const lenient_reader *reader)
{
    const char here = *reader->at,
               before = reader->previous_end != NULL ? reader->previous_end[-1] : '{';
    const char *quote = open_quote(reader->at); /* an unclosed quote is the more likely fault */
    if (here == '\0' && reader->previous_end == NULL)
        return REFUSE(reader, reader->source, "the file is empty; write { … }");
    if (here == '\0')
        return REFUSE(reader, reader->at, "the file ends too early; a } or ] is missing");
    if (quote != NULL)
        return REFUSE(reader, quote, "this text has no closing quote on its line");
    if (!reader->line_passed && is_one_of(here, "{" QUOTES WORD) && !is_one_of(before, "{[,:"))
        return REFUSE(reader, reader->at, "a comma is missing before this");
    if (here == '}' && reader->open && reader->depth == 1)
        return REFUSE(reader, reader->at, "there is one } too many, or no { at the start");
    if (here < ' ' || here > '~')
        return REFUSE(reader, reader->at,
                      "this character is not expected here; delete it, or put the text in quotes");
    return REFUSE(reader, reader->at, "`%c` is not expected here", here);
}

/* ---- Simple values ------------------------------------------------------------------------- */

/* Replaces control characters, including U+0080 to U+009F, because messages quote keys and texts,
 * and a terminal would act on the control characters in them. */
static void hide_controls(char *text)
{
    for (unsigned char *at = (unsigned char *)text; at != NULL && *at != '\0'; at++) {
        if (at[0] == 0xc2 && at[1] >= 0x80 && at[1] < 0xa0)
            at[0] = at[1] = '?';
        else if (*at < ' ' || *at == 0x7f)
            *at = '?';
    }
}

/* @return a copy that cJSON_Delete() frees; NULL: out of memory. */
static char *copy(const char *from, const char *end)
{
    const size_t length = (size_t)(end - from);
    char *text = cJSON_malloc(length + 1);
    if (text == NULL)
        return NULL;
    memcpy(text, from, length);
    text[length] = '\0';
    hide_controls(text);
    return text;
}

/* Sets @p item to the value at the start of @p json.
 * @param[out] end  end of the value, or the first wrong byte. @return false: it is not JSON. */
static bool read_json(cJSON *item, const char *json, size_t length, const char **end)
{
    NUMBERS_AS_IN_C;
    cJSON *value = cJSON_ParseWithLengthOpts(json, length, end, false);
    if (value == NULL)
        return false;
    item->type = value->type;
    item->valuedouble = value->valuedouble;
    item->valuestring = value->valuestring;
    value->valuestring = NULL;
    cJSON_Delete(value);
    hide_controls(item->valuestring);
    return true;
}

/* Writes the quoted text from @p at to @p end as a JSON text, up to @p most bytes.
 * @return the first byte of the source that was not written. */
static const char *write_json(const char *at, const char *end, char *to, ptrdiff_t most)
{
    const char *start = to, quote = *at++;
    *to++ = '"';
    for (; at < end - 1 && to - start < most; at++) {
        if (at[0] == '\\' && at[1] == '\'' && quote == '\'')
            at++;
        else if (at[0] == '\\')
            *to++ = *at++;
        else if (*at == '"')
            *to++ = '\\';
        *to++ = *at;
    }
    *to++ = '"';
    *to = '\0';
    return at;
}

static ring_status read_quoted(lenient_reader *reader, cJSON *item)
{
    const char *at = reader->at, *end = quoted_end(at), *wrong;
    if (strncmp(at, "\'\'\'", 3) == 0)
        return REFUSE(reader, at, "texts of several lines are not supported; write \"…\"");
    if (end == NULL)
        return REFUSE(reader, at, "this text has no closing quote on its line");
    char *json = malloc(2 * (size_t)(end - at) + 1);
    if (json == NULL)
        return no_memory(reader);
    write_json(at, end, json, PTRDIFF_MAX);
    const bool good = read_json(item, json, strlen(json), &wrong);
    if (!good) /* find the byte of the source that became the wrong one */
        at = write_json(at, end, json, wrong - json);
    free(json);
    return good ? move_on(reader, end) : REFUSE(reader, at, "`\\` is not expected here");
}

/* Reads a number, true, false or null. */
static ring_status read_word(lenient_reader *reader, cJSON *item)
{
    const size_t length = strspn(reader->at, WORD);
    const char *end;
    if (length == 0)
        return unexpected(reader);
    const bool good = read_json(item, reader->at, length, &end);
    return good ? move_on(reader, end) : unexpected(reader);
}

/* @return true if a value ends at @p end. If other text follows on the line, that text belongs to
 * the value, which is an unquoted text. */
static bool ends_value(const char *end)
{
    end += strspn(end, " \t\r");
    return *end == '\0' || is_one_of(*end, ",}]\n") || comment_end(end) != end || starts_key(end);
}

/* @return true if the word is true, false or null, or looks like a number. */
static bool is_json_word(const char *word, size_t length)
{
    static const char *const words[] = {"true", "false", "null"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (length == strlen(words[i]) && memcmp(word, words[i], length) == 0)
            return true;
    }
    return strspn(word, "+-.eE" DIGITS) == length && strcspn(word, DIGITS) < length;
}

/* In Hjson an unquoted text extends to the end of its line. A comma or bracket at the end of the
 * line shows that the user probably did not mean that, so it is noted as an error.
 * @param end  of the line. @return the end of the text that the user probably meant. */
static const char *note_unquoted(const lenient_reader *reader, const char *end)
{
    const char *at = reader->at, *meant = at + strcspn(at, ",}]");
    int shown = 0;
    if (!is_one_of(end[-1], ",}]"))
        return end;
    while (shown < SHOWN_MAX && at + shown < meant && at[shown] >= ' ' && at[shown] <= '~')
        shown++;
    NOTE(reader, at, "`%.*s%s` is not a number, true, false or null; put a text in quotes", shown,
         at, at + shown < meant ? "…" : "");
    return meant;
}

/* Reads an unquoted value after a key: a number, true, false, null, or a text. */
static ring_status read_unquoted(lenient_reader *reader, cJSON *item)
{
    const char *at = reader->at;
    const size_t length = strspn(at, WORD);
    if (is_json_word(at, length) && ends_value(at + length))
        return read_word(reader, item);
    const char *end = at + strcspn(at, "\n");
    while (is_one_of(end[-1], SPACES))
        end--;
    end = note_unquoted(reader, end);
    item->type = cJSON_String;
    item->valuestring = copy(at, end);
    return item->valuestring != NULL ? move_on(reader, end) : no_memory(reader);
}

/* Notes an error if a value is a list of choices copied from the manual, such as "[0|1|2|3]".
 * @return the end of the list; NULL if there is no such list at @p open. */
static const char *note_choices(const lenient_reader *reader, const char *open)
{
    char choices[2 * CHOICES_MAX] = "",
                     *to = choices; /* receives the choices, with commas between them */
    if (*open != '[')
        return NULL;
    const size_t length = strspn(open + 1, WORD " |");
    const char *end = open + 1 + length;
    if (length > CHOICES_MAX || *end != ']' || memchr(open + 1, '|', length) == NULL)
        return NULL;
    for (const char *c = open + 1; c < end; c++) {
        if (*c == '|')
            *to++ = ',';
        if (*c != ' ')
            *to++ = *c == '|' ? ' ' : *c;
    }
    NOTE(reader, open, "`%.*s` is a list of choices from the manual; write one of %s",
         (int)(end + 1 - open), open, choices);
    return end + 1;
}

/* ---- Lists and objects --------------------------------------------------------------------- */

static ring_status read_value(lenient_reader *reader, cJSON *item);

static ring_status read_key(lenient_reader *reader, cJSON *item)
{
    const char *end = reader->at + strspn(reader->at, WORD);
    item->valueint = (int)PLACE(reader, reader->at);
    reader->text->key_count++;
    if (is_one_of(*reader->at, QUOTES)) {
        RING_TRY(read_quoted(reader, item));
        item->string = item->valuestring;
        item->valuestring = NULL;
        item->type = cJSON_NULL;
    } else if (end > reader->at && is_key(end)) {
        item->string = copy(reader->at, end);
        RING_TRY(item->string != NULL ? move_on(reader, end) : no_memory(reader));
    }
    return *reader->at == ':' && item->string != NULL ? move_on(reader, reader->at + 1)
                                                      : unexpected(reader);
}

/* Moves to the next member of a list or object, past a comma or past a line break without a comma.
 * @param first  there is no earlier member. @param[out] more  false: @p close was found instead */
static ring_status next_member(lenient_reader *reader, bool first, char close, bool *more)
{
    const lenient_reader before = *reader;
    const char c = *reader->at;
    const bool line = reader->line_passed && c != '\0' && !is_one_of(c, ":}]");
    if (c == ',') {
        reader->commas++;
        RING_TRY(move_on(reader, reader->at + 1));
    }
    *more = *reader->at != close;
    if (*more && (first ? c == ',' : c != ',' && !line))
        return unexpected(&before);
    if (*more && !first && c != ',') {
        if (reader->missing < COMMAS_KEPT)
            reader->places[reader->missing] = reader->at;
        reader->missing++;
    }
    return RING_OK;
}

/* Reads the members of a list or object into @p holder, up to the bracket @p close, which is '\0'
 * if the file leaves out the outermost { }. */
static ring_status read_members(lenient_reader *reader, cJSON *holder, char close)
{
    bool more = true;
    if (reader->depth == CJSON_NESTING_LIMIT)
        return unexpected(reader);
    reader->depth++;
    holder->type = close == ']' ? cJSON_Array : cJSON_Object;
    if (close != '\0')
        RING_TRY(move_on(reader, reader->at + 1));
    for (;;) {
        RING_TRY(next_member(reader, holder->child == NULL, close, &more));
        if (!more)
            break;
        cJSON *item = cJSON_CreateNull();
        if (!cJSON_AddItemToArray(holder, item))
            return no_memory(reader);
        item->valueint = holder->valueint;
        if (close != ']')
            RING_TRY(read_key(reader, item));
        RING_TRY(read_value(reader, item));
    }
    reader->depth--;
    return close != '\0' ? move_on(reader, reader->at + 1) : RING_OK;
}

static ring_status read_value(lenient_reader *reader, cJSON *item)
{
    const char c = *reader->at;
    if (is_one_of(c, QUOTES)) {
        const char *end = quoted_end(reader->at);
        const bool choices = end != NULL && note_choices(reader, reader->at + 1) != NULL;
        return choices ? move_on(reader, end) : read_quoted(reader, item);
    }
    const char *choices_end = note_choices(reader, reader->at);
    if (choices_end != NULL)
        return move_on(reader, choices_end);
    if (c == '{' || c == '[')
        return read_members(reader, item, c == '{' ? '}' : ']');
    if (item->string == NULL || c == '\0' || is_one_of(c, ",:}]"))
        return read_word(reader, item);
    return read_unquoted(reader, item);
}

/* ---- The file ------------------------------------------------------------------------------ */

static ring_status read_file(lenient_reader *reader)
{
    static const char byte_order_mark[] = "\xef\xbb\xbf";
    const lenient_text *text = reader->text;
    if (text->source_length > INT_MAX) /* places are stored as int */
        return train_fail(RING_ERR_CONFIG,
                          "%s: the file is larger than 2 GiB, so it is not a configuration",
                          text->name);
    const char *zero = memchr(text->source, '\0', text->source_length);
    if (zero != NULL)
        return lenient_fail(text, (size_t)(zero - text->source), RING_ERR_CONFIG,
                            "the file has a zero byte, so it is not a text file");
    if (text->tree == NULL || reader->source == NULL)
        return no_memory(reader);
    const bool marked = strncmp(reader->source, byte_order_mark, 3) == 0;
    RING_TRY(move_on(reader, reader->source + (marked ? 3 : 0)));
    reader->previous_end = NULL;
    reader->open = starts_key(reader->at);
    RING_TRY(reader->open ? read_members(reader, text->tree, '\0')
                          : read_value(reader, text->tree));
    return *reader->at != '\0' ? unexpected(reader) : RING_OK;
}

/* @return a copy terminated by a zero; NULL: out of memory. */
static char *terminated(const char *source, size_t length)
{
    char *copy = malloc(length + 1);
    if (copy == NULL)
        return NULL;
    memcpy(copy, source, length);
    copy[length] = '\0';
    return copy;
}

ring_status lenient_read(lenient_text *text, const char *name, const char *source, size_t length,
                         faults *list)
{
    lenient_reader reader = {.text = text, .faults = list, .source = terminated(source, length)};
    *text = (lenient_text){name, source, length, cJSON_CreateNull(), 0};
    const ring_status status = read_file(&reader);
    /* Hjson allows line breaks without commas. But in a file with other faults that has most of its
     * commas, the missing ones are probably faults, too. */
    const bool report_commas = list->count > 0 && reader.missing <= reader.commas;
    faults_note(list, SIZE_MAX, status); /* sorted after the faults noted while reading */
    for (size_t i = 0; report_commas && i < reader.missing && i < COMMAS_KEPT; i++)
        NOTE(&reader, reader.places[i], "a comma is missing before this");
    free(reader.source);
    return status;
}

void lenient_free(lenient_text *text)
{
    cJSON_Delete(text->tree);
    *text = (lenient_text){0};
}

/* SPDX-License-Identifier: Apache-2.0
 * Finds unknown options and options without their value, and suggests the nearest known name. */
#include "args_check.h"

#include "words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_named(const args_row *row)
{
    return row->name != NULL && (row->flags & OPTION_DOC) == 0;
}

/* @return true if @p name begins with the first @p length characters of @p word; '-' and '_' are
 * equivalent. */
static bool begins(const char *name, const char *word, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (name[i] != word[i] && (strchr("-_", name[i]) == NULL || strchr("-_", word[i]) == NULL))
            return false;
    return true;
}

/* @return the row with this name, or the only row whose name begins with it. */
static const args_row *find_name(const args_table *table, const char *word, size_t length)
{
    const args_row *found = NULL;
    size_t near = 0;
    for (size_t i = 0; i < table->count; i++) {
        const args_row *row = args_at(table, i);
        if (!is_named(row) || strlen(row->name) < length || !begins(row->name, word, length))
            continue;
        if (row->name[length] == '\0')
            return row;
        found = row;
        near++;
    }
    return near == 1 ? found : NULL;
}

/* Ends the program with a message that suggests the nearest known option. */
static _Noreturn void unknown(const args_table *table, const char *word, size_t length)
{
    const char **names = calloc(table->count, sizeof *names);
    char *name = strndup(word, length);
    size_t count = 0;
    if (table->program->unknown != NULL)
        table->program->unknown(word);
    for (size_t i = 0; names != NULL && i < table->count; i++)
        if (is_named(args_at(table, i)))
            names[count++] = args_at(table, i)->name;
    const char *near = name != NULL ? words_nearest(name, names, count) : NULL;
    if (near != NULL)
        args_fail("unknown option '--%s'; did you mean '--%s'?", name, near);
    args_fail("unknown option '--%.*s'%s", (int)length, word,
              table->program->rest ? "; write the options of the program after its name" : "");
}

/* Checks "name" or "name=value", and writes the name as its row spells it.
 * @return true if the option needs the next word as its value. */
static bool check_name(const args_table *table, char *word)
{
    const size_t length = strcspn(word, "=");
    const args_row *row = find_name(table, word, length);
    if (row == NULL)
        unknown(table, word, length);
    memcpy(word, row->name, length);
    while ((row->flags & OPTION_ALIAS) != 0)
        row--; /* an alias has the value of the row before it */
    if (row->value == NULL && word[length] == '=')
        args_fail("--%s: the option takes no value", word);
    return row->value != NULL && (row->flags & OPTION_ARG_OPTIONAL) == 0 && word[length] == '\0';
}

/* Checks the letters of a word such as "-vn".
 * @return true if the last option needs the next word as its value. */
static bool check_letters(const args_table *table, const char *letters)
{
    for (; *letters != '\0'; letters++) {
        const args_row *row = args_letter(table, *letters);
        if (row == NULL)
            args_fail("unknown option '-%c'", *letters);
        if (row->value != NULL)
            return letters[1] == '\0' && (row->flags & OPTION_ARG_OPTIONAL) == 0;
    }
    return false;
}

/* @return "--np" for the word "-np" if an option has this name; any other word unchanged. The new
 * word is not freed, since argv refers to it. */
static char *with_two_dashes(const args_table *table, char *word)
{
    const args_row *row = find_name(table, word + 1, strlen(word + 1));
    char *longer;
    if (row == NULL || strlen(row->name) < 2 || strlen(row->name) != strlen(word + 1) ||
        asprintf(&longer, "-%s", word) < 0)
        return word;
    return longer;
}

void args_check(const args_table *table, int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (argv[i][0] != '-' || argv[i][1] == '\0') {
            if (table->program->rest)
                return;
            continue;
        }
        argv[i] = with_two_dashes(table, argv[i]);
        const bool follows = argv[i][1] == '-' ? check_name(table, argv[i] + 2)
                                               : check_letters(table, argv[i] + 1);
        if (follows && ++i == argc)
            args_fail("%s needs a value", argv[i - 1]);
    }
}

/* SPDX-License-Identifier: Apache-2.0
 * Looks rows up, handles the options that all programs have, and ends programs whose command line
 * is wrong. */
#include "args_table.h"

#include "about.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- Refusals ------------------------------------------------------------------------------- */

static const char *program_name = "";
static bool is_quiet;

/* Prints a message and ends the program. @p given and @p value are the option and its value as they
 * were typed; both are "" if the message is not about one option. */
static _Noreturn void wrong(const char *given, const char *value, const char *format, va_list args)
{
    if (is_quiet)
        exit(ARGS_WRONG);
    fprintf(stderr, "%s: %s%s%s%s", program_name, given, *value != '\0' ? " " : "", value,
            *given != '\0' ? ": " : "");
    vfprintf(stderr, format, args);
    fprintf(stderr, "; see %s --help\n", program_name);
    exit(ARGS_WRONG);
}

void args_fail(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    wrong("", "", format, args);
}

/* Shows the option as it was typed: one word "--name=value", or two words "--name value". */
void args_refuse(const args_given *given, const char *format, ...)
{
    char *const *word = &given->state->argv[given->state->next - 1];
    const bool apart = given->text == *word;
    va_list args;
    va_start(args, format);
    wrong(apart ? word[-1] : *word, !apart ? "" : *given->text ? given->text : "''", format, args);
}

/* ---- Options of all programs ---------------------------------------------------------------- */

static void show_help(const args_given *given)
{
    argp_state_help(given->state, stdout, ARGP_HELP_STD_HELP);
}

static void show_usage(const args_given *given)
{
    argp_state_help(given->state, stdout, ARGP_HELP_USAGE | ARGP_HELP_EXIT_OK);
}

static void show_version(const args_given *given)
{
    (void)given;
    about_print(program_name);
    exit(EXIT_SUCCESS);
}

static const args_row common[] = {
    {.help = "Help:"},
    {"help", 'h', NULL, "Show the options", .take = show_help},
    {.letter = '?', .flags = OPTION_ALIAS | OPTION_HIDDEN},
    {"usage", 0, NULL, "Show a short usage message", .take = show_usage},
    {"version", 'V', NULL, "Show version, compiler and libraries", .take = show_version},
};

/* ---- Rows ----------------------------------------------------------------------------------- */

const args_row *args_at(const args_table *table, size_t index)
{
    return index < table->own ? &table->program->rows[index] : &common[index - table->own];
}

const args_row *args_letter(const args_table *table, int letter)
{
    for (size_t i = 0; i < table->count; i++)
        if (args_at(table, i)->letter == letter)
            return args_at(table, i);
    return NULL;
}

bool args_is_heading(const args_row *row)
{
    return row->name == NULL && row->letter == 0;
}

args_table args_open(const args_program *program)
{
    args_table table = {.program = program};
    while (!args_is_heading(&program->rows[table.own]) || program->rows[table.own].help != NULL)
        table.own++;
    table.count = table.own + sizeof common / sizeof *common;
    program_name = program->name;
    is_quiet = program->quiet;
    return table;
}

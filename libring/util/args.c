/* SPDX-License-Identifier: Apache-2.0
 * Converts the rows of a program to argp's options, and stores the values that argp finds in the
 * fields of the program's struct. */
#include "args_check.h"
#include "numbers.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Values ------------------------------------------------------------------------------ */

/* Stores a whole number in the field of a row, which is a bool, an int32_t or an int64_t. */
static void store(const args_given *given, long long value)
{
    switch (given->row->size) {
    case sizeof(bool):
        *(bool *)given->field = value != 0;
        break;
    case sizeof(int32_t):
        memcpy(given->field, &(int32_t){(int32_t)value}, sizeof(int32_t));
        break;
    default:
        memcpy(given->field, &(int64_t){value}, sizeof(int64_t));
    }
}

void args_flag(const args_given *given)
{
    store(given, given->row->most != 0 ? given->row->most : 1);
}

void args_text(const args_given *given)
{
    if (*given->text == '\0')
        args_refuse(given, "the value is empty");
    memcpy(given->field, &given->text, sizeof given->text);
}

void args_whole(const args_given *given)
{
    long long value;
    const args_row *row = given->row;
    if (number_whole(given->text, row->least, row->most, &value))
        store(given, value);
    else if (row->least >= row->most)
        args_refuse(given, "%s", row->help);
    else
        args_refuse(given, "expected a whole number from %lld to %lld", row->least, row->most);
}

void args_size(const args_given *given)
{
    const long long least = given->row->least;
    size_t bytes;
    if (!number_size(given->text, &bytes) || bytes < (size_t)least)
        args_refuse(given,
                    "expected a whole number of bytes from %lld to %zuT, such as 64, 4K or 1.5M",
                    least, NUMBER_SIZE_MOST >> 40);
    memcpy(given->field, &bytes, sizeof bytes);
}

void args_seconds(const args_given *given)
{
    double value;
    if (!number_real(given->text, &value) || value > NUMBER_SECONDS_MOST)
        args_refuse(given, "expected seconds from 0 to %g", NUMBER_SECONDS_MOST);
    memcpy(given->field, &value, sizeof value);
}

void args_name(const args_given *given)
{
    const char *const *names = given->row->names;
    char all[256] = "";
    size_t used = 0;
    for (int i = 0; names[i] != NULL; i++) {
        if (strcmp(given->text, names[i]) == 0) {
            store(given, i);
            return;
        }
        if (used < sizeof all)
            used += (size_t)snprintf(all + used, sizeof all - used, "%s%s", i > 0 ? " or " : "",
                                     names[i]);
    }
    args_refuse(given, "expected %s", all);
}

/* ---- The table --------------------------------------------------------------------------- */

/* The key of an option without a letter is KEY_NAMED plus the index of its row. */
enum { KEY_NAMED = UCHAR_MAX + 1 };

static struct argp_option *make_options(const args_table *table)
{
    struct argp_option *options = calloc(table->count + 1, sizeof *options);
    int group = 0;
    if (options == NULL)
        args_fail("no memory for the options");
    for (size_t i = 0; i < table->count; i++) {
        const args_row *row = args_at(table, i);
        /* A letter belongs to the first row that has it, and the program's own rows come first. */
        const bool own = row->letter != 0 && args_letter(table, row->letter) == row;
        const int key = own ? row->letter : KEY_NAMED + (int)i;
        group += args_is_heading(row);
        options[i] = (struct argp_option){.name = row->name,
                                          .key = args_is_heading(row) ? 0 : key,
                                          .arg = row->value,
                                          .flags = row->flags,
                                          .doc = row->help,
                                          .group = group};
    }
    return options;
}

/* @return the row that describes the option of a key of argp. An alias has no description of its
 * own and stands for the nearest row before it that is not an alias. NULL: no row has this key. */
static const args_row *find_key(const args_table *table, int key)
{
    const args_row *row = key >= KEY_NAMED ? args_at(table, (size_t)(key - KEY_NAMED))
                                           : args_letter(table, key);
    while (row != NULL && (row->flags & OPTION_ALIAS) != 0)
        row--;
    return row;
}

/* ---- Parsing ----------------------------------------------------------------------------- */

typedef struct parsing {
    args_table table;
    void *out;
} parsing;

/* Handles an option, or the operands from @p text on; argp calls it. */
static error_t parse_key(int key, char *text, struct argp_state *state)
{
    const parsing *p = state->input;
    const args_program *program = p->table.program;
    if (key == ARGP_KEY_ARG) {
        const int first = state->next - 1;
        if (program->take == NULL)
            args_fail("unexpected argument '%s'", text);
        state->next = first + program->take(&state->argv[first], state->argc - first, p->out);
        return 0;
    }
    if (key <= 0 || key >= KEY_NAMED + (int)p->table.count)
        return ARGP_ERR_UNKNOWN; /* argp reports an event, such as the end, by a key of its own */
    const args_row *row = find_key(&p->table, key);
    if (row != NULL && row->take != NULL)
        row->take(&(args_given){row, text, (char *)p->out + row->at, p->out, state});
    return 0;
}

void args_parse(const args_program *program, int argc, char **argv, void *out)
{
    parsing p = {.table = args_open(program), .out = out};
    struct argp_option *options = make_options(&p.table);
    const struct argp argp = {options, parse_key, program->words, program->doc, NULL, NULL, NULL};
    argp_err_exit_status = ARGS_WRONG;
    argv[0] = (char *)program->name; /* argp begins its messages with argv[0] */
    args_check(&p.table, argc, argv);
    argp_parse(&argp, argc, argv, ARGP_IN_ORDER | ARGP_NO_HELP, NULL, &p);
    free(options);
}

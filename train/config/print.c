/* SPDX-License-Identifier: Apache-2.0
 * Prints the settings of a run, as a table for people or as lines to compare, and prints the table
 * of known keys. */
#include "config.h"

#include <string.h>

#include "keys.h"
#include "values.h"

enum { NAME_WIDTH = 42 };

static const char dots[] = "..........................................";

static void print_line(FILE *out, const char *name, const char *value, const char *remark)
{
    const int fill = NAME_WIDTH - (int)strlen(name);
    fprintf(out, "  %s %.*s %s%s\n", name, fill > 3 ? fill : 3, dots, value, remark);
}

static bool is_setting(const config_key *key)
{
    return key->use == USE_HONOURED && key->bytes > 0;
}

/* @return true if @p key is the name to print its setting under, and the setting has an effect with
 * this optimizer and scheduler. */
static bool applies(const train_config *config, const config_key *key)
{
    const bool scheduler = strncmp(key->path, "scheduler.", 10) == 0;
    if (!is_setting(key) || value_name(config, key) != key)
        return false;
    if (scheduler && config->schedule.kind == SCHEDULE_CONSTANT)
        return false;
    const char *type = scheduler ? config->schedule.type : config->optimizer.type;
    return key->scope == NULL || value_choose(key->scope, type) != NULL;
}

/* @return a description of a value that depends on the data and is not set yet; NULL if it is set.
 */
static const char *open_value(const train_config *config, const config_key *key)
{
    if (config->steps_per_print == 0 && strcmp(key->path, "steps_per_print") == 0)
        return "a quarter of an epoch";
    if (config->schedule.total_steps == 0 &&
        strcmp(key->path, "scheduler.params.total_num_steps") == 0)
        return "all updates of the run";
    return NULL;
}

void config_print(const train_config *config, bool all, FILE *out)
{
    train_config initial;
    values_initial(&initial);
    for (size_t i = 0; i < config_key_count; i++) {
        const config_key *key = &config_keys[i];
        if (!applies(config, key))
            continue;
        const bool same = memcmp((const char *)config + key->field,
                                 (const char *)&initial + key->field, key->bytes) == 0;
        /* Clipping is shown even at its default, because its default in DeepSpeed has changed. */
        if (same && !all && strcmp(key->path, "gradient_clipping") != 0)
            continue;
        char value[VALUE_TEXT_MAX];
        const char *open = open_value(config, key);
        value_of_field(config, key, value);
        if (open != NULL)
            print_line(out, key->path, open, "");
        else
            print_line(out, key->path, value[0] != '\0' ? value : "none", same ? " (default)" : "");
    }
}

void config_list(const train_config *config, FILE *out)
{
    for (size_t i = 0; i < config_key_count; i++) {
        char value[VALUE_TEXT_MAX];
        if (!is_setting(&config_keys[i]) || value_name(NULL, &config_keys[i]) != &config_keys[i])
            continue;
        value_of_field(config, &config_keys[i], value);
        fprintf(out, "%s=%s\n", config_keys[i].path, value[0] != '\0' ? value : "none");
    }
}

static const char *kind_name(key_kind kind)
{
    static const char *const names[] = {
        [KEY_SECTION] = "section", [KEY_OPEN] = "section", [KEY_INT] = "int",
        [KEY_REAL] = "float",      [KEY_BOOL] = "bool",    [KEY_TEXT] = "text",
        [KEY_CHOICE] = "text",     [KEY_PAIR] = "[a, b]",  [KEY_RANKS] = "int(s)",
        [KEY_ANY] = "any",
    };
    return names[kind];
}

/* Prints blank-separated words with commas between them. */
static void print_words(FILE *out, const char *before, const char *words, const char *after)
{
    fputs(before, out);
    for (; *words != '\0'; words++) {
        if (*words == ' ')
            fputc(',', out);
        fputc(*words, out);
    }
    fputs(after, out);
}

static void print_key(const config_key *key, FILE *out)
{
    static const char *const uses[] = {"", "no effect: ", "not yet: "};
    fprintf(out, "%-56s  %-8s  %-14s  %s", key->path, kind_name(key->kind),
            key->initial != NULL && key->initial[0] != '\0' ? key->initial : "-", uses[key->use]);
    if (key->scope != NULL)
        print_words(out, "", key->scope, ": ");
    fputs(key->help, out);
    if (key->choices != NULL)
        print_words(out, " (", key->choices, ")");
    fputc('\n', out);
}

void config_print_keys(FILE *out)
{
    for (size_t i = 0; i < config_key_count; i++)
        print_key(&config_keys[i], out);
}

/* SPDX-License-Identifier: Apache-2.0
 * Converts single settings and checks their range, with one function for each kind of key. */
#include "values.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>
#include <strings.h>

#include "floats.h"
#include "numbers.h"

enum { CHOICES_BYTES = 160 };

static value_result wrong(char *problem, value_result result, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static value_result wrong(char *problem, value_result result, const char *format, ...)
{
    NUMBERS_AS_IN_C;
    va_list args;
    va_start(args, format);
    vsnprintf(problem, VALUE_PROBLEM_MAX, format, args);
    va_end(args);
    return result;
}

const char *value_choose(const char *list, const char *word)
{
    const size_t length = strlen(word);
    while (length > 0 && *list != '\0') {
        const size_t width = strcspn(list, " ");
        if (width == length && strncasecmp(list, word, width) == 0)
            return list;
        list += width + (list[width] == ' ');
    }
    return NULL;
}

int value_choice_index(const char *list, const char *choice)
{
    int index = 0;
    for (const char *c = list; c < choice; c++)
        index += *c == ' ';
    return index;
}

static void *field_of(train_config *config, const config_key *key)
{
    return (char *)config + key->field;
}

static value_result expected(const char *kind, char *problem)
{
    return wrong(problem, VALUE_WRONG, "must be %s", kind);
}

static value_result check_range(const config_key *key, double value, char *problem)
{
    if (!isfinite(value))
        return wrong(problem, VALUE_WRONG, "must be finite");
    if (value >= key->least && value <= key->most)
        return VALUE_SET;
    if (isfinite(key->most))
        return wrong(problem, VALUE_WRONG, "must be from %.10g to %.10g, not %.10g", key->least,
                     key->most, value);
    return wrong(problem, VALUE_WRONG, "must be at least %g, not %.10g", key->least, value);
}

static value_result take_whole(long *to, const config_key *key, const cJSON *value, char *problem)
{
    if (!cJSON_IsNumber(value))
        return expected("a whole number", problem);
    const double number = value->valuedouble;
    const value_result result = check_range(key, number, problem);
    if (result != VALUE_SET)
        return result;
    if (number != floor(number))
        return wrong(problem, VALUE_WRONG, "must be a whole number, not %g", number);
    *to = (long)number;
    return VALUE_SET;
}

static value_result set_ranks(train_config *config, const config_key *key, const cJSON *value,
                              char *problem)
{
    rank_numbers *numbers = field_of(config, key);
    const bool listed = cJSON_IsArray(value);
    const int count = listed ? cJSON_GetArraySize(value) : 1;
    if (!listed && !cJSON_IsNumber(value))
        return expected("a whole number, or a list with one for each rank", problem);
    if (count < 1 || count > RANK_NUMBERS_MAX)
        return wrong(problem, VALUE_WRONG, "must list from 1 to %d numbers, one for each rank",
                     RANK_NUMBERS_MAX);
    for (int i = 0; i < count; i++) {
        const cJSON *item = listed ? cJSON_GetArrayItem(value, i) : value;
        const value_result result = take_whole(&numbers->values[i], key, item, problem);
        if (result != VALUE_SET)
            return result;
    }
    numbers->count = count;
    numbers->listed = listed;
    return VALUE_SET;
}

static value_result set_real(train_config *config, const config_key *key, const cJSON *value,
                             char *problem)
{
    if (!cJSON_IsNumber(value))
        return expected("a number", problem);
    const value_result result = check_range(key, value->valuedouble, problem);
    if (result == VALUE_SET)
        *(double *)field_of(config, key) = value->valuedouble;
    return result;
}

static value_result set_pair(train_config *config, const config_key *key, const cJSON *value,
                             char *problem)
{
    double *pair = field_of(config, key);
    if (!cJSON_IsArray(value) || cJSON_GetArraySize(value) != 2)
        return expected("a list of two numbers", problem);
    for (int i = 0; i < 2; i++) {
        const cJSON *item = cJSON_GetArrayItem(value, i);
        if (!cJSON_IsNumber(item) || !(item->valuedouble >= key->least) ||
            !(item->valuedouble < key->most))
            return wrong(problem, VALUE_WRONG,
                         "must have two numbers, each at least %g and below %g", key->least,
                         key->most);
        pair[i] = item->valuedouble;
    }
    return VALUE_SET;
}

static value_result set_bool(train_config *config, const config_key *key, const cJSON *value,
                             char *problem)
{
    if (!cJSON_IsBool(value))
        return expected("true or false", problem);
    *(bool *)field_of(config, key) = cJSON_IsTrue(value);
    return VALUE_SET;
}

/* Writes the blank-separated @p choices with commas between them. */
static void list_choices(const char *choices, char *text, size_t size)
{
    size_t used = 0;
    for (; *choices != '\0' && used + 3 < size; choices++) {
        if (*choices == ' ')
            text[used++] = ',';
        text[used++] = *choices;
    }
    text[used] = '\0';
}

/* Sets a text without choices, such as a name or a path. */
static value_result set_any_text(train_config *config, const config_key *key, const cJSON *value,
                                 char *problem)
{
    if (!cJSON_IsString(value))
        return expected("a text", problem);
    if (strlen(value->valuestring) >= key->bytes)
        return wrong(problem, VALUE_WRONG, "must be shorter than %zu bytes", key->bytes);
    memset(field_of(config, key), 0, key->bytes);
    memcpy(field_of(config, key), value->valuestring, strlen(value->valuestring));
    return VALUE_SET;
}

/* @return the type of optimizer that stands for a class of DeepSpeed's in a configuration, or NULL.
 */
static const char *type_of_class(const char *name)
{
    static const struct {
        const char *name, *type;
    } classes[] = {{"FusedAdam", "Adam"},
                   {"DeepSpeedCPUAdam", "Adam"},
                   {"CPUAdam", "Adam"},
                   {"FusedLion", "Lion"},
                   {"DeepSpeedCPULion", "Lion"},
                   {"CPULion", "Lion"},
                   {"DeepSpeedCPUAdagrad", "Adagrad"},
                   {"CPUAdagrad", "Adagrad"}};
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++) {
        if (strcasecmp(classes[i].name, name) == 0)
            return classes[i].type;
    }
    return NULL;
}

static value_result set_choice(train_config *config, const config_key *key, const cJSON *value,
                               char *problem)
{
    char choices[CHOICES_BYTES], advice[CONFIG_ADVICE_MAX] = "";
    list_choices(key->choices, choices, sizeof choices);
    if (!cJSON_IsString(value))
        return wrong(problem, VALUE_WRONG, "must be one of %s", choices);
    const char *choice = value_choose(key->choices, value->valuestring);
    if (choice == NULL)
        config_choice_advice(key->choices, value->valuestring, advice);
    if (choice == NULL && key->initial != NULL)
        return wrong(problem, VALUE_DEFAULT, "\"%.64s\" is not one of %s; using %s%s",
                     value->valuestring, choices, key->initial, advice);
    const char *type = choice == NULL ? type_of_class(value->valuestring) : NULL;
    if (type != NULL && value_choose(key->choices, type) != NULL)
        return wrong(problem, VALUE_WRONG,
                     "\"%.64s\" is a class of DeepSpeed, not a type; write \"%s\"",
                     value->valuestring, type);
    if (choice == NULL)
        return wrong(problem, VALUE_LATER,
                     "\"%.64s\" is not supported yet by this version: write one of %s%s",
                     value->valuestring, choices, advice);
    if (key->kind == KEY_CHOICE)
        *(int *)field_of(config, key) = 1 + value_choice_index(key->choices, choice);
    else
        snprintf(field_of(config, key), key->bytes, "%.*s", (int)strcspn(choice, " "), choice);
    return VALUE_SET;
}

value_result value_set(train_config *config, const config_key *key, const cJSON *value,
                       char problem[VALUE_PROBLEM_MAX])
{
    switch (key->kind) {
    case KEY_INT:
        return take_whole(field_of(config, key), key, value, problem);
    case KEY_REAL:
        return set_real(config, key, value, problem);
    case KEY_PAIR:
        return set_pair(config, key, value, problem);
    case KEY_RANKS:
        return set_ranks(config, key, value, problem);
    case KEY_BOOL:
        return set_bool(config, key, value, problem);
    default:
        return key->choices == NULL ? set_any_text(config, key, value, problem)
                                    : set_choice(config, key, value, problem);
    }
}

cJSON *value_parse(const char *json)
{
    NUMBERS_AS_IN_C;
    return cJSON_Parse(json);
}

/* The table has initial values in the notation of a file, except that texts have no quotes. */
void values_initial(train_config *config)
{
    memset(config, 0, sizeof *config);
    for (size_t i = 0; i < config_key_count; i++) {
        const config_key *key = &config_keys[i];
        if (key->use != USE_HONOURED || key->bytes == 0 || key->initial == NULL)
            continue;
        char problem[VALUE_PROBLEM_MAX];
        cJSON *value = key->kind == KEY_TEXT || key->kind == KEY_CHOICE
                           ? cJSON_CreateString(key->initial)
                           : value_parse(key->initial);
        if (value != NULL)
            value_set(config, key, value, problem);
        cJSON_Delete(value);
    }
}

const config_key *value_name(const train_config *config, const config_key *key)
{
    const config_key *name = key->bytes > 0 ? NULL : key;
    for (size_t i = 0; i < config_key_count && key->bytes > 0; i++) {
        const config_key *other = &config_keys[i];
        if (other->use != USE_HONOURED || other->bytes == 0 || other->field != key->field)
            continue;
        if (name == NULL ||
            (config != NULL && config->given[i] && !config->given[name - config_keys]))
            name = other;
    }
    return name;
}

void value_of_json(const cJSON *value, char text[VALUE_TEXT_MAX])
{
    NUMBERS_AS_IN_C;
    text[0] = '\0';
    if (cJSON_IsBool(value))
        snprintf(text, VALUE_TEXT_MAX, "%s", cJSON_IsTrue(value) ? "true" : "false");
    else if (cJSON_IsString(value))
        snprintf(text, VALUE_TEXT_MAX, "%.*s", VALUE_TEXT_MAX - 1, value->valuestring);
    else if (cJSON_IsNumber(value))
        snprintf(text, VALUE_TEXT_MAX, "%g", value->valuedouble);
}

/* Writes word number @p number of @p choices, counted from 1; 0 writes nothing. */
static void write_choice(const char *choices, int number, char text[VALUE_TEXT_MAX])
{
    for (int i = 1; i < number; i++)
        choices = strchr(choices, ' ') + 1;
    const int length = number > 0 ? (int)strcspn(choices, " ") : 0;
    snprintf(text, VALUE_TEXT_MAX, "%.*s", length, choices);
}

/* Writes all numbers, or the first numbers of a long list and its length. */
static void write_ranks(const rank_numbers *numbers, char text[VALUE_TEXT_MAX])
{
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < numbers->count; i++) {
        if (used > VALUE_TEXT_MAX - 32) {
            snprintf(text + used, VALUE_TEXT_MAX - used, ", … %d ranks]", numbers->count);
            return;
        }
        const char *before = i > 0 ? ", " : numbers->listed ? "[" : "";
        const char *after = numbers->listed && i + 1 == numbers->count ? "]" : "";
        used += (size_t)snprintf(text + used, VALUE_TEXT_MAX - used, "%s%ld%s", before,
                                 numbers->values[i], after);
    }
}

void value_of_field(const train_config *config, const config_key *key, char text[VALUE_TEXT_MAX])
{
    const void *field = (const char *)config + key->field;
    char second[FLOAT_TEXT_MAX];
    switch (key->kind) {
    case KEY_INT:
        snprintf(text, VALUE_TEXT_MAX, "%ld", *(const long *)field);
        break;
    case KEY_RANKS:
        write_ranks(field, text);
        break;
    case KEY_REAL:
        float_repr(*(const double *)field, text);
        break;
    case KEY_PAIR:
        float_repr(((const double *)field)[1], second);
        text[0] = '[';
        float_repr(((const double *)field)[0], text + 1);
        strcat(strcat(strcat(text, ", "), second), "]");
        break;
    case KEY_BOOL:
        snprintf(text, VALUE_TEXT_MAX, "%s", *(const bool *)field ? "true" : "false");
        break;
    case KEY_CHOICE:
        write_choice(key->choices, *(const int *)field, text);
        break;
    default:
        snprintf(text, VALUE_TEXT_MAX, "%.*s", (int)key->bytes, (const char *)field);
    }
}

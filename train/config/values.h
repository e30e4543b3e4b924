/* SPDX-License-Identifier: Apache-2.0
 *
 * values: converts single settings between JSON, fields of train_config and text. The table of keys
 * gives the kind, range and field of each setting.
 */
#ifndef TRAIN_VALUES_H
#define TRAIN_VALUES_H

#include <cjson/cJSON.h>

#include "config.h"
#include "keys.h"

enum { VALUE_TEXT_MAX = 256, VALUE_PROBLEM_MAX = 256 };

typedef enum value_result {
    VALUE_SET,
    VALUE_DEFAULT, /* an unknown choice; the default is safe and remains */
    VALUE_LATER,   /* valid in DeepSpeed, but not supported yet */
    VALUE_WRONG
} value_result;

/** Checks @p value and writes it to the field of @p key.
 *  @param[out] problem  unless VALUE_SET is returned: the error, to be printed after the key's path
 */
value_result value_set(train_config *config, const config_key *key, const cJSON *value,
                       char problem[VALUE_PROBLEM_MAX]);

/** Parses a JSON value. @return the value, to be freed with cJSON_Delete(), or NULL. */
cJSON *value_parse(const char *json);

/** Sets every field to its initial value from the table. */
void values_initial(train_config *config);

/** Chooses among the names of a setting, such as bf16.enabled and bfloat16.enabled.
 *  @param config  NULL: a file without the setting
 *  @return the name that the file uses for the setting of @p key, or, if the file does not have the
 *  setting, its first name in the table; @p key itself if it has no field. */
const config_key *value_name(const train_config *config, const config_key *key);

/** Finds @p word in the blank-separated @p list, ignoring case.
 *  @return a pointer into @p list, or NULL. */
const char *value_choose(const char *list, const char *word);

/** @return the index of @p choice in @p list. @param choice  returned by value_choose() */
int value_choice_index(const char *list, const char *choice);

/** Writes a boolean, text or number as text: "true", "none", "0.01"; writes "" for other values. */
void value_of_json(const cJSON *value, char text[VALUE_TEXT_MAX]);

/** Writes the field of @p key as text. */
void value_of_field(const train_config *config, const config_key *key, char text[VALUE_TEXT_MAX]);

#endif

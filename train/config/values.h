/* SPDX-License-Identifier: Apache-2.0
 *
 * values: converts single settings between JSON, their fields in train_config, and text, as the
 * table of keys says.
 */
#ifndef TRAIN_VALUES_H
#define TRAIN_VALUES_H

#include <cjson/cJSON.h>

#include "config.h"
#include "keys.h"

enum { VALUE_TEXT_MAX = 256, VALUE_PROBLEM_MAX = 256 };

typedef enum value_result {
    VALUE_SET,
    VALUE_DEFAULT, /* an unknown choice; the default is used, which is safe */
    VALUE_LATER,   /* valid in DeepSpeed, but not supported yet */
    VALUE_WRONG
} value_result;

/** Checks the value and writes it to the field of @p key.
 *  @param[out] problem  unless VALUE_SET: what is wrong, a text that is put after the key's name.
 */
value_result value_set(train_config *config, const config_key *key, const cJSON *value,
                       char problem[VALUE_PROBLEM_MAX]);

/** Parses a JSON value. @return it, to be freed by cJSON_Delete(), or NULL. */
cJSON *value_parse(const char *json);

/** Sets every field to its initial value from the table. */
void values_initial(train_config *config);

/** Some settings have several names, such as bf16.enabled and bfloat16.enabled.
 *  @param config  NULL: as if the file did not have the setting
 *  @return the name that the file uses for the setting of @p key, or else its first name in the
 *  table; @p key itself if it sets no field. */
const config_key *value_name(const train_config *config, const config_key *key);

/** Finds @p word in the blank-separated @p list, ignoring case.
 *  @return its place in the list, or NULL. */
const char *value_choose(const char *list, const char *word);

/** @return how many words of @p list are before @p choice, a result of value_choose(). */
int value_choice_index(const char *list, const char *choice);

/** Writes @p value as text: "true", "0.01", "none"; "" for objects and lists. */
void value_of_json(const cJSON *value, char text[VALUE_TEXT_MAX]);

/** Writes the field of @p key as text. */
void value_of_field(const train_config *config, const config_key *key, char text[VALUE_TEXT_MAX]);

#endif

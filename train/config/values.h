/* SPDX-License-Identifier: Apache-2.0
 *
 * values: one setting at a time between JSON, its field in train_config, and text, as its
 * line in the table of keys says.
 */
#ifndef TRAIN_VALUES_H
#define TRAIN_VALUES_H

#include <cjson/cJSON.h>

#include "config.h"
#include "keys.h"

enum { VALUE_TEXT_MAX = 256, VALUE_PROBLEM_MAX = 256 };

typedef enum value_result {
    VALUE_SET,
    VALUE_DEFAULT, /* an unknown choice, where the default is a safe answer */
    VALUE_LATER,   /* good in DeepSpeed, not here yet */
    VALUE_WRONG
} value_result;

/** Writes the checked value to the field of @p key.
 *  @param[out] problem  what is wrong, to follow the key's name, unless VALUE_SET. */
value_result value_set(train_config *config, const config_key *key, const cJSON *value,
                       char problem[VALUE_PROBLEM_MAX]);

/** @return a value as JSON has it, to be freed by cJSON_Delete(), or NULL. */
cJSON *value_parse(const char *json);
/** Sets every field to its initial value of the table. */
void values_initial(train_config *config);

/** Some settings have several names, such as bf16.enabled and bfloat16.enabled.
 *  @param config  NULL: as read from a file without the setting
 *  @return the key that the file gave the setting of @p key by, or the first in the table; @p key
 *  if it sets nothing. */
const config_key *value_name(const train_config *config, const config_key *key);

/** The word of the blank-separated @p list that equals @p word, case apart.
 *  @return its place in the list, or NULL. */
const char *value_choose(const char *list, const char *word);

/** Writes @p value as text: "true", "0.01", "none"; "" for objects and lists. */
void value_of_json(const cJSON *value, char text[VALUE_TEXT_MAX]);

/** Writes the field of @p key as text. */
void value_of_field(const train_config *config, const config_key *key, char text[VALUE_TEXT_MAX]);

#endif

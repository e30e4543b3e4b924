/* SPDX-License-Identifier: Apache-2.0
 * Reads the file's values one by one, and settings with the help of a table. Shapes are checked
 * last, when all layers are known. */
#include "layer_list.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "errors.h"
#include "gpt.h"
#include "keys.h"
#include "lenient.h"
#include "model.h"
#include "text_file.h"

enum { FILE_BYTES_MAX = 1 << 20, SIZE_MOST = 1 << 24, CHOICES_MAX = 512 };

/* The state of reading one file. */
typedef struct list_reader {
    lenient_text text;
    const cJSON *layer_at[NODES_MAX]; /* a value of each layer, for its place in the file */
    model_spec *spec;
    const nn_op *const *own; /* types that the caller defines; ends with NULL */
    bool is_gpt;             /* the file has the sizes of a GPT in place of layers */
} list_reader;

/* Refuses the file with a message at the place of a value. */
#define REFUSE(reader, value, ...) \
    lenient_fail(&(reader)->text, lenient_place(value), RING_ERR_CONFIG, __VA_ARGS__)

/* Replaces characters that are not printable in a text that a message quotes, because a terminal
 * would act on control characters. */
static const char *printable(char *text)
{
    for (unsigned char *c = (unsigned char *)text; *c != '\0'; c++)
        *c = *c < ' ' || *c > '~' ? '?' : *c;
    return text;
}

/* Checks that no later key of the object equals the key of @p item. */
static ring_status check_once(const list_reader *reader, const cJSON *item)
{
    for (const cJSON *other = item->next; other != NULL; other = other->next) {
        if (strcmp(other->string, item->string) == 0)
            return REFUSE(reader, item, "\"%s\" is given twice; keep one", printable(item->string));
    }
    return RING_OK;
}

/* ---- Settings ------------------------------------------------------------------------------ */

typedef enum setting_kind {
    SIZE,        /* size_t, at least 1 */
    SIZE_OR_0,   /* size_t */
    PROBABILITY, /* double below 1 */
    DEVIATION,   /* double above 0 */
    SWITCH,      /* bool */
    SWITCH_OFF,  /* bool that is false if the file has true */
    APPROXIMATE  /* bool, written as torch.nn.GELU's argument */
} setting_kind;

typedef struct setting {
    const char *key;
    setting_kind kind;
    size_t field;   /* offset in op_settings or gpt_sizes */
    unsigned takes; /* flags TAKES_… and HAS_… that a layer must have to take the setting */
    bool needed;    /* a size without a default */
} setting;

/* Flags that are combined with the TAKES_… flags of an op. They distinguish layers that have
 * features from layers that have channels. */
enum { HAS_WINDOW = 1 << 16, HAS_NO_WINDOW = 1 << 17 };

#define OF_LAYER(member) offsetof(op_settings, member)
#define OF_GPT(member) offsetof(gpt_sizes, member)

static const setting layer_settings[] = {
    {"features", SIZE, OF_LAYER(outputs), TAKES_OUTPUTS | HAS_NO_WINDOW, true},
    {"channels", SIZE, OF_LAYER(outputs), TAKES_OUTPUTS | HAS_WINDOW, true},
    {"kernel", SIZE, OF_LAYER(kernel), HAS_WINDOW, true},
    {"stride", SIZE, OF_LAYER(stride), HAS_WINDOW, false},
    {"padding", SIZE_OR_0, OF_LAYER(padding), HAS_WINDOW, false},
    {"probability", PROBABILITY, OF_LAYER(probability), TAKES_PROBABILITY, false},
    {"vocabulary", SIZE, OF_LAYER(words), TAKES_WORDS, true},
    {"heads", SIZE, OF_LAYER(heads), TAKES_HEADS, true},
    {"dropout", PROBABILITY, OF_LAYER(probability), TAKES_HEADS, false},
    {"init_std", DEVIATION, OF_LAYER(deviation), TAKES_DEVIATION, false},
    {"approximate", APPROXIMATE, OF_LAYER(by_tanh), TAKES_APPROXIMATE, false},
    {"bias", SWITCH_OFF, OF_LAYER(no_bias), TAKES_BIAS, false},
    {0},
};

static const setting gpt_settings[] = {
    {"n_layer", SIZE, OF_GPT(layers), 0, false},
    {"n_head", SIZE, OF_GPT(heads), 0, false},
    {"n_embd", SIZE, OF_GPT(width), 0, false},
    {"block_size", SIZE, OF_GPT(tokens), 0, false},
    {"vocab_size", SIZE, OF_GPT(words), 0, false},
    {"dropout", PROBABILITY, OF_GPT(dropout), 0, false},
    {"attn_pdrop", PROBABILITY, OF_GPT(attention_dropout), 0, false},
    {"approximate", APPROXIMATE, OF_GPT(by_tanh), 0, false},
    {"tie_word_embeddings", SWITCH, OF_GPT(tied), 0, false},
    {0},
};

static ring_status read_size(const list_reader *reader, const cJSON *item, size_t least,
                             size_t *size)
{
    const double value = cJSON_IsNumber(item) ? item->valuedouble : -1.0;
    if (!(value >= (double)least && value <= SIZE_MOST && value == floor(value)))
        return REFUSE(reader, item, "expected a whole number from %zu to %d", least, SIZE_MOST);
    *size = (size_t)value;
    return RING_OK;
}

/* Refuses a key that the layer does not take, and suggests a similar key. */
static ring_status refuse_setting(const list_reader *reader, const cJSON *item,
                                  const setting *table, unsigned has, const char *owner)
{
    char names[CHOICES_MAX] = "", advice[CONFIG_ADVICE_MAX];
    size_t used = 0;
    for (; table->key != NULL; table++) {
        if ((table->takes & has) == table->takes)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s ", table->key);
    }
    config_choice_advice(names, item->string, advice);
    return REFUSE(reader, item, "%s has no setting \"%.40s\"%s", owner, printable(item->string),
                  advice);
}

/* Reads a setting of @p table into the struct @p into.
 * @param has    flags TAKES_… and HAS_… of the layer
 * @param owner  name of the layer, for messages */
static ring_status read_setting(const list_reader *reader, const cJSON *item, const setting *table,
                                unsigned has, const char *owner, void *into)
{
    const setting *all = table;
    while (table->key != NULL &&
           (strcmp(table->key, item->string) != 0 || (table->takes & has) != table->takes))
        table++;
    void *field = (char *)into + table->field;
    const double number = cJSON_IsNumber(item) ? item->valuedouble : -1.0;
    const char *word = cJSON_IsString(item) ? item->valuestring : "";
    if (table->key == NULL)
        return refuse_setting(reader, item, all, has, owner);
    switch (table->kind) {
    case SIZE:
    case SIZE_OR_0:
        return read_size(reader, item, table->kind == SIZE, field);
    case PROBABILITY:
        if (!(number >= 0.0 && number < 1.0))
            return REFUSE(reader, item, "expected a number that is at least 0 and below 1");
        *(double *)field = number;
        return RING_OK;
    case DEVIATION:
        if (!(number > 0.0 && number <= 1000.0))
            return REFUSE(reader, item, "expected a number that is above 0 and at most 1000");
        *(double *)field = number;
        return RING_OK;
    case APPROXIMATE:
        if (strcmp(word, "none") != 0 && strcmp(word, "tanh") != 0)
            return REFUSE(reader, item, "expected \"none\" or \"tanh\"");
        *(bool *)field = word[0] == 't';
        return RING_OK;
    default:
        if (!cJSON_IsBool(item))
            return REFUSE(reader, item, "expected true or false");
        *(bool *)field = cJSON_IsTrue(item) == (table->kind == SWITCH);
        return RING_OK;
    }
}

static ring_status read_name(const list_reader *reader, const cJSON *item, char *name, size_t room)
{
    const size_t length = cJSON_IsString(item) ? strlen(item->valuestring) : 0;
    if (length == 0 || length >= room || strcspn(item->valuestring, "\"\\") != length)
        return REFUSE(reader, item, "expected a name of 1 to %zu characters, without quotes or \\",
                      room - 1);
    memcpy(name, printable(item->valuestring), length + 1);
    return RING_OK;
}

/* ---- One layer ----------------------------------------------------------------------------- */

/* @return the index of the layer with this name among the first @p before layers, or MODEL_INPUT
 * for "input", or -2. */
static int find_layer(const model_spec *spec, int before, const char *name)
{
    for (int n = before - 1; n >= 0; n--) {
        if (strcmp(spec->nodes[n].name, name) == 0)
            return n;
    }
    return strcmp(name, "input") == 0 ? MODEL_INPUT : -2;
}

static ring_status read_layer(const list_reader *reader, const cJSON *item, int *layer)
{
    const int own = reader->spec->count - 1;
    if (!cJSON_IsString(item))
        return REFUSE(reader, item, "expected the name of an earlier layer, or \"input\"");
    *layer = find_layer(reader->spec, own, item->valuestring);
    if (*layer == -2)
        return REFUSE(reader, item, "no earlier layer has the name \"%.40s\"",
                      printable(item->valuestring));
    return RING_OK;
}

static ring_status read_input(const list_reader *reader, node_spec *node, const cJSON *item)
{
    const int wanted = node->op->inputs;
    if (wanted == 1)
        return read_layer(reader, item, &node->inputs[0]);
    if (!cJSON_IsArray(item) || cJSON_GetArraySize(item) != wanted)
        return REFUSE(reader, item, "%s takes a list of %d layer%s", node->op->name, wanted,
                      plural(wanted));
    int *input = node->inputs;
    for (const cJSON *layer = item->child; layer != NULL; layer = layer->next)
        RING_TRY(read_layer(reader, layer, input++));
    return RING_OK;
}

static unsigned flags_of(const nn_op *op)
{
    const bool window = (op->takes & (TAKES_WINDOW | TAKES_POOL)) != 0;
    return op->takes | (window ? HAS_WINDOW : HAS_NO_WINDOW);
}

static ring_status read_layer_key(const list_reader *reader, node_spec *node, const cJSON *item)
{
    RING_TRY(check_once(reader, item));
    if (strcmp(item->string, "type") == 0)
        return RING_OK;
    if (strcmp(item->string, "name") == 0)
        return read_name(reader, item, node->name, sizeof node->name);
    if (strcmp(item->string, "input") == 0)
        return read_input(reader, node, item);
    if (strcmp(item->string, "tie") == 0) {
        RING_TRY(read_layer(reader, item, &node->tie));
        if (node->tie == MODEL_INPUT)
            return REFUSE(reader, item, "cannot tie to \"input\", which has no parameters");
        return RING_OK;
    }
    return read_setting(reader, item, layer_settings, flags_of(node->op), node->op->name,
                        &node->settings);
}

/* Checks a layer after all its keys were read, and sets defaults that depend on other keys. */
static ring_status finish_layer(const list_reader *reader, const cJSON *first, node_spec *node)
{
    op_settings *settings = &node->settings;
    const unsigned has = flags_of(node->op);
    if (find_layer(reader->spec, reader->spec->count - 1, node->name) != -2)
        return REFUSE(reader, first,
                      "an earlier layer has the name \"%s\", too; give each layer its own name",
                      node->name);
    for (const setting *s = layer_settings; s->key != NULL; s++) {
        if (s->needed && (s->takes & has) == s->takes &&
            *(const size_t *)((const char *)settings + s->field) == 0)
            return REFUSE(reader, first, "%s needs \"%s\"", node->op->name, s->key);
    }
    if (node->op->inputs > 1 && node->inputs[1] < MODEL_INPUT)
        return REFUSE(reader, first, "%s needs \"input\": [layer, layer]", node->op->name);
    if (settings->stride == 0 && (has & HAS_WINDOW) != 0)
        settings->stride = (has & TAKES_POOL) != 0 ? settings->kernel : 1;
    return RING_OK;
}

static void list_types(const nn_op *const *own, char text[CHOICES_MAX])
{
    size_t used = 0;
    for (size_t i = 0; nn_ops[i] != NULL; i++)
        used += (size_t)snprintf(text + used, CHOICES_MAX - used, "%s%s", i > 0 ? ", " : "",
                                 nn_ops[i]->name);
    for (; *own != NULL && used < CHOICES_MAX; own++)
        used += (size_t)snprintf(text + used, CHOICES_MAX - used, ", %s", (*own)->name);
}

static const nn_op *find_op(const list_reader *reader, const char *name)
{
    for (const nn_op *const *own = reader->own; *own != NULL; own++) {
        if (strcmp((*own)->name, name) == 0)
            return *own;
    }
    return op_find(name);
}

/* Finds the type of a layer before the other keys are read, because the type decides which keys are
 * valid. */
static ring_status find_type(const list_reader *reader, const cJSON *object, const nn_op **op)
{
    const cJSON *type = object->child;
    const cJSON *first = type;
    char types[CHOICES_MAX], advice[CONFIG_ADVICE_MAX];
    list_types(reader->own, types);
    while (type != NULL && strcmp(type->string, "type") != 0)
        type = type->next;
    if (type == NULL || !cJSON_IsString(type))
        return REFUSE(reader, first, "the layer has no \"type\"; add one of %s", types);
    *op = find_op(reader, type->valuestring);
    if (*op != NULL)
        return RING_OK;
    config_choice_advice(types, type->valuestring, advice);
    return REFUSE(reader, first, "there is no type \"%.40s\" of layers; write one of %s%s",
                  printable(type->valuestring), types, advice);
}

static ring_status read_object(list_reader *reader, const cJSON *object)
{
    const nn_op *op = NULL;
    if (!cJSON_IsObject(object) || object->child == NULL)
        return REFUSE(reader, object, "expected a layer: {\"type\": …}");
    const cJSON *first = object->child;
    RING_TRY(find_type(reader, object, &op));
    node_spec *node = model_spec_add(reader->spec, op,
                                     op == &op_dropout ? &(op_settings){.probability = 0.5} : NULL);
    if (node == NULL)
        return REFUSE(reader, first, "the file has more than %d layers, which is the limit",
                      NODES_MAX);
    reader->layer_at[reader->spec->count - 1] = first;
    node->inputs[1] = MODEL_INPUT - 1; /* not given yet */
    for (const cJSON *item = object->child; item != NULL; item = item->next)
        RING_TRY(read_layer_key(reader, node, item));
    return finish_layer(reader, first, node);
}

/* ---- The file ------------------------------------------------------------------------------ */

static ring_status read_layers(list_reader *reader, const cJSON *list)
{
    if (!cJSON_IsArray(list) || list->child == NULL)
        return REFUSE(reader, list, "expected a list of layers: [ {\"type\": …}, … ]");
    for (const cJSON *object = list->child; object != NULL; object = object->next)
        RING_TRY(read_object(reader, object));
    return RING_OK;
}

static ring_status read_shape(const list_reader *reader, const cJSON *list)
{
    op_shape *shape = &reader->spec->input;
    const int dims = cJSON_IsArray(list) ? cJSON_GetArraySize(list) : 0;
    if (dims != 1 && dims != 3)
        return REFUSE(reader, list, "expected [features] or [channels, rows, columns]");
    shape->dims = 0;
    for (const cJSON *size = list->child; size != NULL; size = size->next)
        RING_TRY(read_size(reader, size, 1, &shape->dim[shape->dims++]));
    return RING_OK;
}

static const char instead[] = "\"gpt\" replaces \"input\" and \"layers\"; remove it or them";

/* Reads the sizes of a GPT, which a file has in place of "input" and "layers". */
static ring_status read_gpt(list_reader *reader, const cJSON *object)
{
    gpt_sizes sizes = gpt_small;
    if (!cJSON_IsObject(object))
        return REFUSE(reader, object, "expected a section: {\"n_layer\": …}");
    if (reader->spec->input.dims != 0 || reader->spec->count != 0)
        return REFUSE(reader, object, instead);
    for (const cJSON *item = object->child; item != NULL; item = item->next) {
        RING_TRY(check_once(reader, item));
        RING_TRY(read_setting(reader, item, gpt_settings, 0, "gpt", &sizes));
    }
    if (gpt_layers(&sizes) > NODES_MAX)
        return REFUSE(reader, object,
                      "the GPT has more than %d nodes, which is the limit; reduce n_layer",
                      NODES_MAX);
    reader->is_gpt = true;
    for (size_t n = 0; n < gpt_layers(&sizes); n++)
        reader->layer_at[n] = object;
    return model_build_gpt(reader->spec, reader->spec->name, &sizes);
}

static ring_status read_member(list_reader *reader, const cJSON *item)
{
    RING_TRY(check_once(reader, item));
    if (strcmp(item->string, "name") == 0)
        return read_name(reader, item, reader->spec->name, sizeof reader->spec->name);
    if (strcmp(item->string, "gpt") == 0)
        return read_gpt(reader, item);
    if (reader->is_gpt)
        return REFUSE(reader, item, instead);
    if (strcmp(item->string, "input") == 0)
        return read_shape(reader, item);
    if (strcmp(item->string, "layers") == 0)
        return read_layers(reader, item);
    return REFUSE(reader, item,
                  "unknown key \"%.40s\"; write name, input and layers, or name and gpt",
                  printable(item->string));
}

/* Checks the shapes of all layers. The message of model_check() names the layer, and this function
 * adds the layer's place in the file. */
static ring_status check_shapes(const list_reader *reader)
{
    int failed = 0;
    const ring_status status = model_check(reader->spec, &failed);
    if (status != RING_ERR_CONFIG)
        return status;
    char cause[TRAIN_ERROR_MAX];
    snprintf(cause, sizeof cause, "%s", train_error());
    return REFUSE(reader, reader->layer_at[failed], "%s", cause);
}

static ring_status read_file(list_reader *reader, const cJSON *file)
{
    if (!cJSON_IsObject(file))
        return REFUSE(reader, file, "the file must have one object: { … }");
    for (const cJSON *item = file->child; item != NULL; item = item->next)
        RING_TRY(read_member(reader, item));
    if (reader->spec->input.dims == 0)
        return REFUSE(
            reader, file,
            "\"input\" is missing; add the shape of a sample, such as \"input\": [1, 28, 28]");
    if (reader->spec->count == 0)
        return REFUSE(reader, file, "\"layers\" is missing; add \"layers\": [ … ]");
    return check_shapes(reader);
}

ring_status layer_list_parse(model_spec *spec, const nn_op *const *own, const char *name,
                             const char *text, size_t length)
{
    static const nn_op *const none[] = {NULL};
    list_reader reader = {.spec = spec, .own = own != NULL ? own : none};
    faults found = {0};
    model_spec_start(spec, name, (op_shape){0});
    (void)lenient_read(&reader.text, name, text, length, &found);
    ring_status status = faults_tell(&found, name);
    if (status == RING_OK)
        status = read_file(&reader, reader.text.tree);
    lenient_free(&reader.text);
    return status;
}

ring_status layer_list_read(model_spec *spec, const nn_op *const *own, const char *path)
{
    char *text;
    size_t length;
    *spec = (model_spec){0};
    ring_status status = text_file_read(path, FILE_BYTES_MAX, "a list of layers", &text, &length);
    if (status == RING_OK)
        status = layer_list_parse(spec, own, path, text, length);
    free(text);
    return status;
}

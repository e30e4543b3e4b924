/* SPDX-License-Identifier: Apache-2.0
 * cJSON keeps no positions; but a walk of its tree in depth-first order meets the keys in the order
 * in which the lenient reader did, so that counting them tells where each one stands. */
#include "layer_list.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "errors.h"
#include "gpt.h"
#include "lenient.h"
#include "model.h"
#include "text_file.h"

enum { FILE_BYTES_MAX = 1 << 20, SIZE_MOST = 1 << 24, CHOICES_MAX = 512 };

/* The walk over one file. */
typedef struct list_reader {
    lenient_text text;
    size_t next_key;  /* in the order of the file */
    size_t at;        /* byte of the latest key, for an error text */
    size_t *layer_at; /* [layers] byte of the first key of each */
    model_spec *spec;
    const nn_op *const *own; /* ops of the caller, ended by NULL */
    bool is_gpt;             /* given by its sizes */
    faults faults;
} list_reader;

static ring_status fail_at(const list_reader *reader, size_t at, const char *text)
{
    return lenient_fail(&reader->text, at, RING_ERR_CONFIG, "%s", text);
}

/* Keys and names are quoted; what a terminal would obey is not. */
static const char *printable(char *text)
{
    for (unsigned char *c = (unsigned char *)text; *c != '\0'; c++)
        *c = *c < ' ' || *c > '~' ? '?' : *c;
    return text;
}

/* Moves to the key of @p item, which must be the next one of the walk. */
static ring_status enter(list_reader *reader, const cJSON *item)
{
    if (reader->next_key >= reader->text.key_count)
        return train_fail(RING_ERR_INTERNAL, "%s: more keys than were read", reader->text.name);
    reader->at = reader->text.keys[reader->next_key++];
    for (const cJSON *other = item->next; other != NULL; other = other->next) {
        if (strcmp(other->string, item->string) == 0)
            return lenient_fail(&reader->text, reader->at, RING_ERR_CONFIG,
                                "\"%s\" is given twice; keep one", printable(item->string));
    }
    return RING_OK;
}

/* ---- Values -------------------------------------------------------------------------------- */

static ring_status read_size(const list_reader *reader, const cJSON *item, size_t least,
                             size_t *size)
{
    const double value = cJSON_IsNumber(item) ? item->valuedouble : -1.0;
    if (!(value >= (double)least && value <= SIZE_MOST && value == floor(value)))
        return lenient_fail(&reader->text, reader->at, RING_ERR_CONFIG,
                            "must be a whole number from %zu to %d", least, SIZE_MOST);
    *size = (size_t)value;
    return RING_OK;
}

static ring_status read_probability(const list_reader *reader, const cJSON *item, double *value)
{
    if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0.0 && item->valuedouble < 1.0))
        return fail_at(reader, reader->at, "must be a number from 0 to below 1");
    *value = item->valuedouble;
    return RING_OK;
}

static ring_status read_deviation(const list_reader *reader, const cJSON *item, double *value)
{
    if (!cJSON_IsNumber(item) || !(item->valuedouble > 0.0 && item->valuedouble <= 1000.0))
        return fail_at(reader, reader->at, "must be a number above 0");
    *value = item->valuedouble;
    return RING_OK;
}

static ring_status read_bool(const list_reader *reader, const cJSON *item, bool *value)
{
    if (!cJSON_IsBool(item))
        return fail_at(reader, reader->at, "must be true or false");
    *value = cJSON_IsTrue(item);
    return RING_OK;
}

/* torch.nn.GELU's argument. */
static ring_status read_approximate(const list_reader *reader, const cJSON *item, bool *by_tanh)
{
    const char *word = cJSON_IsString(item) ? item->valuestring : "";
    if (strcmp(word, "none") != 0 && strcmp(word, "tanh") != 0)
        return fail_at(reader, reader->at, "must be \"none\" or \"tanh\"");
    *by_tanh = word[0] == 't';
    return RING_OK;
}

static ring_status read_name(const list_reader *reader, cJSON *item, char *name, size_t room)
{
    const size_t length = cJSON_IsString(item) ? strlen(item->valuestring) : 0;
    if (length == 0 || length >= room || strcspn(item->valuestring, "\"\\") != length)
        return lenient_fail(&reader->text, reader->at, RING_ERR_CONFIG,
                            "must be a name of 1 to %zu letters", room - 1);
    memcpy(name, printable(item->valuestring), length + 1);
    return RING_OK;
}

/* @return the earlier layer called @p name, or -2. */
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
        return fail_at(reader, reader->at, "must be the name of an earlier layer, or \"input\"");
    *layer = find_layer(reader->spec, own, item->valuestring);
    if (*layer == -2)
        return lenient_fail(&reader->text, reader->at, RING_ERR_CONFIG,
                            "no layer before this one is called \"%.40s\"",
                            printable(item->valuestring));
    return RING_OK;
}

/* ---- One layer ----------------------------------------------------------------------------- */

static ring_status read_input(list_reader *reader, node_spec *node, const cJSON *item)
{
    const int wanted = node->op->inputs;
    if (wanted == 1)
        return read_layer(reader, item, &node->inputs[0]);
    if (!cJSON_IsArray(item) || cJSON_GetArraySize(item) != wanted)
        return lenient_fail(&reader->text, reader->at, RING_ERR_CONFIG,
                            "%s takes a list of %d layers", node->op->name, wanted);
    for (int k = 0; k < wanted; k++)
        RING_TRY(read_layer(reader, cJSON_GetArrayItem(item, k), &node->inputs[k]));
    return RING_OK;
}

static ring_status read_tie(list_reader *reader, node_spec *node, const cJSON *item)
{
    RING_TRY(read_layer(reader, item, &node->tie));
    if (node->tie == MODEL_INPUT)
        return fail_at(reader, reader->at, "the input has no parameters to share");
    return RING_OK;
}

static bool takes(const node_spec *node, unsigned what)
{
    return (node->op->takes & what) != 0;
}

static ring_status read_text_setting(list_reader *reader, node_spec *node, cJSON *item)
{
    const char *key = item->string;
    op_settings *settings = &node->settings;
    if (takes(node, TAKES_WORDS) && strcmp(key, "vocabulary") == 0)
        return read_size(reader, item, 1, &settings->words);
    if (takes(node, TAKES_HEADS) && strcmp(key, "heads") == 0)
        return read_size(reader, item, 1, &settings->heads);
    if (takes(node, TAKES_HEADS) && strcmp(key, "dropout") == 0)
        return read_probability(reader, item, &settings->probability);
    if (takes(node, TAKES_DEVIATION) && strcmp(key, "init_std") == 0)
        return read_deviation(reader, item, &settings->deviation);
    if (takes(node, TAKES_APPROXIMATE) && strcmp(key, "approximate") == 0)
        return read_approximate(reader, item, &settings->by_tanh);
    if (takes(node, TAKES_BIAS) && strcmp(key, "bias") == 0) {
        bool bias = true;
        const ring_status status = read_bool(reader, item, &bias);
        settings->no_bias = !bias;
        return status;
    }
    return lenient_fail(&reader->text, reader->at, RING_ERR_CONFIG, "%s takes no \"%.40s\"",
                        node->op->name, printable(item->string));
}

static ring_status read_setting(list_reader *reader, node_spec *node, cJSON *item)
{
    const char *key = item->string;
    op_settings *settings = &node->settings;
    const unsigned windows = TAKES_WINDOW | TAKES_POOL;
    if (strcmp(key, "type") == 0)
        return RING_OK;
    if (strcmp(key, "name") == 0)
        return read_name(reader, item, node->name, sizeof node->name);
    if (strcmp(key, "input") == 0)
        return read_input(reader, node, item);
    if (strcmp(key, "tie") == 0)
        return read_tie(reader, node, item);
    if (takes(node, TAKES_OUTPUTS) &&
        strcmp(key, takes(node, windows) ? "channels" : "features") == 0)
        return read_size(reader, item, 1, &settings->outputs);
    if (takes(node, windows) && strcmp(key, "kernel") == 0)
        return read_size(reader, item, 1, &settings->kernel);
    if (takes(node, windows) && strcmp(key, "stride") == 0)
        return read_size(reader, item, 1, &settings->stride);
    if (takes(node, windows) && strcmp(key, "padding") == 0)
        return read_size(reader, item, 0, &settings->padding);
    if (takes(node, TAKES_PROBABILITY) && strcmp(key, "probability") == 0)
        return read_probability(reader, item, &settings->probability);
    return read_text_setting(reader, node, item);
}

static ring_status finish_layer(const list_reader *reader, size_t at, node_spec *node)
{
    op_settings *settings = &node->settings;
    if (takes(node, TAKES_OUTPUTS) && settings->outputs == 0)
        return lenient_fail(&reader->text, at, RING_ERR_CONFIG, "%s needs \"%s\"", node->op->name,
                            takes(node, TAKES_WINDOW) ? "channels" : "features");
    if (takes(node, TAKES_WINDOW | TAKES_POOL) && settings->kernel == 0)
        return lenient_fail(&reader->text, at, RING_ERR_CONFIG, "%s needs \"kernel\"",
                            node->op->name);
    if (takes(node, TAKES_WORDS) && settings->words == 0)
        return lenient_fail(&reader->text, at, RING_ERR_CONFIG, "%s needs \"vocabulary\"",
                            node->op->name);
    if (takes(node, TAKES_HEADS) && settings->heads == 0)
        return lenient_fail(&reader->text, at, RING_ERR_CONFIG, "%s needs \"heads\"",
                            node->op->name);
    if (node->op->inputs > 1 && node->inputs[1] < MODEL_INPUT)
        return lenient_fail(&reader->text, at, RING_ERR_CONFIG,
                            "%s needs \"input\": [layer, layer]", node->op->name);
    if (settings->stride == 0 && takes(node, TAKES_WINDOW | TAKES_POOL))
        settings->stride = takes(node, TAKES_POOL) ? settings->kernel : 1;
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

/* Looked for before the other keys, which it decides. */
static ring_status find_type(const list_reader *reader, size_t at, const cJSON *object,
                             const nn_op **op)
{
    cJSON *type = cJSON_GetObjectItemCaseSensitive(object, "type");
    char types[CHOICES_MAX];
    list_types(reader->own, types);
    if (!cJSON_IsString(type))
        return lenient_fail(&reader->text, at, RING_ERR_CONFIG,
                            "a layer needs a \"type\": one of %s", types);
    *op = find_op(reader, type->valuestring);
    if (*op == NULL)
        return lenient_fail(&reader->text, at, RING_ERR_CONFIG,
                            "there is no layer of type \"%.40s\": write one of %s",
                            printable(type->valuestring), types);
    return RING_OK;
}

static ring_status check_name(const list_reader *reader, size_t at, const node_spec *node)
{
    if (find_layer(reader->spec, reader->spec->count - 1, node->name) == -2)
        return RING_OK;
    return lenient_fail(&reader->text, at, RING_ERR_CONFIG,
                        "another layer is called \"%s\" already", node->name);
}

static ring_status read_object(list_reader *reader, const cJSON *object)
{
    const nn_op *op = NULL;
    if (!cJSON_IsObject(object) || object->child == NULL)
        return fail_at(reader, reader->at, "each layer must be a section: {\"type\": …}");
    const size_t at = reader->text.keys[reader->next_key];
    RING_TRY(find_type(reader, at, object, &op));
    node_spec *node = model_spec_add(reader->spec, op,
                                     op == &op_dropout ? &(op_settings){.probability = 0.5} : NULL);
    if (node == NULL)
        return lenient_fail(&reader->text, at, RING_ERR_CONFIG, "more than %d layers", NODES_MAX);
    reader->layer_at[reader->spec->count - 1] = at;
    node->inputs[1] = MODEL_INPUT - 1; /* not given yet */
    for (cJSON *item = object->child; item != NULL; item = item->next) {
        RING_TRY(enter(reader, item));
        RING_TRY(read_setting(reader, node, item));
    }
    RING_TRY(check_name(reader, at, node));
    return finish_layer(reader, at, node);
}

/* ---- The file ------------------------------------------------------------------------------ */

static ring_status read_layers(list_reader *reader, const cJSON *list)
{
    if (!cJSON_IsArray(list) || list->child == NULL)
        return fail_at(reader, reader->at, "must be a list of layers: [ {\"type\": …}, … ]");
    const size_t count = (size_t)cJSON_GetArraySize(list);
    RING_TRY(train_alloc((void **)&reader->layer_at, count * sizeof *reader->layer_at, "layers"));
    for (const cJSON *object = list->child; object != NULL; object = object->next)
        RING_TRY(read_object(reader, object));
    return RING_OK;
}

static ring_status read_shape(list_reader *reader, const cJSON *list)
{
    op_shape *shape = &reader->spec->input;
    const int dims = cJSON_IsArray(list) ? cJSON_GetArraySize(list) : 0;
    if (dims != 1 && dims != 3)
        return fail_at(reader, reader->at, "must be [features] or [channels, rows, columns]");
    shape->dims = dims;
    for (int d = 0; d < dims; d++)
        RING_TRY(read_size(reader, cJSON_GetArrayItem(list, d), 1, &shape->dim[d]));
    return RING_OK;
}

static ring_status read_gpt_setting(const list_reader *reader, gpt_sizes *sizes, const cJSON *item)
{
    const char *key = item->string;
    if (strcmp(key, "n_layer") == 0)
        return read_size(reader, item, 1, &sizes->layers);
    if (strcmp(key, "n_head") == 0)
        return read_size(reader, item, 1, &sizes->heads);
    if (strcmp(key, "n_embd") == 0)
        return read_size(reader, item, 1, &sizes->width);
    if (strcmp(key, "block_size") == 0)
        return read_size(reader, item, 1, &sizes->tokens);
    if (strcmp(key, "vocab_size") == 0)
        return read_size(reader, item, 1, &sizes->words);
    if (strcmp(key, "dropout") == 0)
        return read_probability(reader, item, &sizes->dropout);
    if (strcmp(key, "attn_pdrop") == 0)
        return read_probability(reader, item, &sizes->attention_dropout);
    if (strcmp(key, "approximate") == 0)
        return read_approximate(reader, item, &sizes->by_tanh);
    if (strcmp(key, "tie_word_embeddings") == 0)
        return read_bool(reader, item, &sizes->tied);
    return lenient_fail(&reader->text, reader->at, RING_ERR_CONFIG, "gpt takes no \"%.40s\"",
                        printable(item->string));
}

static const char instead[] = "\"gpt\" stands in place of \"input\" and \"layers\"";

/* A GPT by its sizes, in place of input and layers. */
static ring_status read_gpt(list_reader *reader, const cJSON *object)
{
    gpt_sizes sizes = gpt_small;
    const size_t at = reader->at;
    if (!cJSON_IsObject(object))
        return fail_at(reader, at, "must be a section: {\"n_layer\": …}");
    if (reader->spec->input.dims != 0 || reader->spec->count != 0)
        return fail_at(reader, at, instead);
    for (const cJSON *item = object->child; item != NULL; item = item->next) {
        RING_TRY(enter(reader, item));
        RING_TRY(read_gpt_setting(reader, &sizes, item));
    }
    if (gpt_layers(&sizes) > NODES_MAX)
        return lenient_fail(&reader->text, at, RING_ERR_CONFIG, "more than %d layers", NODES_MAX);
    reader->is_gpt = true;
    RING_TRY(model_build_gpt(reader->spec, reader->spec->name, &sizes));
    RING_TRY(train_alloc((void **)&reader->layer_at,
                         (size_t)reader->spec->count * sizeof *reader->layer_at, "layers"));
    for (int n = 0; n < reader->spec->count; n++)
        reader->layer_at[n] = at;
    return RING_OK;
}

static ring_status read_member(list_reader *reader, cJSON *item)
{
    RING_TRY(enter(reader, item));
    if (strcmp(item->string, "name") == 0)
        return read_name(reader, item, reader->spec->name, sizeof reader->spec->name);
    if (strcmp(item->string, "gpt") == 0)
        return read_gpt(reader, item);
    if (reader->is_gpt)
        return fail_at(reader, reader->at, instead);
    if (strcmp(item->string, "input") == 0)
        return read_shape(reader, item);
    if (strcmp(item->string, "layers") == 0)
        return read_layers(reader, item);
    return lenient_fail(&reader->text, reader->at, RING_ERR_CONFIG,
                        "unknown key \"%.40s\": write name, input and layers, or name and gpt",
                        printable(item->string));
}

/* Shapes are checked last; the message names the layer, its place is looked up here. */
static ring_status check_shapes(const list_reader *reader)
{
    int failed = 0;
    const ring_status status = model_check(reader->spec, &failed);
    if (status != RING_ERR_CONFIG)
        return status;
    char cause[TRAIN_ERROR_MAX];
    snprintf(cause, sizeof cause, "%s", train_error());
    return fail_at(reader, reader->layer_at[failed], cause);
}

static ring_status read_tree(list_reader *reader, const cJSON *tree)
{
    if (!cJSON_IsObject(tree))
        return fail_at(reader, 0, "the file must hold one object: { … }");
    for (cJSON *item = tree->child; item != NULL; item = item->next)
        RING_TRY(read_member(reader, item));
    if (reader->spec->input.dims == 0)
        return fail_at(reader, 0, "no \"input\"; add \"input\": [1, 28, 28]");
    if (reader->spec->count == 0)
        return fail_at(reader, 0, "no \"layers\"; add \"layers\": [ … ]");
    return check_shapes(reader);
}

static ring_status read_text(list_reader *reader, const char *name, const char *text, size_t length)
{
    const char *end = NULL;
    RING_TRY(lenient_read(&reader->text, name, text, length, &reader->faults));
    RING_TRY(faults_tell(&reader->faults, name));
    cJSON *tree = cJSON_ParseWithOpts(reader->text.json, &end, 1);
    if (tree == NULL)
        return lenient_syntax_error(&reader->text, (size_t)(end - reader->text.json));
    const ring_status status = read_tree(reader, tree);
    cJSON_Delete(tree);
    return status;
}

ring_status layer_list_parse_own(model_spec *spec, const nn_op *const *own, const char *name,
                                 const char *text, size_t length)
{
    list_reader reader = {.spec = spec, .own = own};
    model_spec_start(spec, name, (op_shape){0});
    const ring_status status = read_text(&reader, name, text, length);
    lenient_free(&reader.text);
    free(reader.layer_at);
    return status;
}

ring_status layer_list_parse(model_spec *spec, const char *name, const char *text, size_t length)
{
    static const nn_op *const none[] = {NULL};
    return layer_list_parse_own(spec, none, name, text, length);
}

ring_status layer_list_read(model_spec *spec, const char *path)
{
    char *text;
    size_t length;
    *spec = (model_spec){0};
    ring_status status = text_file_read(path, FILE_BYTES_MAX, "a list of layers", &text, &length);
    if (status == RING_OK)
        status = layer_list_parse(spec, path, text, length);
    free(text);
    return status;
}

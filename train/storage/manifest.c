/* SPDX-License-Identifier: Apache-2.0
 * Converts a manifest to and from JSON with cJSON, and checks the hash in the last line. */
#include "manifest.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "durable.h"
#include "errors.h"
#include "numbers.h"
#include "text_file.h"

enum { MANIFEST_BYTES_MAX = 16 << 20, HASH_DIGITS = 16 };

#define FORMAT "ringtrain checkpoint"
#define TRAILER_START ",\n\t\"hash\":\t\""
#define TRAILER_END "\"\n}\n"
#define WHOLE_MAX 9007199254740992.0 /* a double can represent each whole number up to this one */

/* Limit of numbers of the engine's state, which are finite. */
#define NUMBER_MAX 1e300

enum { TRAILER_BYTES = sizeof TRAILER_START - 1 + HASH_DIGITS + sizeof TRAILER_END - 1 };

/* ---- Writing ------------------------------------------------------------------------------- */

static void add_hash(cJSON *object, const char *name, uint64_t hash)
{
    char text[HASH_DIGITS + 1];
    snprintf(text, sizeof text, "%016" PRIx64, hash);
    cJSON_AddStringToObject(object, name, text);
}

static void add_state(cJSON *tree, const checkpoint_manifest *manifest)
{
    cJSON *numbers = cJSON_AddObjectToObject(tree, "numbers");
    for (int i = 0; i < manifest->number_count; i++)
        cJSON_AddNumberToObject(numbers, manifest->numbers[i].name, manifest->numbers[i].value);
    cJSON *states = cJSON_AddArrayToObject(tree, "states");
    for (int i = 0; i < manifest->state_count; i++)
        cJSON_AddItemToArray(states, cJSON_CreateString(manifest->states[i]));
}

static void add_tensors(cJSON *tree, const checkpoint_manifest *manifest)
{
    cJSON *list = cJSON_AddArrayToObject(tree, "tensors");
    for (int t = 0; t < manifest->tensor_count; t++) {
        const manifest_tensor *tensor = &manifest->tensors[t];
        cJSON *item = cJSON_CreateObject();
        cJSON_AddItemToArray(list, item);
        cJSON_AddStringToObject(item, "name", tensor->name);
        cJSON *shape = cJSON_AddArrayToObject(item, "shape");
        for (int d = 0; d < tensor->dims; d++)
            cJSON_AddItemToArray(shape, cJSON_CreateNumber((double)tensor->shape[d]));
        if (tensor->order.parts > 1) {
            cJSON_AddNumberToObject(item, "parts", (double)tensor->order.parts);
            cJSON_AddNumberToObject(item, "blocks", (double)tensor->order.blocks);
        }
    }
}

static void add_shards(cJSON *tree, const checkpoint_manifest *manifest)
{
    cJSON *list = cJSON_AddArrayToObject(tree, "shards");
    for (int s = 0; s < manifest->shard_count; s++) {
        cJSON *item = cJSON_CreateObject();
        cJSON_AddItemToArray(list, item);
        cJSON_AddNumberToObject(item, "bytes", (double)manifest->shards[s].bytes);
        add_hash(item, "hash", manifest->shards[s].hash);
    }
}

static void add_settings(cJSON *tree, const char *settings)
{
    cJSON *list = cJSON_AddArrayToObject(tree, "settings");
    for (const char *line = settings; line != NULL && *line != '\0';) {
        const size_t length = strcspn(line, "\n");
        char *copy = strndup(line, length);
        cJSON_AddItemToArray(list, cJSON_CreateString(copy != NULL ? copy : ""));
        free(copy);
        line += length + (line[length] == '\n');
    }
}

static char *print_tree(const checkpoint_manifest *manifest)
{
    const run_place *place = &manifest->place;
    const run_identity *identity = &manifest->identity;
    cJSON *tree = cJSON_CreateObject();
    cJSON_AddStringToObject(tree, "format", FORMAT);
    NUMBERS_AS_IN_C;
    cJSON_AddNumberToObject(tree, "version", MANIFEST_VERSION);
    cJSON_AddNumberToObject(tree, "step", (double)place->step);
    cJSON_AddNumberToObject(tree, "epoch", place->epoch);
    cJSON_AddNumberToObject(tree, "samples_taken", (double)place->taken);
    cJSON_AddBoolToObject(tree, "epoch_over", place->epoch_over);
    cJSON_AddNumberToObject(tree, "micro_batches", (double)place->micro_batches);
    cJSON_AddStringToObject(tree, "model", identity->model);
    add_hash(tree, "model_hash", identity->model_hash);
    add_hash(tree, "data_hash", identity->data_hash);
    cJSON_AddNumberToObject(tree, "seed", (double)identity->seed);
    cJSON_AddNumberToObject(tree, "zero_stage", manifest->stage);
    add_state(tree, manifest);
    add_tensors(tree, manifest);
    add_shards(tree, manifest);
    add_settings(tree, manifest->settings);
    char *text = cJSON_Print(tree);
    cJSON_Delete(tree);
    return text;
}

ring_status manifest_write(const checkpoint_manifest *manifest, char **text, size_t *length)
{
    char *json = print_tree(manifest);
    const size_t body = json != NULL ? strlen(json) - strlen("\n}") : 0;
    *text = json != NULL ? malloc(body + TRAILER_BYTES + 1) : NULL;
    if (*text != NULL) {
        memcpy(*text, json, body);
        *length = body + (size_t)sprintf(*text + body, TRAILER_START "%016" PRIx64 TRAILER_END,
                                         durable_hash(json, body));
    }
    cJSON_free(json);
    return *text != NULL ? RING_OK : train_fail(RING_ERR_MEMORY, "no memory for a manifest");
}

/* ---- Reading ------------------------------------------------------------------------------- */

static const cJSON *member(const cJSON *object, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(object, name);
}

static bool read_whole(const cJSON *object, const char *name, double most, double *value)
{
    const cJSON *item = member(object, name);
    *value = cJSON_IsNumber(item) ? item->valuedouble : -1.0;
    return *value >= 0.0 && *value <= most && *value == floor(*value);
}

static bool read_u64(const cJSON *object, const char *name, uint64_t *value)
{
    double number;
    const bool good = read_whole(object, name, WHOLE_MAX, &number);
    *value = good ? (uint64_t)number : 0;
    return good;
}

static bool read_int(const cJSON *object, const char *name, int *value)
{
    double number;
    const bool good = read_whole(object, name, INT32_MAX, &number);
    *value = good ? (int)number : 0;
    return good;
}

/* Copies a text, and replaces characters that are not printable, because messages quote it. */
static bool copy_text(const cJSON *item, char *to, size_t room)
{
    if (!cJSON_IsString(item) || strlen(item->valuestring) >= room)
        return false;
    memcpy(to, item->valuestring, strlen(item->valuestring) + 1);
    for (; *to != '\0'; to++)
        *to = *to < ' ' || *to > '~' ? '?' : *to;
    return true;
}

/* Copies a name, which must be printable: names are compared, and quoted in messages. */
static bool copy_name(const cJSON *item, char *to, size_t room)
{
    const char *from = cJSON_IsString(item) ? item->valuestring : "";
    const size_t length = strlen(from);
    if (length == 0 || length >= room)
        return false;
    for (size_t i = 0; i < length; i++) {
        if ((unsigned char)from[i] < ' ' || (unsigned char)from[i] > '~')
            return false;
    }
    memcpy(to, from, length + 1);
    return true;
}

static bool parse_hash(const char *text, uint64_t *hash)
{
    *hash = 0;
    for (int i = 0; i < HASH_DIGITS; i++) {
        const char *digits = "0123456789abcdef";
        const char *digit = text[i] != '\0' ? strchr(digits, text[i]) : NULL;
        if (digit == NULL)
            return false;
        *hash = *hash << 4 | (uint64_t)(digit - digits);
    }
    return true;
}

static bool read_hash(const cJSON *object, const char *name, uint64_t *hash)
{
    const cJSON *item = member(object, name);
    return cJSON_IsString(item) && strlen(item->valuestring) == HASH_DIGITS &&
           parse_hash(item->valuestring, hash);
}

static bool read_place(const cJSON *tree, run_place *place)
{
    uint64_t step, micro_batches;
    const cJSON *over = member(tree, "epoch_over");
    if (!read_u64(tree, "step", &step) || !read_int(tree, "epoch", &place->epoch) ||
        !read_u64(tree, "samples_taken", &place->taken) || !cJSON_IsBool(over) ||
        !read_u64(tree, "micro_batches", &micro_batches))
        return false;
    place->step = (long)step;
    place->micro_batches = (long)micro_batches;
    place->epoch_over = cJSON_IsTrue(over);
    return place->epoch >= 1;
}

static bool read_identity(const cJSON *tree, run_identity *identity)
{
    return copy_text(member(tree, "model"), identity->model, sizeof identity->model) &&
           read_hash(tree, "model_hash", &identity->model_hash) &&
           read_hash(tree, "data_hash", &identity->data_hash) &&
           read_u64(tree, "seed", &identity->seed);
}

static bool read_numbers(const cJSON *object, checkpoint_manifest *manifest)
{
    const cJSON *item;
    if (!cJSON_IsObject(object))
        return false;
    cJSON_ArrayForEach(item, object)
    {
        if (manifest->number_count == MANIFEST_NUMBERS_MAX || item->string == NULL ||
            strlen(item->string) >= MANIFEST_NAME_MAX || !cJSON_IsNumber(item) ||
            !(fabs(item->valuedouble) <= NUMBER_MAX))
            return false;
        manifest_number *number = &manifest->numbers[manifest->number_count++];
        memcpy(number->name, item->string, strlen(item->string) + 1);
        number->value = item->valuedouble;
    }
    return true;
}

static bool read_states(const cJSON *list, checkpoint_manifest *manifest)
{
    const cJSON *item;
    if (!cJSON_IsArray(list))
        return false;
    cJSON_ArrayForEach(item, list)
    {
        if (manifest->state_count == MANIFEST_STATES_MAX ||
            !copy_name(item, manifest->states[manifest->state_count], MANIFEST_NAME_MAX))
            return false;
        manifest->state_count++;
    }
    return manifest->state_count > 0;
}

/* Reads the order of a tensor of @p count elements. Blocks and parts must have equal sizes. */
static bool read_order(const cJSON *item, size_t count, tensor_order *order)
{
    uint64_t parts, blocks;
    *order = tensor_order_whole(count);
    if (member(item, "parts") == NULL && member(item, "blocks") == NULL)
        return true;
    if (!read_u64(item, "parts", &parts) || !read_u64(item, "blocks", &blocks) || parts < 2 ||
        blocks < 1 || count % blocks != 0 || count / blocks % parts != 0)
        return false;
    order->parts = (size_t)parts;
    order->blocks = (size_t)blocks;
    return true;
}

static bool read_tensor(const cJSON *item, manifest_tensor *tensor)
{
    const cJSON *shape = member(item, "shape"), *size;
    if (!copy_name(member(item, "name"), tensor->name, sizeof tensor->name) ||
        !cJSON_IsArray(shape) || cJSON_GetArraySize(shape) > TENSOR_DIMS_MAX)
        return false;
    size_t count = 1;
    cJSON_ArrayForEach(size, shape)
    {
        const double value = cJSON_IsNumber(size) ? size->valuedouble : 0.0;
        if (!(value >= 1.0 && value <= WHOLE_MAX) || value != floor(value) ||
            __builtin_mul_overflow(count, (size_t)value, &count) || count > SIZE_MAX / 8)
            return false;
        tensor->shape[tensor->dims++] = (size_t)value;
    }
    return read_order(item, count, &tensor->order);
}

/* Allocates one struct of @p size bytes for each item of @p list. @return false: there are no
 * items, or there is no memory. */
static bool make_room(const cJSON *list, void **out, size_t size)
{
    const int count = cJSON_IsArray(list) ? cJSON_GetArraySize(list) : 0;
    *out = count > 0 ? calloc((size_t)count, size) : NULL;
    return *out != NULL;
}

static bool read_tensors(const cJSON *list, checkpoint_manifest *manifest)
{
    const cJSON *item;
    if (!make_room(list, (void **)&manifest->tensors, sizeof *manifest->tensors))
        return false;
    cJSON_ArrayForEach(item, list)
    {
        if (!read_tensor(item, &manifest->tensors[manifest->tensor_count]))
            return false;
        manifest->tensor_count++;
    }
    return true;
}

static bool read_shards(const cJSON *list, checkpoint_manifest *manifest)
{
    const cJSON *item;
    if (!make_room(list, (void **)&manifest->shards, sizeof *manifest->shards))
        return false;
    cJSON_ArrayForEach(item, list)
    {
        manifest_shard *shard = &manifest->shards[manifest->shard_count++];
        if (!read_u64(item, "bytes", &shard->bytes) || !read_hash(item, "hash", &shard->hash))
            return false;
    }
    return true;
}

static bool read_settings(const cJSON *list, char **settings)
{
    const cJSON *item;
    size_t length = 0;
    FILE *out = cJSON_IsArray(list) ? open_memstream(settings, &length) : NULL;
    bool good = out != NULL;
    cJSON_ArrayForEach(item, list)
    {
        char line[4096];
        good = good && copy_text(item, line, sizeof line) && fprintf(out, "%s\n", line) > 0;
    }
    return out != NULL && fclose(out) == 0 && good;
}

static ring_status refuse(const char *path, const char *why)
{
    return train_fail(RING_ERR_SYSTEM, "%s: %s; the file is damaged or is not a manifest", path,
                      why);
}

static ring_status check_version(const cJSON *tree, const char *path)
{
    int version;
    const cJSON *format = member(tree, "format");
    if (!cJSON_IsString(format) || strcmp(format->valuestring, FORMAT) != 0 ||
        !read_int(tree, "version", &version))
        return refuse(path, "its format or version is missing");
    if (version < MANIFEST_VERSION_OLDEST || version > MANIFEST_VERSION)
        return train_fail(
            RING_ERR_UNSUPPORTED,
            "%s: the format has version %d, but this ringtrain reads versions %d to %d; "
            "use the ringtrain that wrote the checkpoint",
            path, version, MANIFEST_VERSION_OLDEST, MANIFEST_VERSION);
    return RING_OK;
}

static ring_status read_tree(checkpoint_manifest *manifest, const char *path, const cJSON *tree)
{
    RING_TRY(check_version(tree, path));
    if (read_place(tree, &manifest->place) && read_identity(tree, &manifest->identity) &&
        read_int(tree, "zero_stage", &manifest->stage) &&
        read_numbers(member(tree, "numbers"), manifest) &&
        read_states(member(tree, "states"), manifest) &&
        read_tensors(member(tree, "tensors"), manifest) &&
        read_shards(member(tree, "shards"), manifest) &&
        read_settings(member(tree, "settings"), &manifest->settings))
        return RING_OK;
    return refuse(path, "a value is missing or invalid");
}

/* @return true if the last line has the hash of all bytes before it. */
static bool is_whole(const char *text, size_t length)
{
    uint64_t hash;
    if (length < TRAILER_BYTES)
        return false;
    const char *trailer = text + length - TRAILER_BYTES;
    const char *digits = trailer + strlen(TRAILER_START), *end = digits + HASH_DIGITS;
    return memcmp(trailer, TRAILER_START, strlen(TRAILER_START)) == 0 &&
           memcmp(end, TRAILER_END, strlen(TRAILER_END)) == 0 && parse_hash(digits, &hash) &&
           hash == durable_hash(text, (size_t)(trailer - text));
}

ring_status manifest_parse(checkpoint_manifest *manifest, const char *path, const char *text,
                           size_t length)
{
    NUMBERS_AS_IN_C;
    *manifest = (checkpoint_manifest){0};
    if (!is_whole(text, length))
        return refuse(path, "its contents do not match the hash in its last line");
    cJSON *tree = cJSON_ParseWithLength(text, length);
    const ring_status status = tree != NULL ? read_tree(manifest, path, tree)
                                            : refuse(path, "it is not JSON");
    cJSON_Delete(tree);
    return status;
}

ring_status manifest_read(checkpoint_manifest *manifest, const char *path)
{
    char *text = NULL;
    size_t length = 0;
    *manifest = (checkpoint_manifest){0};
    ring_status status = text_file_read(path, MANIFEST_BYTES_MAX, "a manifest", &text, &length);
    if (status == RING_ERR_CONFIG)
        status = RING_ERR_SYSTEM; /* the file is too long, so it is damaged */
    if (status == RING_OK)
        status = manifest_parse(manifest, path, text, length);
    free(text);
    return status;
}

void manifest_free(checkpoint_manifest *manifest)
{
    free(manifest->tensors);
    free(manifest->shards);
    free(manifest->settings);
    *manifest = (checkpoint_manifest){0};
}

const manifest_tensor *manifest_find(const checkpoint_manifest *manifest, const char *name)
{
    for (int t = 0; t < manifest->tensor_count; t++) {
        if (strcmp(manifest->tensors[t].name, name) == 0)
            return &manifest->tensors[t];
    }
    return NULL;
}

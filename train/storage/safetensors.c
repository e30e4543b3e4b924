/* SPDX-License-Identifier: Apache-2.0
 * Writes the header as text, and reads it with cJSON. Each number in a header is checked before it
 * is used. */
#include "safetensors.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "errors.h"
#include "numbers.h"

enum {
    LENGTH_BYTES = 8,
    HEADER_MAX = 100 << 20, /* the limit of Hugging Face's library */
    ENTRY_TEXT_MAX = SAFETENSORS_NAME_MAX + 64 + (SAFETENSORS_DIMS_MAX + 2) * 21
};
#define METADATA "__metadata__"
#define START "{\"" METADATA "\":{\"format\":\"pt\"}"
#define WHOLE_MAX 9007199254740992.0 /* a double can represent each whole number up to this one */

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the file is little-endian");

static const struct {
    const char *name;
    ring_dtype type;
    size_t size;
} types[] = {{"F32", RING_FLOAT32, 4}, {"F16", RING_FLOAT16, 2}, {"BF16", RING_BFLOAT16, 2}};

enum { TYPES = sizeof types / sizeof *types };

static const char *type_name(ring_dtype type)
{
    size_t i = 0;
    while (i + 1 < TYPES && types[i].type != type)
        i++;
    return types[i].name;
}

size_t safetensors_size(ring_dtype type)
{
    for (size_t i = 0; i < TYPES; i++) {
        if (types[i].type == type)
            return types[i].size;
    }
    return 0;
}

/* ---- Writing ------------------------------------------------------------------------------- */

/* Writes the entry "name":{…} of the header to @p text, which has ENTRY_TEXT_MAX bytes.
 * @param at  offset of the tensor in the data. @return the length of the text. */
static size_t describe(const safetensors_entry *entry, size_t at, char *text)
{
    int used = sprintf(text, ",\"%s\":{\"dtype\":\"%s\",\"shape\":[", entry->name,
                       type_name(entry->type));
    for (int d = 0; d < entry->dims; d++)
        used += sprintf(text + used, "%s%zu", d > 0 ? "," : "", entry->shape[d]);
    used += sprintf(text + used, "],\"data_offsets\":[%zu,%zu]}", at,
                    at + entry->count * safetensors_size(entry->type));
    return (size_t)used;
}

/* @return the length of the JSON: a multiple of 8, so that the data are aligned. */
static size_t write_json(safetensors_entry *entries, int count, char *json)
{
    size_t used = (size_t)sprintf(json, "%s", START), at = 0;
    for (int i = 0; i < count; i++) {
        entries[i].count = 1;
        for (int d = 0; d < entries[i].dims; d++)
            entries[i].count *= entries[i].shape[d];
        entries[i].at = at;
        used += describe(&entries[i], at, json + used);
        at += entries[i].count * safetensors_size(entries[i].type);
    }
    json[used++] = '}';
    while (used % LENGTH_BYTES != 0)
        json[used++] = ' ';
    return used;
}

ring_status safetensors_head(safetensors_entry *entries, int count, char **head, size_t *bytes)
{
    const size_t room = LENGTH_BYTES + sizeof START + LENGTH_BYTES;
    RING_TRY(train_alloc((void **)head, room + (size_t)count * ENTRY_TEXT_MAX, "a file's header"));
    const uint64_t length = write_json(entries, count, *head + LENGTH_BYTES);
    memcpy(*head, &length, sizeof length);
    *bytes = LENGTH_BYTES + length;
    for (int i = 0; i < count; i++)
        entries[i].at += *bytes;
    return RING_OK;
}

/* ---- Reading ------------------------------------------------------------------------------- */

/* A file that is being read. */
typedef struct reader {
    const char *path;
    size_t data_at, data_bytes; /* offset and size of the data in the file */
    safetensors_entry *entries;
    int count;
} reader;

static ring_status refuse(const reader *in, const char *why)
{
    return train_fail(RING_ERR_SYSTEM, "%s: %s; the file is damaged or is not a safetensors file",
                      in->path, why);
}

static bool to_size(const cJSON *item, size_t *size)
{
    const double value = cJSON_IsNumber(item) ? item->valuedouble : -1.0;
    if (!(value >= 0.0 && value <= WHOLE_MAX) || value != floor(value))
        return false;
    *size = (size_t)value;
    return true;
}

/* Copies a name, which must be printable: names are compared, and quoted in messages. */
static bool copy_name(const char *from, char *to)
{
    const size_t length = strlen(from);
    if (length == 0 || length >= SAFETENSORS_NAME_MAX)
        return false;
    for (size_t i = 0; i < length; i++) {
        if ((unsigned char)from[i] < ' ' || (unsigned char)from[i] > '~' ||
            strchr("\"\\", from[i]) != NULL)
            return false;
    }
    memcpy(to, from, length + 1);
    return true;
}

static bool read_type(const cJSON *item, ring_dtype *type)
{
    const char *name = cJSON_IsString(item) ? item->valuestring : "";
    for (size_t i = 0; i < TYPES; i++) {
        if (strcmp(types[i].name, name) == 0) {
            *type = types[i].type;
            return true;
        }
    }
    return false;
}

static bool read_shape(const cJSON *list, safetensors_entry *entry)
{
    const cJSON *item;
    if (!cJSON_IsArray(list))
        return false;
    entry->count = 1;
    cJSON_ArrayForEach(item, list)
    {
        size_t size;
        if (entry->dims == SAFETENSORS_DIMS_MAX || !to_size(item, &size) ||
            __builtin_mul_overflow(entry->count, size, &entry->count))
            return false;
        entry->shape[entry->dims++] = size;
    }
    return true;
}

/* Reads the offsets of a tensor. Sets entry->at relative to the start of the data. */
static bool read_place(const cJSON *list, const reader *in, safetensors_entry *entry)
{
    size_t end, bytes;
    return cJSON_IsArray(list) && cJSON_GetArraySize(list) == 2 &&
           to_size(cJSON_GetArrayItem(list, 0), &entry->at) &&
           to_size(cJSON_GetArrayItem(list, 1), &end) &&
           !__builtin_mul_overflow(entry->count, safetensors_size(entry->type), &bytes) &&
           entry->at <= end && end - entry->at == bytes && end <= in->data_bytes;
}

static const cJSON *member(const cJSON *object, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(object, name);
}

static ring_status read_entry(reader *in, const cJSON *item)
{
    safetensors_entry *entry = &in->entries[in->count];
    *entry = (safetensors_entry){0};
    if (!copy_name(item->string, entry->name))
        return refuse(in, "a tensor's name is empty, too long or not printable");
    if (!cJSON_IsObject(item) || cJSON_GetArraySize(item) != 3)
        return refuse(in, "a tensor does not have exactly dtype, shape and data_offsets");
    if (!read_type(member(item, "dtype"), &entry->type))
        return refuse(in, "the dtype of a tensor is not F32, F16 or BF16");
    if (!read_shape(member(item, "shape"), entry))
        return refuse(in, "the shape of a tensor is invalid");
    if (!read_place(member(item, "data_offsets"), in, entry))
        return refuse(in, "the data_offsets of a tensor are invalid");
    in->count++;
    return RING_OK;
}

static int by_place(const void *a, const void *b)
{
    const safetensors_entry *first = a, *second = b;
    if (first->at != second->at)
        return first->at < second->at ? -1 : 1;
    return (first->count > second->count) - (first->count < second->count);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const safetensors_entry *)a)->name, ((const safetensors_entry *)b)->name);
}

/* Sorts the entries by offset, checks that their data are contiguous, and makes the offsets
 * relative to the start of the file. */
static ring_status check_places(const reader *in)
{
    size_t end = 0;
    qsort(in->entries, (size_t)in->count, sizeof *in->entries, by_place);
    for (int i = 0; i < in->count; i++) {
        safetensors_entry *entry = &in->entries[i];
        if (entry->at != end)
            return refuse(in, "its tensors overlap or leave a gap");
        end += entry->count * safetensors_size(entry->type);
        entry->at += in->data_at;
    }
    return end == in->data_bytes ? RING_OK : refuse(in, "some of its bytes belong to no tensor");
}

static ring_status read_tree(reader *in, const cJSON *tree)
{
    const cJSON *item;
    if (!cJSON_IsObject(tree))
        return refuse(in, "its header is not a JSON object");
    RING_TRY(train_alloc((void **)&in->entries,
                         ((size_t)cJSON_GetArraySize(tree) + 1) * sizeof *in->entries,
                         "the list of tensors"));
    cJSON_ArrayForEach(item, tree)
    {
        if (strcmp(item->string, METADATA) != 0)
            RING_TRY(read_entry(in, item));
    }
    qsort(in->entries, (size_t)in->count, sizeof *in->entries, by_name);
    for (int i = 0; i + 1 < in->count; i++) {
        if (by_name(&in->entries[i], &in->entries[i + 1]) == 0)
            return refuse(in, "two of its tensors have the same name");
    }
    return check_places(in);
}

static ring_status parse(reader *in, const char *json, size_t length)
{
    NUMBERS_AS_IN_C;
    const char *end = NULL;
    cJSON *tree = json[0] == '{' ? cJSON_ParseWithLengthOpts(json, length, &end, 0) : NULL;
    while (tree != NULL && end < json + length && *end == ' ')
        end++;
    ring_status status = RING_OK;
    if (tree == NULL || end != json + length)
        status = refuse(in, "its header is not JSON");
    else
        status = read_tree(in, tree);
    cJSON_Delete(tree);
    return status;
}

static ring_status read_exactly(const reader *in, int fd, void *to, size_t bytes, off_t at)
{
    for (size_t done = 0; done < bytes;) {
        const ssize_t got = pread(fd, (char *)to + done, bytes - done, at + (off_t)done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return train_fail(RING_ERR_SYSTEM, "%s: %s", in->path, strerror(errno));
        if (got == 0)
            return refuse(in, "it ends too early");
        done += (size_t)got;
    }
    return RING_OK;
}

static ring_status read_length(reader *in, int fd, uint64_t *length)
{
    struct stat info;
    if (fstat(fd, &info) != 0)
        return train_fail(RING_ERR_SYSTEM, "%s: %s", in->path, strerror(errno));
    RING_TRY(read_exactly(in, fd, length, sizeof *length, 0));
    if (*length < 2 || *length > HEADER_MAX || *length > (uint64_t)info.st_size - LENGTH_BYTES)
        return refuse(in, "the length of its header is invalid");
    in->data_at = LENGTH_BYTES + (size_t)*length;
    in->data_bytes = (size_t)info.st_size - in->data_at;
    return RING_OK;
}

static ring_status read_header(reader *in, int fd)
{
    uint64_t length;
    char *json;
    RING_TRY(read_length(in, fd, &length));
    RING_TRY(train_alloc((void **)&json, (size_t)length + 1, "a file's header"));
    ring_status status = read_exactly(in, fd, json, (size_t)length, LENGTH_BYTES);
    if (status == RING_OK)
        status = parse(in, json, (size_t)length);
    free(json);
    return status;
}

ring_status safetensors_read(const char *path, int fd, safetensors_entry **entries, int *count)
{
    reader in = {.path = path};
    const ring_status status = read_header(&in, fd);
    if (status != RING_OK)
        free(in.entries);
    *entries = status == RING_OK ? in.entries : NULL;
    *count = status == RING_OK ? in.count : 0;
    return status;
}

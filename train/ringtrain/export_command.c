/* SPDX-License-Identifier: Apache-2.0
 * Writes the tensors of a checkpoint one after the other, in blocks, so that memory use does not
 * depend on the size of the model. */
#include "export_command.h"

#include <errno.h>
#include <kernels.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "checkpoint.h"
#include "engine_state.h"
#include "errors.h"
#include "output.h"
#include "shard.h"

enum { BLOCK = 1 << 16 /* elements */ };

typedef struct export_options {
    const char *checkpoint, *out;
    int type; /* index in type_names */
} export_options;

/* The values of --dtype, and their types in the same order. */
static const char *const type_names[] = {"f32", "bf16", "f16", NULL};
static const ring_dtype types[] = {RING_FLOAT32, RING_BFLOAT16, RING_FLOAT16};

#define AT(member) ARGS_AT(export_options, member)
static const args_row rows[] = {
    {"out", 0, "FILE", "Safetensors file to write", args_text, AT(out)},
    {"dtype", 0, "f32|bf16|f16", "Type of the numbers in the file (default f32)", args_name,
     AT(type), .names = type_names},
    {0},
};

static int take_word(char **words, int count, void *out)
{
    export_options *options = out;
    (void)count;
    if (options->checkpoint != NULL)
        args_fail("unexpected argument \"%s\"; give only one checkpoint", words[0]);
    options->checkpoint = words[0];
    return 1;
}

/* ---- The file ------------------------------------------------------------------------------ */

static ring_status write_fail(const output_file *file)
{
    return train_fail(RING_ERR_SYSTEM, "--out %s: %s", file->path, strerror(errno));
}

static bool write_block(FILE *stream, ring_dtype type, const float *values, size_t count)
{
    static uint16_t cast[BLOCK];
    if (type == RING_FLOAT32)
        return fwrite(values, sizeof *values, count, stream) == count;
    if (type == RING_FLOAT16)
        kernel_f32_to_f16(cast, values, count);
    else
        kernel_f32_to_bf16(cast, values, count);
    return fwrite(cast, sizeof *cast, count, stream) == count;
}

static ring_status write_tensor(output_file *file, const safetensors_entry *entry,
                                const tensor_order *order, stored_tensors *stored)
{
    static float block[BLOCK];
    char name[STORED_NAME_MAX];
    shard_tensor_name(STATE_PARAM, entry->name, name);
    if (stored_count(stored, name) != entry->count)
        return train_fail(
            RING_ERR_SYSTEM,
            "%s: the number of stored elements differs from the number in the manifest", name);
    for (size_t done = 0; done < entry->count;) {
        const size_t left = entry->count - done, now = left < BLOCK ? left : BLOCK;
        RING_TRY(stored_read(stored, name, order, done, now, block));
        if (!write_block(file->stream, entry->type, block, now))
            return write_fail(file);
        done += now;
    }
    return RING_OK;
}

static ring_status write_file(output_file *file, safetensors_entry *entries,
                              const checkpoint_manifest *manifest, stored_tensors *stored)
{
    char *head;
    size_t bytes;
    RING_TRY(safetensors_head(entries, manifest->tensor_count, &head, &bytes));
    const bool written = fwrite(head, bytes, 1, file->stream) == 1;
    free(head);
    if (!written)
        return write_fail(file);
    for (int i = 0; i < manifest->tensor_count; i++)
        RING_TRY(write_tensor(file, &entries[i], &manifest->tensors[i].order, stored));
    return output_finish(file) ? RING_OK : write_fail(file);
}

/* ---- The command --------------------------------------------------------------------------- */

static void fill_entries(const checkpoint_manifest *manifest, ring_dtype type,
                         safetensors_entry *entries)
{
    for (int t = 0; t < manifest->tensor_count; t++) {
        const manifest_tensor *tensor = &manifest->tensors[t];
        safetensors_entry *entry = &entries[t];
        entry->type = type;
        entry->dims = tensor->dims;
        memcpy(entry->name, tensor->name, sizeof tensor->name);
        memcpy(entry->shape, tensor->shape, sizeof tensor->shape);
    }
}

static ring_status export_manifest(const export_options *options,
                                   const checkpoint_manifest *manifest, stored_tensors *stored)
{
    output_file file = {0};
    safetensors_entry *entries;
    RING_TRY(train_alloc((void **)&entries, (size_t)manifest->tensor_count * sizeof *entries,
                         "the list of tensors"));
    fill_entries(manifest, types[options->type], entries);
    ring_status status = RING_OK;
    if (output_begin(&file, options->out))
        status = write_file(&file, entries, manifest, stored);
    else
        status = train_fail(RING_ERR_SYSTEM, "--out %s: %s", options->out, strerror(errno));
    output_discard(&file);
    free(entries);
    return status;
}

static void print_note(void *context, const char *text)
{
    (void)context;
    printf("NOTE %s\n", text);
}

static ring_status run_export(const export_options *options, checkpoint_manifest *manifest,
                              stored_tensors *stored)
{
    char found[STORED_PATH_MAX];
    RING_TRY(checkpoint_find(options->checkpoint, manifest, print_note, NULL, found));
    RING_TRY(shards_open(found, manifest->shard_count, stored));
    RING_TRY(export_manifest(options, manifest, stored));
    printf("%s: %d tensor%s of %s at update %ld, in %s\n", options->out, manifest->tensor_count,
           plural(manifest->tensor_count), found, manifest->place.step, type_names[options->type]);
    return RING_OK;
}

int export_command(int argc, char **argv)
{
    static const args_program program = {
        "ringtrain export", rows, "CHECKPOINT",
        "Writes the parameters of a checkpoint, or of the newest complete checkpoint in a folder, "
        "to "
        "one safetensors file, with the names of torch.nn.Sequential: ringtrain export DIR --out "
        "FILE"
        "\vExit status: 0 written, 1 failed, 2 wrong use.",
        .take = take_word};
    export_options options = {0};
    checkpoint_manifest manifest = {0};
    stored_tensors stored = {.fd = -1};
    args_parse(&program, argc, argv, &options);
    if (options.checkpoint == NULL || options.out == NULL)
        args_fail("a checkpoint or --out is missing; write ringtrain export CHECKPOINT --out FILE");
    const ring_status status = run_export(&options, &manifest, &stored);
    if (status != RING_OK)
        fprintf(stderr, "ringtrain: %s\n", train_error());
    stored_free(&stored);
    manifest_free(&manifest);
    return status == RING_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}

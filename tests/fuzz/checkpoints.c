/* SPDX-License-Identifier: Apache-2.0
 * ringtrain's checkpoints: manifests, and safetensors files of whole tensors and of ranges. */
#include "give.h"

#include "durable.h"
#include "manifest.h"
#include "stored.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* From errors.h, whose RING_TRY is that of base.h. */
const char *train_error(void);

static const char *reason(void)
{
    return train_error();
}

/* ---- Manifests ------------------------------------------------------------------ */

static void seed_manifest(fuzz_seeds *to)
{
    char settings[] = "a=1\nb=2\n", *text;
    size_t length;
    manifest_tensor tensors[] = {{"0.weight", {4, 6}, 2, {24, 2, 4}},
                                 {"0.bias", {3}, 1, {3, 1, 1}}};
    manifest_shard shards[] = {{100, 1}, {200, UINT64_MAX}};
    checkpoint_manifest manifest = {
        .place = {.step = 7, .epoch = 2, .taken = 64, .epoch_over = true, .micro_batches = 14},
        .identity = {.model = "mlp", .model_hash = 5, .data_hash = 6, .seed = 1},
        .stage = 2,
        .numbers = {{"optimizer.step", 7}},
        .number_count = 1,
        .states = {"param", "exp_avg"},
        .state_count = 2,
        .tensors = tensors,
        .tensor_count = 2,
        .shards = shards,
        .shard_count = 2,
        .settings = settings};
    must(manifest_write(&manifest, &text, &length) == RING_OK);
    fuzz_add(to, text, length);
    free(text);
    manifest.settings = NULL;
    manifest.number_count = 0;
    must(manifest_write(&manifest, &text, &length) == RING_OK);
    fuzz_add(to, text, length);
    free(text);
}

/* Most mutations end at the hash; what lies behind it gets the right one. */
static size_t add_hash(char *text, const unsigned char *bytes, size_t size)
{
    memcpy(text, bytes, size);
    return size + (size_t)sprintf(text + size, ",\n\t\"hash\":\t\"%016" PRIx64 "\"\n}\n",
                                  durable_hash(bytes, size));
}

/* Every place is an element, and the other way round. */
static void check_order(const tensor_order *order)
{
    const size_t places[] = {0, order->count / 3, order->count - 1};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        size_t run, back_run;
        const size_t element = tensor_order_element(order, places[i], &run);
        must(run >= 1 && run <= order->count - places[i] && run <= order->count - element);
        must(tensor_order_place(order, element, &back_run) == places[i] && back_run == run);
    }
}

static void check_manifest(const checkpoint_manifest *manifest)
{
    must(manifest->place.step >= 0 && manifest->place.epoch >= 1);
    must(manifest->state_count >= 1 && manifest->tensor_count >= 1 && manifest->shard_count >= 1);
    must(fuzz_is_printable(manifest->identity.model) && manifest->settings != NULL);
    for (int t = 0; t < manifest->tensor_count; t++) {
        const manifest_tensor *tensor = &manifest->tensors[t];
        must(fuzz_is_printable(tensor->name) && tensor->dims <= TENSOR_DIMS_MAX);
        for (int d = 0; d < tensor->dims; d++)
            must(tensor->shape[d] > 0);
        check_order(&tensor->order);
    }
}

/* A manifest that was read, written and read again is the same. */
static void check_again(const checkpoint_manifest *manifest)
{
    char *text, *again;
    size_t length, again_length;
    checkpoint_manifest second;
    must(manifest_write(manifest, &text, &length) == RING_OK);
    must(manifest_parse(&second, "m", text, length) == RING_OK);
    must(manifest_write(&second, &again, &again_length) == RING_OK);
    must(length == again_length && memcmp(text, again, length) == 0);
    manifest_free(&second);
    free(text);
    free(again);
}

static ring_status parse_text(const char *text, size_t length)
{
    checkpoint_manifest manifest;
    const ring_status status = manifest_parse(&manifest, "m", text, length);
    if (status == RING_OK) {
        check_manifest(&manifest);
        check_again(&manifest);
    } else {
        fuzz_check_refusal(status, reason());
    }
    manifest_free(&manifest);
    return status;
}

static ring_status parse_manifest(const unsigned char *bytes, size_t size)
{
    static char text[8192];
    static const char end[] = ",\n\t\"hash\":";
    const size_t body = size > 32 && memcmp(bytes + size - 32, end, 8) == 0 ? size - 32 : size;
    (void)parse_text(text, add_hash(text, bytes, body));
    return parse_text((const char *)bytes, size);
}

const fuzz_target fuzz_manifest = {.name = "manifest",
                                   .reads = "manifests of checkpoints",
                                   .most = 4096,
                                   .seeds = seed_manifest,
                                   .parse = parse_manifest,
                                   .reason = reason};

/* ---- Files of tensors ----------------------------------------------------------- */

static void add_file(fuzz_seeds *to, safetensors_entry *entries, int count, bool valid)
{
    static unsigned char file[4096];
    char *head;
    size_t bytes, end;
    must(safetensors_head(entries, count, &head, &bytes) == RING_OK);
    memcpy(file, head, bytes);
    free(head);
    const safetensors_entry *last = &entries[count - 1];
    end = last->at + last->count * safetensors_size(last->type);
    must(end <= sizeof file);
    (valid ? fuzz_add : fuzz_add_any)(to, file, end);
}

static void seed_safetensors(fuzz_seeds *to)
{
    safetensors_entry entries[] = {{"0.weight", RING_FLOAT32, {2, 3}, 2, 0, 0},
                                   {"0.bias", RING_BFLOAT16, {3}, 1, 0, 0},
                                   {"scalar", RING_FLOAT16, {0}, 0, 0, 0}};
    add_file(to, entries, 3, true);
    add_file(to, entries, 1, true);
}

static void seed_stored_ranges(fuzz_seeds *to)
{
    safetensors_entry entries[] = {{"param/0.weight@0", RING_FLOAT32, {4}, 1, 0, 0},
                                   {"param/0.bias@0", RING_FLOAT32, {3}, 1, 0, 0},
                                   {"param/0.weight@4", RING_FLOAT32, {2}, 1, 0, 0}};
    add_file(to, entries, 3, true);
    add_file(to, entries + 1, 2, false);
}

/* All of it can be read, and nothing beyond it. */
static void read_all(stored_tensors *stored)
{
    static float values[4096];
    for (int i = 0; i < stored->count; i++) {
        const stored_range *range = &stored->ranges[i];
        must(fuzz_is_printable(range->name));
        must(range->count <= sizeof values / sizeof *values);
        const size_t count = stored_count(stored, range->name);
        must(range->begin + range->count <= count);
        const tensor_order whole = tensor_order_whole(count);
        must(stored_read(stored, range->name, &whole, range->begin, range->count, values) ==
             RING_OK);
        must(stored_read(stored, range->name, &whole, count, 1, values) != RING_OK);
    }
    must(stored_count(stored, "no such tensor") == 0);
}

static ring_status open_stored(const unsigned char *bytes, size_t size, bool whole)
{
    stored_tensors stored;
    const char *path = give_file(0, bytes, size);
    const ring_status status = stored_open(&stored, &path, 1, whole);
    if (status == RING_OK)
        read_all(&stored);
    stored_free(&stored);
    return status;
}

static ring_status parse_safetensors(const unsigned char *bytes, size_t size)
{
    return open_stored(bytes, size, true);
}

static ring_status parse_stored_ranges(const unsigned char *bytes, size_t size)
{
    return open_stored(bytes, size, false);
}

const fuzz_target fuzz_safetensors = {.name = "safetensors",
                                      .reads = "safetensors files",
                                      .most = 2048,
                                      .seeds = seed_safetensors,
                                      .parse = parse_safetensors,
                                      .reason = reason};

const fuzz_target fuzz_stored_ranges = {.name = "stored_ranges",
                                        .reads = "shards of checkpoints",
                                        .most = 2048,
                                        .seeds = seed_stored_ranges,
                                        .parse = parse_stored_ranges,
                                        .reason = reason};

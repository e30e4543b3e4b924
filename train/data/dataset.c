/* SPDX-License-Identifier: Apache-2.0
 * Finds the files of a data set, checks that images and labels match, and copies batches of
 * samples. */
#include "dataset.h"

#include <dirent.h>
#include <kernels.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cifar.h"
#include "errors.h"
#include "tokens.h"

enum { PATH_BYTES = 4096 };

static const char *const file_names[][2] = {
    [DATASET_TRAIN] = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte"},
    [DATASET_TEST] = {"t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"},
};

static const char wanted[] =
    "The folder given by --data or RING_DATA must have MNIST's files: train-images-idx3-ubyte "
    "(47040016 bytes, .gz 9.9 MB), train-labels-idx1-ubyte (60008), t10k-images-idx3-ubyte "
    "(7840016, .gz 1.6 MB), t10k-labels-idx1-ubyte (10008); or CIFAR-10's: data_batch_1.bin to "
    "data_batch_5.bin (30730000 each) and test_batch.bin; or a text: train.bin and val.bin, or "
    "input.txt";

static bool make_path(char *path, const char *folder, const char *name, const char *suffix)
{
    const int length = snprintf(path, PATH_BYTES, "%s/%s%s", folder, name, suffix);
    return length > 0 && length < PATH_BYTES && access(path, F_OK) == 0;
}

static ring_status find_file(const char *folder, const char *name, char *path)
{
    if (make_path(path, folder, name, "") || make_path(path, folder, name, ".gz"))
        return RING_OK;
    return train_fail(RING_ERR_CONFIG, "%s: the folder has no %s or %s.gz. %s", folder, name, name,
                      wanted);
}

static ring_status check_folder(const char *folder)
{
    DIR *entries = opendir(folder);
    const bool opened = entries != NULL && access(folder, X_OK) == 0;
    const ring_status status = opened ? RING_OK : train_folder_fail(folder);
    int count = 0; /* of entries, including "." and ".." */
    while (opened && count < 3 && readdir(entries) != NULL)
        count++;
    if (entries != NULL)
        closedir(entries);
    if (!opened || count > 2)
        return status;
    return train_fail(RING_ERR_CONFIG, "%s: the folder is empty. %s", folder, wanted);
}

/* Checks that images and labels match, and that labels are in range. */
static ring_status check(const char *folder, const train_dataset *dataset)
{
    if (dataset->labels.shape[0] != dataset->count)
        return train_fail(RING_ERR_CONFIG, "%s: the folder has %zu image%s, but %zu label%s",
                          folder, dataset->count, plural(dataset->count), dataset->labels.shape[0],
                          plural(dataset->labels.shape[0]));
    if (dataset->count >= UINT32_MAX / 20) /* the limit of sampler_create() */
        return train_fail(RING_ERR_CONFIG, "%s: %zu samples are too many; the limit is %u", folder,
                          dataset->count, UINT32_MAX / 20 - 1);
    for (size_t i = 0; i < dataset->count; i++) {
        if (dataset->labels.data[i] >= DATASET_CLASSES)
            return train_fail(RING_ERR_CONFIG, "%s: label %u of sample %zu is not from 0 to %d",
                              folder, dataset->labels.data[i], i, DATASET_CLASSES - 1);
    }
    return RING_OK;
}

static ring_status read_text(const char *folder, dataset_part part, train_dataset *dataset)
{
    RING_TRY(tokens_read(folder, part == DATASET_TEST, &dataset->images, &dataset->token_bytes));
    dataset->classes = tokens_vocabulary(&dataset->images, dataset->token_bytes);
    return RING_OK;
}

static ring_status read_cifar(const char *folder, dataset_part part, train_dataset *dataset)
{
    RING_TRY(cifar_read(folder, part == DATASET_TEST, &dataset->images, &dataset->labels));
    dataset->count = dataset->labels.shape[0];
    dataset->features = CIFAR_PIXELS;
    dataset->channels = 3;
    dataset->classes = DATASET_CLASSES;
    return check(folder, dataset);
}

static ring_status read_mnist(const char *folder, dataset_part part, train_dataset *dataset)
{
    char images[PATH_BYTES], labels[PATH_BYTES];
    RING_TRY(find_file(folder, file_names[part][0], images));
    RING_TRY(find_file(folder, file_names[part][1], labels));
    RING_TRY(idx_read(labels, 1, &dataset->labels));
    RING_TRY(idx_read(images, 3, &dataset->images));
    dataset->count = dataset->images.shape[0];
    dataset->features = dataset->images.shape[1] * dataset->images.shape[2];
    dataset->channels = 1;
    dataset->classes = DATASET_CLASSES;
    return check(folder, dataset);
}

/* The formats in the order in which a folder is searched for their files. MNIST is the last one, so
 * that the error for a folder without any known file names its files. */
static const struct {
    bool (*is_here)(const char *folder);
    ring_status (*read)(const char *folder, dataset_part part, train_dataset *dataset);
} formats[] = {{cifar_is_here, read_cifar}, {tokens_are_here, read_text}, {NULL, read_mnist}};

ring_status dataset_read(const char *folder, dataset_part part, train_dataset *dataset)
{
    size_t f = 0;
    memset(dataset, 0, sizeof *dataset);
    RING_TRY(check_folder(folder));
    while (formats[f].is_here != NULL && !formats[f].is_here(folder))
        f++;
    const ring_status status = formats[f].read(folder, part, dataset);
    if (status != RING_OK)
        dataset_free(dataset);
    return status;
}

/* The last token of a sample has a label, too: the first token of the next sample. So a text needs
 * one token more than its samples have. */
ring_status dataset_cut(train_dataset *dataset, size_t tokens)
{
    if (dataset->token_bytes == 0)
        return RING_OK;
    const size_t length = dataset->images.bytes / dataset->token_bytes;
    dataset->features = tokens;
    dataset->count = length > 0 ? (length - 1) / tokens : 0;
    if (dataset->count == 0)
        return train_fail(
            RING_ERR_CONFIG,
            "the text has %zu tokens, but needs at least one sample of %zu tokens and one "
            "token after it",
            length, tokens);
    if (dataset->count >= UINT32_MAX / 20)
        return train_fail(RING_ERR_CONFIG, "%zu samples are too many; the limit is %u",
                          dataset->count, UINT32_MAX / 20 - 1);
    return RING_OK;
}

ring_status dataset_normalize(train_dataset *dataset, const pixel_norm *norm)
{
    if (dataset->channels == 0)
        return train_fail(RING_ERR_CONFIG, "--normalize is for images, but this is a text");
    if (norm->channels != 1 && norm->channels != dataset->channels)
        return train_fail(RING_ERR_CONFIG,
                          "--normalize %s is for %zu channels, but the images have %zu", norm->text,
                          norm->channels, dataset->channels);
    dataset->norm = norm;
    return RING_OK;
}

void dataset_free(train_dataset *dataset)
{
    if (dataset->source != NULL && dataset->source->close != NULL)
        dataset->source->close(dataset->context);
    dataset->source = NULL;
    if (dataset->shared != NULL) {
        munmap(dataset->shared, dataset->images.bytes + dataset->labels.bytes);
        dataset->shared = dataset->images.data = dataset->labels.data = NULL;
    }
    idx_free(&dataset->images);
    idx_free(&dataset->labels);
}

static uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * 0x9e3779b97f4a7c15U;
    return hash ^ hash >> 32;
}

/* Lanes are hashed independently of each other, so that the CPU overlaps their multiplications. */
enum { LANES = 4 };

static void absorb(uint64_t lanes[LANES], const uint8_t *data, size_t bytes)
{
    uint64_t words[LANES] = {0};
    if (bytes > 0) /* a text has no labels */
        memcpy(words, data, bytes);
    for (int l = 0; l < LANES; l++)
        lanes[l] = mix(lanes[l], words[l]);
}

static uint64_t hash_array(const idx_array *array)
{
    const size_t step = LANES * sizeof(uint64_t), rest = array->bytes % step;
    uint64_t lanes[LANES] = {array->bytes}, hash = 0;
    for (size_t at = 0; at < array->bytes - rest; at += step)
        absorb(lanes, array->data + at, step);
    absorb(lanes, array->data + array->bytes - rest, rest);
    for (int l = 0; l < LANES; l++)
        hash = mix(hash, lanes[l]);
    return hash;
}

uint64_t dataset_hash(const train_dataset *dataset)
{
    if (dataset->hash != 0)
        return dataset->hash;
    return mix(hash_array(&dataset->labels), hash_array(&dataset->images));
}

/* Shuffled samples are scattered over tens of megabytes, so the sample this many rows ahead is
 * prefetched. */
enum { SAMPLES_AHEAD = 8, CACHE_LINE = 64 };

/* inputs [batch, tokens] = tokens of each sample; labels [batch, tokens] = token after each input
 */
static void take_text(const train_dataset *dataset, const uint32_t *order, size_t batch,
                      float *inputs, uint32_t *labels)
{
    const size_t length = dataset->features;
    for (size_t i = 0; i < batch; i++) {
        const size_t begin = order[i] * length;
        for (size_t t = 0; t < length; t++) {
            if (inputs != NULL)
                *inputs++ = token_at(&dataset->images, dataset->token_bytes, begin + t);
            *labels++ = token_at(&dataset->images, dataset->token_bytes, begin + t + 1);
        }
    }
}

/* images [batch, features] = pixels of each sample as float32; labels [batch] */
static void take_images(const train_dataset *dataset, const uint32_t *order, size_t batch,
                        float *images, uint32_t *labels)
{
    const size_t width = dataset->features;
    for (size_t i = 0; i < batch; i++) {
        labels[i] = dataset->labels.data[order[i]];
        if (images == NULL)
            continue;
        if (i + SAMPLES_AHEAD < batch) {
            const uint8_t *ahead = dataset->images.data + order[i + SAMPLES_AHEAD] * width;
            for (size_t b = 0; b < width; b += CACHE_LINE)
                __builtin_prefetch(ahead + b);
        }
        const uint8_t *row = dataset->images.data + order[i] * width;
        if (dataset->norm != NULL)
            pixel_norm_apply(dataset->norm, row, dataset->channels, width / dataset->channels,
                             images + i * width);
        else
            kernel_bytes_to_unit(images + i * width, row, width);
    }
}

/* Checks the labels of a source, because each of them selects an output of the network. */
static ring_status take_from_source(const train_dataset *dataset, const uint32_t *order,
                                    size_t batch, float *inputs, uint32_t *labels)
{
    RING_TRY(dataset->source->take(dataset->context, order, batch, inputs, labels));
    for (size_t i = 0; i < batch; i++) {
        if (labels[i] >= dataset->classes)
            return train_fail(RING_ERR_CONFIG, "label %u of sample %u is not from 0 to %zu",
                              labels[i], order[i], dataset->classes - 1);
    }
    return RING_OK;
}

ring_status dataset_take(const train_dataset *dataset, const uint32_t *order, size_t batch,
                         float *inputs, uint32_t *labels)
{
    if (dataset->source != NULL)
        return take_from_source(dataset, order, batch, inputs, labels);
    if (dataset->token_bytes > 0)
        take_text(dataset, order, batch, inputs, labels);
    else
        take_images(dataset, order, batch, inputs, labels);
    return RING_OK;
}

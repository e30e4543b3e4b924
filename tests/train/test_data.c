/* SPDX-License-Identifier: Apache-2.0
 * IDX files, good and hostile, and batches taken from them. */
#include "check.h"
#include "files.h"
#include "vectors.h"

#include <cifar.h>
#include <dataset.h>
#include <errors.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

/* The linker leads all allocations but those of shared libraries here, and with ASan a few more. */
#define LED_HERE __attribute__((visibility("default")))
void *__real_malloc(size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
LED_HERE void *__wrap_malloc(size_t bytes);
LED_HERE void *__wrap_aligned_alloc(size_t alignment, size_t bytes);

static size_t asked; /* bytes */

void *__wrap_malloc(size_t bytes)
{
    asked += bytes;
    return __real_malloc(bytes);
}

void *__wrap_aligned_alloc(size_t alignment, size_t bytes)
{
    asked += bytes;
    return __real_aligned_alloc(alignment, bytes);
}

/* Reads @p name, which must be refused, and compares the text after its path. */
static void refused(const char *name, int dims, const char *error)
{
    idx_array array;
    const char *path = files_path(name);
    assert_int_not_equal(idx_read(path, dims, &array), RING_OK);
    assert_null(array.data);
    assert_true(strncmp(train_error(), path, strlen(path)) == 0);
    assert_string_equal(train_error() + strlen(path), error);
}

static void raw_and_gz_files_read_alike(void **state)
{
    static const uint8_t data[] = {1, 2, 3, 4, 5, 6};
    size_t bytes;
    uint8_t *file = files_idx(3, (const uint32_t[]){1, 2, 3}, data, sizeof data, &bytes);
    files_write("raw", file, bytes);
    files_write_gz("packed.gz", file, bytes);
    free(file);
    static const char *const names[] = {"raw", "packed.gz"};
    for (int i = 0; i < 2; i++) {
        idx_array array;
        assert_int_equal(idx_read(files_path(names[i]), 3, &array), RING_OK);
        assert_int_equal(array.bytes, 6);
        assert_int_equal(array.shape[0], 1);
        assert_int_equal(array.shape[2], 3);
        assert_memory_equal(array.data, data, sizeof data);
        idx_free(&array);
    }
}

static void short_files_are_refused(void **state)
{
    static const uint8_t data[16] = {0};
    size_t bytes;
    uint8_t *file = files_idx(1, (const uint32_t[]){16}, data, sizeof data, &bytes);
    for (size_t length = 0; length < bytes; length++) {
        files_write("short", file, length);
        refused("short", 1, ": the file ends too early; download it again");
    }
    free(file);
}

static void damaged_gz_files_are_refused(void **state)
{
    uint8_t data[4096];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)(i * i >> 3);
    size_t bytes, packed;
    uint8_t *file = files_idx(1, (const uint32_t[]){sizeof data}, data, sizeof data, &bytes);
    files_write_gz("good.gz", file, bytes);
    free(file);
    char *good = files_read(files_path("good.gz"), &packed);
    assert_non_null(good);
    for (size_t length = 20; length < packed; length += 7) {
        files_write("cut.gz", good, length);
        refused("cut.gz", 1, ": the file ends too early; download it again");
    }
    good[packed - 6] ^= 1; /* of the checksum */
    files_write("sum.gz", good, packed);
    refused("sum.gz", 1, ": not a valid gzip file (incorrect data check); download it again");
    free(good);
}

static void long_files_are_refused(void **state)
{
    static const uint8_t data[17] = {0};
    size_t bytes;
    uint8_t *file = files_idx(1, (const uint32_t[]){16}, data, sizeof data, &bytes);
    files_write("long", file, bytes);
    refused("long", 1, ": the file is longer than its header says");
    files_write_gz("long.gz", file, bytes);
    refused("long.gz", 1, ": the file is longer than its header says");
    free(file);
}

static void other_kinds_of_files_are_refused(void **state)
{
    files_write("text", "{\"optimizer\": {}}", 17);
    refused("text", 3,
            ": the file begins with 7b226f70, but an IDX file of bytes with 3 dimensions begins "
            "with 00000803");
    files_write("images", "\0\0\x08\x03\0\0\0\x01\0\0\0\x01\0\0\0\x01x", 17);
    refused("images", 1,
            ": the file begins with 00000803, but an IDX file of bytes with 1 dimensions begins "
            "with 00000801");
    refused("absent", 1, ": No such file or directory");
    assert_int_equal(mkfifo(files_path("fifo"), 0600), 0);
    refused("fifo", 1, ": not a regular file");
}

static void headers_that_promise_too_much_cost_no_memory(void **state)
{
    static const uint32_t shapes[][3] = {
        {0xffffffffU, 0xffffffffU, 0xffffffffU}, /* the product overflows */
        {0x10000000U, 0x10000000U, 0x100U},      /* to exactly 0 */
        {0xffffffffU, 1, 1},
        {1000000, 28, 28},
    };
    for (size_t i = 0; i < COUNT_OF(shapes); i++) {
        size_t bytes;
        uint8_t *file = files_idx(3, shapes[i], NULL, 0, &bytes);
        files_write("promise", file, bytes);
        files_write_gz("promise.gz", file, bytes);
        free(file);
        asked = 0;
        refused("promise", 3, ": the header states more elements than a file of 16 bytes can have");
        idx_array array;
        assert_int_equal(idx_read(files_path("promise.gz"), 3, &array), RING_ERR_CONFIG);
        assert_int_equal(asked, 0);
    }
}

/* A small file that expands to far more than its header says is read no further than that. */
static void bombs_are_not_unpacked(void **state)
{
    const size_t size = (size_t)8 << 20;
    uint8_t *zeros = calloc(1, size);
    assert_non_null(zeros);
    zeros[2] = 8;
    zeros[3] = 1;
    zeros[7] = 100;
    files_write_gz("bomb.gz", zeros, size);
    free(zeros);
    refused("bomb.gz", 1, ": the file is longer than its header says");
}

/* A megabyte that would take a gigabyte of every rank, as its header says. */
static void arrays_of_nothing_are_not_unpacked(void **state)
{
    const size_t size = (size_t)80 << 20;
    uint8_t *zeros = calloc(1, size);
    assert_non_null(zeros);
    zeros[2] = 8;
    zeros[3] = 1;
    const uint32_t elements = (uint32_t)size - 8;
    for (int i = 0; i < 4; i++)
        zeros[4 + i] = (uint8_t)(elements >> (24 - 8 * i));
    files_write_gz("nothing.gz", zeros, size);
    free(zeros);
    idx_array array;
    assert_int_equal(idx_read(files_path("nothing.gz"), 1, &array), RING_ERR_CONFIG);
    assert_non_null(strstr(train_error(), "to 83886072, more than any known data set"));
}

static void empty_arrays_are_refused(void **state)
{
    size_t bytes;
    uint8_t *file = files_idx(3, (const uint32_t[]){0, 28, 28}, NULL, 0, &bytes);
    files_write("empty", file, bytes);
    free(file);
    refused("empty", 3, ": by its header, the file has no elements");
}

/* @return the bytes of @p count records, whose numbers say where they belong; to be free()d. */
static uint8_t *cifar_records(size_t count, int first_label)
{
    uint8_t *records = malloc(count * 3073);
    assert_non_null(records);
    for (size_t i = 0; i < count * 3073; i++)
        records[i] = (uint8_t)(i % 3073 == 0 ? (size_t)first_label + i / 3073
                                             : i / 3073 * 7 + i % 3073);
    return records;
}

static void write_cifar(const char *name, size_t count, int first_label)
{
    uint8_t *records = cifar_records(count, first_label);
    files_write(name, records, count * 3073);
    free(records);
}

static void cifar_files_are_read_one_after_another(void **state)
{
    train_dataset train, test;
    write_cifar("data_batch_1.bin", 2, 3);
    write_cifar("data_batch_2.bin", 1, 8);
    write_cifar("data_batch_4.bin", 1, 9); /* there is no third: not of this set */
    write_cifar("test_batch.bin", 1, 6);
    assert_int_equal(dataset_read(files_path(""), DATASET_TRAIN, &train), RING_OK);
    assert_int_equal(dataset_read(files_path(""), DATASET_TEST, &test), RING_OK);
    assert_int_equal(train.count, 3);
    assert_int_equal(train.features, 3072);
    assert_memory_equal(train.labels.data, ((const uint8_t[]){3, 4, 8}), 3);
    for (size_t i = 0; i < 3; i++) {
        for (size_t p = 0; p < 3072; p++)
            assert_int_equal(train.images.data[i * 3072 + p], (uint8_t)(i % 2 * 7 + p + 1));
    }
    assert_int_equal(test.count, 1);
    assert_int_equal(test.labels.data[0], 6);
    assert_int_not_equal(dataset_hash(&train), dataset_hash(&test));
    dataset_free(&train);
    dataset_free(&test);
}

static void cifar_refused(const char *error)
{
    train_dataset dataset;
    assert_int_equal(dataset_read(files_path(""), DATASET_TRAIN, &dataset), RING_ERR_CONFIG);
    if (strstr(train_error(), error) == NULL)
        fail_msg("\"%s\" is not in \"%s\"", error, train_error());
}

static void wrong_cifar_files_are_refused(void **state)
{
    write_cifar("data_batch_1.bin", 2, 3);
    files_write("data_batch_2.bin", "x", 1);
    cifar_refused("data_batch_2.bin: the file has 1 byte, which is not a multiple of CIFAR-10's "
                  "record of 3073 bytes; download the file again");
    files_write("data_batch_2.bin", "", 0);
    cifar_refused("data_batch_2.bin: the file has 0 bytes, which is not a multiple");
    write_cifar("data_batch_2.bin", 1, 10);
    cifar_refused(": label 10 of sample 2 is not from 0 to 9");
    assert_int_equal(unlink(files_path("data_batch_2.bin")), 0);
    assert_int_equal(mkfifo(files_path("data_batch_2.bin"), 0600), 0);
    cifar_refused("data_batch_2.bin: not a regular file");
}

static void folder_refused(const char *folder, const char *error)
{
    train_dataset dataset;
    assert_int_not_equal(dataset_read(folder, DATASET_TRAIN, &dataset), RING_OK);
    if (strstr(train_error(), error) == NULL)
        fail_msg("\"%s\" is not in \"%s\"", error, train_error());
}

static void a_folder_without_the_files_says_what_belongs_there(void **state)
{
    char folder[256];
    folder_refused("/nowhere", "/nowhere: no such folder");
    folder_refused("/dev/null", "/dev/null: not a folder");
    folder_refused("/dev/null/x", "/dev/null/x: not a folder");
    folder_refused(files_path(""),
                   ": the folder is empty. The folder given by --data or RING_DATA");
    files_write("other", "x", 1);
    folder_refused(files_path(""),
                   ": the folder has no train-images-idx3-ubyte or train-images-idx3-ubyte.gz.");
    assert_non_null(strstr(train_error(), "t10k-labels-idx1-ubyte (10008)"));
    write_cifar("test_batch.bin", 2, 3);
    folder_refused(files_path(""), "data_batch_1.bin: No such file or directory");
    snprintf(folder, sizeof folder, "%s", files_path(""));
    assert_int_equal(chmod(folder, 0), 0);
    if (geteuid() == 0) /* may read everything */
        assert_int_equal(seteuid(65534), 0);
    folder_refused(folder, ": Permission denied");
    assert_int_equal(seteuid(getuid()), 0);
    assert_int_equal(chmod(folder, 0700), 0);
}

static void labels_are_checked(void **state)
{
    files_dataset(30, 10);
    train_dataset dataset;
    uint8_t labels[30] = {0};
    size_t bytes;
    labels[29] = 10;
    uint8_t *file = files_idx(1, (const uint32_t[]){30}, labels, 30, &bytes);
    files_write("train-labels-idx1-ubyte", file, bytes);
    free(file);
    assert_int_equal(dataset_read(files_path("."), DATASET_TRAIN, &dataset), RING_ERR_CONFIG);
    assert_non_null(strstr(train_error(), "label 10 of sample 29 is not from 0 to 9"));
    file = files_idx(1, (const uint32_t[]){29}, labels, 29, &bytes);
    files_write("train-labels-idx1-ubyte", file, bytes);
    free(file);
    assert_int_equal(dataset_read(files_path("."), DATASET_TRAIN, &dataset), RING_ERR_CONFIG);
    assert_non_null(strstr(train_error(), "30 images, but 29 labels"));
}

static void batches_are_rows_divided_by_255(void **state)
{
    files_dataset(30, 10);
    train_dataset dataset;
    assert_int_equal(dataset_read(files_path("."), DATASET_TRAIN, &dataset), RING_OK);
    assert_int_equal(dataset.count, 30);
    assert_int_equal(dataset.features, 784);
    static const uint32_t order[] = {29, 0, 7};
    float images[3 * 784];
    uint32_t labels[3];
    dataset_take(&dataset, order, 3, images, labels);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(labels[i], dataset.labels.data[order[i]]);
        for (size_t p = 0; p < 784; p++) {
            const float want = (float)dataset.images.data[order[i] * 784 + p] / 255.0F;
            assert_memory_equal(&images[i * 784 + p], &want, sizeof want);
        }
    }
    dataset_free(&dataset);
}

/* ---- Text ---------------------------------------------------------------------------------- */

static train_dataset read_text(dataset_part part, size_t tokens)
{
    train_dataset text;
    if (dataset_read(files_path("."), part, &text) != RING_OK ||
        dataset_cut(&text, tokens) != RING_OK)
        fail_msg("%s", train_error());
    return text;
}

static void a_text_is_cut_into_samples_and_their_next_tokens(void **state)
{
    static const uint32_t order[] = {2, 0};
    const float inputs[] = {'i', 'j', 'k', 'l', 'a', 'b', 'c', 'd'};
    const uint32_t next[] = {'j', 'k', 'l', 'm', 'b', 'c', 'd', 'e'};
    float taken[8];
    uint32_t labels[8];
    files_write("input.txt", "abcdefghijklmnop\xffxyz", 20);
    train_dataset train = read_text(DATASET_TRAIN, 4), test = read_text(DATASET_TEST, 1);
    assert_int_equal(train.count, 4); /* of 18 bytes; the last one is a label alone */
    assert_int_equal(train.features, 4);
    assert_int_equal(train.classes, 256);
    assert_int_equal(test.count, 1);
    assert_int_equal(test.classes, 'z' + 1);
    dataset_take(&train, order, 2, taken, labels);
    assert_memory_equal(taken, inputs, sizeof inputs);
    assert_memory_equal(labels, next, sizeof next);
    assert_int_not_equal(dataset_hash(&train), dataset_hash(&test));
    dataset_free(&train);
    dataset_free(&test);
}

/* 20240520, version 1, three tokens. */
static const uint8_t llmc_start[12] = {0x88, 0xd8, 0x34, 0x1, 1, 0, 0, 0, 3, 0, 0, 0};

static void sixteen_bit_tokens_are_read_with_and_without_a_header(void **state)
{
    static const uint32_t first[] = {0};
    const uint8_t tokens[] = {1, 0, 0x50, 0xc4, 7, 1};
    uint8_t with_header[1024 + sizeof tokens] = {0};
    memcpy(with_header, llmc_start, sizeof llmc_start);
    memcpy(with_header + 1024, tokens, sizeof tokens);
    files_write("train.bin", tokens, sizeof tokens);
    files_write("val.bin", with_header, sizeof with_header);
    for (int part = DATASET_TRAIN; part <= DATASET_TEST; part++) {
        float taken[2];
        uint32_t labels[2];
        train_dataset text = read_text((dataset_part)part, 2);
        assert_int_equal(text.count, 1);
        assert_int_equal(text.classes, 50257);
        dataset_take(&text, first, 1, taken, labels);
        assert_true(taken[0] == 1.0F && taken[1] == 50256.0F);
        assert_true(labels[0] == 50256 && labels[1] == 263);
        dataset_free(&text);
    }
}

/* 20240801, version 7: tokens that 16 bits cannot hold, as inputs and as labels. */
static void thirty_two_bit_tokens_are_read(void **state)
{
    static const uint32_t first[] = {0}, tokens[] = {65536, 128255, 1, 70000, 9};
    uint32_t file[256 + COUNT_OF(tokens)] = {20240801, 7, COUNT_OF(tokens)}, labels[4];
    float taken[4];
    memcpy(file + 256, tokens, sizeof tokens);
    files_write("train.bin", file, sizeof file);
    train_dataset text = read_text(DATASET_TRAIN, 4);
    assert_int_equal(text.count, 1);
    assert_int_equal(text.classes, 128256);
    dataset_take(&text, first, 1, taken, labels);
    assert_memory_equal(labels, tokens + 1, sizeof labels);
    for (size_t i = 0; i < 4; i++)
        assert_true(taken[i] == (float)tokens[i]);
    dataset_free(&text);
}

static void text_refused(dataset_part part, const char *error)
{
    train_dataset text;
    ring_status status = dataset_read(files_path("."), part, &text);
    if (status == RING_OK) {
        status = dataset_cut(&text, 4);
        dataset_free(&text);
    }
    assert_int_not_equal(status, RING_OK);
    if (strstr(train_error(), error) == NULL)
        fail_msg("\"%s\" is not in \"%s\"", error, train_error());
}

static void wrong_texts_are_refused(void **state)
{
    uint8_t short_one[1024 + 4] = {0};
    memcpy(short_one, llmc_start, sizeof llmc_start);
    files_write("train.bin", short_one, sizeof short_one);
    text_refused(DATASET_TRAIN,
                 "train.bin: the file has 1028 bytes, but its header states 3 tokens of 2");
    text_refused(DATASET_TEST, "val.bin: No such file or directory");
    files_write("val.bin", "abc", 3);
    text_refused(DATASET_TEST,
                 "val.bin: the file has 3 bytes, which is not a multiple of a 16-bit token");
    const struct {
        uint32_t start[3];
        const char *error;
    } headers[] = {
        {{20240801, 7, 2}, "val.bin: the file has 1028 bytes, but its header states 2 tokens of 4"},
        {{20240520, 2, 2}, "val.bin: unknown header of llm.c with magic 20240520, version 2; a "},
        {{20240801, 1, 1}, "val.bin: unknown header of llm.c with magic 20240801, version 1; a "},
        {{20240326, 3, 1}, "val.bin: unknown header of llm.c with magic 20240326, version 3; a "},
        {{0x88d83401, 0x01000000, 0x02000000}, "header of llm.c with magic 2295870465, "},
    };
    for (size_t i = 0; i < COUNT_OF(headers); i++) {
        memcpy(short_one, headers[i].start, sizeof headers[i].start);
        files_write("val.bin", short_one, sizeof short_one);
        text_refused(DATASET_TEST, headers[i].error);
    }
    files_write("val.bin", "", 0);
    text_refused(
        DATASET_TEST,
        "the text has 0 tokens, but needs at least one sample of 4 tokens and one token after it");
    files_write("val.bin", "abcdefgh", 8);
    text_refused(DATASET_TEST, "the text has 4 tokens, but needs at least one sample of 4");
    assert_int_equal(unlink(files_path("val.bin")), 0);
    assert_int_equal(mkfifo(files_path("val.bin"), 0600), 0);
    text_refused(DATASET_TEST, "val.bin: not a regular file");
}

/* Any byte of images or labels may be another, the last ones included. */
static void a_hash_tells_data_sets_apart(void **state)
{
    uint8_t images[3 * 35] = {0}, labels[3] = {1, 2, 3};
    const train_dataset dataset = {.images = {.bytes = sizeof images, .data = images},
                                   .labels = {.bytes = sizeof labels, .data = labels}};
    const uint64_t hash = dataset_hash(&dataset);
    for (size_t i = 0; i < sizeof images + sizeof labels; i++) {
        uint8_t *byte = i < sizeof images ? &images[i] : &labels[i - sizeof images];
        *byte ^= 0x80;
        assert_int_not_equal(dataset_hash(&dataset), hash);
        *byte ^= 0x80;
    }
    assert_int_equal(dataset_hash(&dataset), hash);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, files_set_up, files_tear_down)

/* ---- Sources ------------------------------------------------------------------------------- */

static ring_status take_squares(void *context, const uint32_t *order, size_t batch, float *inputs,
                                uint32_t *labels)
{
    for (size_t i = 0; i < batch; i++) {
        if (order[i] > 9)
            return RING_ERR_CONFIG;
        labels[i] = (uint32_t)order[i];
        if (inputs != NULL)
            inputs[i] = (float)(order[i] * order[i]);
    }
    *(int *)context += 1;
    return RING_OK;
}

static void close_squares(void *context)
{
    *(int *)context = -1;
}

static void a_source_is_asked_for_samples_and_closed(void **state)
{
    static const data_source squares = {take_squares, close_squares};
    static const uint32_t order[] = {3, 9}, wrong[] = {10};
    float inputs[2];
    uint32_t labels[2];
    int calls = 0;
    train_dataset dataset = {.count = 10,
                             .features = 1,
                             .classes = 10,
                             .own_labels = 1,
                             .hash = 77,
                             .source = &squares,
                             .context = &calls};
    assert_int_equal(dataset_take(&dataset, order, 2, inputs, labels), RING_OK);
    assert_true(inputs[0] == 9.0F && inputs[1] == 81.0F && labels[0] == 3 && labels[1] == 9);
    assert_int_equal(dataset_take(&dataset, order, 2, NULL, labels), RING_OK);
    assert_int_equal(dataset_take(&dataset, wrong, 1, inputs, labels), RING_ERR_CONFIG);
    assert_int_equal(calls, 2);
    dataset.classes = 9;
    assert_int_equal(dataset_take(&dataset, order, 2, inputs, labels), RING_ERR_CONFIG);
    assert_non_null(strstr(train_error(), "label 9 of sample 9 is not from 0 to 8"));
    assert_int_equal(dataset_hash(&dataset), 77);
    dataset_free(&dataset);
    assert_int_equal(calls, -1);
}

/* ---- Normalized images --------------------------------------------------------------------- */

static void bytes_are_normalized_as_by_torch(void **state)
{
    uint8_t bytes[256];
    float numbers[256];
    pixel_norm norm;
    for (int b = 0; b < 256; b++)
        bytes[b] = (uint8_t)b;
    const char *row;
    size_t i = 0;
    for (; (row = vector_row("norms/norm", i)) != NULL; i++) {
        char text[32];
        uint64_t hash;
        assert_int_equal(sscanf(row, "%31s %" SCNx64, text, &hash), 2);
        assert_true(pixel_norm_parse(text, &norm));
        assert_string_equal(norm.text, text);
        pixel_norm_apply(&norm, bytes, 1, 256, numbers);
        assert_int_equal(fnv1a(numbers, sizeof numbers), hash);
    }
    assert_int_equal(i, 3);
}

static void channels_have_a_mean_and_a_std_each(void **state)
{
    static uint8_t images[2 * CIFAR_PIXELS], label[2];
    static float numbers[CIFAR_PIXELS];
    static const uint32_t second = 1;
    train_dataset dataset = {.images = {.bytes = sizeof images, .data = images},
                             .labels = {.bytes = 2, .data = label},
                             .count = 2,
                             .features = CIFAR_PIXELS,
                             .channels = 3};
    pixel_norm norm;
    uint32_t taken;
    memset(images + CIFAR_PIXELS, 255, CIFAR_PIXELS);
    assert_true(pixel_norm_parse("0.5,0,-1/0.25,2,4", &norm));
    assert_int_equal(dataset_normalize(&dataset, &norm), RING_OK);
    assert_int_equal(dataset_take(&dataset, &second, 1, numbers, &taken), RING_OK);
    for (int i = 0; i < CIFAR_PIXELS; i++)
        assert_true(numbers[i] == (i < 1024 ? 2.0F : 0.5F));
    assert_true(pixel_norm_parse("0,1/1,1", &norm));
    assert_int_equal(dataset_normalize(&dataset, &norm), RING_ERR_CONFIG);
    dataset.channels = 0;
    assert_int_equal(dataset_normalize(&dataset, &norm), RING_ERR_CONFIG);
}

static void wrong_normalizations_are_refused(void **state)
{
    static const char *const wrong[] = {
        "",      "0.5",       "0.5/", "/0.5",  "0.5/0",     "0.5/-1", "0.5/nan",
        "inf/1", "0.5,0.5/1", "1/1,", "1/1/1", "0.5/1e-60", "1 /2",   "1,1,1,1,1/1,1,1,1,1"};
    pixel_norm norm;
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        assert_false(pixel_norm_parse(wrong[i], &norm));
        assert_int_equal(norm.channels, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(raw_and_gz_files_read_alike),
        TEST(short_files_are_refused),
        TEST(damaged_gz_files_are_refused),
        TEST(long_files_are_refused),
        TEST(other_kinds_of_files_are_refused),
        TEST(headers_that_promise_too_much_cost_no_memory),
        TEST(bombs_are_not_unpacked),
        TEST(arrays_of_nothing_are_not_unpacked),
        TEST(empty_arrays_are_refused),
        TEST(cifar_files_are_read_one_after_another),
        TEST(wrong_cifar_files_are_refused),
        TEST(a_folder_without_the_files_says_what_belongs_there),
        TEST(labels_are_checked),
        TEST(batches_are_rows_divided_by_255),
        TEST(a_text_is_cut_into_samples_and_their_next_tokens),
        TEST(sixteen_bit_tokens_are_read_with_and_without_a_header),
        TEST(thirty_two_bit_tokens_are_read),
        TEST(wrong_texts_are_refused),
        TEST(a_hash_tells_data_sets_apart),
        TEST(a_source_is_asked_for_samples_and_closed),
        TEST(bytes_are_normalized_as_by_torch),
        TEST(channels_have_a_mean_and_a_std_each),
        TEST(wrong_normalizations_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

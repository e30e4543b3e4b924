/* SPDX-License-Identifier: Apache-2.0
 * States in files: the same bits as in memory, less memory, checkpoints either way, and disks that
 * are full, missing or fail. Ranks are threads. */
#include "check.h"
#include "drawn.h"
#include "engine_ranks.h"
#include "files.h"

#include <builtin.h>
#include <checkpoint.h>
#include <errors.h>
#include <estimate.h>
#include <fcntl.h>
#include <mapped_file.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <util/allocated.h>

enum { RANKS_MAX = 4, SAMPLES = 32, BATCH = 8, UPDATES = 4 };

#define ADAM "{type: \"Adam\", params: {lr: 0.01}}"
#define NO_FILE "offload_optimizer: {device: \"none\"}"

static train_dataset dataset;

typedef struct job {
    engine_rank on;
    int ranks, stage;
    const char *optimizer, *precision;
    bool in_file;
    const char *saves, *loads; /* folders of checkpoints, half-way; NULL: none */
    int failing;               /* rank whose file is cut off half-way, from 1; 0: none */
    bool fails_early;          /* before the checkpoint is saved or loaded */
    bool gathers;              /* all parameters, then */
    bool evaluates;            /* before the second half */
    size_t width;              /* of the hidden layers; 0: the usual ones */
    double losses[UPDATES];
    uint64_t params_hash;
    size_t state_bytes, file_bytes;
    size_t allocated, mapped; /* by the process; of its files */
} job;

/* ---- Ranks --------------------------------------------------------------------------------- */

/* Small blocks, so that layers take many of them and buckets share some. */
static void configure(const job *run, const char *folder, char text[2048])
{
    char places[1024] = NO_FILE;
    if (run->in_file)
        snprintf(places, sizeof places,
                 "offload_optimizer: {device: \"nvme\", nvme_path: \"%s\"}, "
                 "offload_param: {device: \"%s\", nvme_path: \"%s\"}",
                 folder, run->stage == 3 ? "nvme" : "none", folder);
    snprintf(text, 2048,
             "{train_batch_size: %d, optimizer: %s, %s zero_optimization: {stage: %d, "
             "stage3_param_persistence_threshold: 0, %s}, "
             "aio: {block_size: 65536, queue_depth: 2}}",
             BATCH, run->optimizer, run->precision, run->stage, places);
}

/* Bytes of the files that are in this process: what the kernel says of each page of a mapping. */
static size_t mapped_bytes(const mapped_file *file)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = file->bytes / page;
    const size_t bytes = pages * sizeof(uint64_t);
    uint64_t *entries = malloc(bytes + 1);
    const int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    const off_t at = (off_t)((uintptr_t)file->data / page * sizeof(uint64_t));
    size_t present = 0;
    assert_non_null(entries);
    assert_int_equal(pread(fd, entries, bytes, at), bytes);
    for (size_t i = 0; i < pages; i++)
        present += entries[i] >> 63;
    close(fd);
    free(entries);
    return present * page;
}

static ring_status update(job *run, train_engine *engine, int from, int to)
{
    uint32_t order[BATCH];
    const int mine = BATCH / run->ranks;
    for (int u = from; u < to; u++) {
        engine_result result = {0};
        for (int i = 0; i < mine; i++)
            order[i] = (uint32_t)((u * BATCH + i * run->ranks + run->on.rank) % SAMPLES);
        RING_TRY(engine_update(engine, &dataset, order, (size_t)mine, 0.01, &result));
        run->losses[u] = result.loss;
    }
    return RING_OK;
}

static void tell_note(void *context, const char *text)
{
    print_message("%s\n", text);
}

/* As a disk that cannot be read any more. */
static void cut_off(const train_offload *offload)
{
    const mapped_file *file = offload->params.open ? &offload->params : &offload->states;
    assert_int_equal(ftruncate(file->fd, 0), 0);
}

/* Saves, or resumes from the saved checkpoint. */
static ring_status first_half(job *run, train_engine *engine)
{
    const bool fails = run->fails_early && run->failing == run->on.rank + 1;
    static char settings[] = "a=1\n";
    char found[STORED_PATH_MAX];
    checkpoint_run what = {.identity.model = "deep",
                           .place = {.step = UPDATES / 2, .epoch = 1},
                           .settings = settings};
    if (fails && run->loads != NULL)
        cut_off(&engine->offload);
    if (run->loads != NULL) {
        const ring_status status = checkpoint_load(engine, run->loads, &what, tell_note, NULL,
                                                   found);
        free(what.before);
        return status;
    }
    RING_TRY(update(run, engine, 0, UPDATES / 2));
    if (fails)
        cut_off(&engine->offload);
    return run->saves != NULL ? checkpoint_save(engine, run->saves, &what, 0) : RING_OK;
}

static ring_status work(train_engine *engine, void *rank)
{
    job *run = rank;
    const float *params;
    engine_score score;
    RING_TRY(first_half(run, engine));
    if (run->failing == run->on.rank + 1)
        cut_off(&engine->offload);
    if (run->gathers)
        RING_TRY(engine_params(engine, &params));
    if (run->evaluates)
        RING_TRY(engine_evaluate(engine, &dataset, &score));
    RING_TRY(update(run, engine, UPDATES / 2, UPDATES));
    run->allocated = allocated_bytes();
    run->mapped = mapped_bytes(&engine->offload.states) + mapped_bytes(&engine->offload.params);
    run->state_bytes = engine_state_bytes(engine);
    run->file_bytes = engine->offload.states.bytes + engine->offload.params.bytes;
    assert_int_equal(estimate_memory(engine, run->stage).files, run->file_bytes);
    RING_TRY(engine_params_hash(engine, &run->params_hash));
    return engine_check_params(engine);
}

static ring_status build_deep(model_spec *spec, const char *name)
{
    static const size_t widths[] = {DRAWN_PIXELS, 129, 31, 133, 10};
    return model_build_mlp(spec, name, widths, COUNT_OF(widths) - 1);
}

/* @param width  of the hidden layer, as text */
static ring_status build_wide(model_spec *spec, const char *width)
{
    const size_t widths[] = {DRAWN_PIXELS, strtoul(width, NULL, 10), 10};
    return model_build_mlp(spec, "wide", widths, COUNT_OF(widths) - 1);
}

static char folder[256]; /* of the files */

/* @return what rank 0 saw; all ranks must have seen the same. */
static job run_ranks(const job *what)
{
    static job runs[RANKS_MAX];
    char text[2048], width[16];
    snprintf(width, sizeof width, "%zu", what->width);
    configure(what, folder, text);
    runs[0] = *what;
    engine_ranks_run(&(engine_job){.config = text,
                                   .model = what->width > 0 ? width : "deep",
                                   .build = what->width > 0 ? build_wide : build_deep,
                                   .loss = LOSS_CROSS_ENTROPY,
                                   .samples = BATCH,
                                   .work = work},
                     what->ranks, runs, sizeof runs[0]);
    for (int r = 0; r < what->ranks; r++) {
        assert_string_equal(runs[r].on.error, runs[0].on.error);
        assert_int_equal(runs[r].on.status, runs[0].on.status);
        assert_int_equal(runs[r].params_hash, runs[0].params_hash);
    }
    return runs[0];
}

static job succeed(const job *what)
{
    const job got = run_ranks(what);
    if (got.on.status != RING_OK)
        fail_msg("%d ranks, stage %d: %s", what->ranks, what->stage, got.on.error);
    return got;
}

/* ---- Bits ---------------------------------------------------------------------------------- */

static void expect_same_bits(job run)
{
    run.in_file = false;
    const job want = succeed(&run);
    run.in_file = true;
    const job got = succeed(&run);
    if (got.params_hash != want.params_hash)
        fail_msg("%d ranks, stage %d, %s, %s: other parameters than in memory", run.ranks,
                 run.stage, run.optimizer, run.precision);
    assert_memory_equal(got.losses, want.losses, sizeof got.losses);
    assert_true(got.file_bytes > 0 && got.state_bytes < want.state_bytes);
    assert_int_equal(rmdir(folder), 0); /* no file has a name */
    assert_int_equal(mkdir(folder, 0700), 0);
}

static void bits_are_those_of_states_in_memory(void **state)
{
    static const char *const optimizers[] = {
        "{type: \"SGD\", params: {lr: 0.1, momentum: 0.9}}", ADAM,
        "{type: \"AdamW\", params: {weight_decay: 0.1}, param_groups: \"no_decay\"}",
        "{type: \"Lion\"}", "{type: \"Adagrad\", params: {initial_accumulator_value: 0.5}}"};
    static const char *const precisions[] = {"", "fp16: {enabled: true, initial_scale_power: 8},",
                                             "bf16: {enabled: true},"};
    static const int ranks[] = {1, 2, 4};
    /* Each optimiser and precision with some ranks and stage, so that all meet. */
    for (size_t o = 0; o < COUNT_OF(optimizers); o++) {
        for (size_t p = 0; p < COUNT_OF(precisions); p++)
            expect_same_bits((job){.ranks = ranks[(o + p) % 3],
                                   .stage = (int)(3 - (o + p + o / 3) % 4),
                                   .optimizer = optimizers[o],
                                   .precision = precisions[p]});
    }
    for (int stage = 0; stage <= 3; stage++)
        expect_same_bits((job){.ranks = 2, .stage = stage, .optimizer = ADAM, .precision = ""});
    expect_same_bits((job){.ranks = 4, .stage = 3, .optimizer = ADAM, .precision = precisions[1]});
}

/* ---- Memory -------------------------------------------------------------------------------- */

static void states_are_not_resident(void **state)
{
    enum { WIDTH = 4096 };
    const size_t elements = (DRAWN_PIXELS + 1) * WIDTH + (WIDTH + 1) * 10;
    const size_t moments = 2 * elements * sizeof(float);
    job run = {.ranks = 1, .optimizer = ADAM, .precision = "", .width = WIDTH, .in_file = true};
    const job in_file = succeed(&run);
    run.in_file = false;
    const job in_memory = succeed(&run);
    assert_int_equal(in_memory.state_bytes - in_file.state_bytes, moments);
    assert_in_range(in_file.file_bytes, moments, moments + 8192);
    assert_true(in_memory.params_hash == in_file.params_hash);
    /* The kernel maps a few neighbours of a page that is touched, also of pages let go before. */
    if (in_memory.allocated < in_file.allocated + moments / 10 * 9 || in_file.mapped > moments / 10)
        fail_msg("%zu bytes of moments: %zu allocated in memory, %zu in a file of which %zu are "
                 "mapped",
                 moments, in_memory.allocated, in_file.allocated, in_file.mapped);
}

/* ---- Checkpoints --------------------------------------------------------------------------- */

static void checkpoints_go_either_way(void **state)
{
    static const struct {
        bool before, after;
    } cases[] = {{true, true}, {true, false}, {false, true}};
    for (size_t c = 0; c < COUNT_OF(cases); c++) {
        char saved[300];
        snprintf(saved, sizeof saved, "%s-%zu", folder, c);
        assert_int_equal(mkdir(saved, 0700), 0);
        job run = {.ranks = 2,
                   .stage = 3,
                   .optimizer = ADAM,
                   .precision = "bf16: {enabled: true},",
                   .in_file = cases[c].before,
                   .saves = saved};
        const job whole = succeed(&run);
        run.saves = NULL;
        run.loads = saved;
        run.in_file = cases[c].after;
        const job resumed = succeed(&run);
        assert_true(resumed.params_hash == whole.params_hash);
        assert_memory_equal(resumed.losses + UPDATES / 2, whole.losses + UPDATES / 2,
                            sizeof whole.losses / 2);
    }
}

/* ---- Disks that do not do ------------------------------------------------------------------ */

static void a_disk_that_fails_ends_all_ranks_alike(void **state)
{
    for (int c = 0; c < 3; c++) {
        const job got = run_ranks(&(job){.ranks = 2,
                                         .stage = c > 0 ? 3 : 0,
                                         .evaluates = c > 1,
                                         .optimizer = ADAM,
                                         .precision = "",
                                         .in_file = true,
                                         .failing = 2});
        assert_int_equal(got.on.status, RING_ERR_SYSTEM);
        assert_non_null(
            strstr(got.on.error, "rank 1: reading from the file of offloaded states failed"));
    }
}

/* States that were stepped, that were just begun, and float32 masters of 16 bits. */
static void a_disk_that_fails_in_a_checkpoint_is_told(void **state)
{
    static const char *const precisions[] = {"", "bf16: {enabled: true},"};
    for (int c = 0; c < 4; c++) {
        char saved[300];
        snprintf(saved, sizeof saved, "%s-failing-%d", folder, c);
        assert_int_equal(mkdir(saved, 0700), 0);
        job run = {.ranks = 2,
                   .stage = c < 2 ? 0 : 3,
                   .optimizer = ADAM,
                   .precision = precisions[c % 2],
                   .in_file = true,
                   .failing = 2,
                   .fails_early = true,
                   .saves = saved};
        const job got = run_ranks(&run);
        assert_int_equal(got.on.status, RING_ERR_SYSTEM);
        assert_non_null(
            strstr(got.on.error, "rank 1: reading from the file of offloaded states failed"));
        run.failing = 0;
        succeed(&run);
        run.loads = saved;
        run.saves = NULL;
        run.failing = 2;
        const job loaded = run_ranks(&run);
        assert_int_equal(loaded.on.status, RING_ERR_SYSTEM);
    }
}

static void a_disk_that_fails_before_parameters_are_gathered_is_told(void **state)
{
    for (int stage = 0; stage <= 3; stage += 3) {
        const job got = run_ranks(&(job){.ranks = 2,
                                         .stage = stage,
                                         .optimizer = ADAM,
                                         .precision = "bf16: {enabled: true},",
                                         .in_file = true,
                                         .failing = 2,
                                         .gathers = true});
        assert_int_equal(got.on.status, RING_ERR_SYSTEM);
        assert_non_null(
            strstr(got.on.error, "rank 1: reading from the file of offloaded states failed"));
    }
}

static void a_missing_folder_is_told_by_all_ranks(void **state)
{
    assert_int_equal(rmdir(folder), 0);
    const job got = run_ranks(
        &(job){.ranks = 2, .stage = 1, .optimizer = ADAM, .precision = "", .in_file = true});
    assert_int_equal(mkdir(folder, 0700), 0);
    assert_int_equal(got.on.status, RING_ERR_CONFIG);
    assert_non_null(strstr(got.on.error, "zero_optimization.offload_optimizer.nvme_path: "));
    assert_non_null(strstr(got.on.error, "No such file or directory"));
}

static void a_full_disk_is_told_with_what_is_free(void **state)
{
    mapped_file file;
    assert_int_equal(mapped_file_open(&file, "the.key", folder, (size_t)1 << 50), RING_ERR_SYSTEM);
    assert_non_null(strstr(train_error(), "the.key: cannot allocate 1125899906842624 bytes in "));
    assert_non_null(strstr(train_error(), " are free: "));
    mapped_file_close(&file);
}

static int set_up(void **state)
{
    files_set_up(state);
    drawn_fill(&dataset, SAMPLES);
    snprintf(folder, sizeof folder, "%s", files_path("disk"));
    return mkdir(folder, 0700);
}

static int tear_down(void **state)
{
    dataset_free(&dataset);
    return files_tear_down(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bits_are_those_of_states_in_memory),
        cmocka_unit_test(states_are_not_resident),
        cmocka_unit_test(checkpoints_go_either_way),
        cmocka_unit_test(a_disk_that_fails_ends_all_ranks_alike),
        cmocka_unit_test(a_disk_that_fails_in_a_checkpoint_is_told),
        cmocka_unit_test(a_disk_that_fails_before_parameters_are_gathered_is_told),
        cmocka_unit_test(a_missing_folder_is_told_by_all_ranks),
        cmocka_unit_test(a_full_disk_is_told_with_what_is_free),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

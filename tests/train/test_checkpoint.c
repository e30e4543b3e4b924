/* SPDX-License-Identifier: Apache-2.0
 * Checkpoints of engines whose ranks are threads: whatever saved them, whatever loads them; and
 * damaged ones. Every element of the state has a value of its own, which follows from its name and
 * place alone. RING_TEST_LONG: all pairs of ranks and stages. */
#include "check.h"
#include "engine_ranks.h"
#include "files.h"
#include "parsing.h"

#include <builtin.h>
#include <checkpoint.h>
#include <dirent.h>
#include <durable.h>
#include <errors.h>
#include <fcntl.h>
#include <gpt.h>
#include <shard.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PIXELS = 784, RANKS_MAX = 4, STATES = 3, STEP = 41 };

#define ADAM "{type: \"Adam\"}"
#define MOMENTUM "{type: \"SGD\", params: {lr: 0.1, momentum: 0.9}}"

/* Instructions for the ranks, and results of one of them. */
typedef struct job {
    engine_rank on;
    int ranks, stage;
    int stages;  /* of a pipeline; 0: none */
    int tensors; /* tensor ranks; 0: none */
    const char *optimizer, *path;
    const char *model; /* NULL: the usual one */
    bool saves;
    long step;
    uint64_t seed, data;
    char found[STORED_PATH_MAX], notes[4096];
    size_t wrong; /* elements that are not what they were */
    run_place place;
    long optimizer_step;
} job;

/* ---- Values -------------------------------------------------------------------------------- */

static float *base_of(train_engine *engine, int state)
{
    if (state == 0)
        return (float *)(void *)zero_array_of(&engine->memory, ZERO_MASTERS)->data;
    return state == 1 ? engine->optimizer.first : engine->optimizer.second;
}

static array_layout layout_of(const train_engine *engine, int state)
{
    if (state == 0)
        return zero_array_of(&engine->memory, ZERO_MASTERS)->layout;
    return engine->zero_stage > 0 ? LAYOUT_OWN : LAYOUT_FULL;
}

static const partition_bucket *bucket_of(const train_engine *engine, size_t flat)
{
    const partition_bucket *bucket = engine->partition.buckets;
    while (flat >= bucket->at[LAYOUT_FULL] + bucket->count)
        bucket++;
    return bucket;
}

/* @return where the element lies; NULL: on another rank. */
static float *place_of(train_engine *engine, int state, size_t flat)
{
    const partition_bucket *bucket = bucket_of(engine, flat);
    const size_t in = flat - bucket->at[LAYOUT_FULL];
    const array_layout layout = layout_of(engine, state);
    float *base = base_of(engine, state);
    if (layout == LAYOUT_FULL)
        return base + flat;
    const size_t before = bucket->at[layout];
    if (layout == LAYOUT_KEPT && bucket->is_persistent)
        return base + before + in;
    return in / bucket->part == (size_t)engine->rank ? base + before + in % bucket->part : NULL;
}

/* @return the tensor as it lies on this rank; NULL: it does not. */
static const train_tensor *tensor_here(const train_engine *engine, const char *name)
{
    const tensor_table *staged = &engine_staged_network(engine)->tensors;
    const int local = pipeline_local(&engine->pipeline,
                                     (int)(tensors_find(staged, name) - staged->list));
    return local >= 0 ? &engine->model.tensors.list[local] : NULL;
}

/* @return which element of the whole tensor is element @p i of the rank's rows or columns of it;
 *  queries, keys and values are cut alike. */
static size_t element_of(const train_engine *engine, const train_tensor *whole,
                         const train_tensor *here, size_t i)
{
    const size_t rank = (size_t)engine->tensor.rank, width = here->shape[here->dims - 1];
    if (here->count == whole->count)
        return i;
    if (here->shape[0] == whole->shape[0])
        return i / width * whole->shape[1] + rank * width + i % width;
    const size_t thirds = strstr(whole->name, "c_attn") != NULL ? 3 : 1;
    const size_t third = here->count / thirds;
    return i / third * (whole->count / thirds) + rank * third + i % third;
}

/* Writes, or counts what differs; @p before values come before the tensor's. All are exact. */
static size_t visit_tensor(train_engine *engine, int state, const train_tensor *tensor,
                           size_t before, bool writes)
{
    const train_tensor *here = tensor_here(engine, tensor->name);
    size_t wrong = 0;
    for (size_t i = 0; here != NULL && base_of(engine, state) != NULL && i < here->count; i++) {
        const float value = (float)(before + element_of(engine, tensor, here, i) + 1);
        float *at = place_of(engine, state, here->offset + i);
        if (at != NULL && writes)
            *at = value;
        wrong += at != NULL && *at != value;
    }
    return wrong;
}

static size_t visit(train_engine *engine, bool writes)
{
    const tensor_table *tensors = &engine_network(engine)->tensors;
    size_t wrong = 0, before = 0;
    for (int s = 0; s < STATES; s++) {
        for (int t = 0; t < tensors->count; t++) {
            const train_tensor *tensor = &tensors->list[t];
            if (tensor->tie >= 0)
                continue;
            wrong += visit_tensor(engine, s, tensor, before, writes);
            before += tensor->count;
        }
    }
    return wrong;
}

/* ---- Ranks --------------------------------------------------------------------------------- */

static void configure(const job *run, char text[512])
{
    snprintf(text, 512,
             "{train_batch_size: 4, optimizer: %s, zero_optimization: {stage: %d, "
             "stage3_param_persistence_threshold: 1000}, pipeline: {stages: %d}, "
             "tensor_parallel: {autotp_size: %d}}",
             run->optimizer, run->stage, run->stages > 0 ? run->stages : 1,
             run->tensors > 0 ? run->tensors : 1);
}

/* Each of two or four stages has layers that share parameters with others. */
static ring_status build_tied(model_spec *spec)
{
    model_spec_start(spec, "tied", (op_shape){.dim = {PIXELS}, .dims = 1});
    model_spec_add(spec, &op_linear, &(op_settings){.outputs = 11});
    for (int n = 1; n <= 6; n++)
        model_spec_add(spec, &op_linear, &(op_settings){.outputs = 11})->tie = n == 1 ? NOT_TIED
                                                                                      : 1;
    model_spec_add(spec, &op_linear, &(op_settings){.outputs = 10});
    return RING_OK;
}

/* Buckets that 4 does not divide, tensors that ranks share. */
static ring_status build(model_spec *spec, const char *name)
{
    static const size_t widths[] = {PIXELS, 29, 131, 127, 3, 10};
    static const gpt_sizes sizes = {
        .layers = 2, .heads = 4, .width = 24, .tokens = 6, .words = 32, .tied = true};
    if (name == NULL)
        return model_build_mlp(spec, "deep", widths, COUNT_OF(widths) - 1);
    if (strcmp(name, "tied") == 0)
        return build_tied(spec);
    if (strcmp(name, "gpt") == 0)
        return model_build_gpt(spec, name, &sizes);
    return model_build(spec, name);
}

static void take_note(void *context, const char *text)
{
    job *run = context;
    const size_t used = strlen(run->notes);
    snprintf(run->notes + used, sizeof run->notes - used, "%s\n", text);
}

static ring_status identify(const job *run, run_identity *identity)
{
    model_spec spec = {0};
    RING_TRY(build(&spec, run->model));
    *identity = (run_identity){.model_hash = model_spec_hash(&spec),
                               .data_hash = run->data,
                               .seed = run->seed};
    snprintf(identity->model, sizeof identity->model, "%s", spec.name);
    model_spec_free(&spec);
    return RING_OK;
}

static ring_status work(train_engine *engine, void *rank)
{
    job *run = rank;
    static char settings[] = "a=1\nb=2\n";
    checkpoint_run what = {.place = {.step = run->step, .epoch = 3, .taken = 17},
                           .settings = settings};
    RING_TRY(identify(run, &what.identity));
    if (run->saves) {
        visit(engine, true);
        engine->optimizer.step = STEP;
        return checkpoint_save(engine, run->path, &what, 0);
    }
    const ring_status status = checkpoint_load(engine, run->path, &what, take_note, run,
                                               run->found);
    if (status == RING_OK)
        checkpoint_tell_changes(&what, take_note, run);
    run->wrong = visit(engine, false);
    run->optimizer_step = engine->optimizer.step;
    run->place = what.place;
    return status;
}

/* @return what rank 0 saw; all ranks must have the same status. */
static job run_ranks(const job *what)
{
    static job runs[RANKS_MAX];
    char text[512];
    configure(what, text);
    runs[0] = *what;
    engine_ranks_run(&(engine_job){.config = text,
                                   .model = what->model,
                                   .build = build,
                                   .loss = LOSS_MSE,
                                   .samples = 4,
                                   .work = work},
                     what->ranks, runs, sizeof runs[0]);
    for (int r = 1; r < what->ranks; r++) {
        assert_int_equal(runs[r].on.status, runs[0].on.status);
        runs[0].wrong += runs[r].wrong;
    }
    return runs[0];
}

/* @return "s" in the test's folder: a place of its own, as files_path() is overwritten. */
static const char *make_folder(void)
{
    static char dir[FILENAME_MAX];
    snprintf(dir, sizeof dir, "%s", files_path("s"));
    assert_int_equal(mkdir(dir, 0700), 0);
    return dir;
}

/* Ranks, stages of ZeRO and of a pipeline, tensor ranks. */
typedef struct grid_kind {
    int ranks, zero, stages, tensors;
} grid_kind;

static job save_grid(const grid_kind *kind, const char *model, const char *dir, long step)
{
    const job run = run_ranks(&(job){.ranks = kind->ranks,
                                     .stage = kind->zero,
                                     .stages = kind->stages,
                                     .tensors = kind->tensors,
                                     .model = model,
                                     .optimizer = ADAM,
                                     .path = dir,
                                     .saves = true,
                                     .step = step});
    if (run.on.status != RING_OK)
        fail_msg("%d ranks, stage %d: %s", kind->ranks, kind->zero, run.on.error);
    return run;
}

static job load_grid(const grid_kind *kind, const char *model, const char *path)
{
    return run_ranks(&(job){.ranks = kind->ranks,
                            .stage = kind->zero,
                            .stages = kind->stages,
                            .tensors = kind->tensors,
                            .model = model,
                            .optimizer = ADAM,
                            .path = path});
}

static job save_step(int ranks, int stage, const char *dir, long step)
{
    return save_grid(&(grid_kind){ranks, stage, 1, 1}, NULL, dir, step);
}

static job load(int ranks, int stage, const char *path)
{
    return load_grid(&(grid_kind){ranks, stage, 1, 1}, NULL, path);
}

static void expect_loaded(const job *run)
{
    if (run->on.status != RING_OK)
        fail_msg("%d ranks, stage %d: %s", run->ranks, run->stage, run->on.error);
    assert_int_equal(run->wrong, 0);
    assert_int_equal(run->optimizer_step, STEP);
    assert_int_equal(run->place.epoch, 3);
    assert_int_equal(run->place.taken, 17);
}

/* ---- Pairs --------------------------------------------------------------------------------- */

static const grid_kind kinds[] = {
    {1, 0, 1, 1}, {2, 0, 1, 1}, {2, 1, 1, 1}, {2, 2, 1, 1}, {2, 3, 1, 1},
    {4, 0, 1, 1}, {4, 1, 1, 1}, {4, 2, 1, 1}, {4, 3, 1, 1}, {2, 0, 2, 1},
    {4, 0, 2, 1}, {4, 1, 2, 1}, {4, 0, 4, 1}, {4, 1, 4, 1},
};
enum { KINDS = COUNT_OF(kinds) };

static const char *folder_of(int kind)
{
    char name[32];
    snprintf(name, sizeof name, "kind%d", kind);
    assert_true(mkdir(files_path(name), 0700) == 0);
    return files_path(name);
}

/* Each element once, no padding: the elements in the files are those of the parameters. */
static void expect_no_padding(const char *dir, int ranks, size_t parameters)
{
    char path[FILENAME_MAX];
    size_t elements = 0;
    stored_tensors stored;
    snprintf(path, sizeof path, "%s/step-00000001", dir);
    assert_int_equal(shards_open(path, ranks, &stored), RING_OK);
    for (int i = 0; i < stored.count; i++)
        elements += stored.ranges[i].count;
    assert_int_equal(elements, STATES * parameters);
    stored_free(&stored);
}

/* @param every  all pairs; else each kind is saved once and loaded once */
static void expect_all_load_all(size_t parameters, bool every)
{
    for (int from = 0; from < (int)KINDS; from++) {
        const char *dir = folder_of(from);
        save_grid(&kinds[from], NULL, dir, 1);
        expect_no_padding(dir, kinds[from].ranks, parameters);
        for (int to = 0; to < (int)KINDS; to++) {
            if (!every && to != (from * 5 + 8) % (int)KINDS)
                continue;
            const job run = load_grid(&kinds[to], NULL, dir);
            expect_loaded(&run);
        }
    }
}

static void any_ranks_and_stage_load_what_any_other_saved(void **state)
{
    expect_all_load_all(PIXELS * 29 + 29 + 29 * 131 + 131 + 131 * 127 + 127 + 127 * 3 + 3 + 3 * 10 +
                            10,
                        getenv("RING_TEST_LONG") != NULL);
}

static void expect_grids_load_grids(const grid_kind *grids, int count, const char *model,
                                    size_t parameters)
{
    for (int from = 0; from < count; from++) {
        const char *dir = folder_of(from);
        save_grid(&grids[from], model, dir, 1);
        expect_no_padding(dir, grids[from].ranks, parameters);
        for (int to = 0; to < count; to++) {
            const job run = load_grid(&grids[to], model, dir);
            expect_loaded(&run);
        }
    }
}

/* Of stages that share parameters one writes them. */
static void what_stages_share_is_stored_once(void **state)
{
    static const grid_kind grids[] = {{1, 0, 1, 1}, {2, 0, 2, 1}, {4, 1, 2, 1}, {4, 0, 4, 1}};
    expect_grids_load_grids(grids, COUNT_OF(grids), "tied",
                            PIXELS * 11 + 11 + 11 * 11 + 11 + 11 * 10 + 10);
}

/* Words and places; per layer two norms, and weights and biases of four matrices; a norm. */
static void any_tensor_ranks_load_what_any_other_saved(void **state)
{
    static const grid_kind grids[] = {{1, 0, 1, 1}, {2, 0, 1, 2}, {4, 0, 1, 4}, {2, 3, 1, 1},
                                      {4, 1, 1, 2}, {4, 3, 1, 2}, {4, 0, 2, 2}};
    const size_t width = 24, layer = 12 * width * width + 13 * width;
    expect_grids_load_grids(grids, COUNT_OF(grids), "gpt", (32 + 6 + 2) * width + 2 * layer);
}

static void momentum_is_a_state_too(void **state)
{
    job what = {.ranks = 2,
                .stage = 1,
                .optimizer = MOMENTUM,
                .path = files_path("s"),
                .saves = true,
                .step = 1};
    assert_int_equal(mkdir(what.path, 0700), 0);
    assert_int_equal(run_ranks(&what).on.status, RING_OK);
    what.saves = false;
    what.ranks = 1;
    const job run = run_ranks(&what);
    expect_loaded(&run);
}

/* ---- On the disk --------------------------------------------------------------------------- */

/* Files synced to disk, and whether a folder got its name before all its files were. */
static struct {
    _Atomic int count;
    ino_t files[64];
    bool too_early;
    int folders;
} synced;

int fsync(int fd)
{
    struct stat of;
    const int at = atomic_fetch_add(&synced.count, 1);
    if (at < (int)COUNT_OF(synced.files) && fstat(fd, &of) == 0)
        synced.files[at] = of.st_ino;
    return (int)syscall(SYS_fsync, fd);
}

static bool is_synced(ino_t file)
{
    for (int i = 0; i < (int)COUNT_OF(synced.files); i++) {
        if (synced.files[i] == file)
            return true;
    }
    return false;
}

int rename(const char *from, const char *to)
{
    struct stat of;
    DIR *entries = opendir(from);
    if (entries != NULL) {
        synced.folders++;
        synced.too_early |= fstat(dirfd(entries), &of) != 0 || !is_synced(of.st_ino);
        for (const struct dirent *entry; (entry = readdir(entries)) != NULL;)
            synced.too_early |= entry->d_name[0] != '.' && !is_synced(entry->d_ino);
        closedir(entries);
    }
    return renameat(AT_FDCWD, from, AT_FDCWD, to);
}

static void a_checkpoint_is_on_the_disk_before_it_has_its_name(void **state)
{
    const char *dir = make_folder();
    struct stat of;
    memset(&synced, 0, sizeof synced);
    save_step(2, 1, dir, 1);
    assert_int_equal(synced.folders, 1);
    assert_false(synced.too_early);
    assert_in_range(synced.count, 5, COUNT_OF(synced.files)); /* shards, manifest, both folders */
    assert_int_equal(stat(dir, &of), 0);
    assert_true(is_synced(of.st_ino));
}

/* ---- Files that do not belong --------------------------------------------------------------- */

static void expect_text(const char *text, const char *part)
{
    if (strstr(text, part) == NULL)
        fail_msg("no \"%s\" in: %s", part, text);
}

static void expect_refused(const job *what, const char *text)
{
    const job run = run_ranks(what);
    assert_int_equal(run.on.status, RING_ERR_CONFIG);
    expect_text(run.on.error, text);
    assert_true(run.wrong > 0); /* nothing was loaded */
}

static void a_checkpoint_of_another_run_is_refused(void **state)
{
    const char *dir = make_folder();
    save_step(2, 0, dir, 1);
    const job good = {.ranks = 2, .optimizer = ADAM, .path = dir};
    job what = good;
    what.model = "mlp";
    expect_refused(&what, "is a checkpoint of model deep, which differs from this run's model mlp");
    what = good;
    what.seed = 5;
    expect_refused(&what, "is of a run with --seed 0, not 5");
    what = good;
    what.data = 5;
    expect_refused(&what, "was trained on other data");
    what = good;
    what.optimizer = MOMENTUM;
    expect_refused(&what, "which has no momentum_buffer");
    what.optimizer = "{type: \"SGD\"}";
    expect_refused(&what, "which also has exp_avg");
}

/* ---- Damage -------------------------------------------------------------------------------- */

static const char *inside(const char *name)
{
    static char path[FILENAME_MAX];
    snprintf(path, sizeof path, "s/step-00000002/%s", name);
    return path;
}

static void cut(const char *name, long bytes)
{
    assert_int_equal(truncate(files_path(inside(name)), bytes), 0);
}

static void flip(const char *name, size_t at)
{
    size_t bytes;
    char *data = files_read(files_path(inside(name)), &bytes);
    assert_non_null(data);
    data[at < bytes ? at : bytes - 1] ^= 4;
    files_write(inside(name), data, bytes);
    free(data);
}

#define SHARD "rank-00001.safetensors"

static void damage(int way)
{
    switch (way) {
    case 0:
        cut(SHARD, 5000);
        break;
    case 1:
        cut(SHARD, 0);
        break;
    case 2:
        flip(SHARD, 9);
        break;
    case 3:
        flip(SHARD, SIZE_MAX);
        break;
    case 4:
        unlink(files_path(inside(SHARD)));
        break;
    case 5:
        cut("manifest.json", 300);
        break;
    case 6:
        cut("manifest.json", 0);
        break;
    case 7:
        flip("manifest.json", 40);
        break;
    default:
        unlink(files_path(inside("manifest.json")));
        break;
    }
}

static const char *const damages[] = {
    "rank-00001.safetensors: 5000 bytes, but",
    "rank-00001.safetensors: 0 bytes, but",
    "rank-00001.safetensors: hash ",
    "rank-00001.safetensors: hash ",
    "rank-00001.safetensors: No such file",
    "manifest.json: its contents do not match the hash",
    "manifest.json: its contents do not match the hash",
    "manifest.json: its contents do not match the hash",
    "manifest.json: No such file",
};

static void what_is_damaged_is_named_and_the_last_good_one_used(void **state)
{
    const char *dir = make_folder();
    save_step(2, 2, dir, 1);
    for (size_t way = 0; way < COUNT_OF(damages); way++) {
        save_step(2, 2, dir, 2);
        damage((int)way);
        job run = load(2, 1, dir);
        expect_loaded(&run);
        assert_int_equal(run.place.step, 1);
        expect_text(run.found, "/step-00000001");
        expect_text(run.notes, "not used: ");
        expect_text(run.notes, damages[way]);
        run = load(2, 1, files_path("s/step-00000002"));
        assert_int_equal(run.on.status, RING_ERR_SYSTEM);
        expect_text(run.on.error, damages[way]);
        assert_true(run.wrong > 0);
    }
}

static void a_folder_without_a_whole_checkpoint_is_refused(void **state)
{
    const char *dir = make_folder();
    job run = load(2, 0, dir);
    assert_int_equal(run.on.status, RING_ERR_SYSTEM);
    expect_text(run.on.error, "there is no checkpoint (step-NNNNNNNN) in it");
    save_step(1, 0, dir, 2);
    cut("rank-00000.safetensors", 100);
    run = load(2, 0, dir);
    assert_int_equal(run.on.status, RING_ERR_SYSTEM);
    expect_text(run.on.error, "1 checkpoint in it, all damaged");
}

/* Written as it should be, but not about these shards or this network. */
static void tell_wrongly(checkpoint_manifest *manifest, int way)
{
    const size_t rows = manifest->tensors[0].shape[0];
    if (way == 0) {
        manifest->shard_count = 1; /* the rest of the elements is on the second */
    } else if (way == 1) {
        manifest->tensors[0].order.parts = 5; /* of 22736 elements */
    } else {
        manifest->tensors[0].shape[0] = manifest->tensors[0].shape[1];
        manifest->tensors[0].shape[1] = rows;
    }
}

static void manifests_that_do_not_fit_are_refused(void **state)
{
    static const char *const texts[] = {" elements of ", "a value is missing or invalid",
                                        "is of another model: in place of this run's tensor "};
    const char *dir = make_folder();
    for (int way = 0; way < (int)COUNT_OF(texts); way++) {
        checkpoint_manifest manifest;
        char *text;
        size_t length;
        save_step(2, 1, dir, 2);
        assert_int_equal(manifest_read(&manifest, files_path(inside("manifest.json"))), RING_OK);
        const int shards = manifest.shard_count;
        tell_wrongly(&manifest, way);
        assert_int_equal(manifest_write(&manifest, &text, &length), RING_OK);
        files_write(inside("manifest.json"), text, length);
        manifest.shard_count = shards;
        manifest_free(&manifest);
        free(text);
        const job run = load(2, 1, files_path("s/step-00000002"));
        assert_int_not_equal(run.on.status, RING_OK);
        expect_text(run.on.error, texts[way]);
        assert_true(run.wrong > 0); /* nothing was loaded */
    }
}

/* Readers of "latest" may be misled; this program is not. */
static void latest_is_not_believed(void **state)
{
    const char *dir = make_folder();
    save_step(1, 0, dir, 2);
    size_t bytes;
    char *latest = files_read(files_path("s/latest"), &bytes);
    assert_string_equal(latest, "step-00000002\n");
    free(latest);
    files_write("s/latest", "step-00000777\n", 14);
    const job run = load(1, 0, dir);
    expect_loaded(&run);
}

/* ---- Manifests ----------------------------------------------------------------------------- */

static ring_status parse_text(const char *text, size_t length)
{
    checkpoint_manifest manifest;
    const ring_status status = manifest_parse(&manifest, "m", text, length);
    manifest_free(&manifest);
    return status;
}

static void any_flipped_bit_of_a_manifest_is_noticed(void **state)
{
    const char *dir = files_path("s");
    size_t bytes;
    assert_int_equal(mkdir(dir, 0700), 0);
    save_step(1, 0, dir, 2);
    char *text = files_read(files_path(inside("manifest.json")), &bytes);
    assert_int_equal(parse_text(text, bytes), RING_OK);
    for (size_t i = 0; i < bytes; i++) {
        for (int bit = 0; bit < 8; bit += 3) {
            text[i] = (char)(text[i] ^ 1 << bit);
            assert_int_equal(parse_text(text, bytes), RING_ERR_SYSTEM);
            text[i] = (char)(text[i] ^ 1 << bit);
        }
        assert_int_equal(parse_text(text, i), RING_ERR_SYSTEM);
    }
    free(text);
}

/* With a hash that is right. */
static void write_version(char version)
{
    size_t bytes;
    char *text = files_read(files_path(inside("manifest.json")), &bytes);
    char *number = strstr(text, "\"version\":\t"), *end = strstr(text, ",\n\t\"hash\":\t\"");
    for (char *next; (next = strstr(end + 1, ",\n\t\"hash\":\t\"")) != NULL;)
        end = next;
    assert_non_null(number);
    number[strlen("\"version\":\t")] = version;
    snprintf(end, bytes - (size_t)(end - text) + 1, ",\n\t\"hash\":\t\"%016llx\"\n}\n",
             (unsigned long long)durable_hash(text, (size_t)(end - text)));
    files_write(inside("manifest.json"), text, bytes);
    free(text);
}

static void another_version_is_refused_at_once(void **state)
{
    const char *dir = make_folder();
    save_step(1, 0, dir, 1);
    save_step(1, 0, dir, 2);
    write_version('3');
    job run = load(1, 0, dir);
    assert_int_equal(run.on.status, RING_ERR_UNSUPPORTED);
    expect_text(run.on.error, "the format has version 3, but this ringtrain reads versions 1 to 2");
    write_version('1'); /* is read as long as no tensor rank has a part */
    run = load(1, 0, dir);
    expect_loaded(&run);
    assert_int_equal(run.place.step, 2);
}

/* ---- Files of tensors ---------------------------------------------------------------------- */

#define ENTRY(name, type, shape, begin, end) \
    "\"" name "\":{\"dtype\":\"" type "\",\"shape\":[" shape "],\"data_offsets\":[" begin "," end \
    "]}"

/* The data are 12 bytes. */
static const struct {
    const char *header, *refusal; /* NULL: it is accepted */
} headers[] = {
    {"{" ENTRY("a", "F32", "3", "0", "12") "}", NULL},
    {"{\"__metadata__\":{\"x\":\"y\"}," ENTRY("b", "F32", "1", "8",
                                              "12") "," ENTRY("a", "BF16", "2,2", "0", "8") "}  ",
     NULL},
    {"{" ENTRY("a", "F32", "3", "0", "8") "}", "the data_offsets of a tensor are invalid"},
    {"{" ENTRY("a", "F32", "4", "0", "16") "}", "the data_offsets of a tensor are invalid"},
    {"{" ENTRY("a", "F32", "1", "12", "8") "}", "the data_offsets of a tensor are invalid"},
    {"{" ENTRY("a", "F32", "2", "0", "8") "}", "some of its bytes belong to no tensor"},
    {"{" ENTRY("a", "F32", "1", "0", "4") "," ENTRY("b", "F32", "1", "8", "12") "}",
     "overlap or leave a gap"},
    {"{" ENTRY("a", "F32", "2", "0", "8") "," ENTRY("b", "F32", "2", "4", "12") "}",
     "overlap or leave a gap"},
    {"{" ENTRY("a", "F32", "2", "0", "8") "," ENTRY("a", "F32", "1", "8", "12") "}",
     "two of its tensors have the same name"},
    {"{" ENTRY("a", "I64", "3", "0", "12") "}", "not F32, F16 or BF16"},
    {"{" ENTRY("a", "F32", "-3", "0", "12") "}", "the shape of a tensor is invalid"},
    {"{" ENTRY("a", "F32", "1.5", "0", "12") "}", "the shape of a tensor is invalid"},
    {"{" ENTRY("a", "F32", "4294967296,4294967296,4294967296", "0", "12") "}",
     "the shape of a tensor is invalid"},
    {"{" ENTRY("a", "F32", "1,1,1,1,1,1,1,1,3", "0", "12") "}", "the shape of a tensor is invalid"},
    {"{" ENTRY("", "F32", "3", "0", "12") "}",
     "a tensor's name is empty, too long or not printable"},
    {"{\"a\":3}", "does not have exactly dtype, shape and data_offsets"},
    {"[1]", "is not JSON"},
    {"{" ENTRY("a", "F32", "3", "0", "12") "}x", "is not JSON"},
    {"{" ENTRY("a", "F32", "3", "0", "12"), "is not JSON"},
};

static ring_status open_header(const char *header, uint64_t length)
{
    char file[1024];
    const char *path = files_path("f");
    stored_tensors stored;
    memcpy(file, &length, sizeof length);
    const int used = snprintf(file + sizeof length, sizeof file - sizeof length, "%s", header);
    memset(file + sizeof length + used, 0, 12);
    files_write("f", file, sizeof length + (size_t)used + 12);
    const ring_status status = stored_open(&stored, &path, 1, true);
    stored_free(&stored);
    return status;
}

static void hostile_headers_are_refused(void **state)
{
    for (size_t i = 0; i < COUNT_OF(headers); i++) {
        const ring_status status = open_header(headers[i].header, strlen(headers[i].header));
        assert_int_equal(status, headers[i].refusal == NULL ? RING_OK : RING_ERR_SYSTEM);
        if (headers[i].refusal != NULL)
            expect_text(train_error(), headers[i].refusal);
    }
    static const uint64_t lengths[] = {0, 1, 1000, 1U << 30, UINT64_MAX, UINT64_MAX - 8};
    for (size_t i = 0; i < COUNT_OF(lengths); i++) {
        assert_int_equal(open_header(headers[0].header, lengths[i]), RING_ERR_SYSTEM);
        expect_text(train_error(), "the length of its header is invalid");
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, files_set_up, files_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(any_ranks_and_stage_load_what_any_other_saved),
        TEST(what_stages_share_is_stored_once),
        TEST(any_tensor_ranks_load_what_any_other_saved),
        TEST(momentum_is_a_state_too),
        TEST(a_checkpoint_is_on_the_disk_before_it_has_its_name),
        TEST(a_checkpoint_of_another_run_is_refused),
        TEST(what_is_damaged_is_named_and_the_last_good_one_used),
        TEST(a_folder_without_a_whole_checkpoint_is_refused),
        TEST(manifests_that_do_not_fit_are_refused),
        TEST(latest_is_not_believed),
        TEST(any_flipped_bit_of_a_manifest_is_noticed),
        TEST(another_version_is_refused_at_once),
        TEST(hostile_headers_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

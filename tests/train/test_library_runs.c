/* SPDX-License-Identifier: Apache-2.0
 * The public API, on ranks that are threads, against the program ringtrain and against itself.
 * Arguments: folder of the programs, docs/examples/mnist, folder with seeds/. */
#include "files.h"
#include "library_calls.h"
#include "programs.h"
#include "thread_ranks.h"

#include <stdio.h>
#include <stdlib.h>

enum { UPDATES_MAX = 64, TRAIN = 200, TEST = 280, SEED = 3 };

#define LAYERS \
    "{name: \"small\", input: [784], layers: [{type: \"linear\", features: 24}, " \
    "{type: \"relu\"}, {type: \"dropout\"}, {type: \"linear\", features: 10}]}"

static int set_up(void **state)
{
    files_folder();
    files_dataset(TRAIN, TEST);
    files_write("layers.json", LAYERS, strlen(LAYERS));
    return 0;
}

/* ---- Ranks --------------------------------------------------------------------------------- */

typedef enum loop { LOOP_PIECES, LOOP_WHOLE } loop;

typedef struct library_run {
    int ranks;
    const char *config, *load, *save, *normalize;
    int workers, compat;
    bool drops; /* some micro-batches first */
    loop loop;
    long updates; /* 0: two epochs */
    double losses[UPDATES_MAX], norms[UPDATES_MAX], lrs[UPDATES_MAX], score, predicted;
    long count, step;
    float first[24];
    char data[256];
} library_run;

static ring_status pieces(ring_train *engine, const ring_train_batch *batch)
{
    const float *outputs;
    double loss;
    ring_status status = ring_train_forward(engine, batch, &outputs);
    if (status == RING_OK)
        status = ring_train_loss(engine, batch->labels, &loss);
    if (status == RING_OK)
        status = ring_train_backward(engine);
    return status == RING_OK ? ring_train_step(engine) : status;
}

static void note_update(library_run *run, const ring_train *engine, double lr)
{
    const ring_train_info info = info_of(engine);
    if (info.step == run->step || run->count >= UPDATES_MAX)
        return;
    run->step = info.step;
    run->lrs[run->count] = lr;
    run->norms[run->count] = info.grad_norm;
    run->losses[run->count++] = info.loss;
}

static bool is_done(const library_run *run)
{
    return run->updates > 0 && run->count >= run->updates;
}

static ring_status run_epoch(library_run *run, ring_train *engine)
{
    ring_train_batch batch = RING_TRAIN_BATCH_INIT;
    int more = 0;
    ring_status status = RING_OK;
    while (status == RING_OK && !is_done(run) &&
           (status = ring_train_next(engine, &batch, &more)) == RING_OK && more) {
        const double lr = info_of(engine).lr;
        status = pieces(engine, &batch);
        note_update(run, engine, lr);
    }
    return status;
}

/* Makes the first three calls of a micro-batch after some complete micro-batches. */
static ring_status drop(ring_train *engine, int whole)
{
    ring_train_batch batch = RING_TRAIN_BATCH_INIT;
    ring_status status = RING_OK;
    int more;
    for (int m = 0; m <= whole && status == RING_OK; m++) {
        status = ring_train_next(engine, &batch, &more);
        if (status == RING_OK)
            status = m < whole ? pieces(engine, &batch) : ring_train_forward(engine, &batch, NULL);
    }
    return status == RING_OK ? ring_train_drop(engine) : status;
}

static ring_status train(library_run *run, ring_train *engine)
{
    const ring_train_info info = info_of(engine);
    ring_status status = RING_OK;
    const long updates = run->updates > 0 ? run->updates : 2 * info.updates_per_epoch;
    run->step = info.step;
    for (int whole = 0; whole < 3 && run->drops && status == RING_OK; whole++)
        status = drop(engine, whole);
    if (run->loop == LOOP_PIECES) {
        while (status == RING_OK && run->count < updates)
            status = run_epoch(run, engine);
        return status;
    }
    for (long u = 0; u < updates && status == RING_OK; u++) {
        const double lr = info_of(engine).lr;
        status = ring_train_train_batch(engine, NULL);
        note_update(run, engine, lr);
    }
    return status;
}

/* A tensor that was set reads back equal, wherever its parts lie. */
static ring_status set_and_get(ring_train *engine, const char *name, size_t count)
{
    float *set = malloc(count * sizeof *set), *got = malloc(count * sizeof *got);
    ring_status status = set != NULL && got != NULL ? RING_OK : RING_ERR_MEMORY;
    for (size_t i = 0; i < count && status == RING_OK; i++)
        set[i] = (float)i;
    if (status == RING_OK)
        status = ring_train_set_tensor(engine, name, set, count);
    if (status == RING_OK)
        status = ring_train_get_tensor(engine, name, got, count);
    if (status == RING_OK && memcmp(set, got, count * sizeof *set) != 0)
        status = RING_ERR_INTERNAL;
    free(set);
    free(got);
    return status;
}

static ring_status set_tensors(ring_train *engine)
{
    const ring_status status = set_and_get(engine, "0.weight", 784 * 24);
    return status == RING_OK ? set_and_get(engine, "3.bias", 10) : status;
}

static double cross_entropy(const float *outputs, const uint32_t *labels, size_t rows)
{
    double loss = 0.0;
    for (size_t i = 0; i < rows; i++) {
        double sum = 0.0;
        for (size_t c = 0; c < 10; c++)
            sum += exp((double)outputs[i * 10 + c]);
        loss += log(sum) - (double)outputs[i * 10 + labels[i]];
    }
    return loss / (double)rows;
}

/* The test's loss from outputs and samples; shares but the first take fewer of them. */
static ring_status predict(library_run *run, ring_train *engine)
{
    static const size_t fewer = 100;
    const size_t rows = TEST - (size_t)info_of(engine).share * fewer;
    float *inputs = malloc(rows * 784 * sizeof *inputs), outputs[TEST * 10];
    uint32_t samples[TEST];
    uint32_t labels[TEST];
    for (uint32_t i = 0; i < rows; i++)
        samples[i] = i;
    ring_status status = inputs != NULL ? RING_OK : RING_ERR_MEMORY;
    if (status == RING_OK)
        status = ring_train_samples(engine, RING_TRAIN_SET_TEST, samples, rows, inputs, labels);
    if (status == RING_OK)
        status = ring_train_predict(engine, inputs, rows, outputs);
    run->predicted = rows == TEST ? cross_entropy(outputs, labels, rows) : run->score;
    free(inputs);
    return status;
}

static ring_status run_engine(library_run *run, ring_train *engine)
{
    ring_status status = run->load != NULL ? ring_train_load(engine, run->load) : RING_OK;
    if (status == RING_OK)
        status = train(run, engine);
    if (status == RING_OK && run->save != NULL)
        status = ring_train_save(engine, run->save);
    if (status == RING_OK)
        status = ring_train_evaluate(engine, &run->score, NULL);
    if (status == RING_OK)
        status = predict(run, engine);
    if (status == RING_OK)
        status = ring_train_get_tensor(engine, "0.bias", run->first, 24);
    return status == RING_OK ? set_tensors(engine) : status;
}

static ring_status run_rank(ring_comm *comm, void *context)
{
    library_run *run = context;
    ring_train_options options = RING_TRAIN_OPTIONS_INIT;
    ring_train *engine = NULL;
    options.config_text = run->config;
    options.layers = LAYERS;
    options.data = run->data;
    options.loss = "cross_entropy";
    options.seed = SEED;
    options.normalize = run->normalize;
    options.workers = run->workers;
    options.compat_ds_0_13 = run->compat;
    ring_status status = ring_train_create(&engine, comm, &options);
    if (status == RING_OK)
        status = run_engine(run, engine);
    ring_train_destroy(engine);
    return status;
}

/* Fails unless all ranks have the same. @return rank 0's. */
static library_run run_library(const library_run *base)
{
    library_run runs[THREAD_RANKS_MAX];
    void *contexts[THREAD_RANKS_MAX];
    for (int r = 0; r < base->ranks; r++) {
        runs[r] = *base;
        snprintf(runs[r].data, sizeof runs[r].data, "%s", files_path(""));
        contexts[r] = &runs[r];
    }
    thread_ranks_run(base->ranks, run_rank, contexts);
    for (int r = 0; r < base->ranks; r++) {
        assert_memory_equal(runs[r].losses, runs[0].losses, sizeof runs[0].losses);
        assert_memory_equal(runs[r].first, runs[0].first, sizeof runs[0].first);
        assert_true(runs[r].score == runs[0].score);
        assert_near(runs[r].predicted, runs[r].score, 1e-6, 0);
    }
    return runs[0];
}

/* ---- Against the program ------------------------------------------------------------------- */

static programs_run *ringtrain(int ranks, const char *config, const char *more)
{
    char options[1024];
    snprintf(options, sizeof options, "--model %s --loss cross_entropy --seed %d %s",
             files_path("layers.json"), SEED, more);
    programs_run *run = programs_train_config(ranks, config, options);
    programs_expect_success(run);
    return run;
}

/* As the metrics have it; checkpoints are compared bit for bit. */
static double as_printed(double loss)
{
    char text[32];
    snprintf(text, sizeof text, "%.9g", loss);
    return strtod(text, NULL);
}

static void expect_same_content(const char *a, const char *b)
{
    size_t bytes[2];
    char *content[2] = {files_read(files_path(a), &bytes[0]), files_read(files_path(b), &bytes[1])};
    assert_non_null(content[0]);
    assert_non_null(content[1]);
    assert_int_equal(bytes[0], bytes[1]);
    assert_memory_equal(content[0], content[1], bytes[0]);
    free(content[0]);
    free(content[1]);
}

static void expect_same_files(long step, int ranks)
{
    for (int r = 0; r < ranks; r++) {
        char ours[64], theirs[64];
        snprintf(ours, sizeof ours, "ours/step-%08ld/rank-%05d.safetensors", step, r);
        snprintf(theirs, sizeof theirs, "theirs/step-%08ld/rank-%05d.safetensors", step, r);
        expect_same_content(ours, theirs);
    }
}

/* Empties the folders of checkpoints. */
static void forget(void)
{
    programs_free(programs_shell("rm -rf %s %s", files_path("ours"), files_path("theirs")));
}

static void expect_losses(const library_run *got, const programs_run *want, size_t before)
{
    assert_int_equal(got->count, want->steps - before);
    for (long u = 0; u < got->count; u++) {
        if (as_printed(got->losses[u]) != want->loss[before + (size_t)u])
            fail_msg("update %ld: loss %.17g, ringtrain has %.17g", u, got->losses[u],
                     want->loss[before + (size_t)u]);
        assert_true(as_printed(got->lrs[u]) == as_printed(want->lr[before + (size_t)u]));
    }
}

static void expect_same(const library_run *got, const library_run *want)
{
    assert_int_equal(got->count, want->count);
    assert_memory_equal(got->losses, want->losses, sizeof got->losses);
    assert_memory_equal(got->norms, want->norms, sizeof got->norms);
    assert_memory_equal(got->first, want->first, sizeof got->first);
    assert_true(got->score == want->score);
}

#define CONFIG(stage, steps, more) \
    "{train_micro_batch_size_per_gpu: 8, gradient_accumulation_steps: " steps ", optimizer: " \
    "{type: \"Adam\", params: {lr: 0.01}}, scheduler: {type: \"WarmupLR\", params: " \
    "{warmup_max_lr: 0.01, warmup_num_steps: 5}}, gradient_clipping: 0.5, " \
    "zero_optimization: {stage: " stage "}, steps_per_print: 1000000" more "}"

#define ONE_CYCLE \
    "{train_micro_batch_size_per_gpu: 8, gradient_accumulation_steps: 2, optimizer: {type: " \
    "\"Adam\"}, scheduler: {type: \"OneCycle\", params: {cycle_min_lr: 0.001, cycle_max_lr: " \
    "0.01, " \
    "cycle_first_step_size: 4}}, steps_per_print: 1000000}"

#define NO_DECAY \
    "{train_micro_batch_size_per_gpu: 8, optimizer: {type: \"AdamW\", params: {lr: 0.01}, " \
    "param_groups: \"no_decay\"}, scheduler: {type: \"WarmupLR\", params: {warmup_max_lr: " \
    "0.01, warmup_num_steps: 5}}, steps_per_print: 1000000}"

#define STAGES(count) ", pipeline: {stages: " count "}"
#define TENSOR(count) ", tensor_parallel: {autotp_size: " count "}"

static programs_run *run_program(const library_run *base)
{
    char options[640];
    snprintf(options, sizeof options, "--epochs 2 %s%s %s%s --workers %d %s",
             base->save != NULL ? "--save " : "", base->save != NULL ? files_path("theirs") : "",
             base->normalize != NULL ? "--normalize " : "",
             base->normalize != NULL ? base->normalize : "", base->workers,
             base->compat ? "--compat ds-0.13" : "");
    return ringtrain(base->ranks, base->config, options);
}

/* Call by call, where there is no pipeline; then update by update. */
static void expect_program(const library_run *of)
{
    char ours[256];
    library_run base = *of;
    const bool staged = strstr(base.config, "stages") != NULL;
    forget();
    snprintf(ours, sizeof ours, "%s", files_path("ours"));
    base.save = ours;
    base.loop = staged ? LOOP_WHOLE : LOOP_PIECES;
    programs_run *program = run_program(&base);
    const library_run first = run_library(&base);
    expect_same_files(first.step, base.ranks);
    expect_losses(&first, program, 0);
    programs_free(program);
    if (staged)
        return;
    base.loop = LOOP_WHOLE;
    base.save = NULL;
    const library_run whole = run_library(&base);
    expect_same(&first, &whole);
}

/* An epoch ends with a short micro-batch, and with an update of fewer ones. */
static void losses_are_those_of_the_program(void **state)
{
    static const library_run cases[] = {
        {.ranks = 1, .config = CONFIG("0", "1", "")},
        {.ranks = 1, .config = CONFIG("0", "4", "")},
        {.ranks = 2, .config = CONFIG("0", "1", "")},
        {.ranks = 2, .config = CONFIG("0", "4", "")},
        {.ranks = 2, .config = CONFIG("1", "1", "")},
        {.ranks = 2, .config = CONFIG("1", "4", "")},
        {.ranks = 2, .config = CONFIG("2", "1", "")},
        {.ranks = 2, .config = CONFIG("2", "4", "")},
        {.ranks = 2, .config = CONFIG("3", "1", "")},
        {.ranks = 2, .config = CONFIG("3", "4", "")},
        {.ranks = 2, .config = CONFIG("2", "4", ", fp16: {enabled: true}")},
        {.ranks = 2, .config = CONFIG("3", "4", ", pipeline: {activation_checkpoint_interval: 1}")},
        {.ranks = 1, .config = ONE_CYCLE},
        {.ranks = 2, .config = CONFIG("0", "4", STAGES("2"))},
        {.ranks = 4, .config = CONFIG("1", "2", STAGES("2"))},
        {.ranks = 2, .config = CONFIG("0", "2", TENSOR("2"))},
        {.ranks = 4, .config = CONFIG("2", "2", TENSOR("2"))},
        {.ranks = 4, .config = CONFIG("3", "2", TENSOR("2"))},
        {.ranks = 2, .config = CONFIG("1", "3", ""), .workers = 3, .normalize = "0.13/0.31"},
        {.ranks = 2, .config = CONFIG("0", "3", STAGES("2")), .workers = 1},
        {.ranks = 1, .config = CONFIG("0", "1", ""), .compat = 1, .normalize = "0/0.5"},
        {.ranks = 2, .config = NO_DECAY, .compat = 1},
    };
    for (size_t c = 0; c < COUNT_OF(cases); c++)
        expect_program(&cases[c]);
}

/* Samples read ahead in one epoch are not used in another. */
static ring_status load_earlier_epoch(ring_comm *comm, void *context)
{
    library_run *run = context;
    ring_train_options options = RING_TRAIN_OPTIONS_INIT;
    ring_train *engine = NULL;
    double loss[2] = {0};
    options.config_text = run->config;
    options.layers = LAYERS;
    options.data = run->data;
    options.workers = 2;
    ring_status status = ring_train_create(&engine, comm, &options);
    const long epoch = status == RING_OK ? info_of(engine).updates_per_epoch : 0;
    for (long u = 0; u < epoch + 3 && status == RING_OK; u++) {
        status = ring_train_train_batch(engine, u == 3 ? &loss[0] : NULL);
        if (status == RING_OK && u == 2)
            status = ring_train_save(engine, run->save);
    }
    if (status == RING_OK)
        status = ring_train_load(engine, run->save);
    if (status == RING_OK)
        status = ring_train_train_batch(engine, &loss[1]);
    ring_train_destroy(engine);
    run->score = loss[1] - loss[0];
    return status;
}

static void a_checkpoint_of_another_epoch_drops_what_was_read_ahead(void **state)
{
    char at[256];
    forget();
    snprintf(at, sizeof at, "%s", files_path("ours"));
    library_run run = {.config = CONFIG("0", "1", ""), .save = at, .score = 1};
    snprintf(run.data, sizeof run.data, "%s", files_path(""));
    thread_ranks_run(1, load_earlier_epoch, (void *const[]){&run});
    assert_true(run.score == 0.0);
}

/* Updates are dropped with reads and calls under way. */
static void updates_that_are_dropped_leave_nothing(void **state)
{
    static const library_run cases[] = {
        {.ranks = 2, .config = CONFIG("0", "4", ""), .workers = 1, .updates = 4},
        {.ranks = 2, .config = CONFIG("2", "4", ", fp16: {enabled: true}"), .updates = 4},
        {.ranks = 2, .config = CONFIG("3", "4", ""), .updates = 4},
    };
    for (size_t c = 0; c < COUNT_OF(cases); c++) {
        library_run run = cases[c];
        const library_run want = run_library(&run);
        run.drops = true;
        const library_run got = run_library(&run);
        expect_same(&got, &want);
    }
}

/* ---- Stages and tensor ranks --------------------------------------------------------------- */

static void expect_near(const library_run *got, const library_run *want)
{
    assert_int_equal(got->count, want->count);
    for (long u = 0; u < got->count; u++) {
        assert_near(got->losses[u], want->losses[u], 1e-5, 0);
        assert_near(got->norms[u], want->norms[u], 1e-4, 0);
        assert_true(got->lrs[u] == want->lrs[u]);
    }
    for (int i = 0; i < 24; i++)
        assert_near(got->first[i], want->first[i], 1e-4, 1e-6);
    assert_near(got->score, want->score, 1e-5, 0);
}

/* The same samples by as many shares of the data, however many ranks compute each. */
static void ranks_of_a_share_compute_what_one_does(void **state)
{
    static const struct {
        const char *config, *alone;
        int ranks, shares;
    } cases[] = {
        {CONFIG("0", "4", STAGES("2")), CONFIG("0", "4", ""), 2, 1},
        {CONFIG("1", "2", STAGES("2")), CONFIG("1", "2", ""), 4, 2},
        {CONFIG("0", "2", TENSOR("2")), CONFIG("0", "2", ""), 2, 1},
        {CONFIG("2", "2", TENSOR("2")), CONFIG("2", "2", ""), 4, 2},
        {CONFIG("0", "2", STAGES("2") TENSOR("2")), CONFIG("0", "2", ""), 4, 1},
    };
    for (size_t c = 0; c < COUNT_OF(cases); c++) {
        const library_run got = run_library(
            &(library_run){.config = cases[c].config, .ranks = cases[c].ranks, .loop = LOOP_WHOLE});
        const library_run want = run_library(
            &(library_run){.config = cases[c].alone, .ranks = cases[c].shares, .loop = LOOP_WHOLE});
        expect_near(&got, &want);
    }
}

/* Saved by two ranks of a share, and gone on with by one rank; and the other way round. */
static void expect_one_checkpoint(const char *staged)
{
    static const char alone[] = CONFIG("0", "2", "");
    char at[256];
    const library_run want = run_library(
        &(library_run){.config = alone, .ranks = 1, .loop = LOOP_WHOLE, .updates = 20});
    for (int way = 0; way < 2; way++) {
        forget();
        snprintf(at, sizeof at, "%s", files_path("ours"));
        library_run run = {.config = way == 0 ? staged : alone,
                           .ranks = way == 0 ? 2 : 1,
                           .loop = LOOP_WHOLE,
                           .save = at,
                           .updates = 15};
        run_library(&run);
        run.config = way == 0 ? alone : staged;
        run.ranks = way == 0 ? 1 : 2;
        run.save = NULL;
        run.load = at;
        run.updates = 5;
        const library_run got = run_library(&run);
        assert_int_equal(got.step, 20);
        for (int u = 0; u < 5; u++)
            assert_near(got.losses[u], want.losses[15 + u], 1e-5, 0);
        for (int i = 0; i < 24; i++)
            assert_near(got.first[i], want.first[i], 1e-4, 1e-6);
    }
}

static void checkpoints_know_no_stages_and_no_tensor_ranks(void **state)
{
    expect_one_checkpoint(CONFIG("0", "2", STAGES("2")));
    expect_one_checkpoint(CONFIG("0", "2", TENSOR("2")));
}

/* Each of them on all ranks alike; the engine trains on. */
static ring_status refuse_there(ring_comm *comm, void *context)
{
    const library_run *run = context;
    ring_train_options options = RING_TRAIN_OPTIONS_INIT;
    ring_train *engine = NULL;
    ring_train_batch batch = RING_TRAIN_BATCH_INIT;
    int more;
    options.config_text = run->config;
    options.layers = LAYERS;
    options.data = run->data;
    const ring_status status = ring_train_create(&engine, comm, &options);
    if (status != RING_OK)
        return status;
    const bool is_right = ring_train_next(engine, &batch, &more) == RING_ERR_USAGE &&
                          ring_train_forward(engine, &batch, NULL) == RING_ERR_USAGE;
    const ring_train_info info = info_of(engine);
    const bool is_there = info.shares == 1 && info.share == 0 && info.stages == 2 &&
                          info.stage == ring_comm_rank(comm);
    const ring_status trained = ring_train_train_batch(engine, NULL);
    ring_train_destroy(engine);
    return is_right && is_there ? trained : RING_ERR_INTERNAL;
}

static void what_stages_lack_is_refused(void **state)
{
    library_run run = {.config = CONFIG("0", "1", STAGES("2"))};
    snprintf(run.data, sizeof run.data, "%s", files_path(""));
    thread_ranks_run(2, refuse_there, (void *const[]){&run, &run});
}

typedef struct setting {
    char data[256], file[256];
    float got[784 * 24], loaded[10];
} setting;

/* Columns of the first tensor lie on two ranks. */
static ring_status set_there(ring_comm *comm, void *context)
{
    setting *run = context;
    static float values[784 * 24]; /* the same on all ranks */
    ring_train_options options = RING_TRAIN_OPTIONS_INIT;
    ring_train *engine = NULL;
    const float bias[10] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    for (int i = 0; i < 784 * 24 && ring_comm_rank(comm) == 0; i++)
        values[i] = (float)i;
    ring_status status = ring_barrier(comm, NULL);
    options.config_text = CONFIG("1", "1", TENSOR("2"));
    options.layers = LAYERS;
    options.data = run->data;
    if (status == RING_OK)
        status = ring_train_create(&engine, comm, &options);
    if (status == RING_OK)
        status = ring_train_set_tensor(engine, "0.weight", values, 784 * 24);
    if (status == RING_OK)
        status = ring_train_get_tensor(engine, "0.weight", run->got, 784 * 24);
    if (status == RING_OK)
        status = ring_train_set_tensor(engine, "3.bias", bias, 10);
    if (status == RING_OK)
        status = ring_train_save_params(engine, run->file);
    if (status == RING_OK)
        status = ring_train_set_tensor(engine, "3.bias", values, 10);
    if (status == RING_OK)
        status = ring_train_load_params(engine, run->file);
    if (status == RING_OK)
        status = ring_train_get_tensor(engine, "3.bias", run->loaded, 10);
    ring_train_destroy(engine);
    return status;
}

static void tensor_ranks_set_and_load_whole_tensors(void **state)
{
    static setting runs[2];
    for (int r = 0; r < 2; r++) {
        snprintf(runs[r].data, sizeof runs[r].data, "%s", files_path(""));
        snprintf(runs[r].file, sizeof runs[r].file, "%s", files_path("set"));
    }
    thread_ranks_run(2, set_there, (void *const[]){&runs[0], &runs[1]});
    for (int r = 0; r < 2; r++) {
        for (int i = 0; i < 784 * 24; i++)
            assert_true(runs[r].got[i] == (float)i);
        for (int i = 0; i < 10; i++)
            assert_true(runs[r].loaded[i] == (float)(i + 1));
    }
}

/* ---- Checkpoints --------------------------------------------------------------------------- */

/* In the test's folder; its metrics do not begin with update 1. */
static void resume(const char *options)
{
    programs_run *run = programs_shell(
        "cd %s && PATH=%s:$PATH && ringrun -n 2 ringtrain --deepspeed_config config.json --data . "
        "--model layers.json --loss cross_entropy --seed %d %s 2>&1",
        files_path(""), programs.bin, SEED, options);
    programs_expect_success(run);
    assert_null(strstr(run->output, "NOTE --resume"));
    programs_free(run);
}

static library_run go_on(loop how, const char *load, const char *save, long updates)
{
    char from[256], to[256];
    snprintf(from, sizeof from, "%s", files_path(load != NULL ? load : ""));
    snprintf(to, sizeof to, "%s", files_path(save));
    return run_library(&(library_run){.config = CONFIG("2", "2", ""),
                                      .ranks = 2,
                                      .loop = how,
                                      .load = load != NULL ? from : NULL,
                                      .save = to,
                                      .updates = updates});
}

/* Within an epoch, and at its end. */
static void checkpoints_go_both_ways(void **state)
{
    static const char config[] = CONFIG("2", "2", "");
    forget();
    files_write("config.json", config, strlen(config));
    go_on(LOOP_PIECES, NULL, "ours", 12);
    go_on(LOOP_WHOLE, NULL, "five", 5);
    resume("--max-steps 12 --resume five --save theirs");
    expect_same_files(12, 2);
    resume("--max-steps 7 --save seven");
    resume("--max-steps 9 --save nine");
    resume("--max-steps 12 --save twelve");
    for (loop how = LOOP_PIECES; how <= LOOP_WHOLE; how++) {
        const bool at_end = how == LOOP_PIECES;
        forget();
        programs_free(programs_shell("cp -r %s %s", files_path("twelve"), files_path("theirs")));
        assert_int_equal(go_on(how, at_end ? "seven" : "nine", "ours", at_end ? 5 : 3).step, 12);
        expect_same_files(12, 2);
    }
}

/* ---- Started again ------------------------------------------------------------------------- */

typedef struct restarts {
    char data[256], folder[256];
    long stop; /* after this update; 0: never */
    long step;
    float first[24];
} restarts;

static ring_status train_one_epoch(restarts *run, ring_train *engine)
{
    ring_train_batch batch = RING_TRAIN_BATCH_INIT;
    int more = 1;
    ring_status status = RING_OK;
    while (more && status == RING_OK && (run->stop == 0 || run->step < run->stop)) {
        status = ring_train_next(engine, &batch, &more);
        if (more && status == RING_OK)
            status = pieces(engine, &batch);
        run->step = info_of(engine).step;
    }
    return status;
}

static ring_status train_two_epochs(ring_comm *comm, void *context)
{
    restarts *run = context;
    ring_train *engine = NULL;
    ring_train_options options = RING_TRAIN_OPTIONS_INIT;
    int found;
    options.config_text = CONFIG("0", "4", "");
    options.layers = LAYERS;
    options.data = run->data;
    ring_status status = ring_train_create(&engine, comm, &options);
    if (status == RING_OK)
        status = ring_train_resume(engine, run->folder, &found);
    for (int e = status == RING_OK ? info_of(engine).epoch : 3; e <= 2 && status == RING_OK; e++)
        status = train_one_epoch(run, engine);
    if (status == RING_OK && run->stop > 0)
        status = ring_train_save(engine, run->folder);
    if (status == RING_OK)
        status = ring_train_get_tensor(engine, "0.bias", run->first, 24);
    ring_train_destroy(engine);
    return status;
}

/* Within an epoch, at its end, and at the end of all: an epoch has 7 updates. */
static void a_loop_over_epochs_goes_on_where_it_was(void **state)
{
    static const long stops[] = {3, 7, 10, 14};
    restarts want = {.stop = 0};
    snprintf(want.data, sizeof want.data, "%s", files_path(""));
    snprintf(want.folder, sizeof want.folder, "%s", files_path("ours"));
    forget();
    thread_ranks_run(1, train_two_epochs, (void *const[]){&want});
    assert_int_equal(want.step, 14);
    for (size_t i = 0; i < COUNT_OF(stops); i++) {
        restarts run = want;
        forget();
        run.step = 0;
        run.stop = stops[i];
        thread_ranks_run(1, train_two_epochs, (void *const[]){&run});
        assert_int_equal(run.step, stops[i]);
        run.stop = 0;
        thread_ranks_run(1, train_two_epochs, (void *const[]){&run});
        assert_int_equal(run.step, 14);
        assert_memory_equal(run.first, want.first, sizeof want.first);
    }
}

/* ---- Files ----------------------------------------------------------------------------------- */

typedef struct files_run {
    char data[256], folder[256], file[256];
    float first[24], loaded[24]; /* of the one engine, and of the other */
    int before, behind;          /* whether a checkpoint was found */
    long step;
} files_run;

static ring_status open_engine(const files_run *run, ring_comm *comm, ring_train **engine)
{
    ring_train_options options = RING_TRAIN_OPTIONS_INIT;
    options.config_text = CONFIG("2", "2", "");
    options.layers = LAYERS;
    options.data = run->data;
    options.keep = 1;
    return ring_train_create(engine, comm, &options);
}

static ring_status write_files(ring_comm *comm, void *context)
{
    files_run *run = context;
    ring_train *engine = NULL;
    ring_status status = open_engine(run, comm, &engine);
    if (status == RING_OK)
        status = ring_train_resume(engine, run->folder, &run->before);
    for (int u = 0; u < 3 && status == RING_OK; u++) {
        status = ring_train_train_batch(engine, NULL);
        if (status == RING_OK)
            status = ring_train_save(engine, run->folder);
    }
    if (status == RING_OK)
        status = ring_train_save_params(engine, run->file);
    if (status == RING_OK)
        status = ring_train_get_tensor(engine, "0.bias", run->first, 24);
    ring_train_destroy(engine);
    return status;
}

static ring_status read_files(ring_comm *comm, void *context)
{
    files_run *run = context;
    ring_train *engine = NULL;
    ring_status status = open_engine(run, comm, &engine);
    if (status == RING_OK)
        status = ring_train_load_params(engine, run->file);
    if (status == RING_OK)
        status = ring_train_get_tensor(engine, "0.bias", run->loaded, 24);
    if (status == RING_OK)
        status = ring_train_resume(engine, run->folder, &run->behind);
    run->step = status == RING_OK ? info_of(engine).step : -1;
    ring_train_destroy(engine);
    return status;
}

/* ---- Means --------------------------------------------------------------------------------- */

/* Rank r has r samples of loss r, and rank 0 none, whose mean is no number. */
static ring_status check_means(ring_train *engine, int rank, int ranks)
{
    double values[2] = {rank > 0 ? rank : (double)NAN, 1.0}, below = 0.0, above = 0.0;
    ring_status status = ring_train_mean(engine, values, 2, rank);
    for (int r = 1; r < ranks; r++) {
        above += (double)r * r;
        below += r;
    }
    if (status == RING_OK && (fabs(values[0] - above / below) > 1e-15 || values[1] != 1.0))
        status = RING_ERR_INTERNAL;
    return status;
}

static ring_status expect_refusal(ring_status got)
{
    const bool told = strstr(ring_train_error(), "on some rank") != NULL;
    return got == RING_ERR_ARGUMENT && told ? RING_OK : RING_ERR_INTERNAL;
}

static ring_status means_of_rank(ring_comm *comm, void *context)
{
    ring_train_options options = RING_TRAIN_OPTIONS_INIT;
    ring_train *engine = NULL;
    const int rank = ring_comm_rank(comm), ranks = ring_comm_size(comm);
    double value = 7.0;
    options.config_text = "{train_micro_batch_size_per_gpu: 1, optimizer: {type: \"SGD\"}}";
    ring_status status = ring_train_create(&engine, comm, &options);
    if (status == RING_OK)
        status = check_means(engine, rank, ranks);
    for (int wrong = 0; wrong < 3 && status == RING_OK; wrong++) {
        const double weight = wrong == 0 ? 0.0 : (wrong == 1 && rank == 1 ? -1.0 : 1.0);
        status = expect_refusal(
            ring_train_mean(engine, wrong == 2 && rank == 0 ? NULL : &value, 1, weight));
    }
    if (status == RING_OK && value != 7.0)
        status = RING_ERR_INTERNAL;
    if (status == RING_OK) /* the communicator lives on */
        status = check_means(engine, rank, ranks);
    ring_train_destroy(engine);
    return status;
}

static void means_weigh_ranks_by_their_samples(void **state)
{
    void *const contexts[THREAD_RANKS_MAX] = {NULL};
    for (int ranks = 2; ranks <= THREAD_RANKS_MAX; ranks++)
        thread_ranks_run(ranks, means_of_rank, contexts);
}

static void parameters_go_into_a_file_and_come_back(void **state)
{
    files_run runs[2] = {{.before = -1}};
    void *const contexts[] = {&runs[0], &runs[1]};
    forget();
    snprintf(runs[0].data, sizeof runs[0].data, "%s", files_path(""));
    snprintf(runs[0].folder, sizeof runs[0].folder, "%s", files_path("ours"));
    snprintf(runs[0].file, sizeof runs[0].file, "%s", files_path("params"));
    runs[1] = runs[0];
    thread_ranks_run(2, write_files, contexts);
    thread_ranks_run(2, read_files, contexts);
    for (int r = 0; r < 2; r++) {
        assert_int_equal(runs[r].before, 0);
        assert_int_equal(runs[r].behind, 1);
        assert_int_equal(runs[r].step, 3);
        assert_memory_equal(runs[r].first, runs[r].loaded, sizeof runs[r].first);
    }
    programs_run *run = programs_shell("%s/ringtrain export %s --out %s && ls %s", programs.bin,
                                       files_path("ours"), files_path("exported"),
                                       files_path("ours"));
    programs_expect_success(run);
    programs_expect_output(run, "step-00000003");
    assert_null(strstr(run->output, "step-00000002"));
    programs_free(run);
    expect_same_content("params", "exported");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(losses_are_those_of_the_program),
        cmocka_unit_test(a_checkpoint_of_another_epoch_drops_what_was_read_ahead),
        cmocka_unit_test(ranks_of_a_share_compute_what_one_does),
        cmocka_unit_test(checkpoints_know_no_stages_and_no_tensor_ranks),
        cmocka_unit_test(what_stages_lack_is_refused),
        cmocka_unit_test(tensor_ranks_set_and_load_whole_tensors),
        cmocka_unit_test(checkpoints_go_both_ways),
        cmocka_unit_test(updates_that_are_dropped_leave_nothing),
        cmocka_unit_test(a_loop_over_epochs_goes_on_where_it_was),
        cmocka_unit_test(means_weigh_ranks_by_their_samples),
        cmocka_unit_test(parameters_go_into_a_file_and_come_back),
    };
    programs = (programs_paths){argv[1], argv[2], argv[argc - 1]};
    return cmocka_run_group_tests(tests, set_up, files_tear_down);
}

/* SPDX-License-Identifier: Apache-2.0
 * Runs whole updates on a GPU without waiting for the host. The host states each update in a record
 * of pinned memory, from which the update's first kernel (take) reads it. The kernel that decides
 * whether the update is skipped (judge) writes the outcome to pinned memory, which the host reads
 * later.
 *
 * The first update with a key is executed request by request, so that libraries prepare themselves.
 * The requests of the second one are captured in two graphs: of one update, and of
 * CUDA_UPDATES_AT_ONCE updates. Later updates only state their records, and are launched when
 * CUDA_UPDATES_AT_ONCE of them have gathered or when the host needs them. */
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "cuda_place.h"

enum { RECORDS = PLACE_UPDATES_MAX, GRAPHS_MAX = 16, LINE = 64, MARGIN_BYTES = 256 << 20 };

#define QUERY_SECONDS 0.01 /* between two questions of whether the GPU has failed */

typedef enum update_mode { UPDATE_EAGER, UPDATE_CAPTURE, UPDATE_REPLAY } update_mode;

/** The updates with one key. */
typedef struct kept_update {
    update_key key;
    bool ran;               /* once, request by request */
    CUgraphExec one, group; /* NULL: not captured yet; group: of CUDA_UPDATES_AT_ONCE updates */
} kept_update;

typedef struct cuda_updates {
    update_plan plan;
    unsigned char *records; /* [RECORDS, record_bytes] pinned; then [RECORDS] results */
    CUdeviceptr records_there;
    size_t factors_bytes, samples_at, labels_at, inputs_at, record_bytes;
    cuda_update *numbers; /* on the GPU, followed by factors */
    struct {
        uint8_t *bytes, *labels;
        float *values;
        size_t channels;
    } kept; /* samples on the GPU; bytes NULL: they are in the records */

    uint64_t read; /* updates whose outcomes have been read */
    kept_update *all[GRAPHS_MAX];
    int count;
    kept_update *now; /* of the update that has begun, or of those that wait for their launch */
    update_mode mode; /* of the update that has begun */
    int captured;     /* updates in the capture */
    size_t steps;     /* steps of the update that have been stated */
} cuda_updates;

static cuda_updates *updates_of(const nn_place *nn)
{
    return cuda_place_of(nn)->updates;
}

static void keep(cuda_place *place, CUresult result, const char *what)
{
    cuda_place_keep(place, cuda_check(result, what), "an update");
}

static unsigned char *record_of(const cuda_updates *u, uint64_t update)
{
    return u->records + update % RECORDS * u->record_bytes;
}

static volatile cuda_update_result *result_of(const cuda_updates *u, uint64_t update)
{
    void *results = u->records + RECORDS * u->record_bytes;
    return (volatile cuda_update_result *)results + update % RECORDS;
}

/* ---- Opening --------------------------------------------------------------------------------- */

static size_t reserve(size_t *at, size_t bytes)
{
    const size_t begin = *at;
    *at += (bytes + LINE - 1) / LINE * LINE;
    return begin;
}

/* Allocates the records. They have the samples, and not only their numbers, unless these are kept.
 */
static ring_status make_records(cuda_place *place)
{
    cuda_updates *u = place->updates;
    const bool whole = u->kept.bytes == NULL;
    const size_t samples = u->plan.samples;
    size_t at = CUDA_FACTORS_BYTES + u->factors_bytes;
    void *memory;
    u->samples_at = reserve(&at, samples * sizeof(uint32_t));
    u->labels_at = reserve(&at, whole ? samples * sizeof(uint32_t) : 0);
    u->inputs_at = reserve(&at, whole ? samples * u->plan.features * sizeof(float) : 0);
    u->record_bytes = at;
    at = RECORDS * (u->record_bytes + sizeof(cuda_update_result));
    CUresult result = place->api->host_alloc(&memory, at,
                                             CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
    if (result == CUDA_SUCCESS) {
        u->records = memset(memory, 0, at);
        result = place->api->host_device_pointer(&u->records_there, memory, 0);
    }
    if (cuda_check(result, "allocating pinned memory (cuMemHostAlloc)") != RING_OK)
        return train_fail(RING_ERR_MEMORY, "no memory for %d updates that %s has not computed: %s",
                          RECORDS, place->name, fail_text());
    return RING_OK;
}

/* Copies @p from to new memory of the GPU. */
static ring_status keep_array(const nn_place *nn, void **to, const void *from, size_t bytes)
{
    RING_TRY(nn->alloc(nn, to, bytes, "the samples"));
    nn->write(nn, *to, from, bytes);
    return RING_OK;
}

static void forget_samples(const nn_place *nn)
{
    cuda_updates *u = updates_of(nn);
    nn->release(nn, u->kept.bytes);
    nn->release(nn, u->kept.labels);
    nn->release(nn, u->kept.values);
    u->kept.bytes = u->kept.labels = NULL;
    u->kept.values = NULL;
}

/* Copies the samples if they fit, with a margin for what cuBLASLt and graphs allocate later. */
static ring_status keep_samples(const nn_place *nn, const kept_samples *samples)
{
    cuda_updates *u = updates_of(nn);
    const cuda_driver *api = cuda_place_of(nn)->api;
    CUdeviceptr margin;
    const size_t values = samples->channels * 256 * sizeof(float);
    if (api->mem_alloc(&margin, MARGIN_BYTES) != CUDA_SUCCESS)
        return RING_OK;
    u->kept.channels = samples->channels;
    ring_status status = keep_array(nn, (void **)&u->kept.labels, samples->labels, samples->count);
    if (status == RING_OK)
        status = keep_array(nn, (void **)&u->kept.values, samples->values, values);
    if (status == RING_OK)
        status = keep_array(nn, (void **)&u->kept.bytes, samples->bytes,
                            samples->count * u->plan.features);
    (void)api->mem_free(margin);
    if (status != RING_OK)
        forget_samples(nn);
    return status == RING_ERR_MEMORY ? RING_OK : status;
}

static ring_status updates_open(const nn_place *nn, const update_plan *plan,
                                const kept_samples *samples)
{
    cuda_place *place = cuda_place_of(nn);
    cuda_updates *u;
    void *numbers;
    cuda_updates_close(place);
    RING_TRY(train_alloc((void **)&u, sizeof *u, "updates"));
    place->updates = u;
    u->plan = *plan;
    u->factors_bytes = plan->steps * CUDA_FACTORS_BYTES;
    RING_TRY(nn->alloc(nn, &numbers, sizeof *u->numbers + u->factors_bytes, "an update's numbers"));
    u->numbers = numbers;
    if (samples != NULL)
        RING_TRY(keep_samples(nn, samples));
    return make_records(place);
}

void cuda_updates_close(cuda_place *place)
{
    cuda_updates *u = place->updates;
    if (u == NULL)
        return;
    forget_samples(&place->place);
    place->place.release(&place->place, u->numbers);
    for (int k = 0; k < u->count; k++) {
        if (u->all[k]->one != NULL)
            (void)place->api->graph_exec_destroy(u->all[k]->one);
        if (u->all[k]->group != NULL)
            (void)place->api->graph_exec_destroy(u->all[k]->group);
        free(u->all[k]);
    }
    if (u->records != NULL)
        (void)place->api->host_free(u->records);
    place->updates = NULL;
    place->queue = (cuda_queue){0};
    free(u);
}

static void updates_close(const nn_place *nn)
{
    cuda_updates_close(cuda_place_of(nn));
}

/* ---- An update ------------------------------------------------------------------------------- */

static update_record updates_record(const nn_place *nn)
{
    const cuda_place *place = cuda_place_of(nn);
    const cuda_updates *u = place->updates;
    unsigned char *record = record_of(u, place->queue.stated);
    const bool kept = u->kept.bytes != NULL;
    return (update_record){.samples = (void *)(record + u->samples_at),
                           .labels = kept ? NULL : (void *)(record + u->labels_at),
                           .inputs = kept ? NULL : (void *)(record + u->inputs_at)};
}

/* @return the updates with the key; NULL: there are too many keys, so these updates are always
 * executed request by request. */
static kept_update *find(cuda_updates *u, const update_key *key)
{
    for (int k = 0; k < u->count; k++)
        if (memcmp(&u->all[k]->key, key, sizeof *key) == 0)
            return u->all[k];
    kept_update *made = u->count < GRAPHS_MAX ? calloc(1, sizeof *made) : NULL;
    if (made == NULL)
        return NULL;
    made->key = *key;
    return u->all[u->count++] = made;
}

static void begin_capture(cuda_place *place)
{
    place->updates->captured = 0;
    place->queue.overlaps = place->updates->plan.overlaps;
    keep(place,
         place->api->begin_capture(place->lanes[CUDA_TRUNK].stream,
                                   CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
         "beginning a capture (cuStreamBeginCapture)");
}

static bool updates_begin(const nn_place *nn, const update_key *key, uint32_t step)
{
    cuda_place *place = cuda_place_of(nn);
    cuda_updates *u = place->updates;
    kept_update *kept = find(u, key);
    memcpy(record_of(u, place->queue.stated), &step, sizeof step);
    u->steps = 0;
    u->mode = kept == NULL || !kept->ran ? UPDATE_EAGER
              : kept->group == NULL      ? UPDATE_CAPTURE
                                         : UPDATE_REPLAY;
    if (u->mode != UPDATE_REPLAY || kept != u->now)
        (void)cuda_place_enter(place); /* launches updates with other keys */
    u->now = kept;
    place->queue.active = true;
    if (u->mode == UPDATE_CAPTURE)
        begin_capture(place);
    return u->mode != UPDATE_REPLAY;
}

static void updates_take(const nn_place *nn, size_t first, size_t rows)
{
    cuda_place *place = cuda_place_of(nn);
    const cuda_updates *u = place->updates;
    const size_t features = u->plan.features, channels = u->kept.channels;
    cuda_take_args args = {.update = u->numbers,
                           .records = (const unsigned char *)(uintptr_t)u->records_there,
                           .record_bytes = u->record_bytes,
                           .record_count = RECORDS,
                           .factors = u->factors_bytes,
                           .first = first,
                           .begins = first == 0,
                           .samples_at = u->samples_at,
                           .bytes = u->kept.bytes,
                           .byte_labels = u->kept.labels,
                           .values = u->kept.values,
                           .features = features,
                           .plane = u->kept.bytes != NULL ? features / channels : features,
                           .inputs_at = u->inputs_at,
                           .labels_at = u->labels_at,
                           .inputs = u->plan.inputs,
                           .labels = u->plan.labels,
                           .samples = u->plan.numbers};
    cuda_place_join(place);
    cuda_place_launch(place, CUDA_take, rows, CUDA_BLOCK, &args, "the samples");
}

static void updates_judge(const nn_place *nn, const float *grads, size_t count, double most)
{
    cuda_place *place = cuda_place_of(nn);
    const cuda_updates *u = place->updates;
    double *sums = (void *)(uintptr_t)place->lanes[CUDA_TRUNK].workspace;
    const CUdeviceptr results = u->records_there + RECORDS * u->record_bytes;
    cuda_squares_args squares = {.grad = grads, .count = count, .sums = sums};
    cuda_judge_args args = {.update = u->numbers,
                            .sums = sums,
                            .parts = cuda_norm_parts(count),
                            .most = most,
                            .results = (cuda_update_result *)(uintptr_t)results,
                            .record_count = RECORDS};
    cuda_place_join(place);
    cuda_place_launch(place, CUDA_squares_f32, args.parts, CUDA_BLOCK, &squares, "the norm");
    cuda_place_launch(place, CUDA_judge, 1, CUDA_BLOCK, &args, "the check of an update");
}

bool cuda_updates_step(cuda_place *place, cuda_step_arrays *arrays, const void *factors,
                       size_t bytes)
{
    cuda_updates *u = place->updates;
    if (!place->queue.active)
        return true;
    arrays->update = u->numbers;
    arrays->slot = u->mode == UPDATE_EAGER ? CUDA_OWN_FACTORS : (uint32_t)u->steps;
    memcpy(record_of(u, place->queue.stated) + CUDA_FACTORS_BYTES * (1 + u->steps++), factors,
           bytes);
    return u->mode != UPDATE_REPLAY;
}

/* Ends a capture, and makes a graph of it unless something has failed. */
static void end_capture(cuda_place *place, CUgraphExec *out)
{
    CUgraph graph = NULL;
    const CUresult result = place->api->end_capture(place->lanes[CUDA_TRUNK].stream, &graph);
    keep(place, result, "ending a capture (cuStreamEndCapture)");
    if (place->failure.status == RING_OK)
        keep(place, place->api->graph_instantiate(out, graph, 0),
             "making a graph (cuGraphInstantiateWithFlags)");
    if (graph != NULL)
        (void)place->api->graph_destroy(graph);
}

/* The graph of one update is captured first, then that of several. */
static bool end_captured(cuda_place *place)
{
    cuda_updates *u = place->updates;
    CUgraphExec *out = u->now->one == NULL ? &u->now->one : &u->now->group;
    const int wanted = u->now->one == NULL ? 1 : CUDA_UPDATES_AT_ONCE;
    if (++u->captured < wanted && place->failure.status == RING_OK)
        return false;
    end_capture(place, out);
    if (wanted > 1 || place->failure.status != RING_OK)
        return true;
    begin_capture(place);
    return false;
}

static bool updates_end(const nn_place *nn)
{
    cuda_place *place = cuda_place_of(nn);
    cuda_updates *u = place->updates;
    cuda_queue *queue = &place->queue;
    cuda_place_join(place);
    u->steps = 0;
    if (u->mode == UPDATE_CAPTURE && !end_captured(place))
        return false;
    queue->active = queue->overlaps = false;
    queue->stated++;
    if (u->mode == UPDATE_EAGER) {
        queue->launched++;
        if (u->now != NULL)
            u->now->ran = true;
        return true;
    }
    queue->one = u->now->one;
    queue->group = u->now->group;
    if (queue->stated - queue->launched == CUDA_UPDATES_AT_ONCE)
        (void)cuda_place_enter(place);
    return true;
}

cuda_update *cuda_updates_numbers(const cuda_place *place)
{
    return place->queue.active ? place->updates->numbers : NULL;
}

/* ---- Outcomes -------------------------------------------------------------------------------- */

static bool judged(const cuda_updates *u, uint64_t update)
{
    return __atomic_load_n(&result_of(u, update)->count, __ATOMIC_ACQUIRE) == update + 1;
}

/* Waits until the update has been judged. The driver is asked from time to time, because a GPU that
 * has failed judges nothing. */
static ring_status await_judge(cuda_place *place, uint64_t update)
{
    const cuda_updates *u = place->updates;
    double asked = train_now();
    while (!judged(u, update)) {
        if (place->failure.status != RING_OK)
            return train_failure_tell(&place->failure);
        (void)sched_yield();
        if (train_now() - asked < QUERY_SECONDS)
            continue;
        const CUresult result = place->api->stream_query(place->lanes[CUDA_TRUNK].stream);
        if (result != CUDA_ERROR_NOT_READY)
            keep(place, result, "waiting for an update (cuStreamQuery)");
        if (result == CUDA_SUCCESS && !judged(u, update))
            return train_fail(RING_ERR_INTERNAL, "%s has ended, but not judged, update %llu",
                              place->name, (unsigned long long)update);
        asked = train_now();
    }
    return RING_OK;
}

static ring_status updates_next(const nn_place *nn, bool wait, update_outcome *outcome, bool *found)
{
    cuda_place *place = cuda_place_of(nn);
    cuda_updates *u = place->updates;
    volatile cuda_update_result *result = result_of(u, u->read);
    *found = false;
    if (u->read == place->queue.stated || place->failure.status != RING_OK)
        return train_failure_tell(&place->failure);
    if (wait && u->read == place->queue.launched)
        (void)cuda_place_enter(place);
    if (wait)
        RING_TRY(await_judge(place, u->read));
    else if (!judged(u, u->read))
        return RING_OK;
    *outcome = (update_outcome){result->loss, result->squares, result->skips != 0};
    *found = true;
    u->read++;
    return RING_OK;
}

static void updates_resume(const nn_place *nn)
{
    nn->clear(nn, &updates_of(nn)->numbers->skips, sizeof(uint32_t));
}

const place_updates cuda_place_updates = {
    .open = updates_open,
    .close = updates_close,
    .record = updates_record,
    .begin = updates_begin,
    .take = updates_take,
    .judge = updates_judge,
    .end = updates_end,
    .next = updates_next,
    .resume = updates_resume,
};

/* SPDX-License-Identifier: Apache-2.0
 * Graphs, which are lists of ops, and user objects, which live as long as the graphs that hold
 * them. */
#include "gpu.h"

#include <stdlib.h>
#include <string.h>

typedef struct user_object {
    CUhostFn destroy;
    void *data, *handle;
    unsigned uses;
} user_object;

typedef struct held {
    user_object *object;
    unsigned uses;
} held;

struct graph {
    op **ops;
    graph_place *places; /* [count] */
    held *holds;
    int count, hold_count;
    bool serial; /* some op has no place */
    uint64_t random;
    int last_slot; /* of the last launch */
    uint64_t last_ticket;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of uses */

/* ---- Lists ---- */

static void *grown(void *list, int count, size_t bytes)
{
    void *longer = realloc(list, (size_t)(count + 1) * bytes);
    if (longer == NULL)
        misuse("no memory");
    return longer;
}

graph *graph_new(void)
{
    graph *g = calloc(1, sizeof *g);
    if (g == NULL)
        misuse("no memory");
    return g;
}

void graph_add(graph *g, const op *o, const graph_place *place)
{
    const size_t bytes = offsetof(op, args) + o->args_bytes;
    op *copy = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (copy == NULL)
        misuse("no memory");
    g->ops = grown(g->ops, g->count, sizeof *g->ops);
    g->places = grown(g->places, g->count, sizeof *g->places);
    g->places[g->count] = place != NULL ? *place : (graph_place){0};
    g->serial |= place == NULL;
    g->ops[g->count++] = memcpy(copy, o, bytes);
}

static void hold(graph *g, user_object *object, unsigned uses)
{
    g->holds = grown(g->holds, g->hold_count, sizeof *g->holds);
    g->holds[g->hold_count++] = (held){object, uses};
}

static void use(user_object *object, unsigned count)
{
    pthread_mutex_lock(&lock);
    object->uses += count;
    pthread_mutex_unlock(&lock);
}

/* The last release makes the thread of host functions call the destructor.
 * @return false: the object has fewer uses. */
static bool release(user_object *object, unsigned count)
{
    pthread_mutex_lock(&lock);
    const bool enough = object->uses >= count;
    object->uses -= enough ? count : 0;
    const bool over = object->uses == 0;
    pthread_mutex_unlock(&lock);
    if (over) {
        const op o = {.kind = OP_HOST, .function = object->destroy, .data = object->data};
        (void)stream_append(0, (const op *const[]){&o}, 1, APPEND_OWN);
        (void)object_take(OBJECT_USER, object->handle);
        free(object);
    }
    return enough;
}

static void append_all(graph *to, const graph *from)
{
    for (int i = 0; i < from->count; i++)
        graph_add(to, from->ops[i], to->count == i && !from->serial ? &from->places[i] : NULL);
    for (int i = 0; i < from->hold_count; i++) {
        use(from->holds[i].object, 1);
        hold(to, from->holds[i].object, 1);
    }
}

/* The graph's objects are released after its launches have ended. */
void graph_free(graph *g)
{
    const op o = {.kind = OP_WAIT, .from = (uint64_t)g->last_slot, .value = g->last_ticket};
    if (g->hold_count > 0)
        (void)stream_append(0, (const op *const[]){&o}, 1, APPEND_OWN);
    for (int i = 0; i < g->hold_count; i++)
        (void)release(g->holds[i].object, g->holds[i].uses);
    for (int i = 0; i < g->count; i++)
        free(g->ops[i]);
    free(g->ops);
    free(g->places);
    free(g->holds);
    free(g);
}

/* ---- Orders ---- */

/* @return whether the op follows only ops that are among the first done[s] of each stream s. */
static bool may_follow(const graph_place *place, const int *done)
{
    bool may = place->nth == done[place->stream];
    for (int s = 0; s < MOST_CAPTURED; s++)
        may &= place->known[s] <= done[s];
    return may;
}

/* Puts the ops in the order of the capture, or in another one that their dependencies allow. */
static void order(graph *g, const op **out)
{
    static const char *seed;
    int done[MOST_CAPTURED] = {0};
    if (seed == NULL) {
        seed = getenv("FAKE_CUDA_GRAPH_SEED");
        seed = seed != NULL ? seed : "";
    }
    if (g->random == 0)
        g->random = strtoull(seed, NULL, 10);
    for (int n = 0; n < g->count; n++) {
        int chosen = n, found = 0;
        for (int i = 0; i < g->count && g->random != 0 && !g->serial; i++) {
            if (!may_follow(&g->places[i], done))
                continue;
            g->random = g->random * 6364136223846793005U + 1442695040888963407U;
            if ((g->random >> 33) % (unsigned)++found == 0)
                chosen = i;
        }
        done[g->places[chosen].stream]++;
        out[n] = g->ops[chosen];
    }
}

/* ---- The longest chain ---- */

enum { MOST_CHAINED = 512 };

static const char *chain[MOST_CHAINED]; /* of the graph that was instantiated last */
static int chained;

/* @return the op before op @p i that ends the longest chain, or -1. */
static int longest_before(const graph *g, int i, const int *lengths)
{
    int found = -1;
    for (int j = 0; j < i; j++) {
        const graph_place *before = &g->places[j];
        if (before->nth < g->places[i].known[before->stream] &&
            (found < 0 || lengths[j] > lengths[found]))
            found = j;
    }
    return found;
}

static void find_chain(const graph *g)
{
    int *lengths = calloc((size_t)g->count + 1, sizeof *lengths);
    int *before = calloc((size_t)g->count + 1, sizeof *before), last = -1;
    if (lengths == NULL || before == NULL)
        misuse("no memory");
    for (int i = 0; i < g->count; i++) {
        before[i] = longest_before(g, i, lengths);
        lengths[i] = (before[i] >= 0 ? lengths[before[i]] : 0) + (g->ops[i]->kind == OP_LAUNCH);
        last = last < 0 || lengths[i] > lengths[last] ? i : last;
    }
    chained = last < 0 ? 0 : lengths[last];
    for (int i = last; i >= 0; i = before[i])
        if (g->ops[i]->kind == OP_LAUNCH && lengths[i] <= MOST_CHAINED)
            chain[lengths[i] - 1] = g->ops[i]->launch.kernel->name;
    free(lengths);
    free(before);
}

int fake_cuda_longest_chain(const char **names, int most)
{
    for (int i = 0; i < chained && i < most && i < MOST_CHAINED; i++)
        names[i] = chain[i];
    return chained;
}

/* ---- Graphs ---- */

CUresult cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph handle, unsigned long long flags)
{
    ENTER();
    const graph *g = object_get(OBJECT_GRAPH, handle);
    if (g == NULL || flags != 0)
        return g == NULL ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_VALUE;
    graph *exec = graph_new();
    append_all(exec, g);
    find_chain(exec);
    *out = object_add(OBJECT_EXEC, exec);
    return 0;
}

/* Launches of a graph run one after the other, also in different streams. */
CUresult cuGraphLaunch(CUgraphExec handle, CUstream stream)
{
    int slot;
    ENTER();
    graph *g = object_get(OBJECT_EXEC, handle);
    if (g == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    TRY(stream_find(stream, &slot));
    if (capture_of(slot) != NULL) {
        TRY(capture_append(slot, &(op){.kind = OP_WAIT}));
        append_all(capture_graph(capture_of(slot)), g);
        return 0;
    }
    TRY(capture_forbids_legacy(slot));
    const op before = {.kind = OP_WAIT, .from = (uint64_t)g->last_slot, .value = g->last_ticket};
    const op **ops = malloc((size_t)(g->count + 1) * sizeof *ops);
    if (ops == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    ops[0] = &before;
    order(g, ops + 1);
    g->last_ticket = stream_append(slot, ops, g->count + 1, APPEND_REPLAY);
    g->last_slot = slot;
    free(ops);
    return 0;
}

static CUresult destroy_graph(object_kind kind, void *handle)
{
    graph *g = object_take(kind, handle);
    if (g != NULL)
        graph_free(g);
    return g != NULL ? 0 : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuGraphExecDestroy(CUgraphExec handle)
{
    ENTER();
    return destroy_graph(OBJECT_EXEC, handle);
}

CUresult cuGraphDestroy(CUgraph handle)
{
    ENTER();
    return destroy_graph(OBJECT_GRAPH, handle);
}

/* ---- User objects ---- */

CUresult cuUserObjectCreate(CUuserObject *out, void *data, CUhostFn destroy, unsigned count,
                            unsigned flags)
{
    ENTER();
    if (count == 0 || destroy == NULL || flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
        return CUDA_ERROR_INVALID_VALUE;
    user_object *object = malloc(sizeof *object);
    if (object == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *object = (user_object){.destroy = destroy, .data = data, .uses = count};
    object->handle = object_add(OBJECT_USER, object);
    *out = object->handle;
    return 0;
}

CUresult cuUserObjectRetain(CUuserObject handle, unsigned count)
{
    ENTER();
    user_object *object = object_get(OBJECT_USER, handle);
    if (object == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    use(object, count);
    return 0;
}

CUresult cuUserObjectRelease(CUuserObject handle, unsigned count)
{
    ENTER();
    user_object *object = object_get(OBJECT_USER, handle);
    return object != NULL && release(object, count) ? 0 : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphRetainUserObject(CUgraph handle, CUuserObject object_handle, unsigned count,
                                 unsigned flags)
{
    ENTER();
    graph *g = object_get(OBJECT_GRAPH, handle);
    user_object *object = object_get(OBJECT_USER, object_handle);
    if (g == NULL || object == NULL || count == 0 || flags > CU_GRAPH_USER_OBJECT_MOVE)
        return CUDA_ERROR_INVALID_VALUE;
    if (flags != CU_GRAPH_USER_OBJECT_MOVE)
        use(object, count);
    hold(g, object, count);
    return 0;
}

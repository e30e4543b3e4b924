/* SPDX-License-Identifier: Apache-2.0
 * Writes the lists of instructions for updates and for forward passes without pipelines. */
#include "update_schedule.h"

#include <stdlib.h>

#include "errors.h"
#include "update_writer.h"

const char *const update_kind_names[UPDATE_KINDS] = {
    [UPDATE_LOAD] = "load",         [UPDATE_GATHER] = "gather", [UPDATE_FORWARD] = "forward",
    [UPDATE_SUM] = "sum",           [UPDATE_SEND] = "send",     [UPDATE_RECV] = "recv",
    [UPDATE_BACKWARD] = "backward", [UPDATE_REDUCE] = "reduce", [UPDATE_CLIP] = "clip",
    [UPDATE_OPTIMIZE] = "step",
};

int update_write(update_writer *w, update_instruction instruction)
{
    update_schedule *schedule = w->schedule;
    if (schedule->count == schedule->room) {
        const int room = schedule->room > 0 ? 2 * schedule->room : 64;
        update_instruction *list = realloc(schedule->list, (size_t)room * sizeof *list);
        w->failed |= list == NULL;
        if (list == NULL)
            return UPDATE_NOTHING;
        schedule->list = list;
        schedule->room = room;
    }
    schedule->list[schedule->count] = instruction;
    return schedule->count++;
}

void update_follow(update_writer *w, int number, int earlier)
{
    if (number == UPDATE_NOTHING || earlier == UPDATE_NOTHING)
        return;
    update_instruction *instruction = &w->schedule->list[number];
    instruction->after[instruction->after_count++] = earlier;
}

/* ---- Parts of an update -------------------------------------------------------------------- */

/* Stage 3 gathers and releases a bucket, unless it is persistent or other buckets share its
 * parameters. */
static bool comes_and_goes(const update_writer *w, int bucket)
{
    const partition_bucket *at = &w->partition->buckets[bucket];
    return w->zero_stage == 3 && !at->is_tied && !at->is_persistent;
}

/* Writes one GATHER of a bucket from all owners, or one from each owner after another.
 * @param earlier  instruction that must end before. @return the last instruction. */
static int write_gather(update_writer *w, int bucket, int earlier)
{
    const bool one_by_one = w->zero_stage < 3 && w->partition->rules.broadcasts;
    const int senders = one_by_one ? w->partition->ranks : 1;
    int number = UPDATE_NOTHING;
    for (int r = 0; r < senders; r++) {
        number = update_write(w, (update_instruction){.kind = UPDATE_GATHER,
                                                      .queue = QUEUE_WIRE,
                                                      .bucket = bucket,
                                                      .owner = one_by_one ? r : -1});
        update_follow(w, number, earlier);
    }
    return number;
}

/* Writes the GATHER of a bucket into its live place, if it is gathered at all. It waits until the
 * bucket before it in this place has been used, and for @p earlier. */
static void gather(update_writer *w, int bucket, int earlier)
{
    if (!comes_and_goes(w, bucket))
        return;
    const int place = bucket % LIVE_BUCKETS;
    w->gathered[place] = write_gather(w, bucket, w->left[place]);
    update_follow(w, w->gathered[place], earlier);
}

/* Writes the FORWARD or BACKWARD @p range, nodes of one bucket. It waits until the bucket has been
 * gathered, and until the gradients that were in its live place have been reduced.
 * @param summed  the SUM of its first node, or UPDATE_NOTHING */
static void compute(update_writer *w, const update_instruction *range, int summed)
{
    const int place = range->bucket % LIVE_BUCKETS, number = update_write(w, *range);
    update_follow(w, number, summed);
    if (comes_and_goes(w, range->bucket))
        update_follow(w, number, w->gathered[place]);
    if (w->zero_stage >= 2 && range->kind == UPDATE_BACKWARD) {
        update_follow(w, number, w->reduced[place]);
        update_follow(w, number, w->beside[place]);
    }
    w->computed = number;
}

/* Writes the sum over the tensor ranks that must precede node @p node. */
static int sum(update_writer *w, const update_instruction *range, int node)
{
    const int number =
        update_write(w, (update_instruction){.kind = UPDATE_SUM,
                                             .queue = QUEUE_WIRE,
                                             .bucket = range->bucket,
                                             .first = node,
                                             .end = node + 1,
                                             .micro = range->micro,
                                             .slot = range->slot,
                                             .towards = range->kind == UPDATE_FORWARD ? 1 : -1});
    update_follow(w, number, w->computed);
    return number;
}

static bool begins_segment(const train_partition *partition, int node)
{
    return node == 0 || (partition->segments != NULL &&
                         partition->segments[node] != partition->segments[node - 1]);
}

/* @return whether the tensor ranks must sum before @p node. The input of a segment is stored after
 * its sum, so recomputing the segment does not need that sum again. */
static bool sums_before(const update_writer *w, const update_instruction *range, int node)
{
    const int wanted = range->kind == UPDATE_FORWARD ? SUM_INPUT : SUM_GRAD;
    return w->partition->sums != NULL && w->partition->sums[node] == wanted &&
           !(range->recompute && begins_segment(w->partition, node));
}

/* Sets the range to the nodes from @p from up to, but without, @p to. Backward, @p to is the lower
 * number. */
static void set_nodes(update_instruction *range, int from, int to)
{
    range->first = from < to ? from : to + 1;
    range->end = from < to ? to : from + 1;
}

/* Writes the nodes of a visit, cut into ranges at the nodes that need a sum over the tensor ranks.
 * Backward runs over them in reverse. */
static void compute_visit(update_writer *w, const update_instruction *visit)
{
    const bool back = visit->kind == UPDATE_BACKWARD;
    const int end = back ? visit->first - 1 : visit->end;
    update_instruction range = *visit;
    int from = back ? visit->end - 1 : visit->first, summed = UPDATE_NOTHING;
    for (int node = from; node != end; node += back ? -1 : 1) {
        if (!sums_before(w, &range, node))
            continue;
        if (node != from) {
            set_nodes(&range, from, node);
            compute(w, &range, summed);
            range.opens = false;
        }
        summed = sum(w, &range, node);
        from = node;
    }
    set_nodes(&range, from, end);
    compute(w, &range, summed);
}

/* @return elements of a bucket that stage 3 gathers. */
static size_t gathered_elements(const partition_bucket *bucket)
{
    return bucket->is_persistent ? 0 : bucket->count;
}

/* @return whether @p next may be gathered while @p bucket is being computed, by the limits of the
 * configuration: the size of @p next, and of both together with the tied buckets. */
static bool comes_ahead(const update_writer *w, int next, int bucket)
{
    const train_partition *partition = w->partition;
    const size_t more = gathered_elements(&partition->buckets[next]);
    size_t live = more + gathered_elements(&partition->buckets[bucket]);
    for (int b = 0; b < partition->count; b++)
        live += partition->buckets[b].is_tied && b != next && b != bucket
                    ? gathered_elements(&partition->buckets[b])
                    : 0;
    return more <= partition->rules.ahead_most && live <= partition->rules.live_most;
}

/* Writes the REDUCE of a bucket, which waits for @p backward. Stages 0 and 1 of ZeRO sum gradients
 * over the micro-batches and then reduce them over the ranks; stages 2 and 3 reduce the gradients
 * of every micro-batch and sum the results.
 * @return its number, or UPDATE_NOTHING: there is no bucket, or it is not reduced yet. */
static int reduce(update_writer *w, int bucket, int micro, int backward)
{
    const bool each = w->zero_stage >= 2;
    if (bucket < 0 || (!each && micro + 1 < w->micro_batches))
        return UPDATE_NOTHING;
    const int number = update_write(w, (update_instruction){.kind = UPDATE_REDUCE,
                                                            .queue = QUEUE_WIRE,
                                                            .bucket = bucket,
                                                            .micro = micro,
                                                            .accumulate = each && micro > 0});
    update_follow(w, number, backward);
    return number;
}

/* The loss is summed over the ranks while backward runs. */
void update_write_loss(update_writer *w, int micro)
{
    if (micro + 1 == w->micro_batches)
        update_write(w, (update_instruction){.kind = UPDATE_REDUCE,
                                             .queue = QUEUE_WIRE,
                                             .bucket = BUCKET_LOSS,
                                             .micro = micro});
}

static bool has_ties(const train_partition *partition)
{
    bool any = false;
    for (int b = 0; b < partition->count; b++)
        any |= partition->buckets[b].is_tied;
    return any;
}

/* @return whether the visit must wait for all earlier instructions because of a tied bucket.
 * Forward waits for its parameters, which are gathered once per update. Backward adds to its
 * gradients from the first visit on, so that visit waits until the gradients of the previous
 * micro-batch are sent. */
static bool waits_for_ties(const update_writer *w, const update_instruction *visit)
{
    const train_partition *partition = w->partition;
    const partition_bucket *bucket = &partition->buckets[visit->bucket];
    if (visit->kind == UPDATE_FORWARD)
        return w->zero_stage == 3 && bucket->is_tied && !bucket->is_persistent &&
               visit->micro == 0 && !visit->recompute;
    return w->zero_stage >= 2 && visit->end == partition->buckets[partition->ranges - 1].end &&
           visit->micro > 0 && has_ties(partition);
}

/* ---- Passes -------------------------------------------------------------------------------- */

/* A pass is a list of visits. A visit is a forward or backward computation of adjacent nodes of one
 * bucket. A backward pass contains forward visits where activations are recomputed.
 *
 * There are two live places in memory, which the ranges use in turn. While one bucket is being
 * computed, the next one is gathered into the other place; if both use the same place, the next one
 * is gathered after the computation of this one.
 *
 *     compute    | bucket 0 | bucket 1 | bucket 2 |
 *     wire       | gather 1 | gather 2 | gather 3 |
 *
 * Backward runs in the other direction and reduces the gradients of a bucket after its first node,
 * which it computes last.
 */

static void add_visit(update_writer *w, update_instruction visit)
{
    if (w->visit_count == w->visit_room) {
        const int room = w->visit_room > 0 ? 2 * w->visit_room : 16;
        update_instruction *visits = realloc(w->visits, (size_t)room * sizeof *visits);
        w->failed |= visits == NULL;
        if (visits == NULL)
            return;
        w->visits = visits;
        w->visit_room = room;
    }
    visit.slot = w->slot;
    visit.opens = w->visit_count == 0 || visit.bucket != w->visits[w->visit_count - 1].bucket;
    w->visits[w->visit_count++] = visit;
}

/* Writes the computation of a visit, and the REDUCE of its range after the last backward visit. */
static void compute_and_reduce(update_writer *w, const update_instruction *visit)
{
    const int begin = w->schedule->count;
    compute_visit(w, visit);
    if (waits_for_ties(w, visit) && !w->failed)
        w->schedule->list[begin].after_all = true;
    if (visit->kind == UPDATE_BACKWARD &&
        visit->first == w->partition->buckets[visit->bucket].first) {
        const int place = visit->bucket % LIVE_BUCKETS,
                  beside = partition_beside(w->partition, visit->bucket);
        w->reduced[place] = reduce(w, visit->bucket, visit->micro, w->computed);
        w->beside[place] = reduce(w, beside, visit->micro, w->computed);
    }
}

/* Writes one visit, and the GATHER of the next bucket before or after it.
 * @param next  bucket of the next visit, or -1 */
static void write_visit(update_writer *w, const update_instruction *visit, int next)
{
    const int bucket = visit->bucket;
    const bool has_next = next >= 0 && next != bucket;
    const bool other_place = has_next && (next - bucket) % LIVE_BUCKETS != 0;
    const bool ahead = other_place && comes_ahead(w, next, bucket);
    if (ahead)
        gather(w, next, UPDATE_NOTHING);
    compute_and_reduce(w, visit);
    if (next != bucket && comes_and_goes(w, bucket))
        w->left[bucket % LIVE_BUCKETS] = w->computed;
    if (has_next && !ahead)
        gather(w, next, w->left[bucket % LIVE_BUCKETS]);
}

/* Writes all visits that add_visit() has collected. @return the last FORWARD or BACKWARD. */
static int write_pass(update_writer *w)
{
    w->computed = UPDATE_NOTHING;
    if (w->visit_count > 0)
        gather(w, w->visits[0].bucket, UPDATE_NOTHING);
    for (int v = 0; v < w->visit_count; v++)
        write_visit(w, &w->visits[v], v + 1 < w->visit_count ? w->visits[v + 1].bucket : -1);
    w->visit_count = 0;
    return w->computed;
}

static void visit_forward(update_writer *w, int first, int end, int micro, bool recompute)
{
    const partition_bucket *at = w->partition->buckets;
    for (int b = partition_bucket_of(w->partition, first);
         b < w->partition->ranges && at[b].first < end; b++)
        add_visit(w, (update_instruction){.kind = UPDATE_FORWARD,
                                          .bucket = b,
                                          .first = at[b].first > first ? at[b].first : first,
                                          .end = at[b].end < end ? at[b].end : end,
                                          .micro = micro,
                                          .recompute = recompute});
}

static void visit_backward(update_writer *w, int first, int end, int micro)
{
    const partition_bucket *at = w->partition->buckets;
    for (int b = partition_bucket_of(w->partition, end - 1); b >= 0 && at[b].end > first; b--)
        add_visit(w, (update_instruction){.kind = UPDATE_BACKWARD,
                                          .bucket = b,
                                          .first = at[b].first > first ? at[b].first : first,
                                          .end = at[b].end < end ? at[b].end : end,
                                          .micro = micro,
                                          .accumulate = w->zero_stage < 2 && micro > 0});
}

/* @return the first node of the segment that ends with node @p end - 1; 0 if all activations are
 * kept. */
static int segment_before(const train_partition *partition, int end)
{
    int first = end - 1;
    while (!begins_segment(partition, first))
        first--;
    return first;
}

static int nodes_of(const train_partition *partition)
{
    return partition->buckets[partition->ranges - 1].end;
}

int update_write_forward(update_writer *w, int micro)
{
    const int nodes = nodes_of(w->partition);
    visit_forward(w, 0, nodes, micro, false);
    w->kept_slot = w->slot;
    w->kept_segment = segment_before(w->partition, nodes);
    return write_pass(w);
}

/* Runs segment by segment, from the last to the first. With segments, memory holds the activations
 * of one segment of one slot only; if it holds those of another one, the segment is recomputed
 * first. */
int update_write_backward(update_writer *w, int micro)
{
    for (int end = nodes_of(w->partition), first; end > 0; end = first) {
        first = segment_before(w->partition, end);
        if (w->partition->segments != NULL && (w->kept_slot != w->slot || w->kept_segment != first))
            visit_forward(w, first, end, micro, true);
        visit_backward(w, first, end, micro);
        w->kept_slot = w->slot;
        w->kept_segment = first;
    }
    return write_pass(w);
}

void update_write_optimize(update_writer *w)
{
    const int clip = update_write(w, (update_instruction){.kind = UPDATE_CLIP, .after_all = true});
    for (int b = 0; b < w->partition->count; b++) {
        const int optimize = update_write(w, (update_instruction){.kind = UPDATE_OPTIMIZE,
                                                                  .bucket = b});
        update_follow(w, optimize, clip);
        if (w->zero_stage == 1 || w->zero_stage == 2 ||
            (w->zero_stage == 3 && w->partition->buckets[b].is_persistent))
            write_gather(w, b, optimize);
    }
}

/* ---- Whole lists --------------------------------------------------------------------------- */

update_writer update_writer_start(update_schedule *schedule, const train_partition *partition,
                                  int zero_stage, int micro_batches)
{
    *schedule = (update_schedule){0};
    update_writer w = {.schedule = schedule,
                       .partition = partition,
                       .zero_stage = zero_stage,
                       .micro_batches = micro_batches};
    for (int i = 0; i < LIVE_BUCKETS; i++)
        w.gathered[i] = w.left[i] = w.reduced[i] = w.beside[i] = UPDATE_NOTHING;
    for (int b = 0; b < partition->count && zero_stage == 3; b++) {
        if (partition->buckets[b].is_tied && !partition->buckets[b].is_persistent)
            write_gather(&w, b, UPDATE_NOTHING);
    }
    return w;
}

ring_status update_writer_finish(update_writer *w)
{
    free(w->visits);
    if (w->failed)
        return train_fail(RING_ERR_MEMORY, "no memory for the list of an update's instructions");
    return RING_OK;
}

ring_status schedule_update(update_schedule *schedule, const train_partition *partition,
                            int zero_stage, int micro_batches)
{
    update_writer w = update_writer_start(schedule, partition, zero_stage, micro_batches);
    for (int micro = 0; micro < micro_batches; micro++) {
        update_write(&w, (update_instruction){.kind = UPDATE_LOAD, .micro = micro});
        update_write_forward(&w, micro);
        update_write_loss(&w, micro);
        update_write_backward(&w, micro);
    }
    update_write_optimize(&w);
    return update_writer_finish(&w);
}

ring_status schedule_forward(update_schedule *schedule, const train_partition *partition,
                             int zero_stage)
{
    update_writer w = update_writer_start(schedule, partition, zero_stage, 1);
    update_write(&w, (update_instruction){.kind = UPDATE_LOAD});
    update_write_forward(&w, 0);
    return update_writer_finish(&w);
}

void schedule_free(update_schedule *schedule)
{
    free(schedule->list);
    *schedule = (update_schedule){0};
}

/* SPDX-License-Identifier: Apache-2.0
 * Makes requests of a GPU: enters its context, launches updates that wait for that and then
 * kernels, and lets lanes follow each other. */
#include "cuda_place.h"

void cuda_place_keep(cuda_place *place, ring_status status, const char *what)
{
    if (status != RING_OK)
        train_failure_keep(&place->failure,
                           train_fail(status, "%s on %s: %s", what, place->name, fail_text()));
}

void cuda_place_flush(cuda_place *place)
{
    cuda_queue *queue = &place->queue;
    while (queue->launched < queue->stated && !queue->active && place->failure.status == RING_OK) {
        const bool group = queue->stated - queue->launched >= CUDA_UPDATES_AT_ONCE;
        cuda_place_keep(place,
                        cuda_check(place->api->graph_launch(group ? queue->group : queue->one,
                                                            place->lanes[CUDA_TRUNK].stream),
                                   "launching a graph (cuGraphLaunch)"),
                        "an update");
        queue->launched += group ? CUDA_UPDATES_AT_ONCE : 1;
    }
}

bool cuda_place_enter(cuda_place *place)
{
    if (place->failure.status == RING_OK && !place->queue.active) {
        cuda_place_keep(place,
                        cuda_check(place->api->set_current(place->context),
                                   "entering a GPU's context (cuCtxSetCurrent)"),
                        "a request");
        cuda_place_flush(place);
    }
    return place->failure.status == RING_OK;
}

void cuda_place_launch(cuda_place *place, cuda_train_kernel kernel, uint64_t blocks,
                       unsigned threads, void *args, const char *what)
{
    void *parameters[] = {args};
    if (!cuda_place_enter(place))
        return;
    cuda_place_keep(place,
                    cuda_check(place->api->launch(place->kernels[kernel], (unsigned)blocks, 1, 1,
                                                  threads, 1, 1, 0, place->lane->stream, parameters,
                                                  NULL),
                               "launching a kernel (cuLaunchKernel)"),
                    what);
}

/* ---- Lanes ----------------------------------------------------------------------------------- */

/* Makes requests that are put into stream @p after wait for all that are in stream @p before. */
static void follow(cuda_place *place, cuda_lane *before, const cuda_lane *after)
{
    const cuda_driver *api = place->api;
    cuda_place_keep(place,
                    cuda_check(api->event_record(before->event, before->stream),
                               "marking a place in a stream (cuEventRecord)"),
                    "a branch");
    cuda_place_keep(place,
                    cuda_check(api->stream_wait_event(after->stream, before->event, 0),
                               "joining two streams (cuStreamWaitEvent)"),
                    "a branch");
}

void cuda_place_fork(cuda_place *place, cuda_lane_name lane)
{
    if (place->failure.status != RING_OK || !place->queue.overlaps)
        return;
    place->lane = &place->lanes[lane];
    place->lane->is_ahead = true;
    follow(place, &place->lanes[CUDA_TRUNK], place->lane);
}

void cuda_place_return(cuda_place *place)
{
    place->lane = &place->lanes[CUDA_TRUNK];
}

void cuda_place_join(cuda_place *place)
{
    cuda_place_return(place);
    for (int l = CUDA_TRUNK + 1; l < CUDA_LANES; l++) {
        if (place->lanes[l].is_ahead)
            follow(place, &place->lanes[l], place->lane);
        place->lanes[l].is_ahead = false;
    }
}

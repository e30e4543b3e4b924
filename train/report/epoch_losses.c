/* SPDX-License-Identifier: Apache-2.0
 *
 * epoch_losses: writes the mean loss of each epoch to the file of --epoch-losses, in a form that is
 * common in training scripts: one JSON object {"epoch_1": {"outputs": 0.5}, …}, which is rewritten
 * after each epoch. A resumed run keeps the losses of earlier epochs.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "errors.h"
#include "floats.h"
#include "sink.h"
#include "sink_file.h"
#include "text_file.h"

enum { FILE_MAX = 64 << 20 };

static const char what[] = "--epoch-losses";

typedef struct losses_state {
    char path[OUTPUT_PATH_MAX];
    char *text; /* the object without its final }, including epochs before a resume; NULL: no epoch
                   yet */
    bool begun; /* text has an epoch of this run */
    int error;  /* errno of the first failure, or 0 */
} losses_state;

/* Reads the epochs that an earlier start of the run wrote. An empty file has no epoch yet. */
static ring_status read_earlier(losses_state *state)
{
    static const char begin[] = "{\"epoch_", end[] = "}\n";
    char *text = NULL;
    size_t length;
    ring_status status = text_file_read(state->path, FILE_MAX, "a file of losses", &text, &length);
    if (status == RING_OK && length > 0) {
        if (length < sizeof begin + sizeof end || memcmp(text, begin, sizeof begin - 1) != 0 ||
            memcmp(text + length - 2, end, 2) != 0)
            status =
                train_fail(RING_ERR_CONFIG,
                           "%s %s: the file was not written by this option; give another name or "
                           "remove the file",
                           what, state->path);
        else
            state->text = strndup(text, length - 2);
    }
    free(text);
    return status;
}

static ring_status open_losses(report_sink *sink)
{
    const char *path = sink->run->options.epoch_losses_path;
    const bool resumed = sink->run->options.resumed;
    sink_file file;
    if (path == NULL)
        return RING_OK;
    RING_TRY(sink_file_open(&file, what, path, resumed));
    RING_TRY(sink_file_close(&file));
    losses_state *state = sink_create_state(sink, sizeof *state);
    if (state == NULL)
        return RING_ERR_MEMORY;
    snprintf(state->path, sizeof state->path, "%s", path);
    return resumed ? read_earlier(state) : RING_OK;
}

static ring_status close_losses(report_sink *sink)
{
    losses_state *state = sink->state;
    free(state->text);
    if (state->error == 0)
        return RING_OK;
    return train_fail(RING_ERR_SYSTEM, "%s %s: %s", what, state->path, strerror(state->error));
}

/* Removes @p epoch and all later ones from the text, because this run trains them again. */
static void keep_before(char *kept, int epoch)
{
    char name[32];
    snprintf(name, sizeof name, "\"epoch_%d\":", epoch);
    char *at = kept != NULL ? strstr(kept, name) : NULL;
    if (at != NULL)
        *(at - kept > 2 ? at - 2 : kept) = '\0'; /* also cut the comma or brace before it */
}

/* Appends the loss of an epoch. Writes NaN and Infinity as Python's json module does. */
static bool add_loss(losses_state *state, const report_epoch *epoch)
{
    char number[FLOAT_TEXT_MAX], *text;
    const char *before = state->text != NULL ? state->text : "";
    const char *loss = isnan(epoch->loss) ? "NaN" : "Infinity";
    if (isfinite(epoch->loss))
        loss = float_repr(epoch->loss, number);
    if (asprintf(&text, "%s%s\"epoch_%d\": {\"outputs\": %s}", before,
                 before[0] == '\0' ? "{" : ", ", epoch->epoch, loss) < 0)
        return false;
    free(state->text);
    state->text = text;
    return true;
}

static void epoch_losses_end(report_sink *sink, const report_epoch *epoch)
{
    losses_state *state = sink->state;
    output_file file;
    if (!state->begun)
        keep_before(state->text, epoch->epoch);
    state->begun = true;
    bool written = add_loss(state, epoch) && output_begin(&file, state->path);
    if (written) {
        fprintf(file.stream, "%s}\n", state->text);
        written = output_finish(&file);
    }
    if (!written && state->error == 0)
        state->error = errno;
}

const sink_kind epoch_losses = {.open = open_losses,
                                .close = close_losses,
                                .epoch = epoch_losses_end};

/* SPDX-License-Identifier: Apache-2.0
 * Writes the settings of a run to text in memory, one setting per line, for the comparison. */
#include "run_settings.h"

#include <inttypes.h>

#include "agree.h"
#include "errors.h"
#include "gemm.h"

void settings_list(const trainer *made, const char *dashes, FILE *out)
{
    fprintf(out, "%smodel=%s (%d layers, hash %016" PRIx64 ")\n%sseed=%" PRIu64 "\n", dashes,
            made->spec.name, made->spec.count, model_spec_hash(&made->spec), dashes, made->seed);
    config_list(&made->config, out);
    fprintf(out, "%snormalize=%s\nmaths library=%s\n", dashes,
            made->norm.channels > 0 ? made->norm.text : "none", gemm_library());
}

/* @return the hash of the data set. */
static uint64_t list_dataset(const char *name, const train_dataset *dataset, FILE *out)
{
    const uint64_t hash = dataset_hash(dataset);
    fprintf(out, "%s=%zu samples (hash %016" PRIx64 ")\n", name, dataset->count, hash);
    return hash;
}

void settings_list_data(trainer *made, const char *dashes, FILE *out)
{
    fprintf(out, "%sloss=%s\n", dashes, loss_names[made->loss]);
    made->run.identity.data_hash = list_dataset("training data", &made->train, out);
    list_dataset("test data", &made->test, out);
}

static ring_status write_list(settings_list_fn *list, void *context, char text[SETTINGS_TEXT_MAX])
{
    FILE *out = fmemopen(text, SETTINGS_TEXT_MAX, "w");
    if (out == NULL)
        return train_fail(RING_ERR_MEMORY, "no memory to compare the settings of ranks");
    list(context, out);
    if (fclose(out) != 0)
        return train_fail(RING_ERR_INTERNAL, "the settings take more than %d bytes",
                          SETTINGS_TEXT_MAX);
    return RING_OK;
}

ring_status settings_compare(const trainer *made, settings_list_fn *list, void *context)
{
    char text[SETTINGS_TEXT_MAX] = "";
    RING_TRY(agree(made->comm, write_list(list, context, text)));
    return agree_on_settings(made->comm, text);
}

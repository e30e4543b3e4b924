/* SPDX-License-Identifier: Apache-2.0
 * Checks that the network takes samples of this kind (text or images) and size. */
#include "model_data.h"

#include "errors.h"

/* A model that begins with an embedding of words takes text. Any other model takes images. */
static ring_status check_kind(const char *folder, const model_spec *spec,
                              const train_dataset *train, const train_dataset *test)
{
    const char *model = spec->name;
    const size_t words = model_spec_words(spec);
    const bool text = train->token_bytes > 0;
    const size_t needed = train->classes > test->classes ? train->classes : test->classes;
    if (text && words == 0)
        return train_fail(RING_ERR_CONFIG,
                          "%s has a text, but the model %s takes images; give --model gpt", folder,
                          model);
    if (!text && words > 0)
        return train_fail(
            RING_ERR_CONFIG,
            "%s has images, but the model %s takes a text; give a folder with train.bin and "
            "val.bin, or with input.txt",
            folder, model);
    if (text && needed > words)
        return train_fail(
            RING_ERR_CONFIG,
            "%s: the text has tokens up to %zu, but the model %s has a vocabulary of %zu "
            "word%s; set \"vocab_size\" in the model's file",
            folder, needed - 1, model, words, plural(words));
    return RING_OK;
}

ring_status model_data_fit(const char *folder, const model_spec *spec, loss_kind *loss,
                           train_dataset *train, train_dataset *test)
{
    const size_t wanted = shape_count(&spec->input);
    char input[SHAPE_TEXT_MAX];
    RING_TRY(check_kind(folder, spec, train, test));
    if (*loss == LOSS_KINDS)
        *loss = train->token_bytes > 0 ? LOSS_CROSS_ENTROPY : LOSS_MSE;
    RING_TRY(dataset_cut(train, wanted));
    RING_TRY(dataset_cut(test, wanted));
    if (train->features != wanted || test->features != wanted)
        return train_fail(
            RING_ERR_CONFIG,
            "%s: images for training and testing have %zu and %zu numbers, but the model "
            "%s takes %zu: %s",
            folder, train->features, test->features, spec->name, wanted,
            shape_text(&spec->input, input));
    return RING_OK;
}

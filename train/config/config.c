/* SPDX-License-Identifier: Apache-2.0
 * Reads a configuration in three steps: sets the defaults of the table, checks every entry of the
 * file against the table, then applies the rules that combine several keys. */
#include "config.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "accelerate.h"
#include "auto_values.h"
#include "encoded.h"
#include "entries.h"
#include "errors.h"
#include "keys.h"
#include "text_file.h"
#include "values.h"

/* The largest file that is read. Real configurations have a few kilobytes. */
enum { FILE_BYTES_MAX = 256 << 10, NOTE_BYTES = 512 };

/* The state of reading one file. */
typedef struct config_reader {
    config_entries entries;
    const config_options *options;
    config_note_fn *note;
    void *context;
    train_config *config;
    faults faults;
    bool automatic; /* the file contains "auto" */
} config_reader;

static void add_note(const config_reader *reader, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void add_note(const config_reader *reader, const char *format, ...)
{
    if (reader->note == NULL)
        return;
    char text[NOTE_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    reader->note(reader->context, text);
}

/* @return whether the key's section is unknown, too. Then the error of the section is enough. */
static bool is_in_unknown(const config_reader *reader, const char *path)
{
    char section[ENTRY_PATH_MAX] = "";
    const size_t length = (size_t)(config_key_name(path) - path);
    if (length == 0)
        return false;
    memcpy(section, path, length - 1);
    return config_key_find(section) == NULL && entries_find(&reader->entries, section) != NULL;
}

static ring_status check_unknown(const config_reader *reader, const config_entry *entry)
{
    if (config_key_open(entry->path) || is_in_unknown(reader, entry->path))
        return RING_OK;
    const char *nearest = config_key_nearest(entry->path);
    char advice[ENTRY_PATH_MAX + 32] = "";
    if (nearest != NULL)
        snprintf(advice, sizeof advice, "; did you mean \"%s\"?", nearest);
    if (reader->options->warn_unknown) {
        add_note(reader, "%s is unknown and ignored%s", entry->path, advice);
        return RING_OK;
    }
    return lenient_fail(&reader->entries.text, entry->at, RING_ERR_CONFIG,
                        "unknown key \"%s\"%s (to ignore it: --unknown-keys=warn)", entry->path,
                        advice);
}

/* Refuses a parameter that the given type of optimizer or scheduler does not have. */
static ring_status check_scope(const config_reader *reader, const config_key *key,
                               const config_entry *entry)
{
    const bool scheduler = strncmp(key->path, "scheduler.", 10) == 0;
    const config_entry *given = entries_find(&reader->entries,
                                             scheduler ? "scheduler.type" : "optimizer.type");
    const bool typed = given != NULL && cJSON_IsString(given->value);
    const char *type = typed ? given->value->valuestring : "";
    if (key->scope == NULL || value_choose(key->scope, type) != NULL)
        return RING_OK;
    return lenient_fail(&reader->entries.text, entry->at, RING_ERR_CONFIG,
                        "%s has no parameter \"%s\"; leave it out",
                        type[0] != '\0' ? type : "a section without a type",
                        config_key_name(key->path));
}

static bool is_initial(const config_key *key, const char *value)
{
    return key->initial != NULL && strcmp(value, key->initial) == 0;
}

static ring_status check_later(const config_reader *reader, const config_key *key,
                               const config_entry *entry)
{
    char value[VALUE_TEXT_MAX];
    value_of_json(entry->value, value);
    if (is_initial(key, value))
        return RING_OK;
    return lenient_fail(&reader->entries.text, entry->at, RING_ERR_UNSUPPORTED,
                        "%s%s%s is not supported yet by this version: %s", key->path,
                        value[0] != '\0' ? " = " : "", value, key->help);
}

/* Checks that two names of one setting do not have different values.
 * @param before  value of the field before @p entry was written to it */
static ring_status check_names(const config_reader *reader, const config_key *key,
                               const config_entry *entry, const char *before)
{
    const config_key *other = value_name(reader->config, key);
    char now[VALUE_TEXT_MAX];
    value_of_field(reader->config, key, now);
    if (other == key || !reader->config->given[other - config_keys] || strcmp(before, now) == 0)
        return RING_OK;
    return lenient_fail(&reader->entries.text, entry->at, RING_ERR_CONFIG,
                        "%s is %s, but %s, another name of this setting, is %s; leave one out",
                        key->path, now, other->path, before);
}

static ring_status set_field(const config_reader *reader, const config_key *key,
                             const config_entry *entry)
{
    char problem[VALUE_PROBLEM_MAX], before[VALUE_TEXT_MAX];
    RING_TRY(check_scope(reader, key, entry));
    value_of_field(reader->config, key, before);
    switch (value_set(reader->config, key, entry->value, problem)) {
    case VALUE_SET:
        RING_TRY(check_names(reader, key, entry, before));
        reader->config->given[key - config_keys] = true;
        return RING_OK;
    case VALUE_DEFAULT:
        add_note(reader, "%s %s", key->path, problem);
        return RING_OK;
    case VALUE_LATER:
        return lenient_fail(&reader->entries.text, entry->at, RING_ERR_UNSUPPORTED, "%s %s",
                            key->path, problem);
    default:
        return lenient_fail(&reader->entries.text, entry->at, RING_ERR_CONFIG, "%s %s", key->path,
                            problem);
    }
}

static ring_status check_entry(config_reader *reader, const config_entry *entry);

/* @return the value that replaces "auto" at @p path; "": another setting decides it; NULL: there is
 * no fixed value. @param wanted  receives the value of --batch_size */
static const char *value_for_auto(const config_reader *reader, const char *path, char wanted[24])
{
    const config_options *options = reader->options;
    if ((options->fp16 && strcmp(path, "fp16.enabled") == 0) ||
        (options->bf16 && strcmp(path, "bf16.enabled") == 0))
        return "true";
    if (options->micro_batch == 0 || strcmp(path, "train_micro_batch_size_per_gpu") != 0)
        return automatic_value(path);
    snprintf(wanted, 24, "%ld", options->micro_batch);
    return wanted;
}

/* Notes that "auto" means the default here, because DeepSpeed ignores a key that is "auto". */
static ring_status take_default(const config_reader *reader, const config_key *key)
{
    const bool known = key->initial != NULL && key->initial[0] != '\0';
    if (key->use == USE_NOTE)
        add_note(reader, "%s: auto -> its default, which has no effect here: %s", key->path,
                 key->help);
    else
        add_note(reader, "%s: auto -> %s", key->path, known ? key->initial : "none");
    return RING_OK;
}

/* Checks the entry again with the value that replaces "auto". */
static ring_status take_value(config_reader *reader, const config_key *key,
                              const config_entry *entry, const char *value)
{
    cJSON *tree = value_parse(value);
    config_entry resolved = *entry;
    resolved.value = tree;
    if (tree == NULL)
        return train_fail(RING_ERR_MEMORY, "no memory");
    add_note(reader, "%s: auto -> %s", key->path, cJSON_IsString(tree) ? tree->valuestring : value);
    const ring_status status = check_entry(reader, &resolved);
    cJSON_Delete(tree);
    return status;
}

static ring_status check_automatic(config_reader *reader, const config_key *key,
                                   const config_entry *entry)
{
    char wanted[24];
    const char *path = value_name(NULL, key)->path, *value = value_for_auto(reader, path, wanted);
    if (strcmp(key->path, "data_partition") == 0) { /* not a key of DeepSpeed's */
        add_note(reader, "%s: auto -> in proportion to the micro-batches", key->path);
        return RING_OK;
    }
    reader->automatic = true;
    if (value != NULL && value[0] != '\0')
        return take_value(reader, key, entry, value);
    if (value != NULL || automatic_later(reader->config, path))
        return check_scope(reader, key, entry);
    if (automatic_default(path))
        return take_default(reader, key);
    return lenient_fail(
        &reader->entries.text, entry->at, RING_ERR_CONFIG,
        "%s = auto: neither Hugging Face's Trainer nor accelerate replaces \"auto\" "
        "for this key; write a value",
        key->path);
}

static bool is_automatic(const cJSON *value)
{
    return cJSON_IsString(value) && strcmp(value->valuestring, "auto") == 0;
}

static ring_status check_entry(config_reader *reader, const config_entry *entry)
{
    const config_key *key = config_key_find(entry->path);
    if (key == NULL)
        return check_unknown(reader, entry);
    if (is_automatic(entry->value))
        return check_automatic(reader, key, entry);
    if (cJSON_IsNull(entry->value))
        return RING_OK; /* as if the key were missing */
    if (key->use == USE_LATER)
        return check_later(reader, key, entry);
    const bool section = key->kind == KEY_SECTION || key->kind == KEY_OPEN;
    if (section && !cJSON_IsObject(entry->value))
        return lenient_fail(&reader->entries.text, entry->at, RING_ERR_CONFIG,
                            "%s must be a section: { … }", key->path);
    char value[VALUE_TEXT_MAX];
    value_of_json(entry->value, value);
    if (key->use == USE_NOTE && !is_initial(key, value))
        add_note(reader, "%s has no effect here: %s", key->path, key->help);
    if (key->use == USE_NOTE || section)
        return RING_OK;
    return set_field(reader, key, entry);
}

/* @return whether an error was already reported because the section is not an object or because its
 * type is invalid. */
static bool was_reported(const config_reader *reader, const char *section, const char *type)
{
    const config_entry *entry = entries_find(&reader->entries, section);
    return reader->faults.count > 0 && ((entry != NULL && !cJSON_IsObject(entry->value)) ||
                                        entries_find(&reader->entries, type) != NULL);
}

/* @return the index of @p type among the choices of @p key, which the table of keys lists in the
 * order of optimizer_kind or schedule_kind. */
static int kind_of(const char *key, const char *type)
{
    const char *types = config_key_find(key)->choices;
    return value_choice_index(types, value_choose(types, type));
}

/* Sets the defaults of optimizers that differ from the table's. */
static ring_status set_own_defaults(const config_reader *reader)
{
    static const struct {
        optimizer_kind kind;
        const char *path, *value;
    } own[] = {
        {OPTIMIZER_LION, "optimizer.params.betas", "[0.9, 0.99]"},
        {OPTIMIZER_ADAGRAD, "optimizer.params.lr", "0.01"},
        {OPTIMIZER_ADAGRAD, "optimizer.params.eps", "1e-10"},
    };
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        char problem[VALUE_PROBLEM_MAX];
        const config_entry *given = entries_find(&reader->entries, own[i].path);
        if (own[i].kind != reader->config->optimizer.kind ||
            (given != NULL && !cJSON_IsNull(given->value)))
            continue;
        cJSON *value = value_parse(own[i].value);
        if (value == NULL)
            return train_fail(RING_ERR_MEMORY, "no memory");
        value_set(reader->config, config_key_find(own[i].path), value, problem);
        cJSON_Delete(value);
    }
    return RING_OK;
}

static ring_status finish_optimizer(const config_reader *reader)
{
    optimizer_config *optimizer = &reader->config->optimizer;
    const char *name = reader->entries.text.name;
    if (optimizer->type[0] == '\0' && was_reported(reader, "optimizer", "optimizer.type"))
        return RING_OK;
    if (reader->automatic && entries_find(&reader->entries, "optimizer") == NULL) {
        automatic_optimizer(optimizer);
        add_note(reader,
                 "%s; using AdamW with lr 2e-4, betas 0.9 and 0.99, no weight decay, no schedule",
                 reader->options->accelerate
                     ? "accelerate's file leaves the optimizer to the script"
                     : "the file has \"auto\", but no optimizer");
    }
    if (optimizer->type[0] == '\0')
        return train_fail(RING_ERR_CONFIG,
                          "%s: no optimizer; add \"optimizer\": {\"type\": \"SGD\", \"params\": "
                          "{\"lr\": 0.01}} (or Adam, AdamW, Lion, Adagrad)",
                          name);
    optimizer->kind = (optimizer_kind)kind_of("optimizer.type", optimizer->type);
    RING_TRY(set_own_defaults(reader));
    if (optimizer->nesterov && (optimizer->momentum == 0.0 || optimizer->dampening != 0.0))
        return train_fail(RING_ERR_CONFIG,
                          "%s: nesterov requires a momentum above 0 and a dampening of 0; "
                          "change them, or leave nesterov out",
                          name);
    if (optimizer->no_decay_lr >= 0.0 && optimizer_groups(optimizer) == 1)
        return train_fail(RING_ERR_CONFIG,
                          "%s: optimizer.no_decay_lr is the rate of a second parameter group, but "
                          "there is only one; add \"param_groups\": \"no_decay\"",
                          name);
    if (optimizer->kind == OPTIMIZER_ADAM && optimizer->adam_w_mode &&
        optimizer->weight_decay != 0.0)
        add_note(reader, "as in DeepSpeed, Adam decays weights separately from the gradient; set "
                         "optimizer.params.adam_w_mode to false to add L2 to the gradient");
    return RING_OK;
}

/* Reports missing parameters of the scheduler. A parameter without an initial value is required. */
static void require_params(config_reader *reader, const char *type, size_t at)
{
    for (size_t i = 0; i < config_key_count; i++) {
        const config_key *key = &config_keys[i];
        if (strncmp(key->path, "scheduler.params.", 17) != 0 || key->scope == NULL ||
            key->initial != NULL || value_choose(key->scope, type) == NULL ||
            entries_find(&reader->entries, key->path) != NULL)
            continue;
        faults_note(&reader->faults, at,
                    lenient_fail(&reader->entries.text, at, RING_ERR_CONFIG, "%s needs %s", type,
                                 key->path));
    }
}

/* Sets a scheduler's rate that is "auto" to that of the optimizer, as Hugging Face's Trainer does.
 */
static void follow_optimizer(const config_reader *reader)
{
    static const char path[] = "scheduler.params.warmup_max_lr";
    const config_entry *entry = entries_find(&reader->entries, path);
    train_config *config = reader->config;
    char rate[VALUE_TEXT_MAX];
    if (entry == NULL || !is_automatic(entry->value))
        return;
    config->schedule.max_lr = config->optimizer.lr;
    value_of_field(config, config_key_find(path), rate);
    add_note(reader, "%s: auto -> %s", path, rate);
}

static void note_schedule(const config_reader *reader)
{
    const schedule_config *schedule = &reader->config->schedule;
    if (reader->config->optimizer.no_decay_lr >= 0.0 && schedule_sets_lr(schedule))
        add_note(reader,
                 "optimizer.no_decay_lr has no effect: as in DeepSpeed, %s sets one rate for "
                 "all groups",
                 schedule->type);
    if (schedule->total_steps > 0 && schedule->total_steps < schedule->warmup_steps)
        add_note(reader, "scheduler: total_num_steps %ld is less than warmup_num_steps %ld",
                 schedule->total_steps, schedule->warmup_steps);
    if (schedule->kind == SCHEDULE_ONE_CYCLE && schedule->cycle.momentum &&
        !optimizer_has_betas(reader->config->optimizer.kind))
        add_note(reader,
                 "scheduler.params.cycle_momentum has no effect here: as in DeepSpeed, it is "
                 "for optimizers that have betas");
}

static ring_status finish_schedule(config_reader *reader)
{
    schedule_config *schedule = &reader->config->schedule;
    const config_entries *entries = &reader->entries;
    const config_entry *section = entries_find(entries, "scheduler");
    schedule->linear = strcmp(schedule->warmup_type, "linear") == 0;
    schedule->unclamped = reader->options->compat_ds_0_13;
    if (section == NULL || cJSON_IsNull(section->value))
        return RING_OK;
    if (schedule->type[0] == '\0' && was_reported(reader, "scheduler", "scheduler.type"))
        return RING_OK;
    if (schedule->type[0] == '\0')
        return lenient_fail(&entries->text, section->at, RING_ERR_CONFIG,
                            "scheduler has no type; add one, such as \"type\": \"WarmupDecayLR\" "
                            "(--config-keys lists all types)");
    schedule->kind = (schedule_kind)(SCHEDULE_CONSTANT + 1 +
                                     kind_of("scheduler.type", schedule->type));
    require_params(reader, schedule->type, section->at);
    follow_optimizer(reader);
    note_schedule(reader);
    return RING_OK;
}

static ring_status check_partition(const config_reader *reader)
{
    static const char choices[] = "parameters best uniform";
    const char *partition = reader->config->pipeline.partition;
    const config_entry *entry = entries_find(&reader->entries, "pipeline.partition");
    char advice[CONFIG_ADVICE_MAX];
    if (entry == NULL || value_choose(choices, partition) != NULL ||
        strncasecmp(partition, "type:", 5) == 0)
        return RING_OK;
    config_choice_advice(choices, partition, advice);
    return lenient_fail(&reader->entries.text, entry->at, RING_ERR_UNSUPPORTED,
                        "pipeline.partition \"%s\" is not supported yet by this version: write one "
                        "of parameters, uniform, type:REGEX%s",
                        partition, advice);
}

static size_t place_of(const config_reader *reader, const char *path)
{
    const config_entry *entry = entries_find(&reader->entries, path);
    return entry != NULL ? entry->at : SIZE_MAX;
}

/* Reports a problem at the line of @p path, or, if the file does not have that key, for the whole
 * file. */
static void refuse_at(config_reader *reader, const char *path, const char *problem)
{
    const config_entries *entries = &reader->entries;
    const config_key *named = value_name(reader->config, config_key_find(path));
    const config_entry *entry = entries_find(entries, named->path);
    if (entry != NULL)
        faults_note(&reader->faults, entry->at,
                    lenient_fail(&entries->text, entry->at, RING_ERR_CONFIG, "%s", problem));
    else
        faults_note(&reader->faults, SIZE_MAX,
                    train_fail(RING_ERR_CONFIG, "%s: %s", entries->text.name, problem));
}

/* Applies an option as Hugging Face's Trainer does: it sets a key that is "auto" or missing, and
 * fails if the file has another value.
 * @param given  the option is on the command line */
static void apply_option(config_reader *reader, const char *path, bool given, bool *field)
{
    const config_key *named = value_name(reader->config, config_key_find(path));
    char problem[96];
    snprintf(problem, sizeof problem, "%s is false, but --%.4s is given; leave one of them out",
             named->path, path);
    if (given && reader->config->given[named - config_keys] && !*field)
        refuse_at(reader, path, problem);
    *field = *field || given;
}

static void finish_precision(config_reader *reader)
{
    precision_config *precision = &reader->config->precision;
    apply_option(reader, "fp16.enabled", reader->options->fp16, &precision->set.fp16);
    apply_option(reader, "bf16.enabled", reader->options->bf16, &precision->set.bf16);
    const precision_verdict verdict = precision_resolve(precision, reader->config->zero_stage);
    precision->old_window = reader->options->compat_ds_0_13;
    if (verdict.note != NULL)
        add_note(reader, "%s", verdict.note);
    if (verdict.fault != NULL)
        refuse_at(reader, verdict.key, verdict.fault);
}

/* Completes the micro-batches as far as is possible without the number of ranks. If both the file
 * and --batch_size set them, they must agree. */
static ring_status finish_batch(config_reader *reader)
{
    train_config *config = reader->config;
    rank_numbers *micro = &config->micro_batches;
    const long wanted = reader->options->micro_batch;
    if (wanted > 0 && micro->count == 0)
        *micro = (rank_numbers){.count = 1, .values = {wanted}};
    for (int r = 0; r < micro->count; r++) {
        if (micro->values[r] > config->micro_batch)
            config->micro_batch = micro->values[r];
    }
    if (wanted == 0 || (!micro->listed && micro->values[0] == wanted))
        return RING_OK;
    return lenient_fail(
        &reader->entries.text, place_of(reader, "train_micro_batch_size_per_gpu"), RING_ERR_CONFIG,
        "train_micro_batch_size_per_gpu differs from the %ld that --batch_size gives "
        "each rank; leave one of them out",
        wanted);
}

/* Checks where the optimizer's states or the parameters are offloaded to.
 * @param section  offload_optimizer or offload_param */
static ring_status finish_place(const config_reader *reader, const char *section,
                                const offload_place *place)
{
    char key[96];
    snprintf(key, sizeof key, "zero_optimization.%s.device", section);
    if (place->device == OFFLOAD_CPU)
        add_note(reader, "%s = cpu has no effect: all states are in host memory anyway", key);
    if (place->device != OFFLOAD_NVME || place->nvme_path[0] != '\0')
        return RING_OK;
    return lenient_fail(&reader->entries.text, place_of(reader, key), RING_ERR_CONFIG,
                        "%s = nvme requires zero_optimization.%s.nvme_path, a folder on the disk",
                        key, section);
}

/* Checks the sections of offloading. As in DeepSpeed, parameters are offloaded in stage 3 only,
 * because the other stages do not partition them. */
static ring_status finish_offload(const config_reader *reader)
{
    const train_config *config = reader->config;
    const offload_config *offload = &config->offload;
    RING_TRY(finish_place(reader, "offload_optimizer", &offload->states));
    RING_TRY(finish_place(reader, "offload_param", &offload->params));
    if (config->zero_stage == 3 || offload->params.device == OFFLOAD_NONE)
        return RING_OK;
    return lenient_fail(
        &reader->entries.text, place_of(reader, "zero_optimization.offload_param.device"),
        RING_ERR_CONFIG,
        "zero_optimization.offload_param requires stage 3, but the stage is %ld; set "
        "its device to \"none\"",
        config->zero_stage);
}

static ring_status finish_zero(const config_reader *reader)
{
    const train_config *config = reader->config;
    const config_entry *bucket = entries_find(&reader->entries,
                                              "zero_optimization.reduce_bucket_size");
    if (config->reduce_bucket_size > ZERO_BUCKET_ELEMENTS && bucket != NULL &&
        bucket->value->valuedouble == (double)config->reduce_bucket_size)
        add_note(
            reader,
            "zero_optimization.reduce_bucket_size %ld: gradients are sent in buckets of at most %d "
            "elements, or of one layer if it has more",
            config->reduce_bucket_size, ZERO_BUCKET_ELEMENTS);
    return finish_offload(reader);
}

/* Checks each entry of the file, then the rules that combine several keys. */
static void check_all(config_reader *reader)
{
    static const char stages[] = "pipeline.params.num_stages";
    const config_entries *entries = &reader->entries;
    const train_config *config = reader->config;
    for (size_t i = 0; i < entries->count; i++)
        faults_note(&reader->faults, entries->list[i].at, check_entry(reader, &entries->list[i]));
    faults_note(&reader->faults, place_of(reader, "train_micro_batch_size_per_gpu"),
                finish_batch(reader));
    if (config->sampler_drop_last && config_has_shares(config))
        add_note(reader, "sampler_drop_last has no effect: samples are never repeated if ranks "
                         "have shares of their own");
    faults_note(&reader->faults, place_of(reader, "zero_optimization"), finish_zero(reader));
    faults_note(&reader->faults, place_of(reader, "optimizer"), finish_optimizer(reader));
    faults_note(&reader->faults, place_of(reader, "scheduler"), finish_schedule(reader));
    finish_precision(reader);
    if (config->given[config_key_find(stages) - config_keys])
        add_note(reader, "%s is used as pipeline.stages; DeepSpeed ignores it", stages);
    faults_note(&reader->faults, place_of(reader, "pipeline"), check_partition(reader));
}

static ring_status read_all(config_reader *reader, const char *name, const char *text,
                            size_t length)
{
    config_entries *entries = &reader->entries;
    values_initial(reader->config);
    if (reader->options->compat_ds_0_13) {
        reader->config->gradient_clipping = 0.0;
        reader->config->steps_per_print = 10;
    }
    const ring_status status = reader->options->accelerate
                                   ? accelerate_entries(entries, name, text, length,
                                                        &reader->faults, reader->note,
                                                        reader->context, &reader->config->processes)
                                   : entries_read(entries, name, text, length, &reader->faults);
    if (status == RING_OK)
        check_all(reader);
    return faults_tell(&reader->faults, name);
}

ring_status config_parse(const char *name, const char *text, size_t length,
                         const config_options *options, config_note_fn *note, void *context,
                         train_config *config)
{
    config_reader reader = {.options = options, .note = note, .context = context, .config = config};
    if (length > FILE_BYTES_MAX)
        return train_fail(
            RING_ERR_CONFIG,
            "%s: the file has more than %d bytes, so it is probably not a configuration", name,
            FILE_BYTES_MAX);
    const ring_status status = read_all(&reader, name, text, length);
    entries_free(&reader.entries);
    return status;
}

/* Decodes a configuration in base64, which DeepSpeed accepts in place of a file's name.
 * @param[out] found  false: @p word is not such a configuration */
static ring_status read_encoded(const char *word, const config_options *options,
                                config_note_fn *note, void *context, train_config *config,
                                bool *found)
{
    size_t length = 0;
    char *text = malloc(strlen(word) + 1);
    if (text == NULL)
        return train_fail(RING_ERR_MEMORY, "no memory to read a configuration");
    *found = encoded_config(word, text, &length);
    const ring_status status = *found ? config_parse("configuration in base64", text, length,
                                                     options, note, context, config)
                                      : RING_OK;
    free(text);
    return status;
}

static ring_status read_file(const char *path, const config_options *options, config_note_fn *note,
                             void *context, train_config *config)
{
    char *text;
    size_t length;
    ring_status status = text_file_read(path, FILE_BYTES_MAX, "a configuration", &text, &length);
    if (status == RING_OK)
        status = config_parse(path, text, length, options, note, context, config);
    free(text);
    return status;
}

ring_status config_read(const char *path, const config_options *options, config_note_fn *note,
                        void *context, train_config *config)
{
    bool encoded = false;
    if (!options->accelerate && access(path, F_OK) != 0)
        RING_TRY(read_encoded(path, options, note, context, config, &encoded));
    return encoded ? RING_OK : read_file(path, options, note, context, config);
}

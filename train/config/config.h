/* SPDX-License-Identifier: Apache-2.0
 *
 * config: reads a DeepSpeed configuration file, and checks it completely before training begins.
 * A table (keys.c) holds the kind and default of every key, and states whether this version honours
 * the key. Reading, error messages, notes and help texts are all driven by that table.
 */
#ifndef TRAIN_CONFIG_H
#define TRAIN_CONFIG_H

#include <ring/ring.h>
#include <stdbool.h>
#include <stdio.h>

#include "precision.h"

typedef enum optimizer_kind {
    OPTIMIZER_SGD,
    OPTIMIZER_ADAM,
    OPTIMIZER_ADAMW,
    OPTIMIZER_LION,
    OPTIMIZER_ADAGRAD,
    OPTIMIZER_KINDS
} optimizer_kind;

typedef enum schedule_kind {
    SCHEDULE_CONSTANT,
    SCHEDULE_WARMUP,
    SCHEDULE_WARMUP_DECAY,
    SCHEDULE_WARMUP_COSINE,
    SCHEDULE_ONE_CYCLE,
    SCHEDULE_RANGE_TEST,
    SCHEDULE_COSINE_ANNEALING,
    SCHEDULE_STEPS,
    SCHEDULE_KINDS
} schedule_kind;

static inline bool optimizer_has_betas(optimizer_kind kind)
{
    return kind != OPTIMIZER_SGD && kind != OPTIMIZER_ADAGRAD;
}

/* The values follow the order of the choices of "param_groups" in the table of keys. 0 means that
 * the key is not given, and has the effect of GROUPS_ONE. */
typedef enum param_groups {
    GROUPS_ONE = 1,
    GROUPS_NO_DECAY,           /* a second group, without weight decay, has biases and norms */
    GROUPS_NO_DECAY_EMBEDDINGS /* the second group has embeddings as well */
} param_groups;

typedef struct optimizer_config {
    char type[24];
    optimizer_kind kind;
    double lr, momentum, dampening, weight_decay, eps;
    double betas[2];
    double lr_decay, first_sum; /* Adagrad */
    bool nesterov, bias_correction;
    bool adam_w_mode; /* Adam only: decay weights separately instead of through the gradient */
    param_groups groups;
    double no_decay_lr; /* rate of the group without weight decay; below 0: the same as lr */
} optimizer_config;

/** @return the number of parameter groups. */
static inline int optimizer_groups(const optimizer_config *optimizer)
{
    return optimizer->groups >= GROUPS_NO_DECAY ? 2 : 1;
}

/** @return the rate of the group without weight decay. */
static inline double optimizer_no_decay_lr(const optimizer_config *optimizer)
{
    return optimizer->no_decay_lr >= 0.0 ? optimizer->no_decay_lr : optimizer->lr;
}

/* Parameters of the schedule OneCycle. */
typedef struct cycle_config {
    double min_lr, max_lr, decay_lr_rate;
    double min_momentum, max_momentum, decay_momentum_rate;
    /* The rate rises during first_steps updates, and falls during second_steps (0: as many). */
    long first_steps, second_steps;
    /* Number of steps in which the rate rises and falls; 0: steadily; second_stairs -1: as many. */
    long first_stairs, second_stairs;
    long decay_steps; /* updates between two decays after the cycle; 0: no decay */
    bool momentum;    /* cycle the momentum as well */
} cycle_config;

/* A schedule uses the members of its own type, and last_iteration. */
typedef struct schedule_config {
    char type[24]; /* "" without a scheduler */
    schedule_kind kind;
    double min_lr, max_lr;                  /* WarmupLR, WarmupDecayLR */
    double warmup_min_ratio, cos_min_ratio; /* WarmupCosineLR: fractions of the optimizer's rate */
    long warmup_steps, total_steps;
    char warmup_type[16];
    bool linear;
    bool unclamped; /* WarmupCosineLR: rise again after total_steps, as before DeepSpeed 0.19.3 */
    cycle_config cycle;
    double range_min_lr, range_rate; /* LRRangeTest */
    long range_steps;
    bool range_staircase;
    double annealing_min_lr; /* CosineAnnealingLR */
    long annealing_steps;
    double stair_gamma; /* StepLR */
    long stair_steps;
    long last_iteration;
} schedule_config;

/** @return whether the scheduler ignores the optimizer's rate and sets its own. */
static inline bool schedule_sets_lr(const schedule_config *schedule)
{
    return schedule->kind == SCHEDULE_WARMUP || schedule->kind == SCHEDULE_WARMUP_DECAY ||
           schedule->kind == SCHEDULE_ONE_CYCLE || schedule->kind == SCHEDULE_RANGE_TEST;
}

typedef struct pipeline_config {
    long stages;        /* 1: no pipeline */
    char partition[64]; /* parameters, best, uniform or type:REGEX */
    long interval;      /* keep the activations of every n-th layer; 0: of all layers */
} pipeline_config;

enum {
    RANK_NUMBERS_MAX = 128,
    CONFIG_KEYS_MAX = 320,
    /* The most elements in a bucket of gradients. The limit is small so that the gradients of the
     * last layers are sent while backward computes the first layers. */
    ZERO_BUCKET_ELEMENTS = 16384
};

/** Either one number for all ranks, or one number for each rank. */
typedef struct rank_numbers {
    bool listed; /* there is one number for each rank */
    int count;   /* 0: not given */
    long values[RANK_NUMBERS_MAX];
} rank_numbers;

/* The section tensorboard or csv_monitor. */
typedef struct monitor_config {
    bool enabled;
    char output_path[256], job_name[128];
} monitor_config;

typedef struct wandb_config {
    bool enabled;
    char team[128], project[128], group[128]; /* "": none */
} wandb_config;

/* The values follow the order of the choices of "device" in the table of keys. */
typedef enum offload_device {
    OFFLOAD_NONE = 1,
    OFFLOAD_CPU, /* the same as OFFLOAD_NONE: everything is in host memory anyway */
    OFFLOAD_NVME /* each rank keeps a file of its own in nvme_path */
} offload_device;

/* The section offload_optimizer or offload_param. */
typedef struct offload_place {
    offload_device device;
    char nvme_path[256]; /* the folder in which each rank creates its file */
} offload_place;

typedef struct offload_config {
    offload_place states, params;
    long block_size;  /* bytes of an array that are read or written at a time */
    long queue_depth; /* blocks that may be in flight to the disk at a time */
} offload_config;

/* The values follow the order of the choices of "data_split" and "data_end" in the table of keys.
 * 0 means that the key is not given, and has the effect of the first choice. */
typedef enum data_split { DATA_STRIDED = 1, DATA_CONTIGUOUS } data_split;
typedef enum data_end { DATA_JOIN = 1, DATA_SHORTEST } data_end;

typedef struct train_config {
    /* Sizes that the file leaves out are 0 until config_resolve_batch(). If the ranks have
     * micro-batches of different sizes, micro_batch is the largest one. */
    long train_batch, micro_batch, accumulation;
    rank_numbers micro_batches;
    rank_numbers data_partition; /* samples of each rank in an epoch; count 0: not given */
    data_split split;
    data_end end;
    optimizer_config optimizer;
    schedule_config schedule;
    precision_config precision;
    /* The largest norm of the gradient, see config_clips(). The default is that of DeepSpeed since
     * 0.14; compat_ds_0_13 restores 0, the default of earlier versions. */
    double gradient_clipping;
    long steps_per_print; /* 0: not given */
    long zero_stage;      /* stage of ZeRO, 0 to 3 */
    pipeline_config pipeline;
    long tensor_ranks; /* ranks that share the layers; 0 or 1: layers are not shared */
    bool sampler_shuffle, sampler_drop_last; /* arguments of DistributedSampler */
    bool dump_state, drop_last;
    bool overlap_comm;         /* reduce gradients during backward */
    long reduce_bucket_size;   /* most elements in a bucket of several layers */
    bool reduce_scatter;       /* stages 1 and 2: reduce-scatter gradients; false: all-reduce */
    bool allgather_partitions; /* stages 1 and 2: all-gather parameters; false: broadcast */
    long sub_group_size;       /* most elements that are updated at a time in stage 3 */
    long stage3_max_live_parameters;         /* prefetch up to this many gathered elements */
    long stage3_prefetch_bucket_size;        /* most elements that are prefetched */
    long stage3_param_persistence_threshold; /* most elements of a tensor that stays whole */
    long stage3_model_persistence_threshold; /* most elements of all such tensors together */
    offload_config offload;
    long processes; /* number of ranks in accelerate's file; 0: not given */
    bool wall_clock_breakdown, memory_breakdown;
    monitor_config tensorboard, csv;
    wandb_config wandb;
    bool given[CONFIG_KEYS_MAX]; /* by index in config_keys: whether the file has the key */
    unsigned automatic; /* a bit for each "auto" that config_fill_automatic() must still replace */
} train_config;

/** @return true if samples are not divided among ranks as PyTorch's DistributedSampler does. */
static inline bool config_has_shares(const train_config *config)
{
    return config->micro_batches.listed || config->data_partition.count > 0 ||
           config->split == DATA_CONTIGUOUS;
}

/** @return whether gradients are clipped at all: gradient_clipping 0 turns clipping off. */
static inline bool config_clips(const train_config *config)
{
    return config->gradient_clipping > 0.0;
}

typedef struct config_options {
    bool warn_unknown;   /* unknown keys are notes, not errors */
    bool compat_ds_0_13; /* use defaults of DeepSpeed 0.13 that changed later */
    bool fp16, bf16;     /* --fp16, --bf16: set fp16.enabled, bf16.enabled */
    bool accelerate;     /* the file is written by accelerate, in YAML or JSON */
    long micro_batch;    /* of a rank, from the command line; 0: not given */
} config_options;

/** Receives a note for the user: one line of text without a newline. */
typedef void config_note_fn(void *context, const char *text);

/** Reads the file @p path, or, if there is no such file, decodes @p path as a configuration in
 * base64. Errors begin with path:line:column. @param note  may be NULL.
 *  @return RING_OK, RING_ERR_CONFIG, RING_ERR_UNSUPPORTED, RING_ERR_SYSTEM, RING_ERR_MEMORY. */
ring_status config_read(const char *path, const config_options *options, config_note_fn *note,
                        void *context, train_config *config);

/** Reads a configuration from memory as config_read() does. Messages begin with @p name in place of
 *  the path. */
ring_status config_parse(const char *name, const char *text, size_t length,
                         const config_options *options, config_note_fn *note, void *context,
                         train_config *config);

/** Sets pipeline.stages to @p asked unless @p asked is 0. Then checks that @p ranks is a multiple
 * of pipeline.stages, and that the stage of ZeRO allows a pipeline.
 *  @param launcher  what set the number of ranks, for error messages: a launcher or an option. */
ring_status config_resolve_stages(train_config *config, long asked, int ranks,
                                  const char *launcher);

/** Sets and checks tensor_parallel.autotp_size in the same way; the result is 1 or more. Call this
 *  first, then pass @p ranks / autotp_size to config_resolve_stages(). */
ring_status config_resolve_tensor(train_config *config, long asked, int ranks,
                                  const char *launcher);

typedef enum batch_policy {
    BATCH_EXACT,      /* sizes that do not fit are an error */
    BATCH_KEEP_GLOBAL /* keep train_batch and micro_batch, adapt the accumulation */
} batch_policy;

/** Completes train_batch = micro_batch * accumulation * ranks as DeepSpeed does. The error explains
 *  which values would fit. @param ranks  data-parallel ranks: with a pipeline, those of one stage.
 *  @param launcher  as for config_resolve_stages(). */
ring_status config_resolve_batch(train_config *config, int ranks, const char *launcher,
                                 batch_policy policy);

/** Facts about a run that are not in its file; 0: not known yet. */
typedef struct automatic_facts {
    size_t width; /* model_spec_width() */
    long updates; /* of the whole run */
} automatic_facts;

/** Fills in keys that are "auto" and depend on ranks, network or data, as Hugging Face's Trainer
 *  does. @p note receives one note for each of them. Call this after config_resolve_batch(), and
 *  again when more facts are known. @param note  may be NULL. */
void config_fill_automatic(train_config *config, const automatic_facts *facts, config_note_fn *note,
                           void *context);

/** @return a key that is still "auto", or NULL. */
const char *config_open_automatic(const train_config *config);

/** Prints settings as lines "  name .... value": gradient_clipping and the settings that differ
 * from their default, or with @p all every setting that has an effect. A setting with several names
 * is printed under the name that the file uses. */
void config_print(const train_config *config, bool all, FILE *out);

/** Prints every setting as a line "name=value". A setting with several names is printed under its
 *  first name in the table. */
void config_list(const train_config *config, FILE *out);

/** Prints every known key with its kind, default and meaning. */
void config_print_keys(FILE *out);

#endif

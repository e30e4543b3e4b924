/* SPDX-License-Identifier: Apache-2.0
 * Defines the table of keys, with DeepSpeed's current defaults. Looks up keys in it, and finds the
 * known key that is most similar to an unknown one. */
#include "keys.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "config.h"
#include "words.h"

#define FIELD(member) \
    .field = offsetof(train_config, member), .bytes = sizeof(((train_config *)0)->member)
#define ADAMS "Adam AdamW"
#define WARMUPS "WarmupLR WarmupDecayLR"

#define SECTION(name, text) \
    { \
        .path = name, .kind = KEY_SECTION, .help = text \
    }
#define NUMBER(name, type, member, low, high, start, types, text) \
    { \
        .path = name, .kind = type, .initial = start, .scope = types, .help = text, .least = low, \
        .most = high, FIELD(member) \
    }
#define STEPS(name, member, low, start, types, text) \
    NUMBER(name, KEY_INT, member, low, INT_MAX, start, types, text)
#define INT(name, member, low, start, text) STEPS(name, member, low, start, NULL, text)
#define COUNT(name, member, low, high, start, text) \
    NUMBER(name, KEY_INT, member, low, high, start, NULL, text)
/* A key whose value is a number of elements. */
#define ELEMENTS(name, member, low, start, text) COUNT(name, member, low, 1e15, start, text)
#define REAL(name, member, low, high, start, types, text) \
    NUMBER(name, KEY_REAL, member, low, high, start, types, text)
#define BOOL(name, member, start, types, text) \
    { \
        .path = name, .kind = KEY_BOOL, .initial = start, .scope = types, .help = text, \
        FIELD(member) \
    }
#define CHOICE(name, member, start, types, list, text) \
    { \
        .path = name, .kind = KEY_TEXT, .initial = start, .scope = types, .choices = list, \
        .help = text, FIELD(member) \
    }
#define ENUM(name, member, start, list, text) \
    { \
        .path = name, .kind = KEY_CHOICE, .initial = start, .choices = list, .help = text, \
        FIELD(member) \
    }
#define TEXT(name, member, start, list, text) CHOICE(name, member, start, NULL, list, text)
#define RANKS(name, member, low, text) \
    { \
        .path = name, .kind = KEY_RANKS, .help = text, .least = low, .most = INT_MAX, \
        FIELD(member) \
    }
#define NOTE(name, type, text) \
    { \
        .path = name, .kind = type, .use = USE_NOTE, .help = text \
    }
/* Like NOTE, for a switch that has no effect anyway while it has its initial value. */
#define QUIET(name, start, text) \
    { \
        .path = name, .kind = KEY_BOOL, .use = USE_NOTE, .initial = start, .help = text \
    }
#define LATER(name, type, only, text) \
    { \
        .path = name, .kind = type, .use = USE_LATER, .initial = only, .help = text \
    }
/* The section of a feature that is not supported; it is refused only if it is enabled. */
#define SWITCH(name, text) \
    {.path = name, .kind = KEY_OPEN, .help = text}, LATER(name ".enabled", KEY_BOOL, "false", text)
/* The section of a feature that is not supported but does not change results; it is accepted even
 * if it is enabled. */
#define WATCH(name, text) \
    {.path = name, .kind = KEY_OPEN, .help = text}, QUIET(name ".enabled", "false", text)
/* The section of a monitor, which writes its files to output_path/job_name/… */
#define MONITOR(name, member, text) \
    SECTION(name, text), BOOL(name ".enabled", member.enabled, "false", NULL, text), \
        TEXT(name ".output_path", member.output_path, "", NULL, \
             "folder, created if it does not exist"), \
        TEXT(name ".job_name", member.job_name, "DeepSpeedJobName", NULL, "folder in output_path")

#define AMP "opt_level decides this, and the loss is scaled as with fp16"
#define NO_TIMERS "this version does not have this breakdown yet"
#define NO_MONITOR "use --metrics FILE, which writes the same values as JSON lines"
#define NO_SAVING "--save DIR writes checkpoints"
#define BUFFERS \
    "files are accessed through the page cache; aio.block_size sets the size of requests"
#define OVERLAPS "blocks are always read and written during the update"
#define NOT_PINNED "memory is not pinned"
#define IN_HOST_MEMORY "everything is in host memory anyway"
#define KERNEL_IO "the kernel schedules the requests to the disk"
/* The section that decides where states or parameters are kept. */
#define OFFLOAD(name, member, what) \
    SECTION(name, what), \
        ENUM(name ".device", member.device, "none", "none cpu nvme", \
             "nvme: each rank uses a file in nvme_path; none, cpu: host memory"), \
        TEXT(name ".nvme_path", member.nvme_path, NULL, NULL, \
             "folder of the files of the ranks; required with nvme"), \
        NOTE(name ".buffer_count", KEY_INT, BUFFERS), \
        NOTE(name ".buffer_size", KEY_REAL, BUFFERS), \
        NOTE(name ".pin_memory", KEY_BOOL, NOT_PINNED)
#define NO_ZERO "this implementation of ZeRO does not have this choice"
#define NO_SLICES "activations are always sent whole"
#define NO_TENSOR "this implementation of tensor ranks does not have this choice"
#define PAIRS_ARE_FOUND "leave it out: layers that ranks can share are found automatically"
#define NOT_QUANTIZED "set it to false: communication_data_type has at least 16 bits"
#define OFF "set it to false or leave the section out"

const config_key config_keys[] = {
    INT("train_batch_size", train_batch, 1, NULL, "samples in one update, of all ranks together"),
    RANKS("train_micro_batch_size_per_gpu", micro_batches, 1,
          "samples in one forward and backward pass of a rank; or a list with one number for each "
          "rank"),
    INT("gradient_accumulation_steps", accumulation, 1, NULL,
        "micro-batches whose gradients are summed before an update"),
    BOOL("dataloader_drop_last", drop_last, "false", NULL,
         "leave out the last micro-batch of an epoch if it is incomplete"),

    BOOL("sampler_shuffle", sampler_shuffle, "true", NULL,
         "shuffle the samples again for each epoch; false: use them in the order in which they are "
         "stored"),
    BOOL("sampler_drop_last", sampler_drop_last, "false", NULL,
         "leave out the samples that remain after an even division among ranks; false: repeat the "
         "first samples of the epoch so that the division is even"),
    RANKS("data_partition", data_partition, 0,
          "samples of each rank in an epoch, such as [30000, 20000]; auto: in proportion to the "
          "micro-batches"),
    ENUM("data_split", split, NULL, "strided contiguous",
         "strided: the samples of an epoch go to the ranks in turn; contiguous: each rank gets "
         "consecutive samples of the epoch; not given: strided"),
    ENUM("data_end", end, NULL, "join shortest",
         "a rank that has run out of data waits for the others (join) or ends the epoch for all "
         "ranks (shortest); not given: join"),

    SECTION("optimizer", "how parameters are updated; required"),
    TEXT("optimizer.type", optimizer.type, NULL,
         /* in the order of optimizer_kind */
         "SGD Adam AdamW Lion Adagrad", "required"),
    ENUM("optimizer.param_groups", optimizer.groups, NULL, "one no_decay no_decay_embeddings",
         "not in DeepSpeed: no_decay puts biases and norms in a second group without weight decay; "
         "no_decay_embeddings also puts embeddings there"),
    REAL("optimizer.no_decay_lr", optimizer.no_decay_lr, -1, HUGE_VAL, "-1", NULL,
         "not in DeepSpeed: learning rate of that second group; -1: the same as "
         "optimizer.params.lr"),
    SECTION("optimizer.params", "settings of the optimizer"),
    REAL("optimizer.params.lr", optimizer.lr, 0, HUGE_VAL, "0.001", NULL,
         "learning rate; Adagrad: 0.01 if not given"),
    REAL("optimizer.params.momentum", optimizer.momentum, 0, HUGE_VAL, "0", "SGD",
         "fraction of the previous step that is added to each step"),
    REAL("optimizer.params.dampening", optimizer.dampening, -HUGE_VAL, HUGE_VAL, "0", "SGD",
         "reduces the gradient that is added to the momentum by this fraction"),
    BOOL("optimizer.params.nesterov", optimizer.nesterov, "false", "SGD",
         "use Nesterov's momentum"),
    {.path = "optimizer.params.betas",
     .kind = KEY_PAIR,
     .initial = "[0.9, 0.999]",
     .scope = ADAMS " Lion",
     .help = "decay rates of the two moments; Lion: [0.9, 0.99] if not given",
     .most = 1,
     FIELD(optimizer.betas)},
    REAL("optimizer.params.eps", optimizer.eps, 0, HUGE_VAL, "1e-08", ADAMS " Adagrad",
         "added to the root of the second moment; Adagrad: 1e-10 if not given"),
    REAL("optimizer.params.lr_decay", optimizer.lr_decay, 0, HUGE_VAL, "0", "Adagrad",
         "the rate is divided by 1 + lr_decay * the number of earlier updates"),
    REAL("optimizer.params.initial_accumulator_value", optimizer.first_sum, 0, HUGE_VAL, "0",
         "Adagrad", "initial value of the sum of squares"),
    BOOL("optimizer.params.bias_correction", optimizer.bias_correction, "true", ADAMS,
         "correct the moments for their start at zero"),
    BOOL("optimizer.params.adam_w_mode", optimizer.adam_w_mode, "true", "Adam",
         "decay weights separately (AdamW); false: add the decay to the gradient"),
    REAL("optimizer.params.weight_decay", optimizer.weight_decay, 0, HUGE_VAL, "0", NULL,
         "pull of the parameters towards zero"),
    NOTE("optimizer.params.torch_adam", KEY_BOOL, "there is one implementation of Adam"),
    NOTE("optimizer.params.foreach", KEY_ANY, "there is one implementation"),
    NOTE("optimizer.params.fused", KEY_ANY, "there is one implementation"),
    LATER("optimizer.params.amsgrad", KEY_BOOL, "false", "set it to false"),
    LATER("optimizer.params.maximize", KEY_BOOL, "false", "set it to false"),
    LATER("optimizer.params.max_grad_norm", KEY_ANY, NULL,
          "as in DeepSpeed, use the key gradient_clipping"),
    LATER("optimizer.legacy_fusion", KEY_BOOL, "false", "set it to false"),

    SECTION("scheduler", "how the learning rate changes; if not given, it is constant"),
    TEXT("scheduler.type", schedule.type, NULL,
         /* in the order of schedule_kind */
         "WarmupLR WarmupDecayLR WarmupCosineLR OneCycle LRRangeTest CosineAnnealingLR StepLR",
         "required in this section"),
    SECTION("scheduler.params", "settings of the scheduler"),
    REAL("scheduler.params.warmup_min_lr", schedule.min_lr, 0, HUGE_VAL, "0", WARMUPS,
         "rate at the start, and at the end of the decay"),
    REAL("scheduler.params.warmup_max_lr", schedule.max_lr, 0, HUGE_VAL, "0.001", WARMUPS,
         "rate after the warm-up"),
    REAL("scheduler.params.warmup_min_ratio", schedule.warmup_min_ratio, 0, HUGE_VAL, "0",
         "WarmupCosineLR", "fraction of optimizer.params.lr at the start"),
    REAL("scheduler.params.cos_min_ratio", schedule.cos_min_ratio, 0, HUGE_VAL, "0.0001",
         "WarmupCosineLR", "fraction of optimizer.params.lr at the end"),
    STEPS("scheduler.params.warmup_num_steps", schedule.warmup_steps, 1, "1000",
          WARMUPS " WarmupCosineLR", "updates of the warm-up"),
    CHOICE("scheduler.params.warmup_type", schedule.warmup_type, "log", WARMUPS " WarmupCosineLR",
           "log linear", "shape of the warm-up"),
    STEPS("scheduler.params.total_num_steps", schedule.total_steps, 1, NULL,
          "WarmupDecayLR WarmupCosineLR", "updates until the rate is at its minimum; required"),
    REAL("scheduler.params.cycle_min_lr", schedule.cycle.min_lr, 0, HUGE_VAL, NULL, "OneCycle",
         "rate at both ends of the cycle; required"),
    REAL("scheduler.params.cycle_max_lr", schedule.cycle.max_lr, 0, HUGE_VAL, NULL, "OneCycle",
         "rate at the peak of the cycle; required"),
    REAL("scheduler.params.decay_lr_rate", schedule.cycle.decay_lr_rate, 0, HUGE_VAL, "0",
         "OneCycle",
         "n * decay_step_size updates after the cycle, the rate is divided by 1 + n * "
         "decay_lr_rate"),
    STEPS("scheduler.params.cycle_first_step_size", schedule.cycle.first_steps, 1, "2000",
          "OneCycle", "updates during which the rate rises"),
    STEPS("scheduler.params.cycle_second_step_size", schedule.cycle.second_steps, 0, "0",
          "OneCycle", "updates during which the rate falls; 0: as many as it rises"),
    STEPS("scheduler.params.cycle_first_stair_count", schedule.cycle.first_stairs, 0, "0",
          "OneCycle", "steps in which the rate rises; 0: it rises steadily"),
    STEPS("scheduler.params.cycle_second_stair_count", schedule.cycle.second_stairs, -1, "-1",
          "OneCycle",
          "steps in which the rate falls; 0: it falls steadily; -1: as many as it rises in"),
    STEPS("scheduler.params.decay_step_size", schedule.cycle.decay_steps, 0, "0", "OneCycle",
          "updates between two decays after the cycle; 0: no decay"),
    BOOL("scheduler.params.cycle_momentum", schedule.cycle.momentum, "true", "OneCycle",
         "lower the first beta and raise it again during the cycle; the second beta is 0.99"),
    REAL("scheduler.params.cycle_min_mom", schedule.cycle.min_momentum, 0, 1, "0.8", "OneCycle",
         "first beta at the peak of the cycle"),
    REAL("scheduler.params.cycle_max_mom", schedule.cycle.max_momentum, 0, 1, "0.9", "OneCycle",
         "first beta at both ends of the cycle"),
    REAL("scheduler.params.decay_mom_rate", schedule.cycle.decay_momentum_rate, 0, HUGE_VAL, "0",
         "OneCycle",
         "n * decay_step_size updates after the cycle, the first beta is multiplied by 1 + n * "
         "decay_mom_rate"),
    REAL("scheduler.params.lr_range_test_min_lr", schedule.range_min_lr, 0, HUGE_VAL, "0.001",
         "LRRangeTest", "rate at the start"),
    STEPS("scheduler.params.lr_range_test_step_size", schedule.range_steps, 1, "2000",
          "LRRangeTest", "updates during which the rate grows by one lr_range_test_step_rate"),
    REAL("scheduler.params.lr_range_test_step_rate", schedule.range_rate, 0, HUGE_VAL, "1.0",
         "LRRangeTest",
         "growth in each lr_range_test_step_size, as a multiple of the rate at the start"),
    BOOL("scheduler.params.lr_range_test_staircase", schedule.range_staircase, "false",
         "LRRangeTest", "grow in one step at the end of each lr_range_test_step_size"),
    STEPS("scheduler.params.T_max", schedule.annealing_steps, 1, NULL, "CosineAnnealingLR",
          "updates from optimizer.params.lr to the minimum; required"),
    REAL("scheduler.params.eta_min", schedule.annealing_min_lr, 0, HUGE_VAL, "0",
         "CosineAnnealingLR", "minimum of the rate"),
    STEPS("scheduler.params.step_size", schedule.stair_steps, 1, NULL, "StepLR",
          "updates between two changes of the rate; required"),
    REAL("scheduler.params.gamma", schedule.stair_gamma, 0, HUGE_VAL, "0.1", "StepLR",
         "factor by which the rate is multiplied at each change"),
    INT("scheduler.params.last_batch_iteration", schedule.last_iteration, -1, "-1",
        "iteration to continue from"),
    NOTE("scheduler.params.last_epoch", KEY_INT, "last_batch_iteration continues a schedule"),
    NOTE("scheduler.params.verbose", KEY_ANY, "--metrics FILE has the rate of each update"),

    REAL("gradient_clipping", gradient_clipping, 0, HUGE_VAL, "1.0", NULL,
         "largest norm of the gradient; 0: no limit"),
    INT("steps_per_print", steps_per_print, 1, NULL,
        "updates between two log lines; not given: four log lines an epoch"),
    BOOL("dump_state", dump_state, "false", NULL, "print all settings at the start"),

    SECTION("fp16", "float16, with float32 master weights"),
    BOOL("fp16.enabled", precision.set.fp16, "false", NULL,
         "keep and send parameters and gradients as float16"),
    REAL("fp16.loss_scale", precision.set.loss_scale, 0, HUGE_VAL, "0", NULL,
         "factor by which the loss is multiplied; 0: it is adapted during training"),
    COUNT("fp16.initial_scale_power", precision.set.scale_power, 0,
          126 /* 2^126 fits in a float32 */, "16", "the adapted scale starts at 2 to this power"),
    STEPS("fp16.loss_scale_window", precision.set.scale_window, 1, "1000", NULL,
          "updates without overflow before the scale is doubled"),
    STEPS("fp16.hysteresis", precision.set.hysteresis, 1, "2", NULL,
          "overflows before the scale is halved"),
    BOOL("fp16.consecutive_hysteresis", precision.set.consecutive_hysteresis, "false", NULL,
         "count only consecutive overflows for the hysteresis"),
    STEPS("fp16.min_loss_scale", precision.set.min_scale, 1, "1", NULL,
          "an overflow at this scale ends the training"),
    NOTE("fp16.auto_cast", KEY_BOOL, "inputs and arithmetic are in float32"),
    LATER("fp16.fp16_master_weights_and_grads", KEY_BOOL, "false",
          "set it to false: masters are float32"),
    NOTE("fp16.fused_mode", KEY_BOOL, "there is one implementation"),
    SECTION("bf16", "bfloat16, with float32 master weights"),
    BOOL("bf16.enabled", precision.set.bf16, "false", NULL,
         "keep and send parameters and gradients as bfloat16"),
    BOOL("bf16.check_grad_overflow", precision.set.check_overflow, "true", NULL,
         "skip updates whose gradients are not finite; false: they end the training"),
    NOTE("bf16.immediate_grad_update", KEY_BOOL, "gradients are always summed at once"),
    LATER("bf16.bf16_master_weights_and_grads", KEY_BOOL, "false",
          "set it to false: masters are float32"),
    LATER("bf16.bf16_optimizer_states", KEY_BOOL, "false", "set it to false: states are float32"),
    SECTION("bfloat16", "older name of bf16"),
    BOOL("bfloat16.enabled", precision.set.bf16, "false", NULL, "the same as bf16.enabled"),
    SECTION("amp", "levels of NVIDIA's apex, implemented by fp16"),
    BOOL("amp.enabled", precision.set.amp, "false", NULL, "use the precision of opt_level"),
    TEXT("amp.opt_level", precision.set.amp_level, NULL, "O0 O1 O2 O3",
         "O0: float32; O1 (default) and O2: the same as fp16; O3: float16 without float32 masters"),
    NOTE("amp.loss_scale", KEY_ANY, AMP),
    NOTE("amp.min_loss_scale", KEY_ANY, AMP),
    NOTE("amp.max_loss_scale", KEY_ANY, AMP),
    NOTE("amp.master_weights", KEY_ANY, AMP),
    NOTE("amp.cast_model_type", KEY_ANY, AMP),
    NOTE("amp.cast_model_outputs", KEY_ANY, AMP),
    NOTE("amp.patch_torch_functions", KEY_ANY, AMP),
    NOTE("amp.keep_batchnorm_fp32", KEY_ANY, AMP),
    NOTE("amp.num_losses", KEY_ANY, AMP),
    NOTE("amp.verbosity", KEY_ANY, AMP),
    SWITCH("torch_autocast",
           OFF ": arithmetic is in float32; bf16 and fp16 store and send 16-bit numbers"),
    TEXT("communication_data_type", precision.set.wire, NULL, "fp32 fp16 bf16",
         "type in which gradients are sent; not given: the type of the parameters"),
    SECTION("data_types", "types of stored values"),
    TEXT("data_types.grad_accum_dtype", precision.set.accumulation, NULL, "fp32 fp16 bf16",
         "type in which gradients are kept and summed; not given: the type of the parameters"),
    LATER("data_types.param_dtype", KEY_TEXT, NULL, "leave it out: fp16 or bf16 decides it"),
    LATER("data_types.buffer_dtype", KEY_TEXT, NULL, "leave it out: layers have no buffers"),
    LATER("data_types.keep_in_fp32_modules", KEY_ANY, NULL, "leave it out"),
    LATER("seq_parallel_communication_data_type", KEY_TEXT, "fp32", "leave it out"),
    LATER("seq_parallel_comm_data_type", KEY_TEXT, "fp32", "leave it out"),
    NOTE("fp32_allreduce", KEY_BOOL, "communication_data_type sets the type of sent gradients"),
    LATER("gradient_allreduce_op", KEY_TEXT, "mean", "set it to mean: gradients are averaged"),
    LATER("managed_gradient_accumulation", KEY_BOOL, "true", "set it to true"),
    NOTE("prescale_gradients", KEY_BOOL, "gradients are scaled once, before they are summed"),
    NOTE("gradient_predivide_factor", KEY_REAL,
         "gradients are scaled once, before they are summed"),
    LATER("sparse_gradients", KEY_BOOL, "false", "set it to false"),

    SECTION("zero_optimization", "partitioning of states over ranks (ZeRO)"),
    COUNT("zero_optimization.stage", zero_stage, 0, 3, "0",
          "states to partition over ranks; 1: the optimizer's; 2: also gradients; 3: also "
          "parameters"),
    NOTE("zero_optimization.contiguous_gradients", KEY_BOOL, "gradients are always contiguous"),
    BOOL("zero_optimization.overlap_comm", overlap_comm, "true", NULL,
         "reduce gradients during the backward pass"),
    BOOL("zero_optimization.reduce_scatter", reduce_scatter, "true", NULL,
         "false: stages 1 and 2 all-reduce gradients; true: they reduce them only to their owners"),
    INT("zero_optimization.reduce_bucket_size", reduce_bucket_size, 1, "5e8",
        "most elements in a bucket of gradients; at most 16384 are used, or one layer if it has "
        "more"),
    NOTE("zero_optimization.use_multi_rank_bucket_allreduce", KEY_BOOL, NO_ZERO),
    BOOL("zero_optimization.allgather_partitions", allgather_partitions, "true", NULL,
         "false: stages 1 and 2 broadcast parameters, one owner after another; true: they "
         "all-gather them"),
    NOTE("zero_optimization.allgather_bucket_size", KEY_INT,
         "parameters are gathered in the buckets of reduce_bucket_size"),
    NOTE("zero_optimization.load_from_fp32_weights", KEY_BOOL, NO_ZERO),
    NOTE("zero_optimization.elastic_checkpoint", KEY_BOOL,
         "states do not depend on the number of ranks"),
    NOTE("zero_optimization.round_robin_gradients", KEY_BOOL,
         "every rank always owns a part of each bucket"),
    QUIET("zero_optimization.ignore_unused_parameters", "true",
          "every tensor of a network takes part in each forward pass"),
    ELEMENTS("zero_optimization.sub_group_size", sub_group_size, 1, "1e9",
             "most elements that stage 3 updates at a time; it never updates more than a bucket"),
    ELEMENTS("zero_optimization.stage3_max_live_parameters", stage3_max_live_parameters, 0, "1e9",
             "most gathered elements in stage 3; if two buckets do not fit, nothing is prefetched"),
    NOTE("zero_optimization.stage3_max_reuse_distance", KEY_INT,
         "a bucket is released after each use"),
    ELEMENTS("zero_optimization.stage3_prefetch_bucket_size", stage3_prefetch_bucket_size, 0, "5e7",
             "stage 3 prefetches only buckets with at most this many elements"),
    ELEMENTS("zero_optimization.stage3_param_persistence_threshold",
             stage3_param_persistence_threshold, 0, "1e5",
             "tensors with at most this many elements stay whole on every rank in stage 3"),
    ELEMENTS("zero_optimization.stage3_model_persistence_threshold",
             stage3_model_persistence_threshold, 0, "1e15",
             "most elements of all tensors that stay whole; the first tensors of the network are "
             "chosen"),
    NOTE("zero_optimization.stage3_module_granularity_threshold", KEY_INT, NO_ZERO),
    NOTE("zero_optimization.stage3_use_all_reduce_for_fetch_params", KEY_BOOL, NO_ZERO),
    NOTE("zero_optimization.stage3_allgather_sequential", KEY_BOOL, NO_ZERO),
    NOTE("zero_optimization.stage3_gather_16bit_weights_on_model_save", KEY_BOOL, NO_SAVING),
    NOTE("zero_optimization.stage3_gather_fp16_weights_on_model_save", KEY_BOOL, NO_SAVING),
    OFFLOAD("zero_optimization.offload_optimizer", offload.states,
            "where the optimizer's states and float32 masters are kept"),
    NOTE("zero_optimization.offload_optimizer.pipeline_read", KEY_BOOL, OVERLAPS),
    NOTE("zero_optimization.offload_optimizer.pipeline_write", KEY_BOOL, OVERLAPS),
    NOTE("zero_optimization.offload_optimizer.pipeline", KEY_BOOL, OVERLAPS),
    NOTE("zero_optimization.offload_optimizer.fast_init", KEY_BOOL,
         "the states are in the file from the start"),
    NOTE("zero_optimization.offload_optimizer.ratio", KEY_REAL, "all states are offloaded"),
    OFFLOAD("zero_optimization.offload_param", offload.params,
            "stage 3: where the parameters that a rank owns are kept"),
    NOTE("zero_optimization.offload_param.max_in_cpu", KEY_REAL,
         "only the parameters of live buckets are in memory"),
    NOTE("zero_optimization.cpu_offload", KEY_BOOL, IN_HOST_MEMORY),
    NOTE("zero_optimization.cpu_offload_param", KEY_BOOL, IN_HOST_MEMORY),
    NOTE("zero_optimization.cpu_offload_use_pin_memory", KEY_BOOL, NOT_PINNED),
    LATER("zero_optimization.zero_hpz_partition_size", KEY_INT, "1", "set it to 1"),
    LATER("zero_optimization.zero_quantized_weights", KEY_BOOL, "false", NOT_QUANTIZED),
    LATER("zero_optimization.zero_quantized_nontrainable_weights", KEY_BOOL, "false",
          NOT_QUANTIZED),
    LATER("zero_optimization.zero_quantized_gradients", KEY_BOOL, "false", NOT_QUANTIZED),
    LATER("zero_optimization.zeropp_loco_param", KEY_OPEN, NULL, "leave it out"),
    LATER("zero_optimization.mics_shard_size", KEY_INT, "-1", "set it to -1"),
    NOTE("zero_optimization.mics_hierarchical_params_gather", KEY_BOOL, NO_ZERO),
    LATER("zero_optimization.zenflow", KEY_OPEN, NULL, "leave it out"),
    NOTE("zero_optimization.legacy_stage1", KEY_BOOL, NO_ZERO),
    NOTE("zero_optimization.leaf_module", KEY_OPEN, NO_ZERO),
    NOTE("zero_optimization.grad_hooks", KEY_BOOL, NO_ZERO),
    NOTE("zero_optimization.memory_efficient_linear", KEY_BOOL, NO_ZERO),
    NOTE("zero_optimization.override_module_apply", KEY_BOOL, NO_ZERO),
    NOTE("zero_optimization.pipeline_loading_checkpoint", KEY_BOOL, NO_ZERO),
    NOTE("zero_optimization.log_trace_cache_warnings", KEY_BOOL, NO_ZERO),
    NOTE("zero_optimization.enable_sanity_checks", KEY_BOOL, NO_ZERO),
    NOTE("zero_optimization.save_muon_momentum_buffer_in_memory", KEY_BOOL, NO_ZERO),
    NOTE("zero_allow_untested_optimizer", KEY_BOOL, "every optimizer can be partitioned"),
    NOTE("zero_force_ds_cpu_optimizer", KEY_BOOL, "there is one implementation"),
    SECTION("pipeline", "division of the layers into stages, each on its own ranks"),
    COUNT("pipeline.stages", pipeline.stages, 1, 256, "1",
          "number of stages; the number of ranks must be a multiple of it"),
    TEXT("pipeline.partition", pipeline.partition, "best", NULL,
         "how to balance stages: by parameters (best), by number of layers (uniform), or by the "
         "layers "
         "whose type matches REGEX (type:REGEX)"),
    SECTION("pipeline.params", "settings of the pipeline"),
    COUNT("pipeline.params.num_stages", pipeline.stages, 1, 256, NULL,
          "the same as pipeline.stages"),
    NOTE("pipeline.type", KEY_TEXT, "there is only one kind of pipeline"),
    QUIET("pipeline.seed_layers", "false", "initial parameters do not depend on the stages"),
    INT("pipeline.activation_checkpoint_interval", pipeline.interval, 0, "0",
        "keep the activations of every n-th layer and recompute the others; 0: keep all of them"),
    NOTE("pipeline.pipe_partitioned", KEY_BOOL, NO_SLICES),
    NOTE("pipeline.grad_partitioned", KEY_BOOL, NO_SLICES),
    SECTION("tensor_parallel", "sharing of pairs of layers among ranks"),
    COUNT("tensor_parallel.autotp_size", tensor_ranks, 0, 256, "1",
          "ranks that share linear layers and attention; the number of ranks must be a multiple of "
          "it; 0 and 1: layers are not shared"),
    NOTE("tensor_parallel.tp_overlap_comm", KEY_BOOL, NO_TENSOR),
    NOTE("tensor_parallel.keep_module_on_host", KEY_BOOL, NO_TENSOR),
    NOTE("tensor_parallel.replace_with_kernel_inject", KEY_BOOL, NO_TENSOR),
    LATER("tensor_parallel.tp", KEY_OPEN, NULL, "use tensor_parallel.autotp_size instead"),
    LATER("tensor_parallel.preset_model", KEY_ANY, NULL, PAIRS_ARE_FOUND),
    LATER("tensor_parallel.partition_config", KEY_OPEN, NULL, PAIRS_ARE_FOUND),
    LATER("tensor_parallel.injection_policy_tuple", KEY_ANY, NULL, PAIRS_ARE_FOUND),
    LATER("sequence_parallel_size", KEY_INT, "1", "leave it out"),
    SWITCH("expert_parallel", OFF ": layers of experts are not supported"),
    NOTE("use_data_before_expert_parallelism", KEY_BOOL, "layers of experts are not supported"),
    LATER("sparse_attention", KEY_OPEN, NULL, "leave it out: attention is always dense"),
    LATER("compression_training", KEY_OPEN, NULL, "leave it out"),
    LATER("weight_quantization", KEY_OPEN, NULL, "leave it out"),
    NOTE("activation_checkpointing", KEY_OPEN,
         "use pipeline.activation_checkpoint_interval; it does not change results"),
    NOTE("checkpoint", KEY_OPEN, NO_SAVING),
    NOTE("datastates_ckpt", KEY_OPEN, NO_SAVING),
    BOOL("wall_clock_breakdown", wall_clock_breakdown, "false", NULL,
         "show in log lines where time is spent"),
    BOOL("memory_breakdown", memory_breakdown, "false", NULL,
         "show the memory of each rank at the start and after each epoch"),
    NOTE("timers", KEY_OPEN, "throughput is always timed"),
    NOTE("log_level", KEY_TEXT, "all log lines are always printed"),
    NOTE("vocabulary_size", KEY_INT, "the model defines its vocabulary"),
    NOTE("disable_allgather", KEY_BOOL, NO_ZERO),
    NOTE("allgather_size", KEY_INT, NO_ZERO),
    SECTION("aio", "how files of offloaded states are read and written"),
    STEPS("aio.block_size", offload.block_size, 65536, "1048576", NULL,
          "bytes of each array that are read and written at a time"),
    STEPS("aio.queue_depth", offload.queue_depth, 1, "8", NULL,
          "blocks of each array that may be in flight to the disk"),
    NOTE("aio.thread_count", KEY_INT, KERNEL_IO),
    NOTE("aio.intra_op_parallelism", KEY_INT, KERNEL_IO),
    NOTE("aio.single_submit", KEY_BOOL, KERNEL_IO),
    NOTE("aio.overlap_events", KEY_BOOL, KERNEL_IO),
    NOTE("aio.use_gds", KEY_BOOL, KERNEL_IO),
    NOTE("compile", KEY_OPEN, "nothing is compiled at run time"),
    NOTE("graph_harvesting", KEY_BOOL, "CUDA graphs are not used"),
    MONITOR("tensorboard", tensorboard, "event files for TensorBoard"),
    MONITOR("csv_monitor", csv, "CSV files, one for each metric"),
    SECTION("wandb", "a file that can be imported into Weights & Biases"),
    BOOL("wandb.enabled", wandb.enabled, "false", NULL, "write wandb/PROJECT/run-….jsonl"),
    TEXT("wandb.team", wandb.team, "", NULL, "owner of the project"),
    TEXT("wandb.project", wandb.project, "deepspeed", NULL, "name of the project"),
    TEXT("wandb.group", wandb.group, "", NULL, "name of a group of runs"),
    WATCH("comet", NO_MONITOR),
    WATCH("comms_logger", NO_TIMERS),
    WATCH("flops_profiler", NO_TIMERS),
    WATCH("nebula", NO_SAVING),
    SWITCH("autotuning", OFF),
    SWITCH("elasticity", OFF),
    SWITCH("curriculum_learning", OFF),
    SWITCH("data_efficiency", OFF),
    SWITCH("progressive_layer_drop", OFF),
    SWITCH("eigenvalue", OFF),
    SWITCH("quantize_training", OFF),
    SWITCH("hybrid_engine", OFF),
};

_Static_assert(sizeof config_keys / sizeof config_keys[0] <= CONFIG_KEYS_MAX,
               "each key has its place in train_config.given");

const size_t config_key_count = sizeof config_keys / sizeof config_keys[0];

const config_key *config_key_find(const char *path)
{
    for (size_t i = 0; i < config_key_count; i++) {
        if (strcmp(config_keys[i].path, path) == 0)
            return &config_keys[i];
    }
    return NULL;
}

bool config_key_open(const char *path)
{
    for (size_t i = 0; i < config_key_count; i++) {
        const config_key *section = &config_keys[i];
        const size_t length = strlen(section->path);
        if (section->kind == KEY_OPEN && strncmp(path, section->path, length) == 0 &&
            path[length] == '.')
            return true;
    }
    return false;
}

const char *config_key_name(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot != NULL ? dot + 1 : path;
}

/* @return true if both paths are in the same section. */
static bool are_siblings(const char *a, const char *b)
{
    const size_t length = (size_t)(config_key_name(a) - a);
    return length == (size_t)(config_key_name(b) - b) && strncmp(a, b, length) == 0;
}

/* @return true if @p letters are the initials of the words of @p name: lr, learning_rate. */
static bool are_initials(const char *letters, const char *name)
{
    const char *at = letters;
    for (const char *c = name; *c != '\0'; c++) {
        if ((c == name || c[-1] == '_') && *at++ != *c)
            return false;
    }
    return at > letters + 1 && *at == '\0';
}

/* @return how much two words differ: 1 if one has the initials of the other; otherwise twice the
 * edit distance, plus 1 if the first letters differ. People rarely mistype the first letter, so
 * bp16 is closer to bf16 than to fp16. */
static size_t difference(const char *word, const char *known)
{
    if (are_initials(word, known) || are_initials(known, word))
        return 1;
    return 2 * words_distance(word, known) + (word[0] != known[0]);
}

const char *config_key_nearest(const char *path)
{
    const char *name = config_key_name(path), *best = NULL;
    /* First search the section of the path, then the others for an equal name. */
    for (int elsewhere = 0; elsewhere < 2 && best == NULL; elsewhere++) {
        size_t least = elsewhere ? 2 : strlen(name) + 2;
        for (size_t i = 0; i < config_key_count; i++) {
            const char *known = config_keys[i].path;
            const size_t distance = difference(name, config_key_name(known));
            if (distance < least && (elsewhere || are_siblings(path, known))) {
                best = known;
                least = distance;
            }
        }
    }
    return best;
}

void config_choice_advice(const char *list, const char *word, char advice[CONFIG_ADVICE_MAX])
{
    size_t least = strlen(word), width;
    advice[0] = '\0';
    for (const char *at = list; *at != '\0'; at += width + strspn(at + width, ", ")) {
        char known[CONFIG_ADVICE_MAX / 2];
        width = strcspn(at, ", ");
        snprintf(known, sizeof known, "%.*s", (int)width, at);
        const size_t distance = difference(word, known);
        if (distance >= least)
            continue;
        least = distance;
        snprintf(advice, CONFIG_ADVICE_MAX, "; did you mean \"%s\"?", known);
    }
}

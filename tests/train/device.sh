#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ringtrain --device over the doubles of CUDA's driver and cuBLASLt: checkpoints that go from the CPU
# to the GPU and back, runs that continue, and what is said where a GPU cannot be used.
# Arguments: the ringtrain with emulated kernels, ringdigits, the example with emulated kernels.
set -uo pipefail
ringtrain=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failures=0
wrong() { echo "FAILED: $*"; failures=$((failures + 1)); }

"$2" digits --train 400 --test 50 > /dev/null || exit 1
cat > config.json <<'END'
{"train_batch_size": 32, "gradient_accumulation_steps": 2, "gradient_clipping": 1.0,
 "optimizer": {"type": "Adam", "params": {"lr": 0.001}}, "steps_per_print": 1000}
END
cat > layers.json <<'END'
{"name": "small", "input": [1, 28, 28], "layers": [
  {"type": "conv2d", "channels": 4, "kernel": 5, "stride": 2}, {"type": "tanh"},
  {"type": "avg_pool2d", "kernel": 2}, {"type": "flatten"}, {"type": "dropout", "probability": 0.2},
  {"type": "linear", "features": 10}]}
END

# train NAME STEPS options...: prints to NAME.log, losses to NAME.losses
train() {
    local name=$1 steps=$2
    shift 2
    "$ringtrain" --deepspeed_config config.json --data digits --model layers.json --loss cross_entropy \
        --epochs 4 --max-steps "$steps" --metrics "$name.jsonl" "$@" > "$name.log" 2>&1
    local status=$?
    sed -n 's/^{"step".*"loss": \([^,]*\),.*/\1/p' "$name.jsonl" > "$name.losses" 2> /dev/null
    return $status
}
# good NAME STEPS options...
good() { train "$@" || { wrong "$1: $(tail -n 3 "$1.log")"; }; }
# refused TEXT NAME options...
refused() {
    local text=$1 name=$2
    shift 2
    train "$name" 3 "$@" && wrong "$name: it trained"
    grep -q -- "$text" "$name.log" || wrong "$name: no \"$text\" in: $(tail -n 3 "$name.log")"
}
# near NAME NAME [SQUARE]: the losses are equal within 1e-6, or the root of SQUARE
near() {
    paste "$1.losses" "$2.losses" | awk -v a="$1" -v b="$2" -v e="${3:-1e-12}" \
        '{ d = $1 - $2; if (NF < 2 || d * d > e * ($1 * $1 + 1)) bad = NR ": " $0 }
         END { if (bad != "" || NR == 0) { print "FAILED: " a " and " b ", line " bad; exit 1 } }' ||
        failures=$((failures + 1))
}

good cpu 20 --device cpu
good gpu 20 --device cuda
grep -q 'layers by cuBLASLt on cuda:0' gpu.log || wrong "the start of a run on the GPU"
grep -q ' on cpu$' cpu.log || wrong "the start of a run on the CPU"
near gpu cpu
[ "$(wc -l < gpu.losses)" -ge 20 ] || wrong "losses of 20 updates: $(wc -l < gpu.losses)"

# Operands of 10 bits, and the CPU, which has none.
good tf32 20 --device cuda --tf32
near tf32 gpu 1e-5
awk 'NR == FNR { want[FNR] = $1; next } { d = $1 - want[FNR]; if (d * d > 1e-11) apart++ }
     END { exit !(apart > 10) }' gpu.losses tf32.losses || wrong "TF32 has float32's losses"
good full 20 --device cpu --tf32
grep -q '^NOTE TF32 has no effect: the CPU multiplies in float32$' full.log || wrong "TF32 on the CPU"
cmp -s full.losses cpu.losses || wrong "TF32 on the CPU changes losses"

# The GPU's memory has what the rank's has, the training images, and workspaces.
awk '/^memory on cuda:0 in bytes:/ { total = $6 + 0 }
     /^memory of rank 0 in bytes:/ {
         gsub(/[^0-9 ]/, ""); n = split($0, part, " ")
         for (i = 2; i <= n; i++) sum += part[i] }
     END { exit !(sum > 1000 && total >= sum + 68157440 + 400 * 785 && total < sum + 67 * 1048576) }' gpu.log ||
    wrong "the memory of the GPU: $(grep '^memory' gpu.log)"
grep -q '^memory on' cpu.log && wrong "the memory of a GPU in a run on the CPU"
train checked 3 --device cuda --check || wrong "a check with a GPU: $(tail -n 3 checked.log)"
grep -q '^memory per rank on cuda:0 in bytes, 1 rank,' checked.log &&
    grep -q "^in addition: 68157440 bytes on cuda:0" checked.log || wrong "the table of a check"
refused 'on a GPU needs a single rank' ranks --device cuda --check=2

# In the middle of an epoch: CPU, GPU, CPU; and a run on the GPU in two halves, with the same bits.
good first 5 --device cpu --save there
good second 11 --device cuda:0 --resume there --save back
good third 20 --device cpu --resume back
cat first.losses second.losses third.losses > mixed.losses
near mixed cpu
good half 8 --device auto --save halves
good rest 20 --device auto --resume halves
cat half.losses rest.losses | cmp -s - gpu.losses || wrong "a run in two halves has other losses"

# Parameters that one device has trained start the other.
good dumped 5 --device cuda --dump-params params
good started 3 --device cpu --init params.0

refused 'there is no GPU 7: this host has 1' seven --device cuda:7
refused 'expected auto, cpu, cuda or cuda:N' other --device gpu
RINGTRAIN_CUBLASLT=/nowhere refused 'cuBLASLt .* was not found' lost --device cuda
FAKE_CUDA=no_device refused 'cuInit' nowhere --device cuda
# A version that the driver is too old for does not hide one that can be used.
mkdir versions
IFS=: read -ra folders <<< "$LD_LIBRARY_PATH"
find "${folders[@]}" -maxdepth 1 -name libcublasLt.so.12 -exec cp {} versions \;
cp versions/libcublasLt.so.12 versions/libcublasLt.so.13
export RINGTRAIN_CUBLASLT=$work/versions
FAKE_CUBLASLT_NO_HANDLE=.so.13 good older 3 --device cuda
FAKE_CUBLASLT_NO_HANDLE=libcublasLt refused 'libcublasLt.so.12 cannot be used: .*CUBLAS_STATUS_NOT_INIT' \
    too_old --device cuda
unset RINGTRAIN_CUBLASLT
# A GPU without enough memory: for workspaces; then for a wide layer.
FAKE_CUDA_MEMORY=1000000 good small_gpu 3 --device auto
grep -q 'NOTE training on the CPU, .*: allocating a workspace' small_gpu.log ||
    wrong "auto without memory for a workspace: $(head -n 3 small_gpu.log)"
cp layers.json kept.json
sed -i 's/{"type": "linear"/{"type": "linear", "features": 20000}, &/' layers.json
FAKE_CUDA_MEMORY=33554432 good large 1 --device auto
grep -q 'NOTE training on the CPU, .*: cuda:0 has no .* bytes left for activations' large.log &&
    grep -q ' on cpu$' large.log || wrong "auto without memory for the network: $(head -n 3 large.log)"
FAKE_CUDA_MEMORY=33554432 refused 'cuda:0 has no .* bytes left for activations' too_large --device cuda
mv kept.json layers.json
FAKE_CUBLASLT_FAIL=4 refused 'on cuda:0: multiplying matrices (cublasLtMatmul): CUBLAS_STATUS_EXECUTION_FAILED' \
    failing --device cuda
# The example: with the library's options.device, on the GPU, as a product that fails shows.
"$3" config.json digits 8 > example.log 2>&1 || wrong "the example: $(tail -n 3 example.log)"
grep -q '^loss [0-9.]*, test accuracy [0-9.]*$' example.log || wrong "the example's result"
FAKE_CUBLASLT_FAIL=4 "$3" config.json digits 8 > example.log 2>&1 && wrong "the example passed a failure over"
grep -q 'on cuda:0: multiplying matrices' example.log || wrong "the example is not on the GPU"

sed -i 's/"tanh"/"gelu"/' layers.json
refused 'layer 1 (gelu): cuda:0 cannot compute this layer' gelu --device cuda
good automatic 3 --device auto
grep -q 'training on the CPU, because the GPU cannot be used: layer 1 (gelu)' automatic.log ||
    wrong "auto does not say why"
FAKE_CUDA=no_device good without 3 --device auto
grep -q ' on cpu$' without.log || wrong "auto without a GPU"
good default 3
grep -q ' on cpu$' default.log || wrong "the default"
sed -i '1s/{/{"fp16": {"enabled": true}, /' config.json
good half_floats 3 --device auto
grep -q 'training on the CPU, because the GPU cannot be used: .* needs float32' half_floats.log ||
    wrong "auto with float16"
grep -q 'cannot be used' without.log && wrong "auto without a GPU has something to say"
[ $failures = 0 ] && echo ok
exit $((failures > 0))

# SPDX-License-Identifier: Apache-2.0
# ringinfo on GPUs, over the double of their driver. The second argument: 1 if this build has kernels.
. "$(dirname "$0")/lib.sh"
kernels=$2

# row NAME: its value
row() {
    sed -n "s|^  $1  *||p" <<<"$out" | head -n 1
}

run env FAKE_CUDA_DEVICES=3 "$ringinfo"
equal "exit code" 0 "$code"
has "devices" "$(row devices)" '^3, driver for CUDA [0-9]+\.[0-9]$'
for i in 0 1 2; do
    equal "device $i" "Fake GPU, compute capability 9.0, PCI 0000:3$(tr 012 bcd <<<$i):00.0" "$(row cuda:$i)"
    equal "memory of device $i" "16.0 GiB" "$(row "cuda:$i memory")"
    if [ "$kernels" = 1 ]; then
        equal "kernels for device $i" "built in" "$(row "cuda:$i kernels")"
        equal "use of device $i" yes "$(row "cuda:$i used")"
    else
        equal "kernels for device $i" "none in this build" "$(row "cuda:$i kernels")"
        has "use of device $i" "$(row "cuda:$i used")" '^no: .*built without GPU kernels'
    fi
done
equal "columns" "cuda:0  cuda:1  cuda:2" "$(row 'peer access to')"
equal "peers of device 0" "-       yes     yes" "$(row 'cuda:0 reaches')"
equal "peers of device 2" "yes     yes     -" "$(row 'cuda:2 reaches')"

run env FAKE_CUDA_DEVICES=2 FAKE_CUDA_PEERS=0 "$ringinfo"
equal "no peer" "no      -" "$(row 'cuda:1 reaches')"
run env FAKE_CUDA_DEVICES=1 "$ringinfo"
equal "no matrix of one device" "" "$(row 'peer access to')"

run env FAKE_CUDA=no_device "$ringinfo"
equal "exit code without a device" 0 "$code"
has "no device" "$(row devices)" "^none \(CUDA does not start \(cuInit\): no CUDA-capable device is detected .*nvidia-smi"
if [ "$kernels" = 1 ]; then
    run env FAKE_CUDA=no_binary "$ringinfo"
    equal "exit code with a GPU that is not used" 0 "$code"
    has "no kernels for it" "$(row 'cuda:0 used')" '^no: loading kernels .*CUDA_ERROR_NO_BINARY_FOR_GPU'
    has "what that means" "$out" 'WARN collectives cannot use its memory'
fi
: >libcuda.so.1
run env LD_LIBRARY_PATH="$work" "$ringinfo"
equal "exit code without a driver" 0 "$code"
has "no driver" "$(row devices)" "^none \(.*libcuda.so.1: .*is NVIDIA's driver installed\?\)\$"

run env FAKE_CUDA_DEVICES=2 "$ringinfo" --json
for word in '"devices":.*"2, driver for' '"cuda:1":.*"Fake GPU, compute' \
    '"cuda:1 memory":.*17179869184' '"cuda:0 reaches":.*"-  *yes"' '"cuda:1 used":'; do
    has "JSON" "$out" "$word"
done
finish

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Takes the place of nvidia-cuda-mps-control in rehearsals: with -d it starts, else it reads commands.
# Fails if the daemon would not have folders of its own, or would be left running.
[ -d "$CUDA_MPS_PIPE_DIRECTORY" ] && [ -d "$CUDA_MPS_LOG_DIRECTORY" ] || exit 2
started=$CUDA_MPS_PIPE_DIRECTORY/started
case ${1:-} in
-d) [ ! -e "$started" ] && : > "$started" ;;
*) read -r command && [ "$command" = quit ] && rm "$started" ;;
esac

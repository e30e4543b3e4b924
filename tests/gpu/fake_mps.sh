#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# In the place of nvidia-cuda-mps-control: `-d` starts, and `quit` ends, what is only a file.
[ -d "$CUDA_MPS_PIPE_DIRECTORY" ] && [ -d "$CUDA_MPS_LOG_DIRECTORY" ] || exit 2
running=$CUDA_MPS_PIPE_DIRECTORY/running
case ${1:-$(cat)} in
-d) [ ! -e "$running" ] && : > "$running" && echo started > "$CUDA_MPS_LOG_DIRECTORY/control.log" ;;
quit) rm "$running" && { [ -z "${FAKE_MPS_ENDED:-}" ] || echo quit >> "$FAKE_MPS_ENDED"; } ;;
*) exit 2 ;;
esac

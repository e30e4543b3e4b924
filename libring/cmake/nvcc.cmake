# One run of nvcc: the image, and beside it, for tests, the PTX of later GPUs and what ptxas reports.
set(kept ${IMAGE}.parts)
file(MAKE_DIRECTORY ${kept})
execute_process(
    COMMAND ${NVCC} -fatbin -std=c++17 -O3 -fmad=false --compress-mode=size
        ${ARCHITECTURES} ${INCLUDES}
        -Xptxas -v -Werror all-warnings --keep --keep-dir ${kept} -o ${IMAGE} ${SOURCE}
    RESULT_VARIABLE failed OUTPUT_VARIABLE report ERROR_VARIABLE report)
file(WRITE ${REPORT} "${report}")
get_filename_component(name ${SOURCE} NAME_WE)
if(NOT failed)
    file(RENAME ${kept}/${name}.compute_90.ptx ${PTX})
endif()
file(REMOVE_RECURSE ${kept})
if(failed)
    message(FATAL_ERROR "${report}")
endif()

# The compiler of GPU kernels. Kernels are compiled by commands of their own, not by CMake's language
# CUDA, whose checks need more of the CUDA Toolkit than its compiler. Nothing links it: kernels are
# embedded as data, and loaded by the driver's library where a GPU is found.

set(RING_CUDA AUTO CACHE STRING "Kernels for NVIDIA's GPUs (nvcc 12.8 or newer): AUTO, ON, OFF")
set_property(CACHE RING_CUDA PROPERTY STRINGS AUTO ON OFF)

set(RING_HAVE_CUDA OFF)
if(NOT RING_CUDA STREQUAL "OFF")
    # Where pip puts it, below the virtual environment that .ci/setup.sh makes.
    file(GLOB ring_nvcc_wheels
        ${PROJECT_SOURCE_DIR}/build/cuda/lib/python3*/site-packages/nvidia/cu*/bin)
    find_program(RING_NVCC nvcc HINTS $ENV{CUDA_HOME}/bin $ENV{CUDA_PATH}/bin /usr/local/cuda/bin
        ${ring_nvcc_wheels} DOC "The compiler of GPU kernels")
    if(RING_NVCC)
        execute_process(COMMAND ${RING_NVCC} --version OUTPUT_VARIABLE text ERROR_QUIET)
        string(REGEX MATCH "release ([0-9]+\\.[0-9]+), V([0-9.]+)" text "${text}")
        set(RING_CUDA_VERSION "${CMAKE_MATCH_2}")
        find_program(RING_CUDA_HOST_COMPILER NAMES g++ c++ DOC "The C++ compiler that nvcc calls")
        if(NOT RING_CUDA_HOST_COMPILER)
            set(RING_CUDA_VERSION "none (nvcc needs a C++ compiler)")
        elseif(RING_CUDA_VERSION VERSION_GREATER_EQUAL 12.8)
            set(RING_HAVE_CUDA ON)
        else()
            set(RING_CUDA_VERSION "none (${RING_NVCC} is ${RING_CUDA_VERSION}; want 12.8 or newer)")
        endif()
    endif()
    if(RING_CUDA STREQUAL "ON" AND NOT RING_HAVE_CUDA)
        message(FATAL_ERROR "RING_CUDA=ON, but no nvcc of 12.8 or newer with a C++ compiler was found: "
            "install the CUDA Toolkit and g++, or set RING_NVCC")
    endif()
endif()

# The driver's header, for the test that compares prototypes; nothing else reads it.
if(RING_HAVE_CUDA)
    get_filename_component(ring_nvcc_folder ${RING_NVCC} REALPATH)
    get_filename_component(ring_nvcc_folder ${ring_nvcc_folder} DIRECTORY)
    find_path(RING_CUDA_INCLUDE cuda.h HINTS ${ring_nvcc_folder}/../include
        ${ring_nvcc_folder}/../targets/x86_64-linux/include NO_DEFAULT_PATH)
endif()

# PTX of 90 serves the GPUs that come later.
set(RING_CUDA_ARCHITECTURES
    -gencode=arch=compute_80,code=sm_80
    -gencode=arch=compute_90,code=sm_90
    -gencode=arch=compute_90,code=compute_90)

# ring_cuda_image(NAME SOURCE depends...): NAME.fatbin in the build's kernels/cuda, from SOURCE, and
# beside it NAME.txt, what ptxas says of registers and stacks, and NAME.ptx. Products and sums are
# not fused: the same bits as the host's kernels.
function(ring_cuda_image name source)
    set(image ${CMAKE_CURRENT_BINARY_DIR}/${name}.fatbin)
    add_custom_command(OUTPUT ${image}
        COMMAND ${CMAKE_COMMAND} -DNVCC=${RING_NVCC} "-DARCHITECTURES=${RING_CUDA_ARCHITECTURES}"
            -DSOURCE=${CMAKE_CURRENT_SOURCE_DIR}/${source} -DIMAGE=${image}
            "-DINCLUDES=-I${PROJECT_SOURCE_DIR}/libring/include;-I${PROJECT_SOURCE_DIR}/kernels"
            -DREPORT=${CMAKE_CURRENT_BINARY_DIR}/${name}.txt
            -DPTX=${CMAKE_CURRENT_BINARY_DIR}/${name}.ptx
            -P ${PROJECT_SOURCE_DIR}/libring/cmake/nvcc.cmake
        DEPENDS ${source} ${ARGN} ${PROJECT_SOURCE_DIR}/libring/cmake/nvcc.cmake
        COMMENT "Compiling GPU kernels of ${source}" VERBATIM)
endfunction()

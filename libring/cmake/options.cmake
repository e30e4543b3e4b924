# How everything is compiled, what is optional, and what was found.

if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug, Release, RelWithDebInfo" FORCE)
endif()
include(GNUInstallDirs)
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)

option(RING_BUILD_TESTS "Build the tests (needs cmocka)" ${PROJECT_IS_TOP_LEVEL})
option(RING_GPU_TESTS "Build the tests that run on a GPU, without the others (tests/gpu/run does)" OFF)
option(RING_PROGRAMS "Build the programs and the trainer, too" ON)
option(RING_TORCH "Build the PyTorch backend (needs torch)" OFF)
find_program(RING_PYTHON python3 DOC "Python of the tests, whose torch the PyTorch backend is built for")
option(RING_WERROR "Warnings are errors" OFF)
set(RING_SANITIZE "" CACHE STRING "Sanitizers, e.g. address,undefined or thread")
set(RING_WITH_HWLOC AUTO CACHE STRING "Topology through hwloc: AUTO, ON, OFF")
set(RING_WITH_VERBS AUTO CACHE STRING "InfiniBand and RoCE (headers of libibverbs): AUTO, ON, OFF")
set(RING_WITH_UCX AUTO CACHE STRING "Links over UCX: AUTO, ON, OFF")
set_property(CACHE RING_WITH_HWLOC RING_WITH_VERBS RING_WITH_UCX PROPERTY STRINGS AUTO ON OFF)

add_library(ring_options INTERFACE)
target_compile_features(ring_options INTERFACE c_std_11)
target_compile_definitions(ring_options INTERFACE _GNU_SOURCE $<$<CONFIG:Debug>:RING_CHECKED>)
target_compile_options(ring_options INTERFACE
    -fvisibility=hidden -fno-math-errno -ffp-contract=off
    -Wall -Wextra -Wshadow -Wundef -Wvla -Wformat=2 -Wcast-align -Wpointer-arith
    -Wdouble-promotion $<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes$<SEMICOLON>-Wmissing-prototypes>
    # cmocka, threads and ranks dictate the parameters of tests
    $<$<PATH:IS_PREFIX,${PROJECT_SOURCE_DIR}/tests,$<TARGET_PROPERTY:SOURCE_DIR>>:-Wno-unused-parameter>
    -fstack-protector-strong
    $<$<BOOL:${RING_WERROR}>:-Werror>)
target_link_options(ring_options INTERFACE -Wl,-z,relro # what is preloaded is bound lazily
    $<$<NOT:$<STREQUAL:$<TARGET_PROPERTY:TYPE>,MODULE_LIBRARY>>:-Wl,-z,now>)
target_link_libraries(ring_options INTERFACE Threads::Threads)
# The shared library of a release is optimised across rooms (docs/decisions/0016); tests and programs
# take the same objects without that, and link as fast as ever.
if(CMAKE_C_COMPILER_ID STREQUAL GNU AND NOT RING_SANITIZE)
    set(RING_LTO ON)
    target_link_options(ring_options INTERFACE
        $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-fno-lto>)
endif()
if(NOT RING_SANITIZE)
    target_compile_options(ring_options INTERFACE # -U: distributions set one of their own
        $<$<CONFIG:Release>:-U_FORTIFY_SOURCE$<SEMICOLON>-D_FORTIFY_SOURCE=2>)
else()
    target_compile_definitions(ring_options INTERFACE RING_CHECKED)
    target_compile_options(ring_options INTERFACE -fno-omit-frame-pointer
        -fsanitize=${RING_SANITIZE} -fno-sanitize-recover=all)
    target_link_options(ring_options INTERFACE -fsanitize=${RING_SANITIZE})
endif()

# Required: libsodium (proof of membership), xxHash (checksums); for programs and the trainer also
# cJSON (config, reports), zlib (MNIST files), a BLAS with the CBLAS interface (layers).
# docs/decisions/ says why each.
pkg_check_modules(SODIUM REQUIRED IMPORTED_TARGET libsodium)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash>=0.8.0)
if(RING_PROGRAMS)
    pkg_check_modules(CJSON REQUIRED IMPORTED_TARGET libcjson)
    pkg_check_modules(ZLIB REQUIRED IMPORTED_TARGET zlib)
    pkg_check_modules(OPENBLAS REQUIRED IMPORTED_TARGET openblas)
elseif(RING_BUILD_TESTS)
    message(FATAL_ERROR "the tests run the programs: RING_BUILD_TESTS needs RING_PROGRAMS")
endif()
if(RING_BUILD_TESTS OR RING_GPU_TESTS)
    pkg_check_modules(CMOCKA REQUIRED IMPORTED_TARGET cmocka)
endif()

# ring_feature(NAME pkg-config-module): AUTO uses it when found, ON insists, OFF does not look.
function(ring_feature name module)
    set(found OFF)
    if(NOT RING_WITH_${name} STREQUAL "OFF")
        pkg_check_modules(${name} QUIET IMPORTED_TARGET ${module})
        set(found ${${name}_FOUND})
        if(RING_WITH_${name} STREQUAL "ON" AND NOT found)
            message(FATAL_ERROR "RING_WITH_${name}=ON, but pkg-config finds no ${module}")
        endif()
    endif()
    set(RING_HAVE_${name} ${found} PARENT_SCOPE)
endfunction()
ring_feature(HWLOC hwloc)
ring_feature(VERBS libibverbs) # its header: the library is loaded where it is (transport/verbs)
ring_feature(UCX ucx) # its headers; the library is loaded at run time

function(ring_print_summary)
    set(lines "")
    foreach(row "build type|${CMAKE_BUILD_TYPE}" "sanitizers|${RING_SANITIZE}"
            "libsodium|${SODIUM_VERSION}" "xxHash|${XXHASH_VERSION}"
            "cJSON|${CJSON_VERSION}" "zlib|${ZLIB_VERSION}"
            "OpenBLAS|${OPENBLAS_VERSION}" "hwloc (${RING_WITH_HWLOC})|${HWLOC_VERSION}"
            "verbs (${RING_WITH_VERBS})|${VERBS_VERSION}"
            "UCX (${RING_WITH_UCX})|${UCX_VERSION}"
            "CUDA (${RING_CUDA})|${RING_CUDA_VERSION}"
            "PyTorch|${RING_TORCH_VERSION}"
            "oneDNN (${RING_WITH_ONEDNN})|${ONEDNN_LIBRARY}" "tests|${RING_BUILD_TESTS}")
        string(REPLACE "|" ";" cells "${row}")
        list(GET cells 0 name)
        list(LENGTH cells length)
        set(value "none")
        if(length GREATER 1)
            list(GET cells 1 value)
        endif()
        string(LENGTH "${name}" width)
        math(EXPR pad "16 - ${width}")
        string(REPEAT " " ${pad} spaces)
        string(APPEND lines "  ${name}${spaces}${value}\n")
    endforeach()
    message(STATUS "libring ${PROJECT_VERSION}\n${lines}")
endfunction()

# One target a room. A room's headers are found only by the rooms that link it, so an
# include that the architecture forbids does not compile.

set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})

# ring_room(NAME source...): object library ring_NAME whose headers lie in its folder.
function(ring_room name)
    add_library(ring_${name} OBJECT ${ARGN})
    target_include_directories(ring_${name} PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})
    target_link_libraries(ring_${name} PRIVATE ring_options)
    set_target_properties(ring_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
    if(RING_LTO AND NOT name STREQUAL kernels) # those are built for several processors
        target_compile_options(ring_${name} PRIVATE
            $<$<CONFIG:Release>:-flto$<SEMICOLON>-ffat-lto-objects>)
    endif()
endfunction()

# ring_objects(TARGET room...): puts the rooms' objects into TARGET (programs and tests that
# look inside; users link the shared library).
function(ring_objects target)
    foreach(room ${ARGN})
        target_link_libraries(${target} PRIVATE ring_${room})
        target_sources(${target} PRIVATE $<TARGET_OBJECTS:ring_${room}>)
    endforeach()
endfunction()

# ring_program(NAME source...): an installed program in build/bin. It finds libring from where it
# lies, so an installed tree works under any prefix and may be moved.
file(RELATIVE_PATH ring_lib_from_bin ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
function(ring_program name)
    add_executable(${name} ${ARGN})
    target_link_libraries(${name} PRIVATE ring_options)
    set_target_properties(${name} PROPERTIES INSTALL_RPATH "$ORIGIN/${ring_lib_from_bin}")
    install(TARGETS ${name} RUNTIME)
endfunction()

# ring_test(NAME source... [ROOMS room...] [LIBS lib...] [LABELS label...] [TIMEOUT s]):
# a cmocka program and its ctest entry. Exit status 77 is a skip: also of all cases.
function(ring_test name)
    cmake_parse_arguments(arg "NO_ENTRY" "TIMEOUT" "ROOMS;LIBS;LABELS" ${ARGN})
    add_executable(test_${name} ${arg_UNPARSED_ARGUMENTS} $<TARGET_OBJECTS:test_ending>)
    target_link_options(test_${name} PRIVATE -Wl,--wrap=_skip,--wrap=_cmocka_run_group_tests)
    set_target_properties(test_${name} PROPERTIES
        RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
    target_link_libraries(test_${name} PRIVATE ring_options PkgConfig::CMOCKA ${arg_LIBS})
    if(arg_ROOMS)
        ring_objects(test_${name} ${arg_ROOMS})
    endif()
    if(NOT arg_NO_ENTRY)
        ring_test_entry(${name} COMMAND test_${name} LABELS ${arg_LABELS} TIMEOUT ${arg_TIMEOUT})
    endif()
endfunction()

# ring_test_entry(NAME COMMAND command... [LABELS label...] [TIMEOUT s] [ENV variable=value...] [FULL])
# FULL: a long run, which only `ctest -C full` knows (./check --full); it also has the label full. An entry
# that judges times (RING_TEST_TIMED) runs alone.
function(ring_test_entry name)
    cmake_parse_arguments(arg "FULL" "TIMEOUT" "COMMAND;LABELS;ENV" ${ARGN})
    set(configurations "")
    if(arg_FULL)
        set(configurations CONFIGURATIONS full)
        list(APPEND arg_LABELS full)
    endif()
    if(arg_FULL AND NOT arg_TIMEOUT)
        set(arg_TIMEOUT 7200)
    elseif(NOT arg_TIMEOUT)
        set(arg_TIMEOUT 600)
    endif()
    add_test(NAME ${name} COMMAND ${arg_COMMAND} ${configurations})
    set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT ${arg_TIMEOUT}
        LABELS "${arg_LABELS}" ENVIRONMENT "${arg_ENV}")
    if(arg_ENV MATCHES "RING_TEST_TIMED")
        set_tests_properties(${name} PROPERTIES RUN_SERIAL ON)
    endif()
endfunction()

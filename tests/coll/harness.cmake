# The harness and the sweep, for tests/coll and for tests/gpu, which may be built alone.
set(coll ${PROJECT_SOURCE_DIR}/tests/coll)
add_library(ring_test_harness STATIC ${coll}/cases.c ${coll}/harness.c ${coll}/collective_oracle.c
    ${coll}/permissions.c ${coll}/pinned.c ${coll}/pretended_host.c
    ${coll}/../kernels/halves.c)
target_include_directories(ring_test_harness PUBLIC ${coll} PRIVATE ${PROJECT_SOURCE_DIR}/tests
    ${PROJECT_SOURCE_DIR}/tests/doubles/ibverbs ${CMOCKA_INCLUDE_DIRS}) # cases.c: cmocka's programs
target_link_libraries(ring_test_harness PUBLIC ring_api PRIVATE ring_options m ${CMAKE_DL_LIBS})
# permissions.c wraps what creates, registers and destroys.
foreach(function comm_init comm_init_config comm_init_env comm_split comm_split_config comm_dup comm_create
        comm_exclude comm_exclude_abort comm_shrink comm_destroy mem_alloc mem_free mem_register
        mem_deregister)
    target_link_options(ring_test_harness INTERFACE -Wl,--wrap=ring_${function})
endforeach()

# add_sweep(NAME LIBRARY): the program, of ranks over that libring.
function(add_sweep name library)
    set(coll ${PROJECT_SOURCE_DIR}/tests/coll)
    add_executable(${name} ${coll}/coll_sweep.c ${coll}/sweep_buffers.c ${coll}/sweep_case.c
        ${coll}/sweep_cases.c ${coll}/sweep_order.c)
    set_target_properties(${name} PROPERTIES
        RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
    target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
    target_link_libraries(${name} PRIVATE ring_options ring_test_harness ${library})
    ring_objects(${name} base plan algo)
    target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/kernels/cuda
        ${PROJECT_SOURCE_DIR}/tests/doubles/cuda)
    target_link_libraries(${name} PRIVATE ${CMAKE_DL_LIBS})
endfunction()

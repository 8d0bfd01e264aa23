# SPDX-License-Identifier: Apache-2.0
# run_tests.cmake - tests of transports, executor and communicators
foreach(test test_exec_reduce test_exec_mem)
    zipccl_criterion_test(${test} SOURCES tests/${test}.c LIBS zipccl_core)
endforeach()
# Plain programs, so that ThreadSanitizer can run them.
set(ZIPCCL_COLL_SOURCES tests/coll_world.c tests/coll_buffers.c)
zipccl_plain_test(test_collectives THREADS LIBS zipccl_core
    SOURCES tests/test_collectives.c tests/coll_run.c ${ZIPCCL_COLL_SOURCES})
zipccl_plain_test(test_reductions THREADS LIBS zipccl_core
    SOURCES tests/test_reductions.c ${ZIPCCL_COLL_SOURCES})
zipccl_plain_test(test_split THREADS LIBS zipccl_core
    SOURCES tests/test_split.c tests/coll_world.c)
zipccl_plain_test(test_faults THREADS LIBS zipccl_core
    SOURCES tests/test_faults.c tests/faulty.c ${ZIPCCL_COLL_SOURCES})
zipccl_plain_test(test_comm THREADS LIBS zipccl_core
    SOURCES tests/test_comm.c ${ZIPCCL_COLL_SOURCES})
set(ZIPCCL_REDUCE_SOURCES tests/reduce_run.c tests/ref_reduce.c reference.c ${ZIPCCL_COLL_SOURCES})
zipccl_plain_test(test_reduce_plans THREADS LIBS zipccl_core
    SOURCES tests/test_reduce_plans.c ${ZIPCCL_REDUCE_SOURCES})
zipccl_plain_test(test_reduce_faults THREADS LIBS zipccl_core
    SOURCES tests/test_reduce_faults.c tests/faulty.c ${ZIPCCL_REDUCE_SOURCES})
zipccl_plain_test(test_check THREADS LIBS zipccl_core
    SOURCES tests/test_check.c tests/coll_world.c)
zipccl_plain_test(test_comm_reduce THREADS LIBS zipccl_core
    SOURCES tests/test_comm_reduce.c ${ZIPCCL_REDUCE_SOURCES})
zipccl_plain_test(test_codec_mt THREADS LIBS zipccl_core
    SOURCES tests/test_codec_mt.c tests/codec_data.c)
zipccl_plain_test(test_exec_mt THREADS LIBS zipccl_core
    SOURCES tests/test_exec_mt.c ${ZIPCCL_REDUCE_SOURCES})

zipccl_plain_test(test_native_choice THREADS LIBS zipccl_core
    SOURCES tests/test_native_choice.c tests/coll_world.c)

# Programs to run by hand: figures to look at.
add_executable(call_speed tests/call_speed.c tests/coll_world.c)
target_link_libraries(call_speed PRIVATE zipccl_core m)
set_target_properties(call_speed PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
add_executable(fused_speed tests/fused_speed.c tests/codec_data.c tests/coll_world.c)
target_link_libraries(fused_speed PRIVATE zipccl_core m)
set_target_properties(fused_speed PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
zipccl_criterion_test(test_trials SOURCES tests/test_trials.c LIBS zipccl_core)
zipccl_criterion_test(test_classes SOURCES tests/test_classes.c LIBS zipccl_core)
zipccl_plain_test(test_comm_classes THREADS LIBS zipccl_core
    SOURCES tests/test_comm_classes.c ${ZIPCCL_COLL_SOURCES})
zipccl_plain_test(test_pair_classes THREADS LIBS zipccl_core
    SOURCES tests/test_pair_classes.c ${ZIPCCL_COLL_SOURCES})
zipccl_plain_test(test_comm_learn THREADS LIBS zipccl_core
    SOURCES tests/test_comm_learn.c ${ZIPCCL_COLL_SOURCES})
zipccl_plain_test(test_comm_cache THREADS LIBS zipccl_core
    SOURCES tests/test_comm_cache.c ${ZIPCCL_COLL_SOURCES})
zipccl_plain_test(test_comm_state THREADS LIBS zipccl_core
    SOURCES tests/test_comm_state.c ${ZIPCCL_COLL_SOURCES})
zipccl_plain_test(test_limits THREADS LIBS zipccl_core
    SOURCES tests/test_limits.c tests/coll_world.c)

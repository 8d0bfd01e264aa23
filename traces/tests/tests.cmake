# SPDX-License-Identifier: Apache-2.0
# tests.cmake - tests of traces
zipccl_criterion_test(test_trace_errors SOURCES tests/test_trace_errors.c tests/scratch.c
    LIBS zipccl_traces ZLIB::ZLIB)
zipccl_criterion_test(test_trace_writer SOURCES tests/test_trace_writer.c tests/scratch.c
    LIBS zipccl_traces)
zipccl_criterion_test(test_safetensors SOURCES tests/test_safetensors.c tests/scratch.c
    LIBS zipccl_traces)
zipccl_criterion_test(test_import_simai_files
    SOURCES tests/test_import_simai_files.c tests/simai_sums.c tests/scratch.c
    LIBS zipccl_traces zipccl::yajl)
zipccl_criterion_test(test_import_simai
    SOURCES tests/test_import_simai.c tests/simai_sums.c tests/scratch.c LIBS zipccl_traces)
zipccl_criterion_test(test_import_errors SOURCES tests/test_import_errors.c tests/scratch.c
    LIBS zipccl_traces)
zipccl_criterion_test(test_import_kineto
    SOURCES tests/test_import_kineto.c tests/kineto_use.c tests/kineto_file.c tests/scratch.c
    LIBS zipccl_traces ZLIB::ZLIB m)
zipccl_criterion_test(test_import_kineto_errors
    SOURCES tests/test_import_kineto_errors.c tests/kineto_use.c tests/kineto_file.c
    tests/scratch.c LIBS zipccl_traces)
zipccl_criterion_test(test_import_nccl SOURCES tests/test_import_nccl.c tests/scratch.c
    LIBS zipccl_traces)
zipccl_criterion_test(test_import_kineto_files
    SOURCES tests/test_import_kineto_files.c tests/scratch.c LIBS zipccl_traces zipccl::yajl m)
zipccl_criterion_test(test_import_aicb
    SOURCES tests/test_import_aicb.c tests/expected.c tests/scratch.c
    LIBS zipccl_traces zipccl::yajl)
zipccl_criterion_test(test_import_et
    SOURCES tests/test_import_et.c tests/expected.c tests/kineto_file.c tests/scratch.c
    LIBS zipccl_traces zipccl::yajl)
zipccl_criterion_test(test_import_chakra
    SOURCES tests/test_import_chakra.c tests/expected.c tests/scratch.c
    LIBS zipccl_traces zipccl::yajl zipccl::protobuf_c ZLIB::ZLIB)
zipccl_criterion_test(test_import_archive
    SOURCES tests/test_import_archive.c tests/expected.c tests/scratch.c
    LIBS zipccl_traces zipccl::yajl zipccl::archive ZLIB::ZLIB)
zipccl_criterion_test(test_export_chakra SOURCES tests/test_export_chakra.c tests/scratch.c
    LIBS zipccl_traces m)
zipccl_criterion_test(test_rescale SOURCES tests/test_rescale.c tests/scratch.c
    LIBS zipccl_traces)
# Sanitizers keep what is freed, and are slow: a smaller file then.
if(ZIPCCL_SANITIZE)
    set(ZIPCCL_MEMORY_TEST_MB 20)
else()
    set(ZIPCCL_MEMORY_TEST_MB 300)
endif()
zipccl_plain_test(test_kineto_memory SOURCES tests/test_kineto_memory.c LIBS zipccl_traces
    ARGS ${ZIPCCL_MEMORY_TEST_MB})
zipccl_criterion_test(test_trace_samples SOURCES tests/test_trace_samples.c LIBS zipccl_traces)
zipccl_criterion_test(test_trace_use SOURCES tests/test_trace_use.c tests/scratch.c
    LIBS zipccl_traces)
add_test(NAME samples COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/tests/check_samples.sh
    $<TARGET_FILE:make_samples>)
# Another reader of what is exported; the exporter itself runs under sanitizers above.
if(ZIPCCL_WITH_SIM AND NOT ZIPCCL_SANITIZE)
    add_test(NAME chakra_read COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/tests/run_protobuf.sh
        $<TARGET_FILE:zipccl> WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(chakra_read PROPERTIES TIMEOUT 120 SKIP_RETURN_CODE 77)
endif()

# SPDX-License-Identifier: Apache-2.0
# vectors.cmake - the test vectors' author, and decoders that read a message from standard input
add_executable(decode_message tests/decode_message.c)
target_link_libraries(decode_message PRIVATE zipccl_core)
set_target_properties(decode_message PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)

# The minimal build does without the library for SHA-256.
if(NOT TARGET zipccl::md)
    return()
endif()
add_executable(make_vectors tests/make_vectors.c tests/vector_set.c tests/vector_odd.c
    tests/vector_accepted.c tests/vector_refused.c tests/vector_ans.c tests/codec_data.c)
target_link_libraries(make_vectors PRIVATE zipccl_core zipccl::md m)
set_target_properties(make_vectors PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
add_test(NAME vectors COMMAND ${PROJECT_SOURCE_DIR}/core/tests/check_vectors.sh
    $<TARGET_FILE:make_vectors> WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})

# SPDX-License-Identifier: Apache-2.0
# capture.cmake - the NCCL interposer, and the tests of what captures
find_program(ZIPCCL_PYTHON python3)

set(ZIPCCL_HAVE_INTERPOSER OFF)
if(TARGET zipccl::cuda_headers AND NCCL_INCLUDE_DIR)
    set(ZIPCCL_HAVE_INTERPOSER ON)
    # Preloaded into programs of any CUDA: it is linked to none and asks the process for it.
    add_library(zipccl_capture SHARED capture/interpose.c capture/interpose_part.c)
    target_include_directories(zipccl_capture PRIVATE ${PROJECT_SOURCE_DIR})
    target_link_libraries(zipccl_capture
        PRIVATE zipccl::cuda_headers Threads::Threads ${CMAKE_DL_LIBS})
    set_target_properties(zipccl_capture PROPERTIES OUTPUT_NAME zipccl-capture
        LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
else()
    message(STATUS "nccl.h not found: libzipccl-capture.so is not built")
endif()

if(NOT ZIPCCL_PYTHON)
    message(STATUS "python3 not found: captures are not tested")
    return()
endif()
# Without the simulator there is no zipccl to check traces with.
set(zipccl_program none)
if(ZIPCCL_WITH_SIM)
    set(zipccl_program $<TARGET_FILE:zipccl>)
endif()
add_test(NAME capture_join COMMAND ${ZIPCCL_PYTHON}
    ${CMAKE_CURRENT_SOURCE_DIR}/capture/tests/test_join.py ${zipccl_program})
# Nothing of ours runs in the job itself but Python: one build is enough.
if(ZIPCCL_WITH_SIM AND NOT ZIPCCL_SANITIZE)
    add_test(NAME capture_torch COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/capture/tests/run_torch.sh
        ${zipccl_program})
    set_tests_properties(capture_torch PROPERTIES TIMEOUT 300 SKIP_RETURN_CODE 77 PROCESSORS 2)
endif()

# Processes that are forked, each with the double's threads: not tried under ThreadSanitizer.
if(ZIPCCL_HAVE_INTERPOSER AND ZIPCCL_HAVE_EMULATOR AND NOT ZIPCCL_SANITIZE STREQUAL "thread")
    # On the doubles of cudart and NCCL, which gpu makes later, in the place of the real ones.
    add_executable(capture_app capture/tests/app.c)
    target_link_libraries(capture_app PRIVATE zipccl::cuda_headers zipccl_emu_nccl zipccl_emu_cudart)
    set_target_properties(capture_app PROPERTIES
        RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/capture_tests)
    add_test(NAME capture_nccl COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/capture/tests/run_nccl.sh
        ${ZIPCCL_PYTHON} $<TARGET_FILE:zipccl_capture> $<TARGET_FILE:capture_app>
        ${zipccl_program})
    set_tests_properties(capture_nccl PROPERTIES TIMEOUT 120 SKIP_RETURN_CODE 77)
endif()

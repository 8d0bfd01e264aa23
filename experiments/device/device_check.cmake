# SPDX-License-Identifier: Apache-2.0
# device_check.cmake - the program of gpu/device_check.sh: for a GPU, and on the emulator for a test
set(device_check_sources device/device_check.c device/device_conform.c device/device_speed.c device/device_nccl.c
    device/device_nvcomp.c device/device_peers.c
    ${PROJECT_SOURCE_DIR}/core/tests/codec_data.c)

function(zipccl_device_check name)
    add_executable(${name} ${device_check_sources})
    target_link_libraries(${name} PRIVATE zipccl_programs zipccl::yajl ${ARGN} zipccl_core
        ${CMAKE_DL_LIBS} m)
    set_target_properties(${name} PROPERTIES LINKER_LANGUAGE CXX)
endfunction()
if(ZIPCCL_HAVE_NCCL AND TARGET zipccl_gpu_encode AND TARGET zipccl_gpu_decode)
    zipccl_device_check(zipccl-device-check zipccl_gpu zipccl_nccl_linked zipccl_gpu_encode zipccl_gpu_decode ${NCCL_LIBRARY}
        CUDA::cudart)
endif()
if(TARGET zipccl_gpu_encode_emu AND TARGET zipccl_gpu_decode_emu)
    zipccl_device_check(device_check_emulated zipccl_gpu zipccl_nccl_linked zipccl_gpu_encode_emu zipccl_gpu_decode_emu)
    target_compile_definitions(device_check_emulated PRIVATE ZIPCCL_DEVICE_EMULATED=1)
    set_target_properties(device_check_emulated PROPERTIES
        RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
    # One thread of its own: nothing for ThreadSanitizer.
    if(ZIPCCL_SANITIZE STREQUAL "thread")
        return()
    endif()
    # In place of nvCOMP's library.
    add_library(nvcomp_double SHARED tests/double_nvcomp.c)
    target_compile_options(nvcomp_double PRIVATE -fvisibility=default)
    target_include_directories(nvcomp_double PRIVATE ${PROJECT_SOURCE_DIR}
        ${CUDAToolkit_INCLUDE_DIRS})
    set_target_properties(nvcomp_double PROPERTIES
        LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
    add_test(NAME device_check COMMAND ${PROJECT_SOURCE_DIR}/gpu/device_check.sh --emulated
        ${CMAKE_BINARY_DIR}/tests/device_check_emulated --nvcomp $<TARGET_FILE:nvcomp_double>
        WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(device_check PROPERTIES TIMEOUT 120)
endif()

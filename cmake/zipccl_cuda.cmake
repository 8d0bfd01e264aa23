# SPDX-License-Identifier: Apache-2.0
# zipccl_cuda.cmake - CUDA and NCCL where they are: what is found, and kernels that are built twice
#
#   ZIPCCL_HAVE_CUDA      cuda_runtime_api.h and libcudart: host code can call CUDA
#   ZIPCCL_HAVE_NCCL      nccl.h and libnccl
#   ZIPCCL_HAVE_NVCC      nvcc: kernels are compiled for GPUs
#   ZIPCCL_HAVE_EMULATOR  a C++ compiler, cuda_runtime_api.h and nccl.h 2.28: kernels run in tests
#
# A machine with none of them configures and builds everything else.

set(ZIPCCL_HAVE_CUDA OFF)
set(ZIPCCL_HAVE_NCCL OFF)
set(ZIPCCL_HAVE_NVCC OFF)
set(ZIPCCL_HAVE_EMULATOR OFF)
if(ZIPCCL_WITH_CUDA)
    find_package(CUDAToolkit QUIET)
endif()
if(ZIPCCL_WITH_CUDA AND CUDAToolkit_FOUND)
    set(ZIPCCL_HAVE_CUDA ON)
    find_path(NCCL_INCLUDE_DIR nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
    find_library(NCCL_LIBRARY NAMES nccl libnccl.so.2 HINTS ${CUDAToolkit_LIBRARY_DIR})
    if(NCCL_INCLUDE_DIR AND NCCL_LIBRARY)
        set(ZIPCCL_HAVE_NCCL ON)
    endif()
    # Imported, so that their headers' own warnings are not ours.
    add_library(zipccl::cuda_headers INTERFACE IMPORTED GLOBAL)
    target_include_directories(zipccl::cuda_headers INTERFACE ${CUDAToolkit_INCLUDE_DIRS})
    if(NCCL_INCLUDE_DIR)
        target_include_directories(zipccl::cuda_headers INTERFACE ${NCCL_INCLUDE_DIR})
        file(STRINGS ${NCCL_INCLUDE_DIR}/nccl.h nccl_version REGEX "^#define NCCL_(MAJOR|MINOR) ")
        string(REGEX REPLACE "[^0-9]+" ";" nccl_version "${nccl_version}")
        list(GET nccl_version 1 nccl_major)
        list(GET nccl_version 2 nccl_minor)
        set(ZIPCCL_NCCL_VERSION ${nccl_major}.${nccl_minor})
    endif()

    include(CheckLanguage)
    check_language(CXX)
    if(CMAKE_CXX_COMPILER)
        enable_language(CXX)
        set(CMAKE_CXX_STANDARD 17)
        set(CMAKE_CXX_STANDARD_REQUIRED ON)
        if(ZIPCCL_WITH_TESTS AND ZIPCCL_NCCL_VERSION VERSION_GREATER_EQUAL 2.28)
            set(ZIPCCL_HAVE_EMULATOR ON)
        endif()
    endif()
    # Sanitizers see nothing of a GPU: such builds have the emulated kernels only.
    if(ZIPCCL_WITH_NVCC AND NOT ZIPCCL_SANITIZE)
        check_language(CUDA)
        if(CMAKE_CUDA_COMPILER)
            if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
                # SASS for A100, H100 and B200, PTX for what comes later.
                set(CMAKE_CUDA_ARCHITECTURES 80-real 90-real 100)
            endif()
            enable_language(CUDA)
            set(CMAKE_CUDA_STANDARD 17)
            set(CMAKE_CUDA_STANDARD_REQUIRED ON)
            set(ZIPCCL_HAVE_NVCC ON)
        endif()
    endif()
endif()

# zipccl_kernels(NAME SOURCES file.cu... [LIBS target...]) - kernels and their launchers, built twice
#
#   NAME      by nvcc, a static library; only with ZIPCCL_HAVE_NVCC.  The build fails where ptxas
#             spills registers for any architecture; NAME's object directory has a table (*.ptxas)
#   NAME_emu  by the C++ compiler, with the emulator and the doubles in it; only with
#             ZIPCCL_HAVE_EMULATOR.  NAME_emu_bodies is the same without them, for a library or
#             program that runs on their shared forms (zipccl_emu_cudart, zipccl_emu_nccl)
function(zipccl_kernels name)
    cmake_parse_arguments(K "" "" "SOURCES;LIBS" ${ARGN})
    if(ZIPCCL_HAVE_NVCC)
        add_library(${name} STATIC ${K_SOURCES})
        target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR})
        target_link_libraries(${name} PUBLIC zipccl::cuda_headers ${K_LIBS})
        # Like -ffp-contract=off: a contracted multiply-add would change the bits of reductions.
        target_compile_options(${name} PRIVATE
            $<$<COMPILE_LANGUAGE:CUDA>:-Xptxas=-v -Xcompiler=-fPIC --fmad=false -lineinfo
            --Werror=all-warnings>)
        set_target_properties(${name} PROPERTIES CUDA_RUNTIME_LIBRARY Shared
            CUDA_COMPILER_LAUNCHER ${PROJECT_SOURCE_DIR}/cmake/ptxas_gate.sh)
    endif()
    if(ZIPCCL_HAVE_EMULATOR)
        zipccl_emulated_kernels(${name}_emu_bodies SOURCES ${K_SOURCES})
        target_link_libraries(${name}_emu_bodies PUBLIC ${K_LIBS})
        add_library(${name}_emu INTERFACE)
        target_link_libraries(${name}_emu INTERFACE ${name}_emu_bodies zipccl_emu)
    endif()
endfunction()

# zipccl_emulated_kernels(NAME SOURCES file.cu...) - the C++ half alone, without the emulator itself
#
# A .cu file is included by a generated .cpp file, so one directory can build it in both languages.
function(zipccl_emulated_kernels name)
    cmake_parse_arguments(K "" "" "SOURCES" ${ARGN})
    set(wrappers)
    foreach(source ${K_SOURCES})
        get_filename_component(path ${source} ABSOLUTE)
        file(RELATIVE_PATH path ${PROJECT_SOURCE_DIR} ${path})
        string(REPLACE "/" "_" wrapper ${path})
        set(wrapper ${CMAKE_CURRENT_BINARY_DIR}/${name}.dir/${wrapper}.cpp)
        file(CONFIGURE OUTPUT ${wrapper} CONTENT "#include \"${path}\"\n")
        list(APPEND wrappers ${wrapper})
    endforeach()
    add_library(${name} STATIC ${wrappers})
    target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR})
    target_link_libraries(${name} PUBLIC zipccl::cuda_headers)
    target_compile_options(${name} PRIVATE -Wno-unknown-pragmas)
    if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
        target_compile_options(${name} PRIVATE -mpopcnt) # __popc is a call otherwise
    endif()
    if(ZIPCCL_SANITIZE)
        # The encoder alone takes minutes with -O2; -O1 sees too little to tell what is set.
        target_compile_options(${name} PRIVATE -O1
            $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
    endif()
endfunction()

# SPDX-License-Identifier: Apache-2.0
# zipccl.cmake - compiler flags, optional packages, and how a test is added

# Strict C11 hides POSIX, so it is named; contraction would change the bits of reductions.
add_compile_definitions(_POSIX_C_SOURCE=200809L)
# CUDA files have flags of their own (zipccl_cuda.cmake): nvcc knows none of these.
set(zipccl_warnings -Wall -Wextra -Wshadow -Wpointer-arith -Wvla -Wwrite-strings
    -ffp-contract=off -fno-math-errno -fvisibility=hidden)
add_compile_options(
    "$<$<COMPILE_LANGUAGE:C>:${zipccl_warnings};-Wstrict-prototypes;-Wmissing-prototypes>"
    "$<$<COMPILE_LANGUAGE:CXX>:${zipccl_warnings}>")
if(ZIPCCL_WERROR)
    add_compile_options($<$<COMPILE_LANGUAGE:C,CXX>:-Werror>)
endif()
if(ZIPCCL_SANITIZE)
    add_compile_options(-fsanitize=${ZIPCCL_SANITIZE} -fno-omit-frame-pointer)
    add_link_options(-fsanitize=${ZIPCCL_SANITIZE})
    if(NOT ZIPCCL_SANITIZE STREQUAL "thread")
        add_compile_options(-fno-sanitize-recover=all)
    endif()
endif()

find_package(Threads REQUIRED)
if(ZIPCCL_WITH_TOOLS)
    find_package(PkgConfig REQUIRED)
    find_package(ZLIB REQUIRED)
endif()

function(zipccl_find_library target header library)
    find_path(${target}_INCLUDE_DIR ${header})
    find_library(${target}_LIBRARY ${library})
    if(NOT ${target}_INCLUDE_DIR OR NOT ${target}_LIBRARY)
        message(FATAL_ERROR "${header} or lib${library} not found: experiments/quickstart.sh installs what is needed")
    endif()
    add_library(${target} UNKNOWN IMPORTED GLOBAL)
    set_target_properties(${target} PROPERTIES IMPORTED_LOCATION ${${target}_LIBRARY}
        INTERFACE_INCLUDE_DIRECTORIES ${${target}_INCLUDE_DIR})
endfunction()

if(ZIPCCL_WITH_TOOLS)
    zipccl_find_library(zipccl::yajl yajl/yajl_parse.h yajl)
    zipccl_find_library(zipccl::cyaml cyaml/cyaml.h cyaml)
    zipccl_find_library(zipccl::archive archive.h archive)
    zipccl_find_library(zipccl::protobuf_c protobuf-c/protobuf-c.h protobuf-c)
    find_program(ZIPCCL_PROTOC_C protoc-c)
    if(NOT ZIPCCL_PROTOC_C)
        message(FATAL_ERROR "protoc-c not found: experiments/quickstart.sh installs what is needed")
    endif()
endif()
if(ZIPCCL_WITH_SIM)
    zipccl_find_library(zipccl::md sha2.h md)
    zipccl_find_library(zipccl::xxhash xxhash.h xxhash)
    zipccl_find_library(zipccl::simgrid simgrid/engine.h simgrid)
endif()
if(ZIPCCL_WITH_TESTS)
    find_path(CRITERION_INCLUDE_DIR criterion/criterion.h)
    find_library(CRITERION_LIBRARY criterion)
endif()
if(CRITERION_INCLUDE_DIR AND CRITERION_LIBRARY)
    add_library(zipccl::criterion UNKNOWN IMPORTED GLOBAL)
    set_target_properties(zipccl::criterion PROPERTIES IMPORTED_LOCATION ${CRITERION_LIBRARY}
        INTERFACE_INCLUDE_DIRECTORIES ${CRITERION_INCLUDE_DIR})
    set(ZIPCCL_HAVE_CRITERION ON)
else()
    set(ZIPCCL_HAVE_CRITERION OFF)
endif()
if(ZIPCCL_WITH_TESTS AND NOT ZIPCCL_HAVE_CRITERION)
    message(STATUS "Criterion not found: unit tests are not built")
endif()

# Optional: seen here, used by later targets, never required.
set(ZIPCCL_HAVE_MPI OFF)
if(ZIPCCL_WITH_MPI)
    find_package(MPI COMPONENTS C QUIET)
    if(MPI_C_FOUND)
        # The tests and the testbed start ranks with Open MPI's mpirun.
        include(CheckSymbolExists)
        set(CMAKE_REQUIRED_LIBRARIES MPI::MPI_C)
        check_symbol_exists(OPEN_MPI mpi.h ZIPCCL_MPI_IS_OPEN_MPI)
        unset(CMAKE_REQUIRED_LIBRARIES)
        if(ZIPCCL_MPI_IS_OPEN_MPI)
            set(ZIPCCL_HAVE_MPI ON)
        endif()
    endif()
endif()
include(cmake/zipccl_cuda.cmake)
message(STATUS "optional: MPI ${ZIPCCL_HAVE_MPI}, CUDA ${ZIPCCL_HAVE_CUDA}, nvcc ${ZIPCCL_HAVE_NVCC}, NCCL ${ZIPCCL_HAVE_NCCL}, emulator ${ZIPCCL_HAVE_EMULATOR}")
if(ZIPCCL_REQUIRE_GPU AND NOT (ZIPCCL_HAVE_CUDA AND ZIPCCL_HAVE_NVCC AND ZIPCCL_HAVE_NCCL))
    message(FATAL_ERROR "a build for GPUs needs the CUDA toolkit (found: ${ZIPCCL_HAVE_CUDA}), its nvcc (${ZIPCCL_HAVE_NVCC}) and NCCL, "
        "nccl.h and libnccl.so.2 (${ZIPCCL_HAVE_NCCL}): -DCUDAToolkit_ROOT=FOLDER and -DNCCL_INCLUDE_DIR=FOLDER "
        "-DNCCL_LIBRARY=FILE say where they are; -DZIPCCL_REQUIRE_GPU=OFF builds without them")
endif()

# zipccl_library(NAME SOURCES... ) - a static library with the one include root
function(zipccl_library name)
    add_library(${name} STATIC ${ARGN})
    target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR})
endfunction()

# zipccl_criterion_test(NAME LIBS... SOURCES file...) - a Criterion program, one ctest entry.
# Never built under TSan, which cannot start Criterion. A leak inside a Criterion child passes
# unseen, so its LeakSanitizer log goes to a file and the wrapper fails on any.
function(zipccl_criterion_test name)
    cmake_parse_arguments(T "" "TIMEOUT" "SOURCES;LIBS" ${ARGN})
    if(NOT ZIPCCL_HAVE_CRITERION OR ZIPCCL_SANITIZE STREQUAL "thread")
        return()
    endif()
    add_executable(${name} ${T_SOURCES})
    target_link_libraries(${name} PRIVATE ${T_LIBS} zipccl::criterion m)
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
    add_test(NAME ${name} COMMAND ${PROJECT_SOURCE_DIR}/tests/run_criterion.sh
        $<TARGET_FILE:${name}> WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    if(NOT T_TIMEOUT)
        set(T_TIMEOUT 300)
    endif()
    set_tests_properties(${name} PROPERTIES TIMEOUT ${T_TIMEOUT} SKIP_RETURN_CODE 77)
endfunction()

# What ThreadSanitizer has something to say about: `cmake --build F --target tests_with_threads`,
# `ctest -L threads`.
add_custom_target(tests_with_threads)

# zipccl_threads_test(TEST TARGET...) - it has threads, and these programs and libraries are run by it
function(zipccl_threads_test test)
    set_property(TEST ${test} APPEND PROPERTY LABELS threads)
    add_dependencies(tests_with_threads ${ARGN})
endfunction()

# zipccl_plain_test(NAME LIBS... SOURCES file... [ARGS ...] [THREADS]) - a program whose exit code is the
# verdict; THREADS where it has threads of its own
function(zipccl_plain_test name)
    cmake_parse_arguments(T "THREADS" "TIMEOUT" "SOURCES;LIBS;ARGS" ${ARGN})
    if(NOT ZIPCCL_WITH_TESTS)
        return()
    endif()
    add_executable(${name} ${T_SOURCES})
    target_link_libraries(${name} PRIVATE ${T_LIBS} m)
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
    add_test(NAME ${name} COMMAND ${name} ${T_ARGS} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    if(NOT T_TIMEOUT)
        set(T_TIMEOUT 300)
    endif()
    set_tests_properties(${name} PROPERTIES TIMEOUT ${T_TIMEOUT} SKIP_RETURN_CODE 77)
    if(T_THREADS)
        zipccl_threads_test(${name} ${name})
    endif()
endfunction()

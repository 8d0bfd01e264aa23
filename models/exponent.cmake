# SPDX-License-Identifier: Apache-2.0
# exponent.cmake - the exponent model; GSL is GPL-3, so only offline programs may link this target
pkg_check_modules(GSL QUIET IMPORTED_TARGET GLOBAL gsl)
if(NOT GSL_FOUND)
    message(STATUS "GSL not found: the exponent model, its tests and codec stat are not built")
    return()
endif()
zipccl_library(zipccl_exponent
    exponent.c
    exponent_choice.c
    exponent_fit.c
    exponent_size.c
    exponent_tail.c
    stat.c
    stat_print.c
)
target_link_libraries(zipccl_exponent PUBLIC zipccl_core PRIVATE PkgConfig::GSL zipccl::yajl m)

# The table of settled capacities is checked in, so that core needs no GSL; a test makes it again.
add_executable(make_capacity_table make_capacity_table.c)
target_link_libraries(make_capacity_table PRIVATE zipccl_exponent m)
add_test(NAME capacity_table COMMAND make_capacity_table --check)
set_tests_properties(capacity_table PROPERTIES TIMEOUT 900)

foreach(test test_exponent test_exponent_size test_capacity test_exponent_fit)
    zipccl_criterion_test(${test} SOURCES tests/${test}.c tests/gauss.c
        LIBS zipccl_exponent PkgConfig::GSL TIMEOUT 600)
endforeach()
zipccl_criterion_test(test_stat SOURCES tests/test_stat.c tests/gauss.c
    LIBS zipccl_exponent zipccl::yajl PkgConfig::GSL)

# SPDX-License-Identifier: Apache-2.0
# perf_only.cmake - zipccl-perf without YAML, protobuf, archive and zlib: own traces, plain clusters
#
# Libraries have the names that they have in a full build, with fewer sources: models, traces, what of
# sim real runs share, and the programs that run collectives.  JSON is json/'s.
add_compile_definitions(ZIPCCL_NO_YAML ZIPCCL_NO_ZLIB)

# zipccl_part(NAME FOLDER SOURCES...) - a library of sources of one folder
function(zipccl_part name folder)
    list(TRANSFORM ARGN PREPEND ${PROJECT_SOURCE_DIR}/${folder}/)
    zipccl_library(${name} ${ARGN})
endfunction()

zipccl_part(zipccl_models models units.c cluster.c cluster_names.c cluster_yaml.c cluster_plain.c)
target_link_libraries(zipccl_models PUBLIC zipccl_core)
zipccl_part(zipccl_traces traces arena.c check.c import_defaults.c info.c iterate.c json.c lines.c
    place.c safetensors.c safetensors_layout.c trace_check.c trace_check_coll.c trace_load.c
    trace_parse_coll.c trace_parse_event.c trace_parse_header.c trace_reader.c)
target_link_libraries(zipccl_traces PUBLIC zipccl_core PRIVATE zipccl::yajl)
zipccl_part(zipccl_program sim account.c flow.c fold.c gaussian.c pricing.c program.c
    program_calls.c result.c samples.c sharing.c timeline.c times.c)
target_link_libraries(zipccl_program PUBLIC zipccl_models zipccl_traces PRIVATE m)
zipccl_part(zipccl_analysis analysis document.c)
target_link_libraries(zipccl_analysis PUBLIC zipccl_core PRIVATE zipccl::yajl m)

zipccl_part(zipccl_programs experiments program/fold.c program/program.c program/json_notes.c program/json_put.c ranks/launch.c program/on_signal.c
    program/output.c program/progress.c report/report_table.c report/report_reasons.c report/report_json.c report/report_csv.c)
target_link_libraries(zipccl_programs PUBLIC zipccl_core PRIVATE zipccl_analysis zipccl::yajl m)
target_compile_definitions(zipccl_programs PRIVATE
    ZIPCCL_VERSION="${PROJECT_VERSION}"
    ZIPCCL_BUILD_MPI=$<BOOL:${ZIPCCL_HAVE_MPI}>
    ZIPCCL_BUILD_TYPE="${CMAKE_BUILD_TYPE}"
    ZIPCCL_BUILD_SANITIZE="${ZIPCCL_SANITIZE}")
zipccl_part(zipccl_import_programs experiments trace/import_print.c program/open_cluster.c program/relative_path.c
    trace/spare_trace.c)
set_source_files_properties(${PROJECT_SOURCE_DIR}/experiments/program/relative_path.c PROPERTIES
    COMPILE_DEFINITIONS _XOPEN_SOURCE=700)
target_link_libraries(zipccl_import_programs PUBLIC zipccl_programs zipccl_traces zipccl_models)
file(RELATIVE_PATH ZIPCCL_CLUSTER_DIR ${CMAKE_BINARY_DIR} ${PROJECT_SOURCE_DIR}/models/clusters)
target_compile_definitions(zipccl_import_programs PRIVATE
    ZIPCCL_CLUSTER_DIR="${ZIPCCL_CLUSTER_DIR}")
zipccl_part(zipccl_bench_data experiments bench/bench_input.c program/machine.c)
target_link_libraries(zipccl_bench_data PUBLIC zipccl_core PRIVATE zipccl_traces m)
zipccl_part(zipccl_replay_input experiments replay/replay_own.c replay/replay_note.c)
target_link_libraries(zipccl_replay_input PUBLIC zipccl_import_programs zipccl_program)
if(ZIPCCL_HAVE_MPI)
    zipccl_part(zipccl_world_mpi experiments ranks/world_mpi.c)
    target_link_libraries(zipccl_world_mpi PUBLIC zipccl_mpi zipccl_programs)
endif()
include(device/device_check.cmake)
include(perf/perf.cmake)

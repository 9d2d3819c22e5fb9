# SPDX-License-Identifier: Apache-2.0
# Headers that most sources include, parsed once: most of what compiling Baton costs. Only with Clang: it is what the
# presets use, and clang-tidy reads the same files.
#
# A precompiled header hides what a file forgets to include; the preset `separate` compiles without.

option(BATON_PRECOMPILE "Precompile common headers" ON)
if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  set(BATON_PRECOMPILE OFF)
endif()

set(product_headers
    <algorithm>
    <array>
    <atomic>
    <cstdint>
    <functional>
    <map>
    <memory>
    <optional>
    <span>
    <string>
    <string_view>
    <utility>
    <vector>
    <absl/container/flat_hash_map.h>
    <absl/status/status.h>
    <absl/status/statusor.h>
    <absl/strings/str_cat.h>
    <absl/strings/str_join.h>
    <absl/synchronization/mutex.h>
    <absl/time/clock.h>
    <absl/time/time.h>
    <grpcpp/grpcpp.h>)

# baton_precompiled_headers(NAME <target> HEADERS <headers> [OPTIONS <compile options>] [DEPS <targets>]): what targets
# compiled with the same options can share.
function(baton_precompiled_headers)
  cmake_parse_arguments(ARG "" "NAME" "HEADERS;OPTIONS;DEPS" ${ARGN})
  if(NOT BATON_PRECOMPILE)
    return()
  endif()
  file(GENERATE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/${ARG_NAME}.cc CONTENT "// Holds a precompiled header.\n")
  add_library(${ARG_NAME} OBJECT ${CMAKE_CURRENT_BINARY_DIR}/${ARG_NAME}.cc)
  target_compile_options(${ARG_NAME} PRIVATE ${ARG_OPTIONS})
  target_link_libraries(${ARG_NAME} PRIVATE ${ARG_DEPS})
  target_precompile_headers(${ARG_NAME} PRIVATE ${ARG_HEADERS})
endfunction()

# baton_use_precompiled(<target> <name>)
function(baton_use_precompiled target name)
  if(BATON_PRECOMPILE)
    target_precompile_headers(${target} REUSE_FROM ${name})
  endif()
endfunction()

if(BATON_PRECOMPILE)
  add_compile_options("SHELL:-Xclang -fno-pch-timestamp") # with it, a compiler cache would never find anything
endif()
baton_precompiled_headers(NAME baton_product_headers HEADERS ${product_headers})

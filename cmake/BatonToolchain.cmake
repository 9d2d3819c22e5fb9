# SPDX-License-Identifier: Apache-2.0
# Compiler cache, linker, sanitizers. Nothing here is about Baton's own targets.

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1
                                  CCACHE_SLOPPINESS=pch_defines,time_macros
                                  ${CCACHE_PROGRAM})
endif()

find_program(MOLD_PROGRAM mold)
if(MOLD_PROGRAM)
  add_link_options(-fuse-ld=mold)
endif()

add_compile_options(-pthread)
# A fused multiply-add where the source has none would change the bits from one compiler or machine to the next.
add_compile_options(-ffp-contract=off)
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g1")
# For tests that do not compute: what they test stays optimized and has line numbers.
set(BATON_TEST_OPTIONS -O0 -g0)

if(BATON_SANITIZE)
  # -O1: the sanitized suites are bound by compile time more than by run time.
  set(CMAKE_CXX_FLAGS_RELEASE "-O1 -g1 -fno-omit-frame-pointer")
  add_compile_options(-fsanitize=${BATON_SANITIZE} -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${BATON_SANITIZE})
  # Checks that cost a fifth of the compile time; AddressSanitizer finds what the last two would.
  add_compile_options(-fno-sanitize=vptr,null,object-size)
  list(APPEND BATON_TEST_OPTIONS -fno-sanitize=undefined)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    # UCX patches mmap in memory when it is loaded; it cannot patch the sanitizer's own when that is part of the program.
    execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-runtime-dir OUTPUT_VARIABLE runtime_dir
                    OUTPUT_STRIP_TRAILING_WHITESPACE)
    execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-resource-dir OUTPUT_VARIABLE resource_dir
                    OUTPUT_STRIP_TRAILING_WHITESPACE)
    add_link_options(-shared-libsan LINKER:-rpath,${runtime_dir},-rpath,${resource_dir}/lib/linux)
  endif()
endif()

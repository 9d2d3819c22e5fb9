# SPDX-License-Identifier: Apache-2.0
# baton_library(NAME <target> FOLDER <folder> SOURCES <files> DEPS <targets> [PRIVATE_DEPS <targets>] [HEADERS <files>])
#
# One folder, one target. The target's users may include the folder's headers as "<folder>/x.h" and nothing else: each
# target has an include root of its own (a symbolic link to the folder), so that a header of a target that is not among
# DEPS is not found. HEADERS narrows this to single headers, for a target that lives in a folder of another.
function(baton_library)
  cmake_parse_arguments(ARG "" "NAME;FOLDER" "SOURCES;HEADERS;DEPS;PRIVATE_DEPS" ${ARGN})
  set(root ${CMAKE_BINARY_DIR}/include/${ARG_NAME})
  if(ARG_HEADERS)
    foreach(header ${ARG_HEADERS})
      get_filename_component(parent ${root}/${ARG_FOLDER}/${header} DIRECTORY)
      file(MAKE_DIRECTORY ${parent})
      file(CREATE_LINK ${CMAKE_SOURCE_DIR}/${ARG_FOLDER}/${header} ${root}/${ARG_FOLDER}/${header} SYMBOLIC)
    endforeach()
  else()
    get_filename_component(parent ${root}/${ARG_FOLDER} DIRECTORY)
    file(MAKE_DIRECTORY ${parent})
    file(CREATE_LINK ${CMAKE_SOURCE_DIR}/${ARG_FOLDER} ${root}/${ARG_FOLDER} SYMBOLIC)
  endif()
  list(TRANSFORM ARG_SOURCES PREPEND ${CMAKE_SOURCE_DIR}/${ARG_FOLDER}/)
  add_library(${ARG_NAME} STATIC ${ARG_SOURCES})
  target_include_directories(${ARG_NAME} PUBLIC ${root})
  target_link_libraries(${ARG_NAME} PUBLIC ${ARG_DEPS} PRIVATE ${ARG_PRIVATE_DEPS})
  baton_warnings(${ARG_NAME})
  baton_use_precompiled(${ARG_NAME} baton_product_headers)
endfunction()

# baton_executable(NAME <binary> SOURCES <files> DEPS <targets>): an installed program.
function(baton_executable)
  cmake_parse_arguments(ARG "" "NAME" "SOURCES;DEPS" ${ARGN})
  add_executable(${ARG_NAME} ${ARG_SOURCES})
  target_link_libraries(${ARG_NAME} PRIVATE ${ARG_DEPS})
  baton_warnings(${ARG_NAME})
  baton_use_precompiled(${ARG_NAME} baton_product_headers)
  set(component server)
  if(ARG_NAME STREQUAL baton)
    set(component client)
  endif()
  install(TARGETS ${ARG_NAME} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT ${component})
endfunction()

function(baton_warnings target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Werror)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    # g++'s std::stable_sort itself uses what it declares deprecated.
    target_compile_options(${target} PRIVATE -Wthread-safety -Wno-deprecated-declarations)
  endif()
endfunction()

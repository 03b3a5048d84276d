# Arrow's Parquet library, from the system or from a pyarrow wheel: CISTERN_HAS_PARQUET, and the
# target cistern_arrow where it is found.
#
# Debian packages no Arrow. The wheel of pyarrow holds the C++ headers and libraries;
# scripts/install_deps.sh puts one under build/pyarrow. Its libraries keep their own copies of
# protobuf and abseil to themselves, so both live in one process with the system's.
set(CISTERN_PARQUET AUTO CACHE STRING "Parquet input: AUTO (where Arrow is found), ON (required), OFF")
set(CISTERN_PYARROW "" CACHE PATH "Folder of an installed pyarrow; empty: looked for")
set(CISTERN_HAS_PARQUET OFF)

# Sets `out` to the folder of the pyarrow package, or to nothing.
function(cistern_find_pyarrow out)
  set(folders "${CISTERN_PYARROW}" "${PROJECT_SOURCE_DIR}/build/pyarrow/pyarrow")
  find_program(CISTERN_PYTHON python3)
  if(CISTERN_PYTHON)
    execute_process(
      COMMAND "${CISTERN_PYTHON}" -c
        "import importlib.util as u; print(u.find_spec('pyarrow').submodule_search_locations[0])"
      OUTPUT_VARIABLE installed ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
    list(APPEND folders "${installed}")
  endif()
  foreach(folder IN LISTS folders)
    if(folder AND EXISTS "${folder}/include/parquet/api/reader.h")
      set(${out} "${folder}" PARENT_SCOPE)
      return()
    endif()
  endforeach()
  set(${out} "" PARENT_SCOPE)
endfunction()

if(CISTERN_PARQUET)
  find_package(Parquet CONFIG QUIET)
  if(TARGET Parquet::parquet_shared)
    add_library(cistern_arrow INTERFACE)
    target_link_libraries(cistern_arrow INTERFACE Parquet::parquet_shared)
    set(CISTERN_HAS_PARQUET ON)
    message(STATUS "Parquet: Arrow ${Parquet_VERSION} of the system")
  else()
    cistern_find_pyarrow(folder)
    file(GLOB libraries "${folder}/libparquet.so*" "${folder}/libarrow.so*")
    if(folder AND libraries)
      add_library(cistern_arrow INTERFACE)
      target_include_directories(cistern_arrow SYSTEM INTERFACE "${folder}/include")
      target_link_libraries(cistern_arrow INTERFACE ${libraries})
      set(CISTERN_HAS_PARQUET ON)
      message(STATUS "Parquet: Arrow of the wheel in ${folder}")
    endif()
  endif()
endif()
if(NOT CISTERN_HAS_PARQUET)
  if(CISTERN_PARQUET STREQUAL "ON")
    message(FATAL_ERROR "CISTERN_PARQUET is ON, but no Arrow is found: scripts/install_deps.sh "
      "gets one from pip, or set CISTERN_PYARROW to the folder of an installed pyarrow")
  endif()
  message(STATUS "Parquet: none; programs will refuse Parquet data (scripts/install_deps.sh gets "
    "Arrow from pip; CISTERN_PARQUET=${CISTERN_PARQUET})")
endif()

# Finds Arrow's Parquet library, in the system or in a pyarrow wheel. Sets CISTERN_HAS_PARQUET and, if
# Arrow is found, defines the target cistern_arrow. Sets CISTERN_HAS_S3 if Arrow can read s3:// paths (it
# always reads gs:// and hdfs://).
#
# Debian does not package Arrow, but the pyarrow wheel contains the C++ headers and libraries;
# scripts/install_deps.sh installs it under build/pyarrow. The wheel's libraries hide their own copies
# of protobuf and abseil, which can therefore share a process with the system's.
set(CISTERN_PARQUET AUTO CACHE STRING "Parquet input: AUTO (if Arrow is found), ON (required), OFF")
set(CISTERN_PYARROW "" CACHE PATH "Folder of an installed pyarrow; empty: search for it")
set(CISTERN_HAS_PARQUET OFF)

# Sets `out` to the folder of the pyarrow package, or to "" if there is none.
function(cistern_find_pyarrow out)
  set(folders "${CISTERN_PYARROW}" "${PROJECT_SOURCE_DIR}/build/pyarrow/pyarrow")
  find_program(CISTERN_PYTHON3 python3)
  if(CISTERN_PYTHON3)
    execute_process(
      COMMAND "${CISTERN_PYTHON3}" -c
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
    message(STATUS "Parquet: system Arrow ${Parquet_VERSION}")
  else()
    cistern_find_pyarrow(folder)
    file(GLOB libraries "${folder}/libparquet.so*" "${folder}/libarrow.so*" "${folder}/libarrow_s3.so*")
    if(folder AND libraries)
      add_library(cistern_arrow INTERFACE)
      target_include_directories(cistern_arrow SYSTEM INTERFACE "${folder}/include")
      target_link_libraries(cistern_arrow INTERFACE ${libraries})
      # The wheel's libparquet exports an OpenSSL of its own, into which the system's libssl would call (and crash, on
      # Ubuntu). The system's libcrypto is the first library in which the loader looks.
      find_library(CISTERN_CRYPTO_LIBRARY crypto)
      if(CISTERN_CRYPTO_LIBRARY)
        target_link_options(cistern_arrow INTERFACE
          "LINKER:--push-state,--no-as-needed" "${CISTERN_CRYPTO_LIBRARY}" "LINKER:--pop-state")
      endif()
      set(CISTERN_HAS_PARQUET ON)
      set(cistern_arrow_folder "${folder}" CACHE INTERNAL "For scripts/build_wheel.sh")
      message(STATUS "Parquet: Arrow from the pyarrow wheel in ${folder}")
    endif()
  endif()
endif()
if(CISTERN_HAS_PARQUET)
  include(CheckCXXSourceCompiles)
  # The properties of cistern_arrow, because a check does not see targets of this project.
  get_target_property(CMAKE_REQUIRED_LIBRARIES cistern_arrow INTERFACE_LINK_LIBRARIES)
  get_target_property(CMAKE_REQUIRED_INCLUDES cistern_arrow INTERFACE_INCLUDE_DIRECTORIES)
  if(NOT CMAKE_REQUIRED_INCLUDES)
    unset(CMAKE_REQUIRED_INCLUDES)
  endif()
  set(CMAKE_REQUIRED_FLAGS -std=c++20)
  check_cxx_source_compiles("#include <arrow/filesystem/s3fs.h>
    int main() { return arrow::fs::IsS3Initialized(); }" CISTERN_HAS_S3)
  unset(CMAKE_REQUIRED_LIBRARIES)
  unset(CMAKE_REQUIRED_INCLUDES)
  unset(CMAKE_REQUIRED_FLAGS)
endif()
if(NOT CISTERN_HAS_PARQUET)
  if(CISTERN_PARQUET STREQUAL "ON")
    message(FATAL_ERROR "CISTERN_PARQUET is ON, but Arrow was not found: install it with "
      "scripts/install_deps.sh, or set CISTERN_PYARROW to the folder of an installed pyarrow")
  endif()
  message(STATUS "Parquet: none; programs will refuse Parquet data (scripts/install_deps.sh installs "
    "Arrow; CISTERN_PARQUET=${CISTERN_PARQUET})")
endif()

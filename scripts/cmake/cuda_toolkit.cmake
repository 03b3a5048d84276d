# Finds the CUDA toolkit as CISTERN_CUDA (AUTO, ON, OFF) requests, and prints the result.
#
# The top-level CMakeLists.txt includes this file, because enable_language requires that. Sets
# CISTERN_HAS_CUDA and, if it is true:
#   CISTERN_CUDA_INCLUDE  include directories of the toolkit
#   CISTERN_CUDART        libraries that a program links for the static runtime
#   CISTERN_CUBLAS_LIBRARY, CISTERN_CUBLASLT_LIBRARY, CISTERN_CUBLAS_VERSION,
#   CISTERN_NCCL_LIBRARY, CISTERN_NCCL_INCLUDE,
#   CISTERN_NCCL_VERSION  empty if missing. No program links these libraries, because loading cuBLAS
#                         and NCCL takes half a second and 200 MB. cuBLASLt is loaded at first use.
set(CISTERN_HAS_CUDA FALSE)
if(NOT CISTERN_CUDA MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "CISTERN_CUDA is '${CISTERN_CUDA}'; it must be AUTO, ON or OFF")
endif()
if(CISTERN_CUDA STREQUAL "OFF")
  message(STATUS "Cistern: CUDA off (CISTERN_CUDA=OFF)")
  return()
endif()

# GPU architectures, decided here alone and at each configuration: CMAKE_CUDA_ARCHITECTURES if the cache has it (-D), or
# CUDAARCHS of the environment, now or at an earlier configuration of this build folder, or Cistern's own: machine code
# for 8.x and 9.0, and PTX for 10.0 (before CUDA 12.8: for 9.0), which the driver compiles for newer GPUs.
# CMake itself reads CUDAARCHS only when it first meets the compiler, so a variable that comes later would have no effect.
if(NOT "$ENV{CUDAARCHS}" STREQUAL "")
  set(CISTERN_CUDAARCHS "$ENV{CUDAARCHS}" CACHE INTERNAL "CUDAARCHS of the environment")
  unset(ENV{CUDAARCHS})
endif()
set(own_architectures FALSE)
if("${CMAKE_CUDA_ARCHITECTURES}" STREQUAL "")
  set(CMAKE_CUDA_ARCHITECTURES ${CISTERN_CUDAARCHS})
endif()
if("${CMAKE_CUDA_ARCHITECTURES}" STREQUAL "")
  set(own_architectures TRUE)
  set(CMAKE_CUDA_ARCHITECTURES 80-real 90-real)
endif()
include(CheckLanguage)
check_language(CUDA)
if(NOT CMAKE_CUDA_COMPILER)
  if(CISTERN_CUDA STREQUAL "ON")
    message(FATAL_ERROR "CISTERN_CUDA is ON, but no working nvcc was found. Install the CUDA "
      "toolkit 12 or newer and put nvcc on PATH (or set CUDACXX), or build with -DCISTERN_CUDA=OFF")
  endif()
  message(STATUS "Cistern: CUDA off (no working nvcc found)")
  return()
endif()

enable_language(CUDA)
if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 12)
  set(too_old "nvcc ${CMAKE_CUDA_COMPILER_VERSION} has no C++20; CUDA 12 or newer is needed")
  if(CISTERN_CUDA STREQUAL "ON")
    message(FATAL_ERROR "CISTERN_CUDA is ON, but ${too_old}")
  endif()
  message(STATUS "Cistern: CUDA off (${too_old})")
  return()
endif()
if(own_architectures AND CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 12.8)
  list(APPEND CMAKE_CUDA_ARCHITECTURES 90-virtual)
elseif(own_architectures)
  list(APPEND CMAKE_CUDA_ARCHITECTURES 100-virtual)
endif()
find_package(CUDAToolkit REQUIRED)
# CMake before 3.25.2 does not know that nvcc 12 has C++20.
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
endif()
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)

# Sets `out` to a version whose parts are "#define <part> <number>" lines of a header.
function(cistern_header_version header out)
  set(version "")
  foreach(part IN LISTS ARGN)
    file(STRINGS "${header}" line REGEX "^#define +${part} +[0-9]+" LIMIT_COUNT 1)
    string(REGEX MATCH "[0-9]+$" number "${line}")
    list(APPEND version ${number})
  endforeach()
  list(JOIN version "." version)
  set(${out} "${version}" PARENT_SCOPE)
endfunction()

find_library(CISTERN_CUBLAS_LIBRARY cublas HINTS ${CUDAToolkit_LIBRARY_DIR})
find_library(CISTERN_CUBLASLT_LIBRARY cublasLt HINTS ${CUDAToolkit_LIBRARY_DIR})
find_path(CISTERN_CUBLAS_INCLUDE cublas_api.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
find_library(CISTERN_NCCL_LIBRARY nccl HINTS ${CUDAToolkit_LIBRARY_DIR})
find_path(CISTERN_NCCL_INCLUDE nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
set(CISTERN_CUBLAS_VERSION "")
set(CISTERN_NCCL_VERSION "")
if(CISTERN_CUBLAS_LIBRARY AND CISTERN_CUBLAS_INCLUDE)
  cistern_header_version("${CISTERN_CUBLAS_INCLUDE}/cublas_api.h" CISTERN_CUBLAS_VERSION
    CUBLAS_VER_MAJOR CUBLAS_VER_MINOR CUBLAS_VER_PATCH)
endif()
if(CISTERN_NCCL_LIBRARY AND CISTERN_NCCL_INCLUDE)
  cistern_header_version("${CISTERN_NCCL_INCLUDE}/nccl.h" CISTERN_NCCL_VERSION
    NCCL_MAJOR NCCL_MINOR NCCL_PATCH)
endif()

# Use plain paths, because imported targets are visible in this directory only.
get_target_property(CISTERN_CUDART CUDA::cudart_static IMPORTED_LOCATION)
list(APPEND CISTERN_CUDART Threads::Threads ${CMAKE_DL_LIBS} rt)
set(CISTERN_CUDA_INCLUDE ${CUDAToolkit_INCLUDE_DIRS})
set(CISTERN_HAS_CUDA TRUE)
list(TRANSFORM CMAKE_CUDA_ARCHITECTURES REPLACE "^([0-9a-z]+)-virtual$" "PTX of \\1"
  OUTPUT_VARIABLE names)
list(TRANSFORM names REPLACE "^([0-9]+[a-z]?)(-real)?$" "sm_\\1")
list(JOIN names ", " names)
set(CISTERN_CUDA_SUMMARY "CUDA ${CMAKE_CUDA_COMPILER_VERSION} for ${names}")
foreach(library cuBLAS NCCL)
  string(TOUPPER ${library} upper)
  if(CISTERN_${upper}_VERSION)
    string(APPEND CISTERN_CUDA_SUMMARY ", ${library} ${CISTERN_${upper}_VERSION}")
  else()
    string(APPEND CISTERN_CUDA_SUMMARY ", no ${library}")
  endif()
endforeach()
message(STATUS "Cistern: ${CISTERN_CUDA_SUMMARY}")

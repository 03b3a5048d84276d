# Packages, compiler and language settings shared by every target.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

# ccache and mold are used if installed, but never required.
find_program(CISTERN_CCACHE ccache)
if(CISTERN_CCACHE)
  # What ccache needs to cache files with precompiled headers.
  list(PREPEND CISTERN_CCACHE "${CMAKE_COMMAND}" -E env CCACHE_SLOPPINESS=pch_defines,time_macros)
  set(CMAKE_C_COMPILER_LAUNCHER "${CISTERN_CCACHE}")
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CISTERN_CCACHE}")
  set(CMAKE_CUDA_COMPILER_LAUNCHER "${CISTERN_CCACHE}")
endif()
find_program(CISTERN_MOLD mold)
if(CISTERN_MOLD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT CISTERN_SANITIZE)
  add_link_options(-fuse-ld=mold)
endif()

find_package(Threads REQUIRED)
find_package(ZLIB REQUIRED)
find_package(Protobuf REQUIRED)
find_package(gRPC CONFIG REQUIRED)
find_package(absl REQUIRED)
find_package(Eigen3 REQUIRED NO_MODULE)
find_package(spdlog REQUIRED)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_path(CISTERN_XXHASH_INCLUDE xxhash.h REQUIRED)
find_library(CISTERN_XXHASH_LIBRARY xxhash REQUIRED)
find_path(CISTERN_ZSTD_INCLUDE zstd.h REQUIRED)
find_library(CISTERN_ZSTD_LIBRARY zstd REQUIRED)
# Optional: without it, batches of reads use threads (common/io/read_queue.h).
find_path(CISTERN_URING_INCLUDE liburing.h)
find_library(CISTERN_URING_LIBRARY uring)
# Optional: without it, streams are folders only (worker/data/feed/kafka_feed.h).
find_path(CISTERN_RDKAFKA_INCLUDE librdkafka/rdkafka.h)
find_library(CISTERN_RDKAFKA_LIBRARY rdkafka)

# serve/server and common/http answer HTTP through libmicrohttpd, whose TLS is GnuTLS.
find_path(CISTERN_MICROHTTPD_INCLUDE microhttpd.h REQUIRED)
find_library(CISTERN_MICROHTTPD_LIBRARY microhttpd REQUIRED)
find_package(GnuTLS REQUIRED)

# Certificates of a fleet (common/tls); gRPC is built on it.
find_package(OpenSSL 3.0 REQUIRED)

# OpenBLAS computes the matrix products of the CPU ops; without it, Eigen does.
find_path(CISTERN_CBLAS_INCLUDE cblas.h PATH_SUFFIXES
  openblas x86_64-linux-gnu/openblas-openmp x86_64-linux-gnu/openblas-pthread)
find_library(CISTERN_OPENBLAS_LIBRARY openblas PATH_SUFFIXES
  x86_64-linux-gnu/openblas-openmp openblas-openmp openblas-pthread)

if(CISTERN_BUILD_TESTS)
  find_package(GTest REQUIRED)
endif()
if(CISTERN_BUILD_BENCHMARKS)
  find_package(benchmark QUIET)
endif()

#!/usr/bin/env bash
# Tests which GPU architectures a build folder has after scripts that set CUDAARCHS and scripts that do not, in any order.
# Only configures, a project of one file. Needs nvcc.
set -euo pipefail
root="$(cd "$(dirname "$0")/../.." && pwd)"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }

echo "void Nothing();" >"$work/a.cu"
cat >"$work/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.22)
project(Architectures LANGUAGES C CXX)
set(CISTERN_CUDA ON)
find_package(Threads REQUIRED)
include("$root/scripts/cmake/cuda_toolkit.cmake")
add_library(a STATIC a.cu)
message(STATUS "found: \${CMAKE_CUDA_ARCHITECTURES}")
END

# configure FOLDER CUDAARCHS EXPECTED [OPTION]: CUDAARCHS may be empty; EXPECTED is a pattern.
configure() {
  CUDAARCHS="$2" cmake -S "$work" -B "$work/$1" ${4:+"$4"} >"$work/log" 2>&1 ||
    { cat "$work/log" >&2; fail "folder $1 cannot be configured with CUDAARCHS='$2'"; }
  grep -qE -- "-- found: $3\$" "$work/log" || { cat "$work/log" >&2; fail "folder $1, CUDAARCHS='$2': not $3"; }
}

echo "build.sh or siege.sh, then test.sh"
configure plain "" '80-real;90-real;(90|100)-virtual'
configure plain "80-real;90-real" '80-real;90-real'
echo "test.sh, then build.sh keeps what the folder has"
configure plain "" '80-real;90-real'
echo "another choice replaces it"
configure plain "90-real" '90-real'
echo "test.sh first"
configure test "80-real" '80-real'
configure test "" '80-real'
echo "-DCMAKE_CUDA_ARCHITECTURES is above the environment"
configure given "80-real" '90' -DCMAKE_CUDA_ARCHITECTURES=90
configure given "" '90'
echo "PASS"

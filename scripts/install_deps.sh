#!/usr/bin/env bash
# Installs the packages that Cistern needs to build, with apt, on Debian 12, Ubuntu 24.04 and newer.
# Arrow reads Parquet, but Debian does not package it: this installs it with pip into build/pyarrow. If
# that fails, Cistern builds without Parquet. pip and venv also fetch what the Python package and the tests need.
#
#   scripts/install_deps.sh           installs missing packages, as root or through sudo
#   scripts/install_deps.sh --check   installs nothing; lists missing packages and exits with 1 if any
#
# Without permission to install, it prints the command to run and exits with 1. If nothing is missing,
# it takes a fraction of a second and does not query the package archive.
set -euo pipefail

readonly grpc_needed=1.51 cmake_needed=3.22

# Tools as package:command. A command from another source (such as cmake from pip) will do.
tools=(build-essential:g++ cmake:cmake ninja-build:ninja git:git pkg-config:pkg-config
       protobuf-compiler:protoc protobuf-compiler-grpc:grpc_cpp_plugin python3:python3 xz-utils:xz)
libraries=(libeigen3-dev libspdlog-dev libcli11-dev nlohmann-json3-dev libxxhash-dev zlib1g-dev libzstd-dev
           libopenblas-openmp-dev libmicrohttpd-dev libgnutls28-dev libgtest-dev libgmock-dev
           libbenchmark-dev)
# What Parquet, the Python package and the tests need of python3, which may come from another source than apt.
python_parts=('python3-pip:import pip' 'python3-venv:import ensurepip'
              'python3-dev:import sysconfig; open(sysconfig.get_path("include") + "/Python.h")')
# Not installed if pkg-config finds the user's own gRPC, which includes all three.
grpc_libraries=(libgrpc++-dev libprotobuf-dev libabsl-dev)
# Used if present, for faster builds (ccache, mold), matrix products (oneDNN), batches of reads (liburing) and streams
# from Kafka (librdkafka).
optional=(ccache mold libdnnl-dev liburing-dev librdkafka-dev)

say() { echo "install_deps: $*" >&2; }

version_at_least() {  # HAVE NEED
  [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]
}

# Run dpkg-query only once, because it is slow to start.
present="$(dpkg-query -W -f='${db:Status-Status} ${Package}\n' "${libraries[@]}" \
  "${grpc_libraries[@]}" "${optional[@]}" "${python_parts[@]%%:*}" 2>/dev/null | sed -n 's/^installed //p' || true)"
installed() { [[ $'\n'"$present"$'\n' == *$'\n'"$1"$'\n'* ]]; }

grpc_version() { pkg-config --modversion grpc++ 2>/dev/null || true; }

candidate_version() {  # PACKAGE: prints its version in the archive; empty: not available
  apt-cache policy "$1" 2>/dev/null | sed -n 's/^  Candidate: //p' | grep -v '(none)' || true
}

missing_required() {
  local entry package
  for entry in "${tools[@]}"; do
    command -v "${entry#*:}" >/dev/null || echo "${entry%:*}"
  done
  for package in "${libraries[@]}"; do installed "$package" || echo "$package"; done
  if installed libgrpc++-dev || [ -z "$(grpc_version)" ]; then
    for package in "${grpc_libraries[@]}"; do installed "$package" || echo "$package"; done
  fi
}

missing_optional() {  # prints missing optional packages that the archive offers
  local entry package wanted=("${optional[@]}")
  for entry in "${python_parts[@]}"; do
    python3 -c "${entry#*:}" 2>/dev/null || wanted+=("${entry%%:*}")
  done
  for package in "${wanted[@]}"; do
    if ! installed "$package" && [ -n "$(candidate_version "$package")" ]; then echo "$package"; fi
  done
}

explain_old_grpc() {  # VERSION
  cat >&2 <<MESSAGE
install_deps: this system's gRPC is $1; Cistern needs $grpc_needed or newer.
  Ubuntu 22.04 packages 1.30, which is too old: Cistern does not build from its packages alone.
  Use Debian 12, Ubuntu 24.04 or newer (a container will do: docker run -it debian:12), or build
  gRPC with its own protobuf and abseil (about 30 minutes on 2 cores; our tests do not cover
  this):
    git clone --depth 1 -b v1.51.1 --recurse-submodules --shallow-submodules \\
      https://github.com/grpc/grpc
    cmake -S grpc -B grpc/build -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_STANDARD=17 \\
      -DABSL_PROPAGATE_CXX_STD=ON -DgRPC_BUILD_TESTS=OFF -DCMAKE_INSTALL_PREFIX=\$HOME/.local/grpc
    cmake --build grpc/build -j2 --target install
  Then set these variables and run this script again:
    export PATH=\$HOME/.local/grpc/bin:\$PATH CMAKE_PREFIX_PATH=\$HOME/.local/grpc
    export PKG_CONFIG_PATH=\$HOME/.local/grpc/lib/pkgconfig
MESSAGE
}

check_versions() {
  local cmake_have grpc_have
  cmake_have="$(cmake --version | sed -n '1s/[^0-9]*//p')"
  if ! version_at_least "$cmake_have" "$cmake_needed"; then
    say "CMake is $cmake_have; Cistern needs $cmake_needed or newer: pip install cmake"
    return 1
  fi
  grpc_have="$(grpc_version)"
  if [ -z "$grpc_have" ]; then
    say "pkg-config does not find grpc++; set PKG_CONFIG_PATH, or install libgrpc++-dev"
    return 1
  fi
  if ! version_at_least "$grpc_have" "$grpc_needed"; then
    explain_old_grpc "$grpc_have"
    return 1
  fi
}

# Installs the pyarrow wheel, which contains Arrow's libraries and headers, into build/pyarrow.
get_arrow() {
  local root
  root="$(cd "$(dirname "$(readlink -f "$0")")/.." && pwd)"
  if [ -d "$root/build/pyarrow/pyarrow/include" ] || [ -n "${CISTERN_NO_ARROW:-}" ] ||
      python3 -c 'import pyarrow' 2>/dev/null; then
    return
  fi
  if ! python3 -m pip --version >/dev/null 2>&1; then
    say "python3 has no pip: building without Parquet; install pip for it and run this script again"
    return
  fi
  say "installing Arrow (for Parquet) with pip into build/pyarrow; CISTERN_NO_ARROW=1 skips this"
  rm -rf "$root/build/pyarrow.tmp"
  if python3 -m pip install -q --retries 1 --timeout 20 --target "$root/build/pyarrow.tmp" \
      'pyarrow>=18' >/dev/null 2>&1; then
    mv "$root/build/pyarrow.tmp" "$root/build/pyarrow"
  else
    rm -rf "$root/build/pyarrow.tmp"
    say "pip cannot install pyarrow: continuing without it; programs will refuse Parquet data"
  fi
}

# Prints the prefix for apt-get: nothing for root, sudo if it works, else "no".
privilege() {
  if [ "$(id -u)" = 0 ]; then echo ""; return; fi
  if command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [ -t 0 ]; }; then
    echo sudo
  else
    echo no
  fi
}

apt() {  # quiet, unless it fails
  local log
  log="$(mktemp)"
  # shellcheck disable=SC2086  # $as is empty or the one word sudo
  if ! $as env DEBIAN_FRONTEND=noninteractive apt-get -qq "$@" </dev/null >"$log" 2>&1; then
    cat "$log" >&2
    rm -f "$log"
    say "apt-get $1 failed; see its output above"
    return 1
  fi
  rm -f "$log"
}

only_check=no
case "${1:-}" in
  "") ;;
  --check) only_check=yes ;;
  -h | --help) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"; exit 0 ;;
  *) say "unknown argument '$1'; see --help"; exit 2 ;;
esac

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
  say "this system has no apt. Install these packages under the names that your system uses:"
  say "  ${tools[*]%:*} ${libraries[*]} ${grpc_libraries[*]}"
  exit 1
fi

mapfile -t missing < <(missing_required)
if [ ${#missing[@]} = 0 ]; then
  check_versions
  if [ $only_check = yes ]; then exit 0; fi
  as="$(privilege)"
  mapfile -t extra < <(missing_optional)
  if [ ${#extra[@]} -gt 0 ] && [ "$as" != no ]; then
    apt install -y --no-install-recommends "${extra[@]}" || say "continuing without ${extra[*]}"
  fi
  get_arrow
  exit 0
fi

as="$(privilege)"
if [ $only_check = yes ] || [ "$as" = no ]; then
  say "these packages are missing; to install them:"
  echo "  sudo apt-get update && sudo apt-get install -y --no-install-recommends ${missing[*]}" >&2
  exit 1
fi

say "installing ${missing[*]}"
apt update
archive_grpc="$(candidate_version libgrpc++-dev)"
if [[ " ${missing[*]} " == *" libgrpc++-dev "* && -n "$archive_grpc" ]] &&
    ! version_at_least "$archive_grpc" "$grpc_needed"; then
  explain_old_grpc "$archive_grpc"
  exit 1
fi
mapfile -t extra < <(missing_optional)
apt install -y --no-install-recommends "${missing[@]}" "${extra[@]}"
check_versions
get_arrow
say "done"

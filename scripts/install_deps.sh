#!/usr/bin/env bash
# Installs the packages that Cistern is built from, with apt: Debian 12, Ubuntu 24.04 and newer.
# Arrow, which reads Parquet and which Debian does not package, comes from pip into build/pyarrow; where
# that fails, Cistern builds without it.
#
#   scripts/install_deps.sh           installs what is missing; as root, or through sudo
#   scripts/install_deps.sh --check   installs nothing: says what is missing, exit code 1 if anything is
#
# Where it may not install, it prints the command to run and exits 1. Where nothing is missing it
# takes a fraction of a second and asks no archive.
set -euo pipefail

readonly grpc_needed=1.51 cmake_needed=3.22

# Tools: package:command; a command from elsewhere (pip's cmake, say) is as good as the package.
tools=(build-essential:g++ cmake:cmake ninja-build:ninja git:git pkg-config:pkg-config
       protobuf-compiler:protoc protobuf-compiler-grpc:grpc_cpp_plugin python3:python3 xz-utils:xz)
libraries=(libeigen3-dev libspdlog-dev libcli11-dev nlohmann-json3-dev libxxhash-dev zlib1g-dev
           libopenblas-openmp-dev libgtest-dev libgmock-dev libbenchmark-dev)
# Left out where a gRPC of the user's own is found by pkg-config: it brings these with it.
grpc_libraries=(libgrpc++-dev libprotobuf-dev libabsl-dev)
# Faster builds (ccache, mold) and faster matrix products (oneDNN): used where present.
optional=(ccache mold libdnnl-dev)

say() { echo "install_deps: $*" >&2; }

version_at_least() {  # HAVE NEED
  [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]
}

# Asked once: dpkg-query is slow to start.
present="$(dpkg-query -W -f='${db:Status-Status} ${Package}\n' "${libraries[@]}" \
  "${grpc_libraries[@]}" "${optional[@]}" 2>/dev/null | sed -n 's/^installed //p' || true)"
installed() { [[ $'\n'"$present"$'\n' == *$'\n'"$1"$'\n'* ]]; }

grpc_version() { pkg-config --modversion grpc++ 2>/dev/null || true; }

candidate_version() {  # of a package in the archive; empty: not there
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

missing_optional() {  # those that this archive has
  local package
  for package in "${optional[@]}"; do
    if ! installed "$package" && [ -n "$(candidate_version "$package")" ]; then echo "$package"; fi
  done
}

explain_old_grpc() {  # VERSION
  cat >&2 <<MESSAGE
install_deps: this system's gRPC is $1; Cistern needs $grpc_needed or newer.
  Ubuntu 22.04 packages 1.30, which is too old: there, Cistern does not build from packages alone.
  Use Debian 12, Ubuntu 24.04 or newer (a container will do: docker run -it debian:12), or build
  gRPC once, with the protobuf and abseil that belong to it (about 30 minutes on 2 cores; this
  way is not part of our tests):
    git clone --depth 1 -b v1.51.1 --recurse-submodules --shallow-submodules \\
      https://github.com/grpc/grpc
    cmake -S grpc -B grpc/build -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_STANDARD=17 \\
      -DABSL_PROPAGATE_CXX_STD=ON -DgRPC_BUILD_TESTS=OFF -DCMAKE_INSTALL_PREFIX=\$HOME/.local/grpc
    cmake --build grpc/build -j2 --target install
  then come back with these in the environment:
    export PATH=\$HOME/.local/grpc/bin:\$PATH CMAKE_PREFIX_PATH=\$HOME/.local/grpc
    export PKG_CONFIG_PATH=\$HOME/.local/grpc/lib/pkgconfig
MESSAGE
}

check_versions() {
  local cmake_have grpc_have
  cmake_have="$(cmake --version | sed -n '1s/[^0-9]*//p')"
  if ! version_at_least "$cmake_have" "$cmake_needed"; then
    say "CMake is $cmake_have; Cistern needs $cmake_needed or newer: 'pip install cmake' brings one"
    return 1
  fi
  grpc_have="$(grpc_version)"
  if [ -z "$grpc_have" ]; then
    say "pkg-config does not find grpc++; see PKG_CONFIG_PATH, or install libgrpc++-dev"
    return 1
  fi
  if ! version_at_least "$grpc_have" "$grpc_needed"; then
    explain_old_grpc "$grpc_have"
    return 1
  fi
}

# pip puts the wheel of pyarrow, with Arrow's libraries and headers, into build/pyarrow.
get_arrow() {
  local root
  root="$(cd "$(dirname "$0")/.." && pwd)"
  if [ -d "$root/build/pyarrow/pyarrow/include" ] || [ -n "${CISTERN_NO_ARROW:-}" ] ||
      python3 -c 'import pyarrow' 2>/dev/null; then
    return
  fi
  if ! python3 -m pip --version >/dev/null 2>&1; then
    say "no pip: building without Parquet; with python3-pip installed this script gets Arrow from pip"
    return
  fi
  say "getting Arrow (for Parquet) from pip into build/pyarrow; CISTERN_NO_ARROW=1 leaves it out"
  rm -rf "$root/build/pyarrow.tmp"
  if python3 -m pip install -q --retries 1 --timeout 20 --target "$root/build/pyarrow.tmp" \
      'pyarrow>=17' >/dev/null 2>&1; then
    mv "$root/build/pyarrow.tmp" "$root/build/pyarrow"
  else
    rm -rf "$root/build/pyarrow.tmp"
    say "pip brings no pyarrow: going on without; Parquet data will be refused"
  fi
}

# How apt-get is run: nothing as root, sudo where it may, else "no".
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
    say "apt-get $1 failed; the lines above say why"
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
  say "this system has no apt. Cistern needs, under whatever names it has here:"
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
    apt install -y --no-install-recommends "${extra[@]}" || say "going on without ${extra[*]}"
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

#!/usr/bin/env bash
# Runs the README's two commands as a stranger does: in a bare Debian or Ubuntu, in a clone of HEAD.
#
#   scripts/fresh_check.sh [--user] [--no-sys] [--pty] [--only quickstart|test] [--ca FILE] [SYSTEM...]
#
#   SYSTEM    bookworm (Debian 12) or noble (Ubuntu 24.04), as debootstrap names them; default: both
#   --user    as an ordinary user who may use sudo; else as root
#   --no-sys  without /sys, as in some containers
#   --pty     with a terminal; else output goes to a pipe
#   --only    one of the two commands
#   --ca      a file of certificate authorities, if a proxy stands between here and PyPI
#
# Each check needs about 20 minutes, 8 GB of disk and root. The roots are in build/fresh; each run starts with a copy
# that holds nothing but the base system, and removes it. A test that is skipped fails the check, unless it is listed in
# `may_skip` below.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
fail() { echo "fresh_check: $*" >&2; exit 1; }

# Needs a GPU, or packages that are too large for a check (PyTorch, Prometheus, systemd).
readonly may_skip='python_(torch|kill|idioms|scaler|session)_test|(alerts|prometheus)_test|systemd_unit'

who=root sys=yes pty=no only="" ca="" systems=()
while [ $# -gt 0 ]; do
  case "$1" in
    -h | --help) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"; exit 0 ;;
    --user) who=stranger ;;
    --no-sys) sys=no ;;
    --pty) pty=yes ;;
    --only) only="${2:?--only needs quickstart or test}"; shift ;;
    --ca) ca="$(readlink -f "${2:?--ca needs a file}")"; shift ;;
    -*) fail "unknown argument '$1'; see --help" ;;
    *) systems+=("$1") ;;
  esac
  shift
done
if [ ${#systems[@]} = 0 ]; then systems=(bookworm noble); fi
case "$only" in "" | quickstart | test) ;; *) fail "--only '$only' is neither quickstart nor test" ;; esac
[ "$(id -u)" = 0 ] || fail "needs root, for chroot: sudo scripts/fresh_check.sh"
command -v debootstrap >/dev/null || fail "apt-get install debootstrap"

make_base() {  # SYSTEM: the bare system, made once
  local base="build/fresh/$1" options=() mirror=() script=()
  if [ -x "$base/usr/bin/apt-get" ]; then return; fi
  if [ "$1" = noble ]; then
    # Debian's debootstrap may not know the newest Ubuntu, whose script is that of all others.
    mirror=(http://archive.ubuntu.com/ubuntu)
    if [ ! -e /usr/share/debootstrap/scripts/noble ]; then script=(/usr/share/debootstrap/scripts/gutsy); fi
    if [ -e /usr/share/keyrings/ubuntu-archive-keyring.gpg ]; then
      options=(--keyring=/usr/share/keyrings/ubuntu-archive-keyring.gpg)
    fi
    options+=("--components=main,universe")
  fi
  mkdir -p build/fresh
  rm -rf "$base.tmp"
  echo "== debootstrap $1"
  debootstrap --variant=minbase "${options[@]}" "$1" "$base.tmp" "${mirror[@]}" "${script[@]}" >"$base.log" 2>&1 ||
    fail "debootstrap cannot make $1: see $base.log"
  mv "$base.tmp" "$base"
}

# inside ROOT USER COMMAND: runs it there, with mounts and processes of its own, and nothing of this environment.
inside() {
  # shellcheck disable=SC2016  # the inner shell expands
  local prepare='mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev"'
  # shellcheck disable=SC2016
  if [ "$sys" = yes ]; then prepare+=' && mount --rbind /sys "$0/sys"'; fi
  # shellcheck disable=SC2016
  local words=(unshare -m -p -f --kill-child bash -c "$prepare"' && exec chroot "$0" /usr/bin/env -i HOME=/root TERM=xterm \
    PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin su - "$1" -c "$2"' "$1" "$2" "$3")
  if [ "$pty" = yes ]; then
    script -qec "$(printf '%q ' "${words[@]}")" /dev/null
  else
    "${words[@]}" </dev/null 2>&1 | cat
  fi
}

check() {  # SYSTEM
  local root log home="/root"
  make_base "$1"
  root="$(mktemp -d "$PWD/build/fresh/run.XXXXXX")"
  log="build/fresh/$1-$who-$([ "$sys" = yes ] && echo sys || echo nosys)-$([ "$pty" = yes ] && echo pty || echo pipe).log"
  # shellcheck disable=SC2064  # root is known now
  trap "rm -rf --one-file-system '$root'" EXIT
  cp -a --reflink=auto "build/fresh/$1/." "$root"
  cp /etc/resolv.conf "$root/etc/resolv.conf"
  if [ -n "$ca" ]; then
    mkdir -p "$root/etc/ssl/certs"
    cp "$ca" "$root/etc/ssl/certs/fresh_check.pem"
    printf '[global]\ncert = /etc/ssl/certs/fresh_check.pem\n' >"$root/etc/pip.conf"
  fi
  if [ "$who" != root ]; then
    home="/home/$who"
    inside "$root" root "apt-get -qq update && apt-get -qq install -y sudo >/dev/null 2>&1 && useradd -m -s /bin/bash $who &&
      echo '$who ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/$who"
  fi
  git clone -q --no-hardlinks . "$root$home/cistern"
  chown -R --reference="$root$home" "$root$home/cistern"
  local command run="" failed=0
  for command in quickstart test; do
    if [ -n "$only" ] && [ "$only" != $command ]; then continue; fi
    run+="${run:+ && }scripts/$command.sh"
  done
  echo "== $1, as $who, /sys: $sys, terminal: $pty: $run ($log)"
  inside "$root" "$who" "cd cistern && if $run; then echo 'fresh_check: both ended with 0'; fi" >"$log" 2>&1 || failed=1
  if [ $failed = 1 ] || ! grep -q 'fresh_check: both ended with 0' "$log"; then
    tail -n 40 "$log" >&2
    fail "$1: failed; the whole output is in $log"
  fi
  local skipped
  skipped="$(grep -E '\*\*\*(Skipped|Not Run)' "$log" | grep -vE "$may_skip" || true)"
  if [ -n "$skipped" ]; then echo "$skipped" >&2; fail "$1: tests were skipped; the whole output is in $log"; fi
  if grep -E 'continuing without|building without|will be skipped|are skipped' "$log" | grep -v PyTorch >&2; then
    fail "$1: a part is missing; the whole output is in $log"
  fi
  grep -E '^== done in|^== summary|tests passed' "$log"
  rm -rf --one-file-system "$root"
  trap - EXIT
}

for system in "${systems[@]}"; do check "$system"; done

#!/usr/bin/env bash
# Tests the packages of dist/ in a clean root: installs, runs `cistern demo`, removes, and looks for what is left.
#
#   scripts/package_check.sh [ROOT] [--full]     ROOT: the folder of a bare Debian or Ubuntu; it is not changed
#
# Without ROOT, debootstrap makes one in build/clean_root (300 MB, once). Needs root and overlayfs or rsync-like copies;
# `unshare` gives each test mounts of its own. --full repeats the demo where it is run once only by default.
set -euo pipefail
self="$(readlink -f "$0")"
cd "$(dirname "$self")/.."
fail() { echo "package_check: $*" >&2; exit 1; }

root="" full=no
for word in "$@"; do
  case "$word" in
    -h | --help) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$self"; exit 0 ;;
    --full) full=yes ;;
    *) root="$word" ;;
  esac
done
[ "$(id -u)" = 0 ] || fail "needs root, for chroot: sudo scripts/package_check.sh"
if [ -z "$root" ]; then
  root=build/clean_root
  if [ ! -x "$root/bin/sh" ]; then
    command -v debootstrap >/dev/null || fail "no clean root: apt-get install debootstrap, or name a folder that holds one"
    debootstrap --variant=minbase bookworm "$root" >/dev/null
  fi
fi
# The packages without CUDA, if there are any; else those with it, which must run on a machine that has none.
package() {  # PATTERN: what follows the package's name
  find dist -maxdepth 1 -name "cistern$1" | grep . || find dist -maxdepth 1 -name "cistern-cuda$1"
}
tarball="$(package '-[0-9]*-linux-*.tar.gz' | head -n 1)"
deb="$(package '_*.deb' | head -n 1)"
if [ -z "$tarball" ] || [ -z "$deb" ]; then fail "dist/ holds no packages: scripts/package.sh"; fi

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
# A copy of the root for each test, so that none sees what another left.
clean_copy() { cp -a --reflink=auto "$root/." "$1"; }
inside() {  # FOLDER COMMAND: runs it in that root, with a /proc and mounts of its own
  # shellcheck disable=SC2016  # the inner shell expands
  unshare -m -p -f bash -c 'mount -t proc proc "$0/proc" && exec chroot "$0" /usr/bin/env -i \
    PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=dumb sh -ec "$1"' "$1" "$2"
}
demo="cistern demo --samples 20000 | tail -n 1"

echo "== tarball: unpack, run, move, run, remove"
mkdir "$work/tar" && clean_copy "$work/tar"
mkdir -p "$work/tar/opt" && tar -xzf "$tarball" -C "$work/tar/opt"
inside "$work/tar" "cd /opt/cistern-*/bin && PATH=\$PWD:\$PATH && cistern version && (cistern doctor || true) && $demo"
inside "$work/tar" "mkdir -p '/srv/a place' && mv /opt/cistern-* '/srv/a place/' && cd '/srv/a place'/cistern-*/bin &&
  PATH=\$PWD:\$PATH && cistern version >/dev/null && if [ $full = yes ]; then $demo; fi"
rm -rf "$work/tar"

echo "== deb: install, run, remove"
mkdir "$work/deb" && clean_copy "$work/deb"
cp "$deb" "$work/deb/root/cistern.deb"
list() { (cd "$work/deb" && find . -xdev \( -path ./proc -o -path ./var/lib/dpkg -o -path ./var/log -o -path ./tmp \) -prune -o -print | sort); }
list >"$work/before"
inside "$work/deb" "dpkg -i /root/cistern.deb && cistern version && $demo
  test -e /usr/share/man/man1/cistern-train.1.gz
  cistern-server --version && cistern-worker --version
  cistern demo --help | grep -q -- --samples"
inside "$work/deb" "bash -c '. /usr/share/bash-completion/completions/cistern && COMP_WORDS=(cistern dem) && COMP_CWORD=1 &&
  _cistern && test \"\${COMPREPLY[0]}\" = demo'"
inside "$work/deb" "dpkg -P $(dpkg-deb -f "$deb" Package)"
list >"$work/after"
diff "$work/before" "$work/after" || fail "dpkg -P left files behind"
echo "== both packages work in a clean root, and leave nothing behind"

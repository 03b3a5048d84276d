#!/usr/bin/env bash
# Keeps what this version writes, for the tests of all later ones: test/golden/release_VERSION.
#
#   scripts/keep_release.sh [--bin DIR]        DIR: folder of the programs (build/release/bin)
#
# Run it once for each release, before its tag, and commit the folder: a data_dir of two servers with a state of several
# commits and a saved model, and the digests of its tables. test/integration/release_files_test.py reads it with the
# programs of its own build. A folder that exists is of a release, and never changes; delete it first if that release was
# not tagged.
set -euo pipefail
self="$(readlink -f "$0")"
here="$(dirname "$self")"
# shellcheck source=scripts/fleet.sh
source "$here/fleet.sh"

fail() { echo "keep_release: $*" >&2; exit 1; }
bin="$(default_bin)"
case "${1:-}" in
  "") ;;
  -h | --help) usage_of "$0"; exit 0 ;;
  --bin) bin="$(cd "${2:?--bin needs a folder}" && pwd)" ;;
  *) echo "keep_release: unknown argument '$1'; see --help" >&2; exit 2 ;;
esac
version="$("$bin/cistern" version --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["version"])')"
kept="$here/../test/golden/release_$version"
[ ! -e "$kept" ] || fail "$kept exists: a release never changes"

work="$(mktemp -d)"
trap '"$here/stop.sh" --dir "$work/run" >/dev/null || true; rm -rf "$work"' EXIT
cd "$work"
"$bin/cistern" demo --dir "$work/demo" --samples 4000 >/dev/null
# A small model, and paths that say nothing of this machine.
mv demo/data .
find data -name file_list.txt -exec sed -i "s,$work/demo/,," {} +
python3 - <<'PYTHON'
import json
demo = json.load(open("demo/deepfm.json"))
data = demo["layers"][0]
data.update(source="data/train/file_list.txt", eval_source="data/test/file_list.txt")
embedding = demo["layers"][1]
embedding["sparse_embedding_hparam"]["embedding_vec_size"] = 2
demo["solver"]["num_epochs"] = 4
demo["layers"] = [
    data, embedding,
    {"type": "Reshape", "bottom": "embedding", "top": "vectors", "leading_dim": 16},
    {"type": "Concat", "bottom": ["vectors", "dense"], "top": "all"},
    {"name": "fc", "type": "InnerProduct", "bottom": "all", "top": "logit", "fc_param": {"num_output": 1}},
    {"type": "BinaryCrossEntropyLoss", "bottom": ["logit", "label"], "top": "loss"}]
json.dump(demo, open("model.json", "w"))
PYTHON
"$here/launch_servers.sh" --servers 2 --base-port 0 --dir "$work/run" --data_dir "$work/kept" --bin "$bin" -- --shard_num=4 >/dev/null
servers="$(cat "$work/run/servers.txt")"
"$here/run_workers.sh" model.json --out out --dir "$work/run" --bin "$bin" -- --no-save-model >train.log 2>&1 ||
  fail "the training: $(tail -n 3 train.log)"
"$bin/cistern" save --servers "$servers" --name saved >/dev/null
"$bin/cistern" status --servers "$servers" --digest --json | python3 -c '
import json, sys
status = json.load(sys.stdin)
tables = {table["name"]: [table["rows"], table["digest"]] for table in status["tables"]}
print(json.dumps({"version": sys.argv[1], "commit": status["servers"][0]["commit"], "tables": tables}, indent=1))
' "$version" >"$work/expected.json"
"$here/stop.sh" --dir "$work/run" >/dev/null
find "$work/kept" \( -name 'lock-*' -o -name 'probe-*' \) -delete
mkdir -p "$kept"
cp -r "$work/kept" "$kept/data"
cp "$work/expected.json" "$kept/"
echo "$kept: $(du -sh "$kept" | cut -f1)"

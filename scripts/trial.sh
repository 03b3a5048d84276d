# shellcheck shell=bash
# The start of slurm_trial.sh and systemd_trial.sh, sourced with their arguments. Sets bin, the folder of the programs,
# and keep (yes or no), and defines how a trial fails and how it is skipped.
# shellcheck source=scripts/fleet.sh
source "$(dirname "${BASH_SOURCE[0]}")/fleet.sh"

trial="$(basename "$0" .sh)"
fail() { echo "$trial: FAILED: $*" >&2; exit 1; }
skip() { echo "$trial: skipped: $*" >&2; exit 77; }

bin="$(default_bin)" keep=no
# shellcheck disable=SC2034  # the trials use keep
while [ $# -gt 0 ]; do
  case "$1" in
    -h | --help) usage_of "$0"; exit 0 ;;
    --bin) bin="${2:?--bin needs a folder}"; shift 2 ;;
    --keep) keep=yes; shift ;;
    *) echo "$trial: unknown argument '$1'; see --help" >&2; exit 2 ;;
  esac
done
[ -x "$bin/cistern-server" ] || fail "there is no $bin/cistern-server; build first: scripts/build.sh"
bin="$(cd "$bin" && pwd)"
[ "$(id -u)" = 0 ] || skip "needs root"

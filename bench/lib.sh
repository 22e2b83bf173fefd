# What the benchmarks share: options, packages, build, a throw-away server with durable settings. Sourced, never run.
# shellcheck shell=bash
set -euo pipefail
# shellcheck source=../scripts/lib.sh source-path=SCRIPTDIR
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/lib.sh"

python=/usr/bin/python3 # Debian's, which has Debian's psycopg2
export PYTHONDONTWRITEBYTECODE=1
bench_packages=("${demo_packages[@]}")

# Runs bench/NAME.py with the arguments that are not for us, against a server of its own. --installed takes the
# extension as it is installed instead of building it.
run_bench() { # run_bench NAME ARGUMENT...
    local name=$1 argument arguments=() installed=no help=no
    shift
    for argument in "$@"; do
        case $argument in
            --installed) installed=yes ;;
            -h | --help) help=yes ;;&
            *) arguments+=("$argument") ;;
        esac
    done

    ensure_packages "${build_packages[@]}" "${bench_packages[@]}"
    # A bad argument ends the script here.
    "$python" "$root/bench/$name.py" "${arguments[@]}" --check-arguments
    [[ $help == no ]] || return 0
    if [[ $installed == no ]]; then
        build
        install_extension
    fi

    # fsync and synchronous_commit stay on and everything else as it comes, for both sides alike. Checkpoints are made
    # before each measurement, so that none falls into one because of its WAL.
    start_private_server "max_wal_size = 32GB"
    start_job "$python" "$root/bench/$name.py" "${arguments[@]}"
    await_job
}

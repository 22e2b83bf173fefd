# What the scripts share: the packages, becoming root or the server's user, the build, and throw-away servers. Sourced,
# never run. Whatever it starts is stopped when the script ends, however it ends.
# shellcheck shell=bash disable=SC2034
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
pg_major=${PG_MAJOR:-15}
pg_bin=/usr/lib/postgresql/$pg_major/bin
pgxs_test=/usr/lib/postgresql/$pg_major/lib/pgxs/src/test
server_user=postgres # who runs the servers when the script runs as root, which PostgreSQL refuses to be

build_packages=("postgresql-$pg_major" "postgresql-server-dev-$pg_major" uuid-dev g++ make)
demo_packages=(python3 python3-psycopg2)
test_packages=("postgresql-$pg_major-cron" "postgresql-$pg_major-pgtap" libtap-parser-sourcehandler-pgtap-perl
    libipc-run-perl perl cmake libgtest-dev jq python3 python3-prometheus-client)

# A caller's own server or make must not leak in.
unset "${!PG@}" MAKEFLAGS MAKELEVEL
export PATH="$pg_bin:$PATH"

work=""            # the throw-away folder; the server's user owns it
job=""             # the process group that `start_job` started
cluster_setting="" # the file that keeps Debian from making a cluster while packages are installed

say() { printf '\n== %s\n' "$*"; }

die() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 1
}

as_root() {
    if ((EUID == 0)); then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        die "needs root or sudo for: $*"
    fi
}

# Runs a command as the user that owns the servers.
as_server() {
    if ((EUID == 0)); then
        setpriv --reuid="$server_user" --regid="$server_user" --init-groups \
            env HOME="$work" USER="$server_user" LOGNAME="$server_user" "$@"
    else
        "$@"
    fi
}

# Installs those of the named packages that are missing. Debian's server package would make and start a cluster "main"
# unless the machine says otherwise meanwhile: no cluster but our own is touched.
ensure_packages() {
    local package missing=() status=0
    local apt=(env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300)
    command -v dpkg-query >/dev/null || die "needs a Debian system, or these packages by hand: $*"
    for package in "$@"; do
        [[ $(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || missing+=("$package")
    done
    ((${#missing[@]} > 0)) || return 0
    say "installing ${missing[*]}"
    cluster_setting=/etc/postgresql-common/createcluster.d/zz-durable-timers.conf
    as_root mkdir -p "${cluster_setting%/*}"
    as_root tee "$cluster_setting" >/dev/null <<<"create_main_cluster = false"
    as_root "${apt[@]}" update >/dev/null || status=$?
    ((status > 0)) || as_root "${apt[@]}" install -y --no-install-recommends "${missing[@]}" >/dev/null || status=$?
    forget_cluster_setting
    ((status == 0)) || die "could not install ${missing[*]}"
}

forget_cluster_setting() {
    [[ -n $cluster_setting ]] || return 0
    as_root rm -f "$cluster_setting"
    cluster_setting=""
}

build() {
    say "building"
    make -C "$root" -s -j"$(nproc)" PG_CONFIG="$pg_bin/pg_config"
}

install_extension() {
    say "installing"
    as_root make -C "$root" -s install PG_CONFIG="$pg_bin/pg_config"
}

# Makes $work and goes there: the server's user may be unable to read where we came from. Under /tmp, since the path of
# a Unix socket holds 107 bytes.
make_work() {
    work=$(mktemp -d /tmp/durable_timers.XXXXXX)
    mkdir "$work/socket" "$work/tmp" "$work/log"
    ((EUID > 0)) || chown -R "$server_user:" "$work"
    cd "$work"
}

# Starts a throw-away server with the extension preloaded, reachable through a socket in $work only, and points libpq
# to it. Each argument is a line for postgresql.conf. Shows what went wrong and returns 1 when it does not start.
start_cluster() {
    if ! as_server initdb -D "$work/data" -U postgres --auth=trust --encoding=UTF8 --no-locale --no-sync \
        >"$work/log/initdb" 2>&1; then
        cat "$work/log/initdb" >&2
        return 1
    fi
    as_server tee -a "$work/data/postgresql.conf" >/dev/null <<CONF
listen_addresses = ''
unix_socket_directories = '$work/socket'
unix_socket_permissions = 0700
shared_preload_libraries = 'durable_timers'
timezone = 'UTC'
log_timezone = 'UTC'
log_line_prefix = '%m [%p] %b %q%a '
$(printf '%s\n' "$@")
CONF
    if ! as_server pg_ctl -D "$work/data" -l "$work/log/server" -w -t 60 start >"$work/log/pg_ctl" 2>&1; then
        cat "$work/log/pg_ctl" "$work/log/server" >&2
        return 1
    fi
    export PGHOST="$work/socket" PGPORT=5432 PGUSER=postgres PGDATABASE=postgres
}

# A private server for those who only want one.
start_private_server() { # start_private_server CONF_LINE...
    say "starting a private server"
    make_work
    start_cluster "$@" || die "could not start the server"
}

# Makes a database with the example application of examples/kioku, and points libpq to it.
create_kioku() { # create_kioku DATABASE
    export PGDATABASE=$1
    createdb
    psql -Xq -1 -o /dev/null -v ON_ERROR_STOP=1 -c "create extension durable_timers" -f "$root/examples/kioku/kioku.sql"
}

# Leaves the server up until Enter or Ctrl-C, and says how to look around in it.
keep_server() { # keep_server COMMAND...      prints what to type there, for example
    say "look around"
    printf 'in another terminal:\n\n    %s -h %s -U postgres %s\n\n' "$pg_bin/psql" "$work/socket" "$PGDATABASE"
    printf 'and there, for example:\n\n'
    "$@"
    printf '\nThe server log is %s. Press Enter here to stop the server and remove it.\n' "$work/log/server"
    # Without a terminal there is no Enter to wait for: then until a signal, or until the server is stopped.
    if ! read -r; then
        start_job tail --pid="$(head -n 1 "$work/data/postmaster.pid")" -f /dev/null
        await_job
    fi
}

# Stops every server whose data folder lies in $work, those that tests have left behind included.
stop_servers() {
    local pid_file data
    while IFS= read -r pid_file; do
        data=${pid_file%/postmaster.pid}
        as_server pg_ctl -D "$data" stop -m fast -w -t 30 >/dev/null 2>&1 ||
            as_server pg_ctl -D "$data" stop -m immediate -w -t 30 >/dev/null 2>&1 || true
    done < <(find "$work" -name postmaster.pid 2>/dev/null)
}

# Starts a command in a process group of its own, so that an interrupted script can end all of it.
start_job() {
    set -m
    "$@" </dev/null &
    job=$!
    set +m
}

# Waits for what `start_job` started and returns its exit code.
await_job() {
    local status=0
    wait "$job" || status=$?
    job=""
    return "$status"
}

# Runs a command as a job. Its output goes to the screen and to $work/log/NAME. Fails as the command does, and with 124
# beyond the time limit.
run_job() { # run_job NAME SECONDS COMMAND...
    local log=$work/log/$1 limit=$2 viewer status=0
    shift 2
    start_job "$@" >"$log" 2>&1
    timeout --foreground "$limit" tail --pid="$job" -s 0.1 -n +1 -f "$log" &
    viewer=$!
    wait "$viewer" || status=$?
    if ((status == 124)); then
        printf 'time limit of %s s exceeded\n' "$limit" | tee -a "$log"
        end_job
        return 124
    fi
    await_job
}

# Ends the process group of the job, gently, then not.
end_job() {
    local group=$job signal deadline
    job=""
    [[ -n $group ]] || return 0
    for signal in TERM KILL; do
        kill -s "$signal" -- "-$group" 2>/dev/null || return 0
        deadline=$((SECONDS + 5))
        while kill -0 -- "-$group" 2>/dev/null && ((SECONDS < deadline)); do
            sleep 0.05
        done
    done
}

cleanup() {
    trap '' INT TERM HUP
    end_job
    forget_cluster_setting
    [[ -n $work ]] || return 0
    cd /
    stop_servers
    rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

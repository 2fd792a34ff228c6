# What the scripts that measure share: processes that end with the script, and waiting for them to listen.
# Sourced, with the root of the clone as the working folder.

target=${CARGO_TARGET_DIR:-target}/${BENCH_PROFILE:-dist}
bench=$PWD/$target/signalbox-bench
signalbox=$PWD/$target/signalbox
case $target in /*) bench=$target/signalbox-bench signalbox=$target/signalbox ;; esac
work=$(mktemp -d)
declare -A started=()

say() { printf '%s\n' "$*" >&2; }

# Starts a process of ours; its id comes back in $pid, its output goes to $work/NAME.out and .err.
start() {
  local name=$1
  shift
  # Emptied before the process exists, so that nobody reads what the last one of this name wrote.
  : >"$work/$name.out"
  : >"$work/$name.err"
  "$@" >>"$work/$name.out" 2>>"$work/$name.err" </dev/null &
  pid=$!
  started[$pid]=1
}

# Ends a process that start() started, asked first, then made to.
stop() {
  local pid=$1 tries
  [[ -n ${started[$pid]:-} ]] || return 0
  unset "started[$pid]"
  kill -TERM "$pid" 2>/dev/null || true
  for tries in {1..100}; do
    kill -0 "$pid" 2>/dev/null || break
    sleep 0.02
  done
  kill -KILL "$pid" 2>/dev/null || true
  wait "$pid" 2>/dev/null || true
}

stop_all() {
  local pid
  for pid in "${!started[@]}"; do stop "$pid"; done
}

finish() {
  stop_all
  rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Waits for the address that our own servers print; it comes back in $url.
await_url() {
  local name=$1 tries
  for tries in {1..500}; do
    url=$(sed -n 's/^listening //p' "$work/$name.out")
    [[ -z $url ]] || return 0
    sleep 0.02
  done
  return 1
}

# await_port PORT [PATH]: waits until the process started last listens there; the address comes back in $url.
await_port() {
  local port=$1 path=${2-/mcp} tries
  url=http://127.0.0.1:$port$path
  for tries in {1..3000}; do
    if (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then return 0; fi
    kill -0 "$pid" 2>/dev/null || return 1
    sleep 0.02
  done
  return 1
}

# How idle all cores are over a second; what else runs here blurs every number.
idle_percent() {
  local before after
  before=$(head -n 1 /proc/stat)
  sleep 1
  after=$(head -n 1 /proc/stat)
  awk '{ total = 0; for (i = 2; i <= 9; i++) total += $i; idle = $5 + $6; if (NR == 1) { t = total; n = idle } }
    END { printf "%.0f", 100 * (idle - n) / (total - t) }' <<<"$before"$'\n'"$after"
}

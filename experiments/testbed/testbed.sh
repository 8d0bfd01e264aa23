#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# testbed.sh - several hosts on one machine: network namespaces on a switch, each link slow in a known way
#
# Needs root, and the commands of the packages iproute2, util-linux and openmpi-bin.  All of it is in
# namespaces of its own, the switch too: the network of the machine is not touched.
set -u
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd) || exit 1

usage() {
    cat <<'END'
Usage: testbed.sh run [OPTION...] COMMAND...   make the testbed, run, take it down again
       testbed.sh up [OPTION...]               make it
       testbed.sh mpirun [OPTION...] COMMAND...   run on the testbed that is up
       testbed.sh cut|mend [--name NAME] NODE  take a node's link down, and up again
       testbed.sh status|down [--name NAME]

COMMAND is run once per rank, by mpirun across the nodes.

  -n, --nodes N            hosts (default 4, at most 16)
  -p, --ranks-per-node N   (default 1)
  -r, --rate RATE          of what each host sends, as tc writes it: 100mbit, 1gbit (default 200mbit)
  -d, --delay TIME         added to what each host sends: 200us, 1ms (default 0: none); needs a
                           kernel with netem
      --mca KEY=VALUE      passed to mpirun; may repeat
      --name NAME          of the testbed, letters and digits (default zipccl)

Exit code: that of mpirun; 2 wrong usage, or a testbed of that name is in use; 77 if this machine or
user may not make network namespaces with traffic control.
END
}

die() {
    echo "testbed.sh: $*" >&2
    exit 2
}

# cannot REASON - what a test takes for a skip
cannot() {
    echo "testbed.sh: cannot make a testbed here: $*" >&2
    exit 77
}

nodes=4 per_node=1 rate=200mbit delay=0 name=zipccl verb='' mca=()
state_dir=/run/zipccl-testbed
subnet=198.18.77 # RFC 2544 keeps 198.18.0.0/15 for measurements

whole() { # whole OPTION VALUE MOST
    [[ $2 =~ ^[1-9][0-9]{0,3}$ ]] && [ "$2" -le "$3" ] ||
        die "$1 '$2': expected a whole number from 1 to $3"
}

parse() {
    [ $# -gt 0 ] || { usage >&2; exit 2; }
    verb=$1
    shift
    case $verb in
    run | up | mpirun | status | down | cut | mend) ;;
    -h | --help) usage; exit 0 ;;
    *) die "'$verb' is none of run, up, mpirun, cut, mend, status, down" ;;
    esac
    while [ $# -gt 0 ]; do
        case $1 in
        --) shift; break ;;
        -h | --help) usage; exit 0 ;;
        -?*) [ $# -ge 2 ] || die "$1: a value is missing" ;;
        *) break ;;
        esac
        case $1 in
        -n | --nodes) whole "$1" "$2" 16; nodes=$2 ;;
        -p | --ranks-per-node) whole "$1" "$2" 64; per_node=$2 ;;
        -r | --rate)
            [[ $2 =~ ^[1-9][0-9]*[kmg]bit$ ]] || die "$1 '$2': expected such as 200mbit or 1gbit"
            rate=$2 ;;
        -d | --delay)
            [[ $2 =~ ^(0|[1-9][0-9]*(us|ms))$ ]] || die "$1 '$2': expected such as 200us or 1ms"
            delay=$2 ;;
        --mca)
            [[ $2 =~ ^[a-z0-9_]+=.+$ ]] || die "$1 '$2': expected KEY=VALUE"
            mca+=(--mca "${2%%=*}" "${2#*=}") ;;
        --name)
            [[ $2 =~ ^[a-z][a-z0-9]{0,15}$ ]] || die "$1 '$2': expected letters and digits"
            name=$2 ;;
        *) die "'$1' is no option; --help lists them" ;;
        esac
        shift 2
    done
    command=("$@")
}

# Namespaces of this testbed that exist.
namespaces() {
    ip netns list 2>/dev/null | awk -v n="$name" '$1 ~ "^" n "-(switch|node[0-9]+)$" {print $1}'
}

processes() {
    local ns
    for ns in $(namespaces); do ip netns pids "$ns" 2>/dev/null; done
}

# Every process in the namespaces is one that this testbed has started.
take_down() {
    local pids
    pids=$(processes)
    # shellcheck disable=SC2086
    [ -z "$pids" ] || kill $pids 2>/dev/null
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        pids=$(processes)
        [ -n "$pids" ] || break
        sleep 0.1
    done
    # shellcheck disable=SC2086
    [ -z "$pids" ] || kill -KILL $pids 2>/dev/null
    for ns in $(namespaces); do ip netns del "$ns"; done
    rm -f "$state_dir/$name"
}

# The process that runs on the testbed, if it is still there: its number and when it started.
owner() {
    local pid start
    [ -r "$state_dir/$name" ] && read -r pid start <"$state_dir/$name" || return 1
    [ -r "/proc/$pid/stat" ] && [ "$(awk '{print $22}' "/proc/$pid/stat")" = "$start" ] || return 1
    echo "$pid"
}

refuse_in_use() {
    local pid
    pid=$(owner) && die "testbed '$name' is in use by process $pid: wait, or give another --name"
    [ -z "$(namespaces)" ] && return
    echo "testbed.sh: removing what an earlier run has left of testbed '$name'" >&2
    take_down
}

# Try in a namespace what the testbed needs; says what fails.
probe() { # probe NAMESPACE
    ip netns add "$1" || return 1
    ip -n "$1" link add name probe0 type veth peer name probe1 &&
        ip -n "$1" link add name probe2 type bridge && unshare --uts true &&
        ip netns exec "$1" tc qdisc add dev probe0 root handle 1: tbf rate 1mbit burst 32kb \
            latency 100ms || return 1
    [ "$delay" = 0 ] ||
        ip netns exec "$1" tc qdisc add dev probe0 parent 1:1 handle 10: netem delay "$delay" ||
        { echo "(--delay needs a kernel with netem)"; return 1; }
}

check_permitted() {
    local tool why rc
    for tool in ip tc unshare mpirun; do
        command -v $tool >/dev/null ||
            cannot "no command $tool (packages iproute2, util-linux, openmpi-bin)"
    done
    [ "$(id -u)" -eq 0 ] || cannot "needs root"
    why=$(probe "$name-probe" 2>&1)
    rc=$?
    ip netns del "$name-probe" 2>/dev/null
    [ $rc -eq 0 ] || cannot "${why//$'\n'/ }"
}

# Rate in Mb/s, at least 1.
megabits() {
    local number=${rate%?bit} unit=${rate: -4:1}
    case $unit in
    k) echo $(((number + 999) / 1000)) ;;
    m) echo "$number" ;;
    g) echo $((number * 1000)) ;;
    esac
}

# One limit per node, on what it sends; the queue is long, so that TCP loses nothing.
limit_link() { # limit_link NAMESPACE
    local mbit burst latency
    mbit=$(megabits)
    # 4 ms of the rate, but 128 KiB at most: what leaves at once after a pause, which distorts short
    # messages.  At 64 KiB, one packet as the sender's kernel makes it, 1 Gb/s is halved.
    burst=$((mbit * 500))
    [ $burst -ge 65536 ] || burst=65536
    [ $burst -le 131072 ] || burst=131072
    latency=100ms
    [ "$mbit" -ge 500 ] || latency=200ms
    ip netns exec "$1" tc qdisc add dev eth0 root handle 1: tbf rate "$rate" burst $burst \
        latency $latency || return 1
    [ "$delay" = 0 ] && return 0
    # The inner queue takes the place of tbf's own: as many packets as 'latency' holds, and more.
    ip netns exec "$1" tc qdisc add dev eth0 parent 1:1 handle 10: netem delay "$delay" limit 20000
}

# The same TCP on every machine: no host's favourite, which may pace itself below the line (BBR does with
# several connections), and connections that rested start at full speed again.
fix_tcp() { # fix_tcp NAMESPACE
    # shellcheck disable=SC2016
    ip netns exec "$1" sh -c 'cd /proc/sys/net/ipv4 && echo reno >tcp_congestion_control &&
        echo 0 >tcp_slow_start_after_idle'
}

make_node() { # make_node NUMBER
    local ns=$name-node$1 switch=$name-switch
    ip netns add "$ns" &&
        ip -n "$switch" link add name "port$1" type veth peer name eth0 netns "$ns" &&
        ip -n "$switch" link set "port$1" master bridge up &&
        ip -n "$ns" addr add "$subnet.$1/24" dev eth0 &&
        ip -n "$ns" link set eth0 up && ip -n "$ns" link set lo up && fix_tcp "$ns" &&
        limit_link "$ns"
}

make() {
    local i switch=$name-switch
    ip netns add "$switch" &&
        ip -n "$switch" link add name bridge type bridge &&
        ip -n "$switch" addr add "$subnet.254/24" dev bridge &&
        ip -n "$switch" link set bridge up && ip -n "$switch" link set lo up || return 1
    for ((i = 1; i <= nodes; i++)); do make_node $i || return 1; done
}

bring_up() { # bring_up OWNER-PROCESS
    refuse_in_use
    check_permitted
    mkdir -p "$state_dir" || cannot "no $state_dir"
    echo "$1 $(awk '{print $22}' "/proc/$1/stat")" >"$state_dir/$name"
    make || { take_down; die "could not make the testbed; the lines above tell why"; }
    echo "testbed.sh: $nodes nodes, each sends at $rate, delay $delay" >&2
}

# mpirun in the switch's namespace; Open MPI sees the testbed's network only.  A connection that is
# silent is tried after 2 s and given up after 5, so that a dead link ends the job.  Messages are sent, not
# put (btl_tcp_flags): with puts Open MPI 4.1 leaves links idle when all ranks exchange, for any program.
launch() {
    local hosts='' i count
    count=$(namespaces | grep -c -- '-node')
    [ "$count" -gt 0 ] || die "no testbed '$name' is up"
    [ ${#command[@]} -gt 0 ] || die "no command to run"
    for ((i = 1; i <= count; i++)); do hosts+=,$subnet.$i:$per_node; done
    export ZIPCCL_TESTBED=$name OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    ip netns exec "$name-switch" mpirun --host "${hosts#,}" -n $((count * per_node)) \
        --map-by slot --bind-to none --mca plm_rsh_agent "$here/agent.sh" \
        --mca plm_rsh_no_tree_spawn 1 --mca btl tcp,vader,self --mca pml ob1 \
        --mca btl_tcp_if_include "$subnet.0/24" --mca oob_tcp_if_include "$subnet.0/24" \
        --mca btl_tcp_flags send,inplace --mca oob_tcp_keepalive_time 2 --mca oob_tcp_keepalive_intvl 1 \
        --mca oob_tcp_keepalive_probes 3 ${mca[@]+"${mca[@]}"} "${command[@]}" &
    child=$!
    wait $child
}

node_of() { # node_of NUMBER
    [ ${#command[@]} -eq 1 ] && [[ ${command[0]} =~ ^[0-9]+$ ]] || die "$verb: expected a node's number"
    namespaces | grep -qx -- "$name-node${command[0]}" || die "testbed '$name' has no node ${command[0]}"
}

child=
parse "$@"
case $verb in
run)
    [ ${#command[@]} -gt 0 ] || die "no command to run"
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
    bring_up $$ # what is in use, or cannot be made, is not for this one to take down
    trap take_down EXIT
    launch
    exit $?
    ;;
up)
    bring_up 1
    ;;
mpirun)
    trap '[ -z "$child" ] || kill "$child"' INT TERM HUP
    launch
    exit $?
    ;;
cut | mend)
    node_of
    ip -n "$name-switch" link set "port${command[0]}" "$([ "$verb" = cut ] && echo down || echo up)"
    ;;
status)
    [ -n "$(namespaces)" ] || { echo "no testbed '$name' is up"; exit 0; }
    namespaces
    for ns in $(namespaces | grep -- -node); do ip netns exec "$ns" tc -s qdisc show dev eth0; done
    ;;
down)
    [ "$(id -u)" -eq 0 ] || die "needs root"
    take_down
    ;;
esac

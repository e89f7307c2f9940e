# A network of one's own: each host is a network namespace, all on one bridge, in namespaces of this process that
# vanish with it. To be sourced; net_enter goes first.
# shellcheck shell=bash

# Starts this script again inside of namespaces where it may do as it likes with networks, and whose processes all end
# with it. 77: they are not allowed here. Usage: net_enter "$0" "$@"
net_enter() {
    [ -z "${INTACT_NET_INSIDE:-}" ] || return 0
    local why=
    if [ "$(id -u)" != 0 ]; then
        why="only root may make network namespaces"
    elif ! command -v ip >/dev/null; then
        why="iproute2 is missing"
    elif ! unshare --net --ipc --mount --pid --fork --mount-proc -- ip link add probe type bridge 2>/dev/null; then
        why="network namespaces or bridges are not allowed here"
    fi
    if [ -n "$why" ]; then
        echo "skipped: $why"
        exit 77
    fi
    INTACT_NET_INSIDE=1 exec unshare --net --ipc --mount --pid --fork --kill-child --mount-proc -- "$@"
}

net_up() {
    mkdir -p /run/netns
    mount -t tmpfs tmpfs /run/netns
    ip link add lan type bridge
    ip link set lan up
    ip link set lo up
}

# A new host on the bridge. Usage: host_add NAME NUMBER
declare -A host_number=()
host_add() {
    host_number[$1]=$2
    ip netns add "$1"
    ip link add "to-$1" type veth peer name eth0 netns "$1"
    ip link set "to-$1" master lan up
    ip -n "$1" link set lo up
    ip -n "$1" addr add "$(address_of "$1")/24" dev eth0
    ip -n "$1" link set eth0 up
}

address_of() { echo "10.77.0.${host_number[$1]}"; }

# Becomes the command, on that host. Usage: at HOST COMMAND..., in a subshell
at() {
    local host=$1
    shift
    exec nsenter "--net=/run/netns/$host" -- "$@"
}

# What FROM sends to TO vanishes, and nobody is told: it goes to a hardware address that nobody has. What TO sends
# arrives. Usage: cut FROM TO
cut_off() {
    ip -n "$1" neigh replace "$(address_of "$2")" lladdr 02:00:00:ff:ff:ff dev eth0 nud permanent
}
mend() { ip -n "$1" neigh del "$(address_of "$2")" dev eth0 2>/dev/null || true; }

# Both ways. Usage: part A B
part() {
    cut_off "$1" "$2"
    cut_off "$2" "$1"
}
join_again() {
    mend "$1" "$2"
    mend "$2" "$1"
}

# The host's cable. Usage: unplug HOST
unplug() { ip link set "to-$1" down; }
plug() { ip link set "to-$1" up; }

# All is well again, whatever was done.
net_mend() {
    local a b
    for a in "${!host_number[@]}"; do
        plug "$a"
        for b in "${!host_number[@]}"; do
            [ "$a" = "$b" ] || mend "$a" "$b"
        done
    done
}

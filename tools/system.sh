# A minimal Debian system in a folder, and commands that run inside it: to be sourced, by root. Nothing of the machine is in
# sight of them: they have processes, mounts, a host name and a network of their own, and all of it ends with them, also when
# whoever started them is killed.
# shellcheck shell=bash

# Debian's archives as this machine gets them, as lines of a sources.list. Nothing if apt does not know. Usage: RELEASE
debian_archives() {
    # shellcheck disable=SC2016 # apt's own variables
    apt-get indextargets --format 'deb $(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' 'Origin: Debian' |
        awk -v release="$1" '$3 == release || $3 == release "-updates" || $3 == release "-security"'
}

# Makes the system, without any package but debootstrap's own. Usage: make_system FOLDER RELEASE
make_system() {
    local folder=$1 release=$2 archives mirror
    archives=$(debian_archives "$release")
    mirror=$(awk -v release="$release" '$3 == release { print $2; exit }' <<<"$archives")
    rm -rf "$folder"
    # shellcheck disable=SC2086 # no mirror is no word
    debootstrap --variant=minbase "$release" "$folder" $mirror >"$folder.log" 2>&1 || {
        tail -n 20 "$folder.log" >&2
        return 1
    }
    [ -z "$archives" ] || echo "$archives" >"$folder/etc/apt/sources.list"
    # How packages are fetched here: by a proxy, perhaps, whose certificate is the machine's own.
    apt-config dump Acquire | { grep -iE '^Acquire::(Check-|Retries|https?::)' || true; } >"$folder/etc/apt/apt.conf.d/90fetch"
    [ -z "${http_proxy:-}" ] || echo "Acquire::http::Proxy \"$http_proxy\";" >>"$folder/etc/apt/apt.conf.d/90fetch"
    if [ -d /usr/local/share/ca-certificates ]; then
        cp -rL /usr/local/share/ca-certificates "$folder/usr/local/share/"
    fi
    # As Debian's installer writes them. debootstrap leaves the first out and copies the others from the machine.
    printf '%s\n' '127.0.0.1 localhost' '127.0.1.1 bare' '::1 localhost ip6-localhost ip6-loopback' >"$folder/etc/hosts"
    echo bare >"$folder/etc/hostname"
    echo 'nameserver 10.0.2.3' >"$folder/etc/resolv.conf" # slirp4netns' own
}

# The devices that a container has. Usage: make_devices FOLDER NO_SHM
make_devices() {
    local device
    mount -t tmpfs -o mode=755 tmpfs "$1"
    for device in null zero full random urandom tty; do
        : >"$1/$device"
        mount --bind "/dev/$device" "$1/$device"
    done
    mkdir "$1/pts"
    mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts "$1/pts"
    ln -s pts/ptmx "$1/ptmx"
    ln -s /proc/self/fd "$1/fd"
    ln -s fd/0 "$1/stdin"
    ln -s fd/1 "$1/stdout"
    ln -s fd/2 "$1/stderr"
    [ -z "$2" ] || return 0
    mkdir "$1/shm"
    mount -t tmpfs -o mode=1777 tmpfs "$1/shm"
}

# The command lines of all that runs in that folder. Usage: running FOLDER
running() {
    local proc
    for proc in "$1"/proc/[0-9]*; do
        ! [ "$proc/root" -ef "$1" ] || { tr '\0' ' ' <"$proc/cmdline" && echo; } 2>/dev/null || true
    done
}

# The first process in there. Usage: inside FOLDER STATE NO_IPV6 NO_SHM CACHE COMMAND...
inside() {
    local folder=$1 state=$2 no_ipv6=$3 no_shm=$4 cache=$5 status=0 tries=0 left
    shift 5
    mount --bind "$folder" "$folder"
    mount -t proc proc "$folder/proc"
    mount -t sysfs sysfs "$folder/sys"
    make_devices "$folder/dev" "$no_shm"
    [ -z "$cache" ] || mount --bind "$cache" "$folder/var/cache/apt/archives"
    [ -z "$no_ipv6" ] || [ ! -e /proc/sys/net/ipv6 ] || echo 1 >/proc/sys/net/ipv6/conf/all/disable_ipv6
    hostname bare
    touch "$state/inside"
    until [ -s "$state/connected" ]; do sleep 0.05; done
    chroot "$folder" "$@" </dev/null || status=$?
    # What the command left in the background may be ending. What stays is what it forgot.
    while left=$(running "$folder") && [ -n "$left" ] && [ "$tries" -lt 100 ]; do
        tries=$((tries + 1))
        sleep 0.1
    done
    [ -z "$left" ] || echo "$left" >"$state/left"
    return "$status"
}

# Runs a command in there, with its exit status; its environment is ours. It reaches other hosts through this machine, but
# not the machine's own loopback address. $left_behind are the processes that were still there ten seconds after its end.
# Usage: [no_ipv6=1] [no_shm=1] [cache=FOLDER] enter_system FOLDER COMMAND...
enter_system() {
    local folder=$1 state pid network='' status=0
    shift
    state=$(mktemp -d)
    setpriv --pdeathsig KILL unshare --mount --pid --net --ipc --uts --fork --kill-child \
        "$BASH" -euc "$(declare -f inside make_devices running); inside \"\$@\"" inside \
        "$folder" "$state" "${no_ipv6:-}" "${no_shm:-}" "${cache:-}" "$@" &
    pid=$!
    until [ -e "$state/inside" ] || ! kill -0 "$pid" 2>/dev/null; do sleep 0.05; done
    if [ -e "$state/inside" ]; then
        setpriv --pdeathsig KILL slirp4netns --configure --mtu=65520 --disable-host-loopback --ready-fd=3 "$pid" tap0 \
            3>"$state/connected" >"$state/network.log" 2>&1 &
        network=$!
        until [ -s "$state/connected" ]; do
            kill -0 "$network" 2>/dev/null || {
                cat "$state/network.log" >&2
                kill -KILL "$pid"
                break
            }
            sleep 0.05
        done
    fi
    wait "$pid" || status=$?
    [ -z "$network" ] || { kill "$network" && wait "$network"; } 2>/dev/null || true
    # shellcheck disable=SC2034 # for who sources this
    left_behind=$(cat "$state/left" 2>/dev/null || true)
    rm -rf "$state"
    return "$status"
}

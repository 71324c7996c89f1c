# Makes a lab host a node of the cluster. cluster.py gives this to bash inside the host, with LAB_* set: the
# folders of the software, the node's settings, and the control groups' mounts. It returns when the images are
# there and kubelet was started; containerd and kubelet stay until the host goes down.
set -euo pipefail
export PATH=$LAB_PROGRAMS:$LAB_SYSTEM/usr/bin:$LAB_SYSTEM/usr/sbin:$PATH

mount_groups() {
  mount -t tmpfs -o mode=755 groups /sys/fs/cgroup
  for options in $LAB_GROUPS; do
    mkdir "/sys/fs/cgroup/${options#name=}"
    case $options in
    name=*) mount -t cgroup -o "none,$options" cgroup "/sys/fs/cgroup/${options#name=}" ;;
    *) mount -t cgroup -o "$options" cgroup "/sys/fs/cgroup/$options" ;;
    esac
  done
}

# The node sees only its part of the machine's control groups, as if it were a real machine.
if [ "${1-}" != inside ]; then
  mount_groups
  for tree in /sys/fs/cgroup/*; do
    mkdir -p "$tree/$LAB_GROUP"
    for file in cpus mems; do
      [ ! -e "$tree/cpuset.$file" ] || cat "$tree/cpuset.$file" >"$tree/$LAB_GROUP/cpuset.$file"
    done
    echo $$ >"$tree/$LAB_GROUP/cgroup.procs"
  done
  umount -R /sys/fs/cgroup
  exec unshare --cgroup bash -c "$LAB_SCRIPT" node inside
fi
mount_groups

# kubelet must not change settings of the whole kernel: it sees files with the values that it wants.
mkdir -p /run/settings
for setting in vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1 \
  kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000; do
  file=/run/settings/$(basename "${setting%=*}")
  echo "${setting#*=}" >"$file"
  mount --bind "$file" "/proc/sys/${setting%=*}"
done
echo 1 >/proc/sys/net/ipv4/ip_forward
[ -e /dev/kmsg ] || mknod -m 600 /dev/kmsg c 1 11
mount --make-rshared /

setsid containerd --config "$LAB_SETTINGS/containerd.toml" </dev/null >/data/containerd.log 2>&1 &
for _ in $(seq 300); do ctr version >/dev/null 2>&1 && break; sleep 0.1; done
ctr --namespace k8s.io images import "$LAB_IMAGES" >/data/import.log
setsid kubelet --config="$LAB_SETTINGS/kubelet.json" --kubeconfig="$LAB_SETTINGS/kubelet.kubeconfig" \
  --root-dir=/data/kubelet --cert-dir=/data/kubelet-certificates --hostname-override="$LAB_NAME" --node-ip="$LAB_ADDRESS" \
  </dev/null >/data/kubelet.log 2>&1 &

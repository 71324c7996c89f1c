#!/bin/bash
# PID 1 of one lab host. hosts.py starts it inside fresh namespaces, with LAB_* in the environment.
# It says "network" on stdout when hosts.py may plug the cable in, waits for a line on stdin, and
# says "ready" when sshd listens; after that it only reaps orphans until it is killed.
set -euo pipefail

# The new root: a writable overlay over the machine's own root, in memory.
hostname "$LAB_NAME"
root=$LAB_FOLDER/root
mount -t tmpfs -o mode=755 lab "$root"
mkdir "$root"/{upper,work,new}
mount -t overlay -o "lowerdir=/,upperdir=$root/upper,workdir=$root/work" lab "$root/new"
new=$root/new

fresh() { mkdir -p "$new$2"; mount -t tmpfs -o "mode=$1" lab "$new$2"; }

# Folders that must not be shared with the machine.
mount -t proc proc "$new/proc"
mount -t sysfs -o ro sysfs "$new/sys"
fresh 755 /dev
while read -r name major minor; do mknod -m 666 "$new/dev/$name" c "$major" "$minor"; done <<'NODES'
null 1 3
zero 1 5
full 1 7
random 1 8
urandom 1 9
tty 5 0
NODES
ln -s /proc/self/fd "$new/dev/fd"
mkdir "$new/dev/pts"
mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts "$new/dev/pts"
ln -s pts/ptmx "$new/dev/ptmx"
fresh 1777 /dev/shm
fresh 755 /run
fresh 1777 /tmp
fresh 1777 /var/tmp
fresh 755 /data
fresh 755 /home
fresh 755 /root

# A host has only a JVM and sshd: no checkout, no interpreter, no profiling tool.
IFS=:
for folder in $LAB_HIDE; do fresh 755 "$folder"; done
for folder in $LAB_SHOW; do
  mkdir -p "$new$folder"
  mount --bind "$folder" "$new$folder"
  mount -o remount,bind,ro "$new$folder"
done
unset IFS
if [ -n "$LAB_SHARED" ]; then # stands for a cluster file system
  mkdir -p "$new/shared"
  mount --bind "$LAB_SHARED" "$new/shared"
fi
rm -f "$new"/usr/bin/{python3*,perf,jcmd,jstack,jmap,jps,asprof,gcc,cc} "$new"/usr/local/bin/python*

# Users: root, yarn (owns the JVMs), prof (an ordinary user, with sudo if installed).
account() { # NAME UID HOME
  sed -i "/^$1:/d" "$new"/etc/{passwd,shadow,group}
  echo "$1:x:$2:$2::$3:/bin/bash" >>"$new/etc/passwd"
  echo "$1:*:19000:0:99999:7:::" >>"$new/etc/shadow"
  echo "$1:x:$2:" >>"$new/etc/group"
  install -d -m 755 -o "$2" -g "$2" "$new$3"
  install -d -m 700 -o "$2" -g "$2" "$new$3/.ssh"
  install -m 600 -o "$2" -g "$2" "$LAB_KEYS/id.pub" "$new$3/.ssh/authorized_keys"
}
account root 0 /root
account yarn 2001 /home/yarn
account prof 2002 /home/prof
chown 2001 "$new/data"
if [ -d "$new/etc/sudoers.d" ]; then
  echo 'prof ALL=(ALL) NOPASSWD: ALL' | install -m 440 /dev/stdin "$new/etc/sudoers.d/lab"
fi

# Names and ssh. The host key is this host's own.
echo "$LAB_NAME" >"$new/etc/hostname"
install -m 644 "$LAB_KEYS/hosts" "$new/etc/hosts"
: >"$new/etc/resolv.conf"
mkdir -p "$new/run/sshd"
rm -f "$new"/etc/ssh/ssh_host_*
install -m 600 "$LAB_FOLDER/hostkey" "$new/etc/ssh/ssh_host_ed25519_key"
cat >"$new/etc/ssh/sshd_config" <<CONFIG
ListenAddress $LAB_ADDRESS
Port $LAB_PORT
HostKey /etc/ssh/ssh_host_ed25519_key
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
UseDNS no
MaxStartups 100
Subsystem sftp internal-sftp
CONFIG

mkdir "$root/new/mnt/below"
pivot_root "$new" "$new/mnt/below"
cd /
umount -l /mnt/below
rmdir /mnt/below

echo network
read -r _
ip link set lo up
/usr/sbin/sshd -E /var/log/sshd.log
for _ in $(seq 500); do [ -s /run/sshd.pid ] && break; sleep 0.02; done # written once it listens
[ -s /run/sshd.pid ] || { cat /var/log/sshd.log >&2; exit 1; }
echo ready
exec </dev/null >/dev/null 2>&1
while :; do
  sleep infinity &
  wait $! || true
done

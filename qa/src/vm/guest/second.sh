# Continues as the first process in the host's files: sets up the machine, runs its one command, reports the status, ends.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
. /run/vm/settings
box=/run/vm/busybox

mkdir -p /dev/pts /dev/shm /run/udev /run/lock
mount -t devpts -o gid=5,mode=620,ptmxmode=666 devpts /dev/pts
mount -t tmpfs -o mode=1777 shm /dev/shm
mount -t cgroup2 cgroup2 /sys/fs/cgroup
ln -sf /proc/self/fd /dev/fd
$box ip link set lo up
kernel=$(uname -r)
mkdir -p "/lib/modules/$kernel"
mount --bind "$VM_MODULES" "/lib/modules/$kernel"
modprobe -q configfs && mount -t configfs configfs /sys/kernel/config

for port in /sys/class/virtio-ports/*; do
  case $(cat "$port/name") in
    vm.out) out=/dev/${port##*/} ;;
    vm.err) err=/dev/${port##*/} ;;
    vm.report) report=/dev/${port##*/} ;;
  esac
done
exec 3>"$report"

if [ "$VM_UDEV" = 1 ]; then
  /lib/systemd/systemd-udevd --daemon >/dev/kmsg 2>&1
fi
status=0
/bin/sh /run/vm/modules 2>/run/vm/setup.err || status=125
[ "$VM_UDEV" = 1 ] && udevadm settle -t 30 >/dev/null 2>&1
read -r up _ </proc/uptime
echo "{\"ready\":$up}" >&3
if [ $status = 0 ]; then
  cd "$VM_FOLDER"
  $box timeout -s KILL "$VM_TIMEOUT_SECS" /bin/sh /run/vm/command </dev/null >"$out" 2>"$err" &
  # The command runs in the background, because the shell would report a killed foreground command on the same output.
  wait $!
  status=$?
else
  cat /run/vm/setup.err >"$err"
fi
echo "{\"exit\":$status}" >&3
exec 3>&-
sync
echo b >/proc/sysrq-trigger
sleep 30

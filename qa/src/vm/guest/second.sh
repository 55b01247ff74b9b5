# Continues as the first process in the host's files: sets up the machine, and goes on in third.sh, under systemd if the case wants it.
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

if [ "$VM_UDEV" = 1 ]; then
  /lib/systemd/systemd-udevd --daemon >/dev/kmsg 2>&1
fi
if [ "$VM_SYSTEMD" = 0 ]; then . /run/vm/third.sh; fi

# Only what the services of a case depend on starts, not the other services of this machine. systemd-tmpfiles would empty /tmp, which
# takes long and may hold the checkout.
: >/etc/fstab
units=/run/systemd/system
mkdir -p $units
for unit in timers.target paths.target getty.target systemd-udevd.service systemd-udev-trigger.service systemd-udevd-kernel.socket \
  systemd-udevd-control.socket systemd-timesyncd.service systemd-network-generator.service network-online.target \
  systemd-tmpfiles-setup.service; do
  ln -s /dev/null $units/$unit
done
printf '%s\n' '[Unit]' 'DefaultDependencies=no' '[Service]' 'ExecStart=/run/vm/busybox sh /run/vm/third.sh' >$units/vm.service
exec /lib/systemd/systemd --unit=vm.service --log-target=kmsg --show-status=no

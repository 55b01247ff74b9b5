#!/bin/busybox sh
# The first process: mounts the host's files read-only below a layer in memory and continues in them.
/bin/busybox --install -s /bin
export PATH=/bin
. /job/settings
give_up() { echo "vm: $*" >/dev/kmsg; echo b >/proc/sysrq-trigger; }

mkdir -p /proc /sys /dev /host /packages /memory /root
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
while read -r module; do insmod "/modules/$module" || give_up "insmod $module failed"; done </modules/order

for share in host packages; do
  mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000,ro,cache=loose $share /$share || give_up "there is no share '$share'"
done
mount -t tmpfs -o mode=755 memory /memory
mkdir /memory/upper /memory/work
# The guest's own packages lie above the host's files.
mount -t overlay -o "lowerdir=/packages:/host,upperdir=/memory/upper,workdir=/memory/work" root /root || give_up 'no overlay'
mkdir -p /root/run
mount -t tmpfs -o mode=755 run /root/run
mkdir -p /root/run/vm
cp -r /job/. /root/run/vm
cp /bin/busybox /root/run/vm/busybox
for place in proc sys dev; do mount -o move "/$place" "/root/$place"; done
exec switch_root /root /run/vm/busybox sh /run/vm/second.sh

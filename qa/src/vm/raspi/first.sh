#!/bin/busybox sh
# The only process of an emulated Raspberry Pi: runs the case and sends its results over the serial line.
/bin/busybox --install -s /bin
export PATH=/bin
mkdir -p /proc /sys /dev /tmp /root
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
for module in $(cat /modules/order); do insmod "/modules/$module"; done
line=/dev/$VM_LINE
stty -F "$line" raw -echo
exec 3>"$line"
# The first bytes on the line may be lost.
echo >&3
echo '{"ready":1}' >&3
HOME=/root LANG=C.UTF-8 node /case.mjs >/tmp/output 2>&1 </dev/null &
wait $!
status=$?
cat /tmp/output >&3
echo "{\"exit\":$status}" >&3
# The host ends QEMU when it reads the exit status.
sleep 600

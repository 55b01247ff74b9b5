# Runs the command of the machine, reports its status, and ends the machine.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
. /run/vm/settings
box=/run/vm/busybox

for port in /sys/class/virtio-ports/*; do
  case $(cat "$port/name") in
    vm.out) out=/dev/${port##*/} ;;
    vm.err) err=/dev/${port##*/} ;;
    vm.report) report=/dev/${port##*/} ;;
  esac
done
exec 3>"$report"

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

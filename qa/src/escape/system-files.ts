/** Attempts on system files: a command cannot plant files that other users run or read, and cannot read secrets. */
import { randomBytes } from 'node:crypto'
import { existsSync, rmSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import type { Rules } from '@sluice/testkit/rules'
import type { InBench } from '@sluice/testkit/sandbox-rules/bench'
import { expect } from 'vitest'

/** Folders whose files other users run or read. */
const PLANTED: Readonly<Record<string, readonly string[]>> = {
  'programs and libraries': ['/usr/bin', '/usr/local/bin', '/usr/sbin', '/usr/lib', '/usr/local/lib', '/lib', '/bin', '/opt'],
  'configuration of the system': ['/etc', '/etc/ld.so.conf.d', '/etc/profile.d', '/etc/sudoers.d', '/etc/pam.d', '/etc/ssl/certs'],
  'scheduled jobs': ['/etc/cron.d', '/etc/cron.hourly', '/var/spool/cron', '/var/spool/cron/crontabs', '/var/spool/at'],
  'services that start automatically': [
    '/etc/systemd/system',
    '/usr/lib/systemd/system',
    '/run/systemd/system',
    '/etc/init.d',
    '/etc/udev/rules.d',
  ],
  'the home folder': [homedir(), join(homedir(), '.config'), join(homedir(), '.ssh'), join(homedir(), '.local/bin')],
  'world-writable folders': ['/tmp', '/var/tmp', '/dev/shm', '/run', '/run/lock', '/var/lock', '/run/user/0'],
  'top-level folders': ['/', '/boot', '/var', '/var/lib', '/var/log', '/srv', '/mnt', '/media', '/root', '/home'],
}

/** Files that are opened for writing without a write: opening one is already a failure. */
const OPENED: Readonly<Record<string, string>> = {
  'settings of the kernel':
    '/proc/sys/kernel/core_pattern /proc/sys/kernel/modprobe /proc/sys/kernel/hostname /proc/sys/vm/drop_caches /proc/sys/net/ipv4/ip_forward /proc/sys/fs/binfmt_misc/register /proc/sys/kernel/hotplug',
  'triggers of the kernel': '/proc/sysrq-trigger /proc/irq/0/smp_affinity /proc/bus/pci/00/00.0 /proc/acpi/wakeup /proc/mtrr',
  'helper programs of the kernel':
    '/sys/kernel/uevent_helper /sys/kernel/mm/transparent_hugepage/enabled /sys/power/state /sys/module/printk/parameters/time',
  'control groups':
    '/sys/fs/cgroup/cgroup.procs /sys/fs/cgroup/release_agent /sys/fs/cgroup/unified/cgroup.procs /sys/fs/cgroup/memory/tasks /sys/fs/cgroup/pids/cgroup.procs /sys/fs/cgroup/memory/release_agent /sys/fs/cgroup/systemd/release_agent /sys/fs/cgroup/devices/devices.allow',
  'memory and ports': '/dev/mem /dev/kmem /dev/port /dev/kmsg /proc/kcore /dev/cpu/0/msr',
  disks: '/dev/vda /dev/sda /dev/nvme0n1 /dev/dm-0 /dev/loop0 /dev/loop-control /dev/mapper/control /dev/zram0',
  'devices that create devices':
    '/dev/fuse /dev/uinput /dev/uhid /dev/net/tun /dev/kvm /dev/vhost-net /dev/vsock /dev/userfaultfd /dev/input/event0',
  tracing: '/sys/kernel/tracing/trace_marker /sys/kernel/debug/tracing/kprobe_events /sys/kernel/tracing/kprobe_events',
  'security modules': '/sys/kernel/security/apparmor/.load /sys/fs/selinux/load /sys/fs/bpf/x',
}

const SECRETS = [
  '/etc/shadow',
  '/etc/gshadow',
  '/etc/sudoers',
  '/etc/ssh/ssh_host_ed25519_key',
  '/etc/ssh/ssh_host_rsa_key',
  '/proc/kcore',
  '/var/log/syslog',
  '/var/lib/dpkg/lock',
]

export const systemFileEscapes = (inBench: InBench): Rules => ({
  ...Object.fromEntries(
    Object.entries(PLANTED).map(([where, folders]) => [
      `system files: nothing is planted in ${where}`,
      inBench(async ({ run, workspace }) => {
        const name = `sluice-escape-${randomBytes(6).toString('hex')}`
        const at = folders.filter((folder) => !workspace.startsWith(`${folder}/`) || folder !== '/').map((folder) => join(folder, name))
        try {
          await run('for each; do : > "$each"; done', { args: at })
          expect(at.filter((path) => existsSync(path))).toEqual([])
        } finally {
          for (const path of at) rmSync(path, { force: true })
        }
      }),
    ]),
  ),
  ...Object.fromEntries(
    Object.entries(OPENED).map(([what, paths]) => [
      `system files: ${what} cannot be written`,
      inBench(async ({ runPerl }) => {
        // Write-only and without creating a missing file.
        const script = String.raw`for my $each (@ARGV) { print "$each\n" if -e $each && sysopen my $file, $each, 1 }`
        expect((await runPerl(script, paths.split(' '))).stdout).toBe('')
      }),
    ]),
  ),
  'system files: files of root are unreadable': inBench(async ({ run }) => {
    const { stdout } = await run('for each; do head -c 1 "$each" 2> /dev/null | grep -q . && echo "$each"; done', { args: SECRETS })
    expect(stdout).toBe('')
  }),
  'system files: nothing in /sys is writable': inBench(async ({ runPerl }) => {
    const script =
      'use File::Find; my $left = 20000; find({ no_chdir => 1, wanted => sub { return if $left-- < 0; print "$_\\n" if -f $_ && !-l $_ && sysopen(my $f, $_, 1) } }, "/sys") if -d "/sys"'
    expect((await runPerl(script, [])).stdout).toBe('')
  }),
  'system files: a created device node is unusable': inBench(async ({ run }) => {
    const { stdout } = await run(
      'mknod zero c 1 5 && head -c 1 zero | wc -c; mknod disk b 254 0 && head -c 1 disk | wc -c; mknod /tmp/zero c 1 5 && head -c 1 /tmp/zero | wc -c',
    )
    expect(stdout).not.toContain('1')
  }),
})

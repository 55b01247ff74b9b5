/** Attempts on the kernel: calls that need privileges are refused, and no call grants privileges. */

import type { Rules } from '@sluice/testkit/rules'
import type { InBench } from '@sluice/testkit/sandbox-rules/bench'
import { expect } from 'vitest'
import { SYSCALLS } from './syscalls.ts'

/** Calls that must be refused for lack of privilege; their arguments make them fail harmlessly for a privileged caller. */
const REFUSED: Readonly<Record<string, string>> = {
  'mounting a file system': "attempt('mount', 'none', '/tmp', 'no-such-file-system', 0, 0)",
  'mounting a folder elsewhere': "attempt('mount', '/no-such-folder', '/tmp', 0, 4096, 0)",
  'making a read-only mount writable': "attempt('mount', 0, '/usr', 0, 4096 | 32, 0)",
  'unmounting a mount that hides files': "mkdir 'unmounted'; attempt('umount2', 'unmounted', 2)",
  'opening a file system by the new mount calls': "attempt('fsopen', 'tmpfs', 0); attempt('open_tree', -100, '/', 1)",
  'changing the root': "attempt('chroot', '/')",
  'exchanging the root': "attempt('pivot_root', '/', '/')",
  'loading a module': "attempt('init_module', 0, 0, ''); attempt('finit_module', -1, '', 0)",
  'loading another kernel': "attempt('kexec_load', 0, 0, 0, -1)",
  'stopping the machine': "attempt('reboot', 1, 2, 3, 0)",
  'enabling swap': "attempt('swapon', '/no-such-file', 0)",
  'changing the host name': "attempt('sethostname', 'x', -1)",
  'switching process accounting': "attempt('acct', '/no-such-file')",
  'reading the kernel log': 'my $log = "\\0" x 4096; attempt(\'syslog\', 3, $log, 4096)',
  'loading a BPF program': "my $given = pack('LLQQLLQ', 1, 1, 0, 0, 0, 0, 0) . \"\\0\" x 80; attempt('bpf', 5, $given, 120)",
  'creating a BPF map': "my $given = pack('LLLL', 2, 4, 4, 1) . \"\\0\" x 100; attempt('bpf', 0, $given, 72)",
  'measuring the whole machine': "my $given = pack('LLQ', 1, 112, 0) . \"\\0\" x 96; attempt('perf_event_open', $given, -1, 0, -1, 0)",
  'watching all file events': "attempt('fanotify_init', 0, 0)",
  'hanging up a terminal': "attempt('vhangup')",
}

/** Namespace kinds. A new namespace gives privileges only inside itself, but creating one is refused all the same. */
const NAMESPACES: Readonly<Record<string, string>> = {
  users: '0x10000000',
  mounts: '0x00020000',
  'the network': '0x40000000',
  processes: '0x20000000',
  'control groups': '0x02000000',
}

export const kernelEscapes = (inBench: InBench): Rules => ({
  ...Object.fromEntries(
    Object.entries(REFUSED).map(([what, script]) => [
      `the kernel: ${what} is refused`,
      inBench(async ({ runPerl }) => {
        expect((await runPerl(`${SYSCALLS}${script}`, [])).stdout).toMatch(/^(?:refused;)+$/)
      }),
    ]),
  ),
  ...Object.fromEntries(
    Object.entries(NAMESPACES).map(([what, flag]) => [
      `the kernel: no new namespace for ${what}`,
      inBench(async ({ runPerl }) => {
        expect((await runPerl(`${SYSCALLS}attempt('unshare', ${flag})`, [])).stdout).not.toContain('done')
      }),
    ]),
  ),
  'the kernel: no new namespace for users by clone': inBench(async ({ run }) => {
    expect((await run('unshare -Ur id 2> /dev/null; unshare -Urm mount -t tmpfs none /tmp && echo mounted')).stdout).toBe('')
  }),
  'the kernel: io_uring is refused': inBench(async ({ runPerl }) => {
    const script = 'my $given = "\\0" x 120; attempt(\'io_uring_setup\', 4, $given)'
    expect((await runPerl(`${SYSCALLS}${script}`, [])).stdout).toBe('refused;')
  }),
  'the kernel: userfaultfd is refused': inBench(async ({ runPerl }) => {
    // Handling page faults of the kernel's own accesses makes races easy; handling only the program's own is harmless.
    expect((await runPerl(`${SYSCALLS}attempt('userfaultfd', 0)`, [])).stdout).toBe('refused;')
  }),
  'the kernel: keys of other users are invisible': inBench(async ({ runPerl }) => {
    const script = `for my $ring (-3, -4, -5) { my $found = "\\0" x 4096; my $size = call('keyctl', 11, $ring, $found, 4096, 0); print 'seen' if $size > 0 }
      open my $keys, '<', '/proc/keys' and do { print 'listed' if grep { !/keyring/ } <$keys> }`
    expect((await runPerl(`${SYSCALLS}${script}`, [])).stdout).toBe('')
  }),
  'the kernel: a command leaves no key behind': inBench(async ({ runPerl }) => {
    const script = `print 'left' if call('add_key', 'user', "sluice-escape-$$", 'x', 1, -4) >= 0`
    expect((await runPerl(`${SYSCALLS}${script}`, [])).stdout).toBe('')
  }),
  'privileges: a command has none and gains none': inBench(async ({ run }) => {
    const { stdout } = await run('cat /proc/self/status')
    for (const set of ['CapInh', 'CapPrm', 'CapEff', 'CapAmb']) expect(stdout).toMatch(new RegExp(`^${set}:\\s+0+$`, 'm'))
    expect(stdout).toMatch(/^NoNewPrivs:\s+1$/m)
  }),
  'privileges: setuid programs grant none': inBench(async ({ run }) => {
    const script = `for each in su sudo mount umount passwd newgrp chsh pkexec; do
      path=$(command -v $each) && [ -u "$path" ] && "$path" --version > /dev/null 2>&1; done
      cp "$(command -v cat)" mine; chmod 6755 mine; ./mine /proc/self/status`
    const { stdout } = await run(script)
    expect(stdout).toMatch(/^CapEff:\s+0+$/m)
    expect(/^Uid:\s+(\d+)\s+(\d+)/m.exec(stdout)?.slice(1)).toSatisfy(([real, effective]: string[]) => real === effective)
  }),
  'privileges: file capabilities grant none': inBench(async ({ run }) => {
    const { stdout } = await run('cp "$(command -v cat)" mine; setcap all+ep mine 2> /dev/null; ./mine /proc/self/status')
    expect(stdout).toMatch(/^CapEff:\s+0+$/m)
  }),
  'privileges: switching to another user fails': inBench(async ({ runPerl }) => {
    const script =
      'my $was = $<; for my $other (1, 1234, 65533) { $< = $other; print "now $<;" if $< != $was; $> = $other; print "acts as $>;" if $> != $was }'
    expect((await runPerl(script, [])).stdout).toBe('')
  }),
})

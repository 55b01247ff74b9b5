/** Attempts on the kernel itself: what needs privileges is refused, and there is no way to get any. */

import type { Rules } from '@sluice/testkit/rules'
import type { InBench } from '@sluice/testkit/sandbox-rules/bench'
import { expect } from 'vitest'
import { SYSCALLS } from './syscalls.ts'

/** Calls that must be refused for lack of privilege; their arguments make them fail without harm for who has it. */
const REFUSED: Readonly<Record<string, string>> = {
  'a file system is mounted': "attempt('mount', 'none', '/tmp', 'no-such-file-system', 0, 0)",
  'a folder is mounted elsewhere': "attempt('mount', '/no-such-folder', '/tmp', 0, 4096, 0)",
  'what is read-only is made writable': "attempt('mount', 0, '/usr', 0, 4096 | 32, 0)",
  'a mount that hides something is lifted': "mkdir 'unmounted'; attempt('umount2', 'unmounted', 2)",
  'a file system is opened by the new calls': "attempt('fsopen', 'tmpfs', 0); attempt('open_tree', -100, '/', 1)",
  'the root is changed': "attempt('chroot', '/')",
  'the root is exchanged': "attempt('pivot_root', '/', '/')",
  'a module is loaded': "attempt('init_module', 0, 0, ''); attempt('finit_module', -1, '', 0)",
  'another kernel is loaded': "attempt('kexec_load', 0, 0, 0, -1)",
  'the machine is stopped': "attempt('reboot', 1, 2, 3, 0)",
  'memory is swapped': "attempt('swapon', '/no-such-file', 0)",
  'the name of the machine is changed': "attempt('sethostname', 'x', -1)",
  'accounting is switched': "attempt('acct', '/no-such-file')",
  'the log of the kernel is read': 'my $log = "\\0" x 4096; attempt(\'syslog\', 3, $log, 4096)',
  'a program is loaded into the kernel': "my $given = pack('LLQQLLQ', 1, 1, 0, 0, 0, 0, 0) . \"\\0\" x 80; attempt('bpf', 5, $given, 120)",
  'a table of the kernel is made': "my $given = pack('LLLL', 2, 4, 4, 1) . \"\\0\" x 100; attempt('bpf', 0, $given, 72)",
  'the whole machine is measured': "my $given = pack('LLQ', 1, 112, 0) . \"\\0\" x 96; attempt('perf_event_open', $given, -1, 0, -1, 0)",
  'file events of the machine are watched': "attempt('fanotify_init', 0, 0)",
  'a terminal is hung up': "attempt('vhangup')",
}

/** Ways to privileges, which are refused too; where one is open it gives a new namespace only, and is closed all the same. */
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
      `the kernel: refused that ${what}`,
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
  'the kernel: queues of requests are not to be had': inBench(async ({ runPerl }) => {
    const script = 'my $given = "\\0" x 120; attempt(\'io_uring_setup\', 4, $given)'
    expect((await runPerl(`${SYSCALLS}${script}`, [])).stdout).toBe('refused;')
  }),
  'the kernel: faults of memory are not handled by hand': inBench(async ({ runPerl }) => {
    // pages of the kernel's own accesses, which make races easy; a mode for the program's own alone is harmless
    expect((await runPerl(`${SYSCALLS}attempt('userfaultfd', 0)`, [])).stdout).toBe('refused;')
  }),
  'the kernel: keys of others are not seen': inBench(async ({ runPerl }) => {
    const script = `for my $ring (-3, -4, -5) { my $found = "\\0" x 4096; my $size = call('keyctl', 11, $ring, $found, 4096, 0); print 'seen' if $size > 0 }
      open my $keys, '<', '/proc/keys' and do { print 'listed' if grep { !/keyring/ } <$keys> }`
    expect((await runPerl(`${SYSCALLS}${script}`, [])).stdout).toBe('')
  }),
  'the kernel: no key is left behind': inBench(async ({ runPerl }) => {
    const script = `print 'left' if call('add_key', 'user', "sluice-escape-$$", 'x', 1, -4) >= 0`
    expect((await runPerl(`${SYSCALLS}${script}`, [])).stdout).toBe('')
  }),
  'privileges: it has none and gets none': inBench(async ({ run }) => {
    const { stdout } = await run('cat /proc/self/status')
    for (const set of ['CapInh', 'CapPrm', 'CapEff', 'CapAmb']) expect(stdout).toMatch(new RegExp(`^${set}:\\s+0+$`, 'm'))
    expect(stdout).toMatch(/^NoNewPrivs:\s+1$/m)
  }),
  'privileges: programs of root give none': inBench(async ({ run }) => {
    const script = `for each in su sudo mount umount passwd newgrp chsh pkexec; do
      path=$(command -v $each) && [ -u "$path" ] && "$path" --version > /dev/null 2>&1; done
      cp "$(command -v cat)" mine; chmod 6755 mine; ./mine /proc/self/status`
    const { stdout } = await run(script)
    expect(stdout).toMatch(/^CapEff:\s+0+$/m)
    expect(/^Uid:\s+(\d+)\s+(\d+)/m.exec(stdout)?.slice(1)).toSatisfy(([real, effective]: string[]) => real === effective)
  }),
  'privileges: abilities in a file give none': inBench(async ({ run }) => {
    const { stdout } = await run('cp "$(command -v cat)" mine; setcap all+ep mine 2> /dev/null; ./mine /proc/self/status')
    expect(stdout).toMatch(/^CapEff:\s+0+$/m)
  }),
  'privileges: another user cannot be taken on': inBench(async ({ runPerl }) => {
    const script =
      'my $was = $<; for my $other (1, 1234, 65533) { $< = $other; print "now $<;" if $< != $was; $> = $other; print "acts as $>;" if $> != $was }'
    expect((await runPerl(script, [])).stdout).toBe('')
  }),
})

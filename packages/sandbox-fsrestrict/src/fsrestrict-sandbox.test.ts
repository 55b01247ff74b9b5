/** Tests with each launcher the replacements of the excluded rules, and the rules of this backend alone. */
import { chmodSync, existsSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { findLaunchers, nodeLauncher } from './launchers.ts'
import { probedFsrestrict } from './testing/probed-fsrestrict.ts'
import { inWorkspace } from './testing/run-inside.ts'

/** A folder below a visible folder of programs, as a data directory may be. */
const HIDDEN = '/usr/local/share'
const SHOW = `open F, '<', "/proc/self/$_" and print <F> for qw(status stat limits)`

const byPerl = await probedFsrestrict({ launchers: async () => (await findLaunchers()).slice(0, 1), hidden: HIDDEN })
const byNode = await probedFsrestrict({ launchers: async () => [await nodeLauncher()], hidden: HIDDEN })
afterAll(() => {
  for (const { folder } of [byPerl, byNode]) rmSync(folder, { recursive: true, force: true })
})

describe.skipIf(!byPerl.available).each([
  ['perl', byPerl],
  ['node', byNode],
])('FsrestrictSandbox with %s', (_, { sandbox, folder, detail }) => {
  test('reports its findings in the probe', () => {
    expect(detail).toMatch(/^Landlock ABI \d+: files.*; seccomp; .*; started by (?:perl|node)$/)
  })

  test('starts a command without privileges and terminal, with two filters and limits', async () => {
    await inWorkspace(sandbox, async ({ run }) => {
      const { stdout } = await run('perl', ['-e', SHOW], { policy: { fileBytesMax: 4096 } })
      for (const set of ['CapInh', 'CapPrm', 'CapEff', 'CapAmb']) expect(stdout).toMatch(new RegExp(`^${set}:\\s+0+$`, 'm'))
      expect(stdout).toMatch(/^NoNewPrivs:\s+1$/m)
      expect(stdout).toMatch(/^Seccomp:\s+2$/m)
      expect(Number(/^Seccomp_filters:\s+(\d+)$/m.exec(stdout)?.[1])).toBeGreaterThanOrEqual(2)
      expect(/^\d+ \(perl\) \S+ \d+ \d+ \d+ (\d+)/m.exec(stdout)?.[1]).toBe('0')
    })
  })

  test('gives no privileges through set-id programs or file capabilities', async () => {
    await inWorkspace(sandbox, async ({ run }) => {
      const attempts = 'chroot "/" and print "chroot"; $> = 12; print "other" if $> == 12'
      expect((await run('sh', ['-c', `cp /usr/bin/perl p; chmod 6755 p 2> /dev/null; ./p -e '${attempts}'`])).stdout).toBe('')
    })
  })

  test('lets a command read the files that programs need', async () => {
    await inWorkspace(sandbox, async ({ run }) => {
      const { code, stdout } = await run('sh', [
        '-c',
        'cat /etc/hosts > /dev/null && ls /usr/bin > /dev/null && head -c 4 /dev/urandom | wc -c',
      ])
      expect([code, stdout.trim()]).toEqual([0, '4'])
    })
  })

  test.skipIf(!existsSync(HIDDEN))('hides a data directory below a folder of programs, but not its siblings', async () => {
    await inWorkspace(sandbox, async ({ run }) => {
      expect((await run('ls', ['/usr/bin', '/usr/share'])).code).toBe(0)
      expect(await run('ls', [HIDDEN])).toMatchObject({ code: 2, stdout: '' })
    })
  })

  test('passes a command only the three standard streams', async () => {
    await inWorkspace(sandbox, async ({ run }) => {
      const { stdout } = await run('perl', ['-e', 'use POSIX (); print join " ", grep { defined POSIX::dup2($_, 900) } 0 .. 800'])
      expect(stdout).toBe('0 1 2')
    })
  })

  test('gives each command a temporary folder and removes it', async () => {
    await inWorkspace(sandbox, async ({ run }) => {
      const { stdout } = await run('sh', ['-c', 'f=$(mktemp) && echo kept > "$f" && cat "$f" && echo "$TMPDIR"'])
      const [kept, temporary = ''] = stdout.trim().split('\n')
      expect(kept).toBe('kept')
      expect(temporary.startsWith(folder)).toBe(true)
      expect(existsSync(temporary)).toBe(false)
      expect(readdirSync(folder)).toEqual([])
    })
  })

  test('reports a program that is missing or not executable', async () => {
    await inWorkspace(sandbox, async ({ run, workspace }) => {
      expect(await run('no-such-program', [])).toEqual({ code: 127, stdout: '', stderr: 'no-such-program: No such file or directory\n' })
      writeFileSync(join(workspace, 'plain'), 'x')
      expect(await run('./plain', [])).toEqual({ code: 126, stdout: '', stderr: './plain: Permission denied\n' })
    })
  })

  test('refuses modes that make an outside file world-writable, set-id or unreadable', async () => {
    const outside = mkdtempSync(join(tmpdir(), 'fsrestrict-outside-'))
    try {
      chmodSync(outside, 0o700)
      await inWorkspace(sandbox, async ({ run }) => {
        for (const mode of ['777', '702', '4755', '000']) await run('chmod', [mode, outside])
        expect(statSync(outside).mode & 0o7777).toBe(0o700)
      })
    } finally {
      rmSync(outside, { recursive: true })
    }
  })

  test.skipIf(!existsSync('/dev/fuse'))('shows only the devices of the policy, and with them /sys and netlink', async () => {
    await inWorkspace(sandbox, async ({ run }) => {
      const look = ['-c', 'exec 3<> /dev/fuse && echo opened; ls /sys/bus > /dev/null && echo listed'] as const
      const netlink = ['-e', 'print socket(my $s, $_, 2, 0) ? "made $_ " : "" for 2, 16'] as const
      expect([(await run('sh', look)).stdout, (await run('perl', netlink)).stdout]).toEqual(['', ''])
      const policy = { devices: ['/dev/fuse', '/dev/no-such-device'] }
      const seen = [(await run('sh', look, { policy })).stdout, (await run('perl', netlink, { policy })).stdout]
      expect(seen).toEqual(['opened\nlisted\n', 'made 16 '])
    })
  })

  test('refuses Unix sockets with a path and packet sockets', async () => {
    await inWorkspace(sandbox, async ({ run }) => {
      const script = `use Socket; print socket(my $s, $_, SOCK_STREAM, 0) ? "made $_ " : '' for AF_UNIX, AF_INET, AF_INET6, 17;
        print "packets" if socketpair(my $a, my $b, AF_UNIX, SOCK_DGRAM, 0); print "pair" if socketpair($a, $b, AF_UNIX, SOCK_STREAM, 0)`
      expect((await run('perl', ['-e', script])).stdout).toBe('pair')
      expect((await run('perl', ['-e', script], { policy: { network: true } })).stdout).toBe('made 2 made 10 pair')
    })
  })

  test('refuses to change the tag of a command', async () => {
    await inWorkspace(sandbox, async ({ run }) => {
      const script =
        'my $l = pack("QQ", 0, 0); print syscall($_->[0], @$_[1 .. $#$_], $l, 0) == -1 ? "refused;" : "done;" for [302, 0, 12], [160, 12], [302, 1, 7]'
      if (process.arch === 'x64') expect((await run('perl', ['-e', script])).stdout).toBe('refused;refused;refused;')
    })
  })
})

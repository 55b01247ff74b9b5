/** Tests with each launcher the replacements of the excluded rules, and the rules of this backend alone. */
import { chmodSync, existsSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { RunBare } from '@sluice/sdk'
import { runBare } from '@sluice/testkit/run-bare'
import { afterAll, describe, expect, test } from 'vitest'
import { findLaunchers, type Launcher, nodeLauncher } from './launchers.ts'
import { machineOf } from './machine.ts'
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

/** A guard that does not work must not count: the status says what a command has met. */
describe.skipIf(!byPerl.available || byPerl.detail.includes('not protected'))('a guard', () => {
  const probeWith = async (from: string, to: string) => {
    const [perl] = await findLaunchers()
    if (!perl?.canGuard || !perl.args.some((arg) => arg.includes(from))) throw new Error('The launcher has changed')
    const launcher: Launcher = { ...perl, args: perl.args.map((arg) => arg.replace(from, to)) }
    const { folder, detail, available } = await probedFsrestrict({ launchers: async () => [launcher] })
    rmSync(folder, { recursive: true, force: true })
    return { available, detail }
  }

  test.each([
    ['changes files outside', 'return 1 unless grep', 'return 1 unless 1 or grep'],
    ['changes no file', 'return 1 unless grep', 'return 1; grep'],
  ])('that %s is not used', async (_, from, to) => {
    expect(await probeWith(from, to)).toMatchObject({
      available: true,
      detail: expect.stringContaining('modes of files outside are not protected'),
    })
  })
})

describe.skipIf(!byPerl.available).each([
  ['perl', byPerl],
  ['node', byNode],
])('FsrestrictSandbox with %s', (_, { sandbox, folder, detail }) => {
  test('reports its findings in the probe', () => {
    expect(detail).toMatch(
      /^Landlock ABI \d+: files.*; seccomp; (?:modes of files outside are not protected; )?.*; started by (?:perl|node)$/,
    )
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

  test('refuses modes that make a file outside world-writable, set-id or unreadable', async () => {
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

/** Makes a call of `Machine.attributes` on a file: by its path and, if the call takes an open file, by that. Prints what became of it. */
const CHANGE = `
  my ($number, $changes, $folder, $path, $value, $file, $fd) = @ARGV;
  my @args = (0) x 6;
  open my $open, '<', $file or die "$file: $!";
  $args[$folder] = $fd ? fileno $open : -100 if $folder ne '-';
  $args[$path] = $file if $path ne '-' && !$fd;
  if ($changes eq 'mode') { $args[$value] = 0640 }
  elsif ($changes eq 'owner') { @args[$value, $value + 1] = ($< + 0, $( + 0) }
  else { $args[$value] = $changes eq 'seconds' ? pack 'q2', 7, 7 : pack 'q4', 7, 0, 7, 0 }
  print syscall($number + 0, @args) == -1 ? "refused" : "done"`

describe.skipIf(!byPerl.available)('the guard of attributes', () => {
  const { sandbox } = byPerl
  const calls = (machineOf(process.arch)?.attributes ?? []).flatMap((call) => [
    ...(call.path === undefined ? [] : [{ ...call, by: 'its path' }]),
    ...(call.folder === undefined || call.number === 452 ? [] : [{ ...call, by: 'an open file' }]),
  ])

  test.each(calls)('makes call $number, by $by, only for a file in the workspace', async (call) => {
    const { number, changes, folder = '-', path = '-', value, by } = call
    const outside = mkdtempSync(join(tmpdir(), 'fsrestrict-outside-'))
    try {
      await inWorkspace(sandbox, async ({ run, workspace }) => {
        const change = async (file: string) => {
          writeFileSync(file, 'x', { mode: 0o600 })
          const before = statSync(file)
          const isFd = by === 'its path' ? '' : '1'
          const args = [number, changes, folder, path, value, file, isFd].map(String)
          const { stdout, stderr } = await run('perl', ['-e', CHANGE, ...args], { policy: { readable: [outside] } })
          const after = statSync(file)
          return { said: stdout + stderr, isChanged: after.ctimeMs !== before.ctimeMs, mode: after.mode & 0o777, mtimeMs: after.mtimeMs }
        }
        expect(await change(join(outside, 'file'))).toMatchObject({ said: 'refused', isChanged: false })
        expect(await change(join(workspace, 'file'))).toMatchObject({
          said: 'done',
          ...(changes === 'mode' && { mode: 0o640 }),
          ...(/seconds/.test(changes) && { mtimeMs: 7000 }),
        })
      })
    } finally {
      rmSync(outside, { recursive: true })
    }
  })

  test('lets ordinary programs keep modes and times', async () => {
    const script = `
      mkdir -p from/sub; echo x > from/sub/file; printf '#!/bin/sh\\necho ran' > from/run; chmod +x from/run; chmod 750 from/sub
      touch -d @9 from/run from/sub/file from/sub
      cp -a from copied; mkdir out; tar cf - from | tar xpf - -C out; mv out/from moved; install -m 700 from/run installed
      for folder in from copied moved; do stat -c '%a %Y' $folder/run $folder/sub $folder/sub/file; done; ./installed; ./copied/run`
    await inWorkspace(sandbox, async ({ run }) => {
      const kept = '755 9\n750 9\n644 9\n'
      const { stdout, stderr } = await run('sh', ['-c', `umask 022; ${script}`])
      expect({ stdout, stderr }).toEqual({ stdout: `${kept.repeat(3)}ran\nran\n`, stderr: '' })
    })
  })

  test.skipIf(!existsSync('/usr/bin/git'))('lets git commit and clone', async () => {
    const git = 'git -c user.name=n -c user.email=e@example.com -c init.defaultBranch=main'
    const script = `${git} init -q a; cd a; echo x > run; chmod +x run; ${git} add run; ${git} commit -qm m; ${git} clone -q . ../b; ls ../b; test -x ../b/run && echo executable`
    await inWorkspace(sandbox, async ({ run }) => {
      expect(await run('sh', ['-c', script])).toEqual({ code: 0, stdout: 'run\nexecutable\n', stderr: '' })
    })
  })

  test.skipIf(!existsSync('/usr/bin/python3'))('lets Python copy trees', async () => {
    const script = `import os, shutil
os.mkdir("a"); open("a/f", "w").close(); os.chmod("a/f", 0o700); os.utime("a/f", (5, 5))
shutil.copytree("a", "b"); print(oct(os.stat("b/f").st_mode), os.stat("b/f").st_mtime)`
    await inWorkspace(sandbox, async ({ run }) => {
      expect(await run('/usr/bin/python3', ['-c', script])).toEqual({ code: 0, stdout: '0o100700 5.0\n', stderr: '' })
    })
  })

  test('ends as the command ends, which gets the signals of the group', async () => {
    await inWorkspace(sandbox, async ({ run }) => {
      expect((await run('sh', ['-c', 'exit 3'])).code).toBe(3)
      expect((await run('sh', ['-c', 'kill -KILL $$'])).code).toBe(null)
      expect((await run('sh', ['-c', 'kill -TERM $$'])).code).toBe(null)
      expect((await run('sh', ['-c', 'trap "exit 9" TERM; kill -TERM 0; sleep 5'])).code).toBe(9)
    })
  })

  test('is not used where a command does not start with it, and the probe says so', async () => {
    let refused = 0
    const run: RunBare = (command, signal) => {
      const isGuarded = command.args[4] !== '' && command.args[0] === '-f'
      if (!isGuarded) return runBare(command, signal)
      refused++
      return Promise.resolve({ exitCode: 125, stdout: '', stderr: 'the sandbox fails: listen: Device or resource busy' })
    }
    const probed = await probedFsrestrict({ run })
    try {
      expect(refused).toBe(1)
      expect(probed).toMatchObject({ available: true, detail: expect.stringContaining('modes of files outside are not protected') })
      await inWorkspace(probed.sandbox, async ({ run: inside, workspace }) => {
        writeFileSync(join(workspace, 'file'), 'x', { mode: 0o600 })
        const script = 'chmod +x file; touch -d @9 file; mkdir d; touch -d @9 d && stat -c %a file'
        expect(await inside('sh', ['-c', `umask 022; ${script}`])).toEqual({ code: 0, stdout: '711\n', stderr: '' })
        expect(statSync(join(workspace, 'd')).mtimeMs).not.toBe(9000)
        expect(statSync(join(workspace, 'file')).mtimeMs).toBe(9000)
      })
    } finally {
      rmSync(probed.folder, { recursive: true, force: true })
    }
  })
})

import { execFileSync } from 'node:child_process'
import type { Sandbox } from '@sluice/sdk'
import { describe, expect, test } from 'vitest'
import { brokenRules } from './rules.ts'
import { sandboxConformance, sandboxRules } from './sandbox.ts'

/** A sandbox that confines nothing. */
const open: Sandbox = {
  name: 'open',
  strength: 1,
  probe: async () => ({ available: true, detail: 'confines nothing' }),
  wrap: (command) => command,
}

/** A working sandbox of namespaces and remounts for root on Linux. It shows that the rules can be kept. */
const INSIDE = `
set -e
mount --make-rprivate /
mount --bind "$1" /mnt
for hidden in /tmp "$2"; do mount -t tmpfs none "$hidden"; done
mkdir -p "$1"
mount --move /mnt "$1"
mount -t proc none /proc
for folder in / "$2"; do mount -o remount,bind,ro "$folder"; done
[ "$3" = 1 ] || mount -o remount,bind,ro "$1"
cd "$4"
limits=$5
shift 5
exec prlimit $limits setpriv --no-new-privs --bounding-set=-all --inh-caps=-all "$@"`

const confining: Sandbox = {
  ...open,
  name: 'confining',
  wrap({ file, args, cwd, env }, { writable, network, memoryBytesMax, fileBytesMax }) {
    const spaces = ['--mount', '--pid', '--ipc', '--fork', '--kill-child', ...(network ? [] : ['--net'])]
    const limits = [memoryBytesMax ? `--as=${memoryBytesMax}` : '', fileBytesMax ? `--fsize=${fileBytesMax}` : ''].join(' ')
    const inside = ['sh', '-c', INSIDE, 'sh', cwd, process.env.HOME ?? '/root', writable.length > 0 ? '1' : '0', cwd, limits, file, ...args]
    return { file: 'unshare', args: [...spaces, ...inside], cwd: '/', env }
  },
}

const works = (() => {
  try {
    const { file, args, env } = confining.wrap(
      { file: 'true', args: [], cwd: '/tmp', env: process.env as Record<string, string> },
      { writable: ['/tmp'], network: false },
    ) as never
    execFileSync(file, args, { env, stdio: 'ignore' })
    return true
  } catch {
    return false
  }
})()

describe.skipIf(!works)('a sandbox that confines keeps the rules', () => {
  sandboxConformance({
    name: 'confining',
    create: () => confining,
    except: [
      { rule: 'the number of processes is bounded', why: 'the limit of prlimit does not count for root' },
      { rule: 'a command reads the readable folders of its policy and cannot change them', why: 'it has no readable folders' },
    ],
  })
})

const ESCAPES = [
  'killing a command also ends processes that left its group',
  'a command cannot change files outside its folder',
  'a command without a writable folder changes nothing',
  'a command reads the readable folders of its policy and cannot change them',
  'a command cannot read private files',
  'the network is unreachable where the policy forbids it',
  'sockets of other programs are out of reach',
  'other processes cannot be signalled',
  "other processes' environment cannot be read",
  'a command has no privileges and cannot gain any',
  'the number of processes is bounded',
  'memory is bounded',
  'the size of a file is bounded',
]

test('without confinement every escape succeeds and no other rule breaks', { timeout: 60_000 }, async () => {
  expect(await brokenRules(sandboxRules({ name: 'open', create: () => open }))).toEqual(ESCAPES)
})

test.each<[rule: string, change: Partial<Sandbox>]>([
  ['the probe passes here and reports what it found', { probe: async () => ({ available: false, detail: 'no' }) }],
  [
    'output and exit code come through',
    { wrap: (command) => ({ ...command, file: 'sh', args: ['-c', '"$@"; exit 0', 'sh', command.file, ...command.args] }) },
  ],
  [
    'arguments arrive unchanged, with any characters',
    { wrap: (command) => ({ ...command, file: 'sh', args: ['-c', 'exec "$0" $*', command.file, ...command.args] }) },
  ],
  ['a command gets the given environment and no other', { wrap: (command) => ({ ...command, env: { PATH: command.env.PATH ?? '' } }) }],
  [
    'a command gets the given environment and no other',
    { wrap: (command) => ({ ...command, env: { ...(process.env as Record<string, string>), ...command.env } }) },
  ],
  ['a command starts in its folder', { wrap: (command) => ({ ...command, cwd: '/' }) }],
  [
    'standard input arrives, including its end',
    { wrap: (command) => ({ ...command, file: 'sh', args: ['-c', 'exec "$@" < /dev/null', 'sh', command.file, ...command.args] }) },
  ],
])('a broken sandbox breaks its rule: %s', async (rule, change) => {
  const rules = sandboxRules({ name: 'broken', create: () => ({ ...open, ...change }) })
  expect(await brokenRules({ [rule]: rules[rule] ?? (() => {}) })).toEqual([rule])
})

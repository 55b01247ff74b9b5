import { execFileSync } from 'node:child_process'
import type { Sandbox } from '@sluice/sdk'
import { describe, expect, test } from 'vitest'
import { brokenRules } from './rules.ts'
import { sandboxConformance, sandboxRules } from './sandbox.ts'

/** Runs commands as they are. */
const open: Sandbox = {
  name: 'open',
  strength: 1,
  probe: async () => ({ available: true, detail: 'confines nothing' }),
  wrap: (command) => command,
}

/** A real one, of namespaces and remounts, for root on Linux: enough to show that the rules can be kept. */
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
    except: [{ rule: 'the number of processes is bounded', why: 'the limit of prlimit does not count for root' }],
  })
})

const ESCAPES = [
  'so is what had left its process group',
  'it changes nothing outside',
  'it changes nothing without a folder to write in',
  'it does not see what is private',
  'the network is not there where it is not',
  'sockets of other programs are out of reach',
  'other processes cannot be signalled',
  "other processes' environment cannot be read",
  'there are no privileges, and none to be had',
  'the number of processes is bounded',
  'memory is bounded',
  'the size of a file is bounded',
]

test('without confinement every escape succeeds, and nothing else breaks', { timeout: 60_000 }, async () => {
  expect(await brokenRules(sandboxRules({ name: 'open', create: () => open }))).toEqual(ESCAPES)
})

test.each<[rule: string, change: Partial<Sandbox>]>([
  ['the probe passes here and says what it found', { probe: async () => ({ available: false, detail: 'no' }) }],
  [
    'output and exit code come through',
    { wrap: (command) => ({ ...command, file: 'sh', args: ['-c', '"$@"; exit 0', 'sh', command.file, ...command.args] }) },
  ],
  [
    'arguments arrive unchanged, whatever is in them',
    { wrap: (command) => ({ ...command, file: 'sh', args: ['-c', 'exec "$0" $*', command.file, ...command.args] }) },
  ],
  ['the environment is the given one', { wrap: (command) => ({ ...command, env: { PATH: command.env.PATH ?? '' } }) }],
  [
    'the environment is the given one',
    { wrap: (command) => ({ ...command, env: { ...(process.env as Record<string, string>), ...command.env } }) },
  ],
  ['a command starts in its folder', { wrap: (command) => ({ ...command, cwd: '/' }) }],
  [
    'input arrives, and so does its end',
    { wrap: (command) => ({ ...command, file: 'sh', args: ['-c', 'exec "$@" < /dev/null', 'sh', command.file, ...command.args] }) },
  ],
])('a broken sandbox breaks its rule: %s', async (rule, change) => {
  const rules = sandboxRules({ name: 'broken', create: () => ({ ...open, ...change }) })
  expect(await brokenRules({ [rule]: rules[rule] ?? (() => {}) })).toEqual([rule])
})

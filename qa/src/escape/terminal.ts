/** Attempts on terminals: a command can neither type into one nor write to one. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Rules } from '@sluice/testkit/rules'
import { CANARY, type InBench } from '@sluice/testkit/sandbox-rules/bench'
import { expect } from 'vitest'

/** Uses TIOCSTI, which puts characters into the input of a terminal. */
const INJECT = `
for my $at (@ARGV) { open my $t, '+<', $at or next; for my $c (split //, 'canary-that-stays-where-it-is') { my $b = $c; print "typed" if ioctl $t, 0x5412, $b } }`
const ACQUIRE = `use POSIX 'setsid'; if (fork == 0) { setsid; for my $at (@ARGV) { open my $t, '+<', $at or next; print 'taken' if ioctl $t, 0x540E, 0 } exit } wait`

/** Opens a terminal of another process; resolves to everything it showed by the end of `use`. */
async function onTerminal(use: (path: string) => Promise<unknown>): Promise<string> {
  // Its shell prints the terminal's path and echoes what is typed.
  const child: ChildProcess = spawn('script', ['-qfc', 'tty; sleep 20', '/dev/null'], { stdio: ['ignore', 'pipe', 'ignore'] })
  let seen = ''
  child.stdout?.on('data', (chunk: Buffer) => {
    seen += chunk
  })
  while (!seen.includes('\n')) await once(child.stdout ?? child, 'data')
  try {
    await use(/\/dev\/pts\/\d+/.exec(seen)?.[0] ?? '')
    await new Promise((resolve) => setTimeout(resolve, 30))
    return seen
  } finally {
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
  }
}

export const terminalEscapes = (inBench: InBench): Rules => ({
  'terminals: a command has no controlling terminal': inBench(async ({ run }) => {
    expect((await run('(: < /dev/tty) 2> /dev/null && echo there; tty -s && echo there; cut -d" " -f7 /proc/self/stat')).stdout).toBe('0\n')
  }),
  'terminals: a command cannot write to another terminal': inBench(async ({ run }) => {
    expect(
      await onTerminal((path) => run(`echo ${CANARY} > "$1"; for t in /dev/pts/[0-9]*; do echo ${CANARY} > "$t"; done`, { args: [path] })),
    ).not.toContain(CANARY)
  }),
  'terminals: a command cannot type into another terminal': inBench(async ({ runPerl }) => {
    let typed = ''
    const seen = await onTerminal(async (path) => {
      typed = (await runPerl(INJECT, [path, '/dev/tty', '/dev/console', '/dev/tty0', '/dev/tty1', '/proc/self/fd/0'])).stdout
    })
    expect([typed, seen.includes(CANARY)]).toEqual(['', false])
  }),
  'terminals: a command cannot take over another terminal': inBench(async ({ runPerl }) => {
    let taken = ''
    await onTerminal(async (path) => {
      taken = (await runPerl(ACQUIRE, [path, '/dev/console', '/dev/tty1'])).stdout
    })
    expect(taken).toBe('')
  }),
})

/** `sluice chat` at a real terminal, which the program `script` of util-linux makes. */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { bundle, environment, eventually, type RunningDaemon, run, scratch, startDaemon } from '../daemons/bundle.ts'

const TEST_MS_MAX = 120_000
const CTRL_C = '\u0003'
const CTRL_D = '\u0004'
const CONFIG = '[log]\nlevel = "error"\n[security.policy]\nalways_ask = ["file_list"]\n'

const cleanups: (() => unknown)[] = []
let dir: string
let daemon: RunningDaemon

beforeEach(async () => {
  const made = scratch(CONFIG)
  cleanups.push(made.dispose)
  dir = made.dir
  daemon = await startDaemon('full', dir)
  cleanups.push(() => daemon.kill('SIGKILL'))
}, TEST_MS_MAX)
afterEach(() => {
  for (const clean of cleanups.splice(0).reverse()) clean()
})

/** Starts the chat at a terminal. `shows` resolves once the screen has the text after its earlier content. */
function chat(...args: string[]) {
  const words = [process.execPath, bundle('full'), 'chat', '--data-dir', dir, ...args]
  const command = words.map((word) => `'${word}'`).join(' ')
  const child: ChildProcess = spawn('script', ['-qfec', command, '/dev/null'], { env: environment({ TERM: 'xterm' }) })
  cleanups.push(() => child.kill('SIGKILL'))
  let screen = ''
  let seen = 0
  child.stdout?.setEncoding('utf8').on('data', (text: string) => (screen += text))
  const exited = new Promise<number | null>((resolve) => child.on('close', resolve))
  const shows = async (text: string): Promise<void> => {
    await eventually(
      async () => screen.indexOf(text, seen),
      (place) => place >= 0,
    ).catch(() => expect(screen.slice(seen)).toContain(text))
    seen = screen.indexOf(text, seen) + text.length
  }
  return { shows, exited, type: (text: string) => void child.stdin?.write(text) }
}

describe('sluice chat', () => {
  test('streams answers, asks about tool calls, and goes on with a conversation', { timeout: TEST_MS_MAX }, async () => {
    const first = chat('--session', 'trip')
    await first.shows('a new conversation')
    await first.shows('> ')
    first.type('hello there\r')
    await first.shows('hello there')
    await first.shows(' tokens')
    first.type('/tool file_list {"path":"."}\r')
    await first.shows('The agent wants to run file_list')
    await first.shows('Allow it once?')
    first.type('n\r')
    await first.shows(' tokens')
    first.type('/tool file_list {"path":"."}\r')
    await first.shows('Allow it once?')
    first.type('y\r')
    await first.shows(' tokens')
    await first.shows('> ')
    first.type(CTRL_D)
    await first.shows('chat --session trip')
    expect(await first.exited).toBe(0)
    const approvals = JSON.parse((await run('full', ['approvals', 'list', '--json', '--data-dir', dir])).stdout)
    expect(approvals.map(({ state }: { state: string }) => state)).toEqual(['approved', 'rejected'])

    const second = chat('--session', 'trip')
    await second.shows('hello there')
    // Before the prompt, the terminal is not read, and may take the key as the end of a line. Earlier messages begin like the prompt.
    await second.shows('\u001b[0J> ')
    second.type(CTRL_D)
    expect(await second.exited).toBe(0)
  })

  test('Ctrl-C stops the turn, and Ctrl-D leaves it running with its question', { timeout: TEST_MS_MAX }, async () => {
    mkdirSync(join(dir, 'workspace'), { recursive: true })
    writeFileSync(join(dir, 'workspace', 'one.txt'), '1')
    const states = async (): Promise<string[]> => {
      const { stdout } = await run('full', ['approvals', 'list', '--json', '--data-dir', dir])
      return JSON.parse(stdout).map(({ state }: { state: string }) => state)
    }
    const terminal = chat('--session', 'stays')
    await terminal.shows('> ')
    terminal.type('/tool file_list {"path":"."}\r')
    await terminal.shows('Allow it once?')
    terminal.type(CTRL_C)
    await terminal.shows('stopped')
    expect(await states()).toEqual(['cancelled'])
    await terminal.shows('> ')
    terminal.type('/tool file_list {"path":"."}\r')
    await terminal.shows('Allow it once?')
    terminal.type(CTRL_D)
    expect(await terminal.exited).toBe(0)
    const [open] = JSON.parse((await run('full', ['approvals', 'list', '--state', 'pending', '--json', '--data-dir', dir])).stdout)
    expect((await run('full', ['approvals', 'approve', open.run_id, open.step_id, '--data-dir', dir])).code).toBe(0)
    const messages = async () => (await run('full', ['sessions', 'show', 'local/stays', '--data-dir', dir])).stdout
    expect(await eventually(messages, (text) => text.includes('one.txt'))).toContain('one.txt')
  })
})

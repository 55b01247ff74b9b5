import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '@sluice/kit'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { commandsFolder, endLeftCommands, noteCommands } from './left-commands.ts'
import { runProcess } from './run-process.ts'

let dataDir = ''
const started: ChildProcess[] = []
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'left-'))
})
afterEach(() => {
  for (const { pid } of started.splice(0)) {
    try {
      if (pid !== undefined) process.kill(-pid, 'SIGKILL')
    } catch {
      // It has ended already.
    }
  }
  rmSync(dataDir, { recursive: true, force: true })
})

/** Starts a command in a group of its own, as `runProcess` does. Resolves to its id once it has printed a line. `goOn` ends its input. */
async function begin(script: string): Promise<{ readonly pid: number; readonly ended: Promise<unknown>; goOn(): void }> {
  const child = spawn('sh', ['-c', script], { detached: true, stdio: ['pipe', 'pipe', 'ignore'] })
  started.push(child)
  const ended = once(child, 'exit')
  await once(child.stdout, 'data')
  return { pid: child.pid ?? expect.fail('not started'), ended, goOn: () => child.stdin.end() }
}

/** Whether a process of the group runs. One that has ended may stay in the group, because nobody waits for it. */
const isGroupAlive = (pid: number): boolean =>
  readdirSync('/proc').some((name) => {
    try {
      const stat = readFileSync(`/proc/${Number(name)}/stat`, 'latin1')
      const [state, , group] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
      return Number(group) === pid && state !== 'Z' && state !== 'X'
    } catch {
      return false
    }
  })
const endLeft = () => endLeftCommands(commandsFolder(dataDir), systemClock)
const note = (pid: number) => noteCommands(commandsFolder(dataDir))(pid)

describe.skipIf(!existsSync('/proc/self/stat'))('commands that a killed daemon has left', () => {
  test('are ended with their children, once', async () => {
    const { pid, ended } = await begin('sleep 600 & echo ready; wait')
    note(pid)
    expect(await endLeft()).toBe(1)
    await ended
    expect(isGroupAlive(pid)).toBe(false)
    expect(readdirSync(commandsFolder(dataDir))).toEqual([])
    expect(await endLeft()).toBe(0)
  })

  test('are ended when only their children are left', async () => {
    const { pid, ended, goOn } = await begin('sleep 600 >/dev/null & echo ready; read line')
    note(pid)
    goOn()
    await ended
    expect(isGroupAlive(pid)).toBe(true)
    expect(await endLeft()).toBe(1)
    expect(isGroupAlive(pid)).toBe(false)
  })

  test('are left alone when the note is of another process with the same id, or of another start of the system', async () => {
    const { pid } = await begin('echo ready; exec sleep 600')
    note(pid)
    const file = join(commandsFolder(dataDir), String(pid))
    const [start, boot] = readFileSync(file, 'latin1').split(' ')
    for (const text of [`${Number(start) - 1} ${boot}`, `${start} another`, '', 'x']) {
      writeFileSync(file, text)
      expect(await endLeft(), text).toBe(0)
      expect(existsSync(file)).toBe(false)
      expect(isGroupAlive(pid)).toBe(true)
    }
  })

  test('are noted while they run, and no longer', async () => {
    const stopping = new AbortController()
    const request = {
      ...{ file: 'sh', args: ['-c', 'exec cat'], cwd: dataDir, env: { PATH: process.env.PATH ?? '' } },
      ...{ policy: { writable: [], network: false }, timeoutMs: 60_000, outputBytesMax: 1000, signal: stopping.signal },
      // Its input stays open.
      onStart: () => undefined,
    }
    let during: readonly string[] = []
    const noted = noteCommands(commandsFolder(dataDir))
    const { signal } = await runProcess(request, request, systemClock, (pid) => {
      const remove = noted(pid)
      during = readdirSync(commandsFolder(dataDir))
      stopping.abort()
      return remove
    })
    expect([signal, during.length, readdirSync(commandsFolder(dataDir))]).toEqual(['SIGTERM', 1, []])
  })
})

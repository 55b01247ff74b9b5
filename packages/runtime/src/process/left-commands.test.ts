import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '@sluice/kit'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { commandsFolder, endLeftCommands, type NoteCommand, noteCommands } from './left-commands.ts'
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
async function begin(script: string, env = {}): Promise<{ readonly pid: number; readonly ended: Promise<unknown>; goOn(): void }> {
  const child = spawn('sh', ['-c', script], { detached: true, stdio: ['pipe', 'pipe', 'ignore'], env: { ...process.env, ...env } })
  started.push(child)
  const ended = once(child, 'exit')
  await once(child.stdout, 'data')
  return { pid: child.pid ?? expect.fail('not started'), ended, goOn: () => child.stdin.end() }
}

/** Whether a process of the group runs. One that has ended may stay in the group, because its parent does not wait for it. */
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
const newNote = () => noteCommands(commandsFolder(dataDir))()
/** A command that leaves a child in its group when its input ends. */
const LEAVES_CHILD = 'sleep 600 >/dev/null & echo ready; read line'
const NONE = { ended: [], unproven: [] }

describe.skipIf(!existsSync('/proc/self/stat'))('commands that a killed daemon has left', () => {
  test('are ended with their children, once', async () => {
    const { pid, ended } = await begin('sleep 600 & echo ready; wait')
    newNote().started(pid)
    expect(await endLeft()).toEqual({ ended: [pid], unproven: [] })
    await ended
    expect(isGroupAlive(pid)).toBe(false)
    expect(readdirSync(commandsFolder(dataDir))).toEqual([])
    expect(await endLeft()).toEqual(NONE)
  })

  test('are ended when only their children are left', async () => {
    const { env, started: noteStarted } = newNote()
    const { pid, ended, goOn } = await begin(LEAVES_CHILD, env)
    noteStarted(pid)
    goOn()
    await ended
    expect(isGroupAlive(pid)).toBe(true)
    expect(await endLeft()).toEqual({ ended: [pid], unproven: [] })
    expect(isGroupAlive(pid)).toBe(false)
  })

  test('are not taken for the group of another program that has their id and no leader', async () => {
    const { pid, ended, goOn } = await begin(LEAVES_CHILD, newNote().env)
    newNote().started(pid)
    const file = join(commandsFolder(dataDir), String(pid))
    const [start, boot, mark] = readFileSync(file, 'latin1').split(' ')
    goOn()
    await ended
    for (const text of [`${start} ${boot} ${mark}`, `${Number(start) - 1} ${boot} ${mark}`, `${start} ${boot}`]) {
      writeFileSync(file, text)
      expect(await endLeft(), text).toEqual({ ended: [], unproven: [pid] })
      expect(existsSync(file)).toBe(false)
      expect(isGroupAlive(pid)).toBe(true)
    }
  })

  test('are left alone when the note is of another process with the same id, or of another start of the system', async () => {
    const { pid } = await begin('echo ready; exec sleep 600')
    newNote().started(pid)
    const file = join(commandsFolder(dataDir), String(pid))
    const [start, boot] = readFileSync(file, 'latin1').split(' ')
    for (const text of [`${Number(start) - 1} ${boot}`, `${start} another`, '', 'x']) {
      writeFileSync(file, text)
      expect(await endLeft(), text).toEqual(NONE)
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
    const note: NoteCommand = () => {
      const { env, started: noteStarted } = newNote()
      const noted = (pid: number) => {
        const remove = noteStarted(pid)
        during = readdirSync(commandsFolder(dataDir))
        stopping.abort()
        return remove
      }
      return { env, started: noted }
    }
    const { signal } = await runProcess(request, request, systemClock, note)
    expect([signal, during.length, readdirSync(commandsFolder(dataDir))]).toEqual(['SIGTERM', 1, []])
  })
  test('have the mark of their note in their environment', async () => {
    const request = {
      ...{ file: 'sh', args: ['-c', 'read line; cat "$FOLDER/$$"; echo " $SLUICE_COMMAND"'], cwd: dataDir },
      ...{ env: { PATH: process.env.PATH ?? '', FOLDER: commandsFolder(dataDir) }, input: '' },
      ...{ policy: { writable: [], network: false }, timeoutMs: 60_000, outputBytesMax: 1000, signal: new AbortController().signal },
    }
    const { stdout } = await runProcess(request, request, systemClock, newNote)
    const [, , inNote, inEnvironment] = stdout.trim().split(' ')
    expect(inEnvironment).toMatch(/^[0-9a-f-]{36}$/)
    expect(inNote).toBe(inEnvironment)
  })
})

/**
 * Ends commands that a killed daemon has left running. Each running command has a note in the data directory: a file whose name is the id of
 * its process group. Only where the system has `/proc`, which tells whether a process is the one that was started.
 */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '@sluice/sdk'
import { stopGroup } from './process-group.ts'

/** The folder of the notes in the data directory. */
export const commandsFolder = (dataDir: string): string => join(dataDir, 'commands')

const BOOT = '/proc/sys/kernel/random/boot_id'

/** Notes a started process. Returns a function that removes the note once its group has ended. */
export type NoteStarted = (pid: number) => () => void

/** The values of `/proc/<pid>/stat`: parent, group and session are ids of processes, and the start is in ticks since the start of the system. */
interface Process {
  /** False for a process that has ended and that its parent has not waited for. */
  readonly isRunning: boolean
  readonly group: number
  readonly session: number
  readonly start: string
}

function processIn(stat: string): Process | undefined {
  // The name of the program, in brackets, may contain anything.
  const values = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const [state, , group, session] = values
  const start = values[19]
  if (start === undefined) return undefined
  return { isRunning: state !== 'Z' && state !== 'X', group: Number(group), session: Number(session), start }
}

/** Returns a note of a process; undefined where the system does not tell when it has started. */
function noteOf(pid: number): string | undefined {
  try {
    const start = processIn(readFileSync(`/proc/${pid}/stat`, 'latin1'))?.start
    return start === undefined ? undefined : `${start} ${readFileSync(BOOT, 'latin1').trim()}`
  } catch {
    return undefined
  }
}

/** A command whose note cannot be written runs all the same. */
export function noteCommands(folder: string): NoteStarted {
  return (pid) => {
    const file = join(folder, String(pid))
    const note = noteOf(pid)
    if (note === undefined) return () => undefined
    try {
      mkdirSync(folder, { recursive: true, mode: 0o700 })
      writeFileSync(file, note, { mode: 0o600 })
    } catch {
      return () => undefined
    }
    return () => rmSync(file, { force: true })
  }
}

/**
 * Ends the noted groups that still run, and removes the notes. Call it before the first command, while no other daemon uses the data
 * directory. Resolves to the number of ended groups.
 */
export async function endLeftCommands(folder: string, clock: Clock): Promise<number> {
  const names = (await readdir(folder).catch(() => [])).filter((name) => /^[1-9]\d{0,9}$/.test(name))
  if (names.length === 0) return 0
  const running = await runningProcesses()
  const boot = (await readFile(BOOT, 'latin1').catch(() => '')).trim()
  const ended = await Promise.all(
    names.map(async (name) => {
      const pid = Number(name)
      const [start, notedBoot] = (await readFile(join(folder, name), 'latin1').catch(() => '')).split(' ')
      const leader = running.get(pid)
      // The kernel gives the id of a group to no other process while the group has a member, also after its leader has ended.
      const isLeft = leader ? leader.start === start : [...running.values()].some(({ group, session }) => group === pid && session === pid)
      const isOurs = boot !== '' && notedBoot === boot && isLeft
      if (isOurs) await stopGroup(pid, clock)
      await rm(join(folder, name), { force: true })
      return isOurs
    }),
  )
  return ended.filter(Boolean).length
}

async function runningProcesses(): Promise<ReadonlyMap<number, Process>> {
  const ids = (await readdir('/proc').catch(() => [])).filter((name) => /^\d+$/.test(name))
  const stats = await Promise.all(ids.map((id) => readFile(`/proc/${id}/stat`, 'latin1').catch(() => '')))
  return new Map(
    stats.flatMap((stat, at) => {
      const found = processIn(stat)
      return found?.isRunning ? [[Number(ids[at]), found] as const] : []
    }),
  )
}

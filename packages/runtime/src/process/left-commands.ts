/**
 * Ends commands that a killed daemon has left running. Each running command has a note in the data directory: a file whose name is the id of
 * its process group. Only where the system has `/proc`, which tells whether a process is the one that was started, or has the random mark of
 * the command in its environment.
 */
import { randomUUID } from 'node:crypto'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '@sluice/sdk'
import { stopGroup } from './process-group.ts'

/** The folder of the notes in the data directory. */
export const commandsFolder = (dataDir: string): string => join(dataDir, 'commands')

const BOOT = '/proc/sys/kernel/random/boot_id'

/** Has the mark of a command, which its children inherit. */
const VARIABLE = 'SLUICE_COMMAND'

/** The note of one command that has not started yet. */
export interface CommandNote {
  /** Belongs into the environment of the command. */
  readonly env: Readonly<Record<string, string>>
  /** Writes the note of the started process. Returns a function that removes it once the group has ended. */
  started(pid: number): () => void
}

/** Makes the note of the next command. */
export type NoteCommand = () => CommandNote

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
export function noteCommands(folder: string): NoteCommand {
  return () => {
    const mark = randomUUID()
    const started = (pid: number) => {
      const file = join(folder, String(pid))
      const note = noteOf(pid)
      if (note === undefined) return () => undefined
      try {
        mkdirSync(folder, { recursive: true, mode: 0o700 })
        writeFileSync(file, `${note} ${mark}`, { mode: 0o600 })
      } catch {
        return () => undefined
      }
      return () => rmSync(file, { force: true })
    }
    return { env: { [VARIABLE]: mark }, started }
  }
}

/** The ids of noted groups that ran. */
export interface LeftCommands {
  readonly ended: readonly number[]
  /** Groups whose leader has ended and none of whose members has the mark of the command: another program may have started them. */
  readonly unproven: readonly number[]
}

/**
 * Ends the noted groups that still run and provably belong to the commands, and removes the notes. Call it before the first command,
 * while no other daemon uses the data directory.
 */
export async function endLeftCommands(folder: string, clock: Clock): Promise<LeftCommands> {
  const names = (await readdir(folder).catch(() => [])).filter((name) => /^[1-9]\d{0,9}$/.test(name))
  if (names.length === 0) return { ended: [], unproven: [] }
  const running = await runningProcesses()
  const boot = (await readFile(BOOT, 'latin1').catch(() => '')).trim()
  const looked = await Promise.all(
    names.map(async (name) => {
      const pid = Number(name)
      const [start, notedBoot, mark] = (await readFile(join(folder, name), 'latin1').catch(() => '')).split(' ')
      const found = boot !== '' && notedBoot === boot ? await groupOf(pid, running, start, mark) : undefined
      if (found === 'ours') await stopGroup(pid, clock)
      await rm(join(folder, name), { force: true })
      return { pid, found }
    }),
  )
  const those = (kind: Group) => looked.flatMap(({ pid, found }) => (found === kind ? [pid] : []))
  return { ended: those('ours'), unproven: those('unproven') }
}

type Group = 'ours' | 'unproven'

/** Tells whose the group with this id is; undefined if none runs, or if its leader is another process than the noted one. */
async function groupOf(pid: number, running: ReadonlyMap<number, Process>, start?: string, mark?: string): Promise<Group | undefined> {
  const leader = running.get(pid)
  if (leader) return leader.start === start ? 'ours' : undefined
  // While a group has a member, the kernel gives its id to no other process. But the noted group may have ended, and another one have begun.
  const members = [...running].flatMap(([id, { group, session }]) => (group === pid && session === pid ? [id] : []))
  if (members.length === 0) return undefined
  const variables = await Promise.all(members.map((id) => readFile(`/proc/${id}/environ`, 'latin1').catch(() => '')))
  return mark && variables.some((text) => text.split('\0').includes(`${VARIABLE}=${mark}`)) ? 'ours' : 'unproven'
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

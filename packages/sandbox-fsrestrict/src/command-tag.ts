/**
 * Marks all processes of a command, so that they are found wherever they move. The tag is a random pair of numbers in the
 * limit RLIMIT_MSGQUEUE, which has no other use because the filter refuses message queues. Child processes inherit it, and
 * the filter refuses to change it.
 */
import { randomInt } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { setImmediate } from 'node:timers/promises'
import type { Clock } from '@sluice/sdk'

/** The number of RLIMIT_MSGQUEUE. */
export const TAG_RESOURCE = 12
/** The kernel's default for this limit. A process without privileges may only lower it. */
const BYTES_END = 819_200
const LINE = /^Max msgqueue size +(\d+) +(\d+)/m

/** Process ids are assigned in order. Within this time they do not wrap around. */
const IN_ORDER_MS = 500
const FEW = 64
const ROUNDS_MAX = 1000
const ROUND_WAIT_MS = 2

export interface CommandTag {
  readonly soft: number
  readonly hard: number
  /** The monotonic time right before the command started. */
  readonly sinceMs: number
  /** The last process id that the kernel had assigned at that time. */
  readonly sincePid: number
}

export function createTag(clock: Clock): CommandTag {
  const hard = randomInt(1, BYTES_END)
  return { soft: randomInt(hard), hard, sinceMs: clock.monotonicMs(), sincePid: lastPid() }
}

/**
 * Kills all processes with the tag. A process may start another one and end before it is checked, so this returns only after
 * a round that found none while no process of the machine was started. Throws if no such round comes.
 */
export async function endTagged(tag: CommandTag, clock: Clock): Promise<void> {
  let alive: number[] = []
  let checkedTo = clock.monotonicMs() - tag.sinceMs < IN_ORDER_MS ? tag.sincePid : undefined
  for (let round = 1; round <= ROUNDS_MAX; round++) {
    const newest = lastPid()
    alive = await killTagged([...alive, ...(pidsBetween(checkedTo, newest) ?? (await allPids()))], tag)
    const isQuiet = lastPid() === newest
    if (isQuiet && alive.length === 0) return
    await (isQuiet ? clock.sleep(ROUND_WAIT_MS) : setImmediate())
    checkedTo = newest
  }
  throw new Error(`Processes of a command could not be killed; the last check found ${alive.length}`)
}

/** Returns the ids assigned after one up to another, parents before children, or undefined if they are many or out of order. */
function pidsBetween(after: number | undefined, newest: number): readonly number[] | undefined {
  const count = after === undefined ? -1 : newest - after
  return count >= 0 && count < FEW ? Array.from({ length: count }, (_, index) => newest - count + 1 + index) : undefined
}

const allPids = async (): Promise<readonly number[]> => (await readdir('/proc')).map(Number).filter((pid) => pid > 1)

/** Kills the processes with the tag and returns their ids. The checks are synchronous and fast, so that a process that keeps forking is found alive. */
async function killTagged(pids: readonly number[], tag: CommandTag): Promise<number[]> {
  const found: number[] = []
  for (const [index, pid] of pids.entries()) {
    // Lets other tasks of the event loop run.
    if (index % FEW === FEW - 1) await setImmediate()
    if (!hasTag(pid, tag)) continue
    kill(pid)
    found.push(pid)
  }
  return found
}

/** Returns false for a process that has ended, even if its parent has not waited for it yet. */
function hasTag(pid: number, { soft, hard }: CommandTag): boolean {
  try {
    const line = LINE.exec(readFileSync(`/proc/${pid}/limits`, 'latin1'))
    if (Number(line?.[1]) !== soft || Number(line?.[2]) !== hard) return false
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    return !/^[ZX]/.test(stat.slice(stat.lastIndexOf(')') + 2))
  } catch {
    return false
  }
}

/** Reads from memory. */
const lastPid = (): number => Number(readFileSync('/proc/loadavg', 'utf8').trim().split(' ').at(-1))

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // The process has already ended.
  }
}

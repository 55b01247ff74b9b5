/**
 * What a command's processes are known by, wherever they went: two numbers in a limit of theirs that is of no other use,
 * since the filter refuses what it limits. All they start have it, and none can change it.
 */
import { randomInt } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { setImmediate } from 'node:timers/promises'
import type { Clock } from '@sluice/sdk'

/** RLIMIT_MSGQUEUE. */
export const TAG_RESOURCE = 12
/** The kernel's own default: who may not raise it may lower it. */
const BYTES_END = 819_200
const LINE = /^Max msgqueue size +(\d+) +(\d+)/m

/** Process ids are given out in order; within this time they do not come around. */
const IN_ORDER_MS = 500
const FEW = 64
const ROUNDS_MAX = 1000
const ROUND_WAIT_MS = 2

export interface CommandTag {
  readonly soft: number
  readonly hard: number
  /** When the command was about to start: by the monotonic clock, and the last process id given out. */
  readonly sinceMs: number
  readonly sincePid: number
}

export function createTag(clock: Clock): CommandTag {
  const hard = randomInt(1, BYTES_END)
  return { soft: randomInt(hard), hard, sinceMs: clock.monotonicMs(), sincePid: lastPid() }
}

/**
 * Ends what has the tag. A process may start another and end before it is looked at, so it is over only when nothing was
 * found and no process of the machine was started meanwhile. Throws when it does not come to that.
 */
export async function endTagged(tag: CommandTag, clock: Clock): Promise<void> {
  let alive: number[] = []
  let seenTo = clock.monotonicMs() - tag.sinceMs < IN_ORDER_MS ? tag.sincePid : undefined
  for (let round = 1; round <= ROUNDS_MAX; round++) {
    const newest = lastPid()
    alive = await endAmong([...alive, ...(startedSince(seenTo, newest) ?? (await allPids()))], tag)
    const isQuiet = lastPid() === newest
    if (isQuiet && alive.length === 0) return
    await (isQuiet ? clock.sleep(ROUND_WAIT_MS) : setImmediate())
    seenTo = newest
  }
  throw new Error(`processes of a command could not be ended, ${alive.length} at the last look`)
}

/** The ids given out after one up to another, where they are few and in order; a parent comes before its child. */
function startedSince(seenTo: number | undefined, newest: number): readonly number[] | undefined {
  const count = seenTo === undefined ? -1 : newest - seenTo
  return count >= 0 && count < FEW ? Array.from({ length: count }, (_, index) => newest - count + 1 + index) : undefined
}

const allPids = async (): Promise<readonly number[]> => (await readdir('/proc')).map(Number).filter((pid) => pid > 1)

/** Those that had it. Looks are quick, since what hops from process to process is met only in one that lives. */
async function endAmong(pids: readonly number[], tag: CommandTag): Promise<number[]> {
  const found: number[] = []
  for (const [index, pid] of pids.entries()) {
    // others want to run, too
    if (index % FEW === FEW - 1) await setImmediate()
    if (!hasTag(pid, tag)) continue
    kill(pid)
    found.push(pid)
  }
  return found
}

/** False for one that ended, even if it waits for its parent still. */
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

/** Takes a few microseconds: there is no disk behind it. */
const lastPid = (): number => Number(readFileSync('/proc/loadavg', 'utf8').trim().split(' ').at(-1))

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // gone by itself
  }
}

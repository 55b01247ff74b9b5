/**
 * What a command's processes are known by, wherever they went: two numbers in a limit of theirs that is of no other use,
 * since the filter refuses what it limits. All they start have it, and none can change it.
 */
import { randomInt } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import type { Clock } from '@sluice/sdk'

/** RLIMIT_MSGQUEUE. */
export const TAG_RESOURCE = 12
/** The kernel's own default: who may not raise it may lower it. */
const BYTES_END = 819_200
const LINE = /^Max msgqueue size +(\d+) +(\d+)/m

/** Process ids are given out in order; within this time they do not come around. */
const IN_ORDER_MS = 500
const FEW = 64
const ROUNDS_MAX = 100
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

/** Ends what has the tag. Throws when something of it starts processes faster than they can be ended. */
export async function endTagged(tag: CommandTag, clock: Clock): Promise<void> {
  for (let round = 1; ; round++) {
    const found = await tagged(tag, clock)
    if (found.length === 0) return
    if (round > ROUNDS_MAX) throw new Error(`${found.length} processes of a command could not be ended`)
    for (const pid of found) kill(pid)
    await clock.sleep(ROUND_WAIT_MS)
  }
}

async function tagged(tag: CommandTag, clock: Clock): Promise<number[]> {
  const pids = startedSince(tag, clock) ?? (await readdir('/proc')).map(Number).filter((pid) => pid > 1)
  const found: number[] = []
  for (const pid of pids) if ((await hasTag(pid, tag)) && !(await isEnded(pid))) found.push(pid)
  return found
}

/** The only ids it can have, where they are few and in order. */
function startedSince({ sinceMs, sincePid }: CommandTag, clock: Clock): readonly number[] | undefined {
  const count = lastPid() - sincePid
  const isInOrder = clock.monotonicMs() - sinceMs < IN_ORDER_MS && count >= 0 && count < FEW
  return isInOrder ? Array.from({ length: count }, (_, index) => sincePid + 1 + index) : undefined
}

async function hasTag(pid: number, { soft, hard }: CommandTag): Promise<boolean> {
  const line = LINE.exec(await readFile(`/proc/${pid}/limits`, 'utf8').catch(() => ''))
  return line !== null && Number(line[1]) === soft && Number(line[2]) === hard
}

/** A zombie waits for its parent alone. */
async function isEnded(pid: number): Promise<boolean> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
  return !/\) [^ZX]/.test(stat)
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

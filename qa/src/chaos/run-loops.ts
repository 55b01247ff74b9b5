/** The crash run: kills a daemon again and again while messages arrive, then lets it finish its work and checks the history. */
import { setTimeout as sleep } from 'node:timers/promises'
import { readCopy, readStore } from './read-store.ts'
import { listening, type Outcome, type RunOptions, type Stage, setStage } from './stage.ts'

export interface LoopsOptions extends RunOptions {
  readonly loops: number
  /** Called after each loop with the number of messages so far. */
  onLoop?(loop: number, messages: number): void
}

export interface LoopsResult extends Outcome {
  readonly tookMs: number
}

/** High enough that kills alone make no message a dead letter: all of them must be done in the end. */
const ATTEMPTS_MAX = 100
/** The number of inspections of a run, so that reading the store takes little of its time. */
const INSPECTIONS = 20
const SHARE = { killedAtStart: 0.12, stopped: 0.15 }
const START_MS = { min: 20, max: 400 }
const LIFE_MS = { min: 100, max: 900 }
/** A daemon takes the leases of its predecessor in a database server only after it has waited for an answer. */
const HANDOVER_MS = 1500
const MESSAGES = { min: 15, max: 45 }
const LAST = { count: 10, ms: 200 }

/** Rejects if the daemon does not start, or `signal` aborts. */
export async function runLoops({ loops, onLoop, ...options }: LoopsOptions): Promise<LoopsResult> {
  const startedMs = performance.now()
  const stage = await setStage({ ...options, attemptsMax: ATTEMPTS_MAX, asksPeople: true })
  const { world, traffic, signal } = stage
  try {
    await stage.calmLife((url) => traffic.one(url, signal))
    world.faults.on = true
    for (let loop = 1; loop <= loops; loop++) {
      signal.throwIfAborted()
      await oneLoop(stage)
      if (loop % Math.ceil(loops / INSPECTIONS) === 0) await inspect(stage)
      onLoop?.(loop, world.recorder.messages.size)
    }
    world.faults.on = false
    await stage.calmLife((url) => traffic.run(url, LAST, signal))
    return { ...(await stage.outcome()), tookMs: performance.now() - startedMs }
  } finally {
    await stage.close()
  }
}

async function oneLoop({ begin, random, traffic, people, place, signal }: Stage): Promise<void> {
  const life = begin()
  if (random.chance(SHARE.killedAtStart)) {
    await sleep(random.within(START_MS.min, START_MS.max))
    return life.end('SIGKILL')
  }
  const url = await listening(life)
  const over = new AbortController()
  const load = { count: random.within(MESSAGES.min, MESSAGES.max), ms: random.within(LIFE_MS.min, LIFE_MS.max) }
  const untilOver = AbortSignal.any([signal, over.signal])
  const posting = Promise.all([traffic.run(url, load, untilOver), people.run(url, untilOver, { isPatient: true })])
  await sleep(random.within(LIFE_MS.min, LIFE_MS.max) + (place.database === undefined ? 0 : HANDOVER_MS))
  // Open requests are ended by the daemon's end, not by this process.
  await life.end(random.chance(SHARE.stopped) ? 'SIGTERM' : 'SIGKILL')
  over.abort()
  await posting
}

async function inspect({ world: { recorder }, place }: Stage): Promise<void> {
  const { inbox, sessions, unfinished, problems } = await readCopy(place, readStore)
  const ids = new Set(inbox.map(({ channel, id }) => `${channel} ${id}`))
  const done = sessions.flat()
  const turns = new Set([...done, ...unfinished])
  const kept = [...recorder.messages.values()].filter(({ mark, kind, id }) =>
    kind === 'post' ? turns.has(mark) : ids.has(`${kind} ${id}`),
  )
  recorder.see({ type: 'inspected', kept: kept.map(({ mark }) => mark), done, problems })
}

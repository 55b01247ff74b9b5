/** The crash run of procedures: kills the daemon again and again while events arrive and people decide, then lets all runs end. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { createRandom, type Random } from '@sluice/testkit/random'
import { createDaemonLives, type DaemonLives } from '../daemon-lives.ts'
import type { Violation } from '../history.ts'
import { makePlace, type Place } from '../place.ts'
import { readCopy } from '../read-store.ts'
import { listening, type RunOptions } from '../stage.ts'
import { checkSops } from './check-sops.ts'
import { Deciders } from './deciders.ts'
import { follow } from './follow.ts'
import type { SopsHistory, SopsView } from './history.ts'
import { stopBeat, writeProcedures } from './procedures.ts'
import { readView } from './read-view.ts'
import { settleSops } from './settle-sops.ts'
import { SopsTraffic } from './traffic.ts'
import { type SopsWorld, startSopsWorld } from './world.ts'

export interface SopLoopsOptions extends RunOptions {
  readonly loops: number
  /** Called after each loop with the number of events so far. */
  onLoop?(loop: number, events: number): void
}

export interface SopLoopsResult {
  readonly history: SopsHistory
  readonly view: SopsView
  readonly violations: readonly Violation[]
  readonly tookMs: number
}

interface Stage {
  readonly world: SopsWorld
  readonly random: Random
  readonly traffic: SopsTraffic
  readonly deciders: Deciders
  readonly lives: DaemonLives
  readonly place: Place
  readonly signal: AbortSignal
}

/** The number of inspections of a run, so that reading the store takes little of its time. */
const INSPECTIONS = 20
const SHARE = { killedAtStart: 0.12, stopped: 0.2 }
const START_MS = { min: 20, max: 500 }
const LIFE_MS = { min: 150, max: 1400 }
/** As in the crash run of messages. */
const HANDOVER_MS = 1500
const EVENTS = { min: 6, max: 16 }
const LAST = { count: 6, ms: 200 }
const SETTLE_MS_MAX = 60_000

/** Rejects if the daemon does not start, or `signal` aborts. */
export async function runSopLoops({ loops, onLoop, profile, seed, dir, signal, database }: SopLoopsOptions): Promise<SopLoopsResult> {
  const startedMs = performance.now()
  const random = createRandom(seed)
  const world = await startSopsWorld(random)
  const { recorder } = world
  const place = makePlace(dir, world.config, database)
  const { dataDir } = place
  writeProcedures(dataDir, world.effectsUrl)
  const lives = createDaemonLives({ profile, dataDir, logFile: join(dir, 'daemon.log'), recorder })
  const deciders = new Deciders({ world, random, profile, dataDir })
  const stage: Stage = { world, random, traffic: new SopsTraffic(recorder, random), deciders, lives, place, signal }
  try {
    for (let loop = 1; loop <= loops; loop++) {
      signal.throwIfAborted()
      await oneLoop(stage)
      if (loop % Math.ceil(loops / INSPECTIONS) === 0) await inspect(stage)
      onLoop?.(loop, recorder.events.length)
    }
    stopBeat(dataDir)
    world.faults.on = false
    await lastLife(stage)
    const [history, view] = [world.history(), await readView(place)]
    return { history, view, violations: checkSops(history, view), tookMs: performance.now() - startedMs }
  } finally {
    writeFileSync(join(dir, 'history.json'), JSON.stringify(world.history()))
    await lives.close()
    await world.close()
  }
}

async function oneLoop({ world, random, traffic, deciders, lives, place, signal }: Stage): Promise<void> {
  const life = lives.begin()
  if (random.chance(SHARE.killedAtStart)) {
    await sleep(random.within(START_MS.min, START_MS.max))
    return life.end('SIGKILL')
  }
  const url = await listening(life)
  const over = new AbortController()
  const until = AbortSignal.any([signal, over.signal])
  const load = { count: random.within(EVENTS.min, EVENTS.max), ms: random.within(LIFE_MS.min, LIFE_MS.max) }
  const people = [traffic.run(url, load, until), deciders.run(url, until), follow(url, world.recorder, random, until)]
  await sleep(random.within(LIFE_MS.min, LIFE_MS.max) + (place.database === undefined ? 0 : HANDOVER_MS))
  // Open requests are ended by the daemon's end, not by this process.
  await life.end(random.chance(SHARE.stopped) ? 'SIGTERM' : 'SIGKILL')
  over.abort()
  await Promise.all(people)
}

/** The last life. It ends by SIGTERM once all work of earlier lives is done. */
async function lastLife({ world, random, traffic, deciders, lives, signal }: Stage): Promise<void> {
  const life = lives.begin()
  const url = await listening(life)
  const over = new AbortController()
  const until = AbortSignal.any([signal, over.signal])
  const people = [deciders.run(url, until, { leavesNone: true }), follow(url, world.recorder, random, until)]
  await traffic.run(url, LAST, until)
  await settleSops(url, until, SETTLE_MS_MAX)
  await life.end('SIGTERM')
  over.abort()
  await Promise.all(people)
  signal.throwIfAborted()
}

async function inspect({ world: { recorder }, place }: Stage): Promise<void> {
  const { runs, problems } = await readCopy(place, readView)
  recorder.see({ type: 'inspected', runs: runs.map(({ id }) => id), problems })
}

/** The set-up of a run: the simulated world, and a daemon with a data directory of its own. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { createRandom, type Random } from '@sluice/testkit/random'
import { checkHistory } from './check-history.ts'
import { createDaemonLives, type Life } from './daemon-lives.ts'
import type { History, StoreView, Violation } from './history.ts'
import { createPeople, type People } from './people.ts'
import { makePlace, type Place } from './place.ts'
import { readStore } from './read-store.ts'
import { settle } from './settle.ts'
import { kindNamesOf } from './start-kinds.ts'
import { Traffic } from './traffic.ts'
import { startWorld, type World, type WorldOptions } from './world.ts'

/** The options of every run. */
export interface RunOptions {
  /** The profile whose bundle runs. */
  readonly profile: string
  readonly seed: number
  /** An empty directory for the data directory, the log and the history. */
  readonly dir: string
  readonly signal: AbortSignal
  /** The PostgreSQL that keeps everything. Default: the embedded database. */
  readonly database?: string
}

export interface StageOptions extends RunOptions, WorldOptions {
  /** Whether turns of some messages ask a person before they run a tool. Default: false. */
  readonly asksPeople?: boolean
}

export interface Outcome {
  readonly history: History
  readonly store: StoreView
  readonly violations: readonly Violation[]
}

export interface Stage {
  readonly random: Random
  readonly world: World
  readonly traffic: Traffic
  readonly people: People
  readonly place: Place
  readonly signal: AbortSignal
  begin(): Life
  /** Starts the daemon, calls `deliver`, waits until all messages are done, also older ones, and ends the daemon with SIGTERM. */
  calmLife(deliver: (url: string) => Promise<void>): Promise<void>
  /** Runs the checks. Call it once the daemon has ended. */
  outcome(): Promise<Outcome>
  close(): Promise<void>
}

const SETTLE_MS_MAX = 60_000
const LISTEN_MS_MAX = 60_000

export async function setStage({ profile, seed, dir, signal, database, asksPeople = false, ...options }: StageOptions): Promise<Stage> {
  const random = createRandom(seed)
  const world = await startWorld(random, { ...options, kinds: { only: kindNamesOf(profile), ...options.kinds } })
  const { recorder } = world
  const traffic = new Traffic(world, { random, asksPeople })
  const people = createPeople({ world, traffic, random })
  const place = makePlace(dir, world.config, database)
  const { dataDir } = place
  const lives = createDaemonLives({ profile, dataDir, logFile: join(dir, 'daemon.log'), recorder })
  return {
    random,
    world,
    traffic,
    people,
    place,
    signal,
    begin: lives.begin,
    async calmLife(deliver) {
      const life = lives.begin()
      const url = await listening(life)
      const over = new AbortController()
      const answering = people.run(url, AbortSignal.any([signal, over.signal]), { isPatient: false })
      await deliver(url)
      const left = await settle(url, recorder, traffic, SETTLE_MS_MAX)
      if (left !== undefined)
        recorder.see({ type: 'unexpected', detail: `the daemon did not finish in ${SETTLE_MS_MAX / 1000} s: ${left}` })
      over.abort()
      await answering
      await life.end('SIGTERM')
      signal.throwIfAborted()
    },
    async outcome() {
      const [history, store] = [world.history(), await readStore(place)]
      return { history, store, violations: checkHistory(history, store) }
    },
    async close() {
      writeFileSync(join(dir, 'history.json'), JSON.stringify(world.history()))
      await lives.close()
      await world.close()
    },
  }
}

/** Resolves to the daemon's URL. Rejects if it does not listen in time. */
export async function listening({ url }: Life): Promise<string> {
  const found = await Promise.race([url, sleep(LISTEN_MS_MAX, undefined, { ref: false })])
  if (found === undefined)
    throw new Error(`The daemon did not listen within ${LISTEN_MS_MAX / 1000} s, or it ended before. Read daemon.log.`)
  return found
}

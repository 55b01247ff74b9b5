/** Kills a daemon again and again while a play goes on: at random instants, and at aimed ones. Then all work ends, and the play is judged. */
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { createRandom, type Random } from '@sluice/testkit/random'
import { createDaemonLives, type DaemonLives } from '../daemon-lives.ts'
import { makePlace } from '../place.ts'
import { listening, type RunOptions } from '../stage.ts'
import { Aims } from './aims.ts'
import type { Play, PlayOptions, Verdict } from './play.ts'
import { settlePlay } from './settle-play.ts'

export interface RunPlayOptions extends RunOptions {
  readonly loops: number
  start(options: PlayOptions): Promise<Play>
  /** Called after each loop. */
  onLoop?(loop: number): void
}

export interface PlayResult extends Verdict {
  readonly kills: number
  /** How many of them hit each moment at which they were aimed. */
  readonly aimed: Readonly<Record<string, number>>
  readonly seconds: number
}

const SHARE = { killedAtStart: 0.1, aimed: 0.7, later: 0.4 }
/** How long the daemon stays down after a kill at the moment `Play.downAfter`. */
const DOWN_MS = { min: 1500, max: 2500 }
const START_MS = { min: 20, max: 500 }
const LIFE_MS_MIN = 200
/** An aimed kill comes after this time, if its moment is not reached. */
const AIMED_MS_MAX = 4000
const NTH_MAX = 3
/** Some aimed kills come a little after the moment. */
const LATER_MS_MAX = 25

/** Rejects if the daemon does not start, or `signal` aborts. */
export async function runPlay({ profile, seed, dir, signal, loops, start, onLoop }: RunPlayOptions): Promise<PlayResult> {
  const startedMs = performance.now()
  const random = createRandom(seed)
  const aims = new Aims()
  const play = await start({ random, aims, loops })
  const place = makePlace(dir, play.config, undefined)
  play.prepare?.(place.dataDir)
  let kills = 0
  const recorder = {
    see({ type }: { readonly type: string }): void {
      if (type === 'ended') kills += 1
    },
  }
  const lives = createDaemonLives({ profile, dataDir: place.dataDir, logFile: join(dir, 'daemon.log'), recorder })
  try {
    for (let loop = 1; loop <= loops; loop++) {
      signal.throwIfAborted()
      await oneLife({ play, aims, random, lives, signal })
      onLoop?.(loop)
    }
    aims.disarm()
    const unfinished = await lastLife({ play, aims, lives, signal })
    signal.throwIfAborted()
    const { rows, violations } = await play.judge(place)
    const all = [...unfinished.map((detail) => ({ rule: 'ended', detail })), ...violations]
    return { rows, violations: all, kills: kills - 1, aimed: aims.hits, seconds: Math.round((performance.now() - startedMs) / 1000) }
  } finally {
    await lives.close()
    await play.close()
  }
}

interface OneLife {
  readonly play: Play
  readonly aims: Aims
  readonly random: Random
  readonly lives: DaemonLives
  readonly signal: AbortSignal
}

async function oneLife({ play, aims, random, lives, signal }: OneLife): Promise<void> {
  const life = lives.begin()
  const dead = Promise.withResolvers<void>()
  let ending: Promise<void> | undefined
  let downMs = 0
  const kill = (): void => {
    ending ??= life.end('SIGKILL')
    dead.resolve()
  }
  if (random.chance(SHARE.killedAtStart)) {
    await sleep(random.within(START_MS.min, START_MS.max))
    kill()
    return ending
  }
  // The work that the last life left begins at once, so an aimed kill may come before the daemon listens.
  const isAimed = random.chance(SHARE.aimed)
  if (isAimed) {
    const laterMs = random.chance(SHARE.later) ? random.within(1, LATER_MS_MAX) : 0
    const moment = random.pick(play.moments)
    aims.arm(moment, random.within(1, NTH_MAX), () => {
      if (moment === play.downAfter) downMs = random.within(DOWN_MS.min, DOWN_MS.max)
      if (laterMs === 0) kill()
      else void sleep(laterMs).then(kill)
    })
  }
  const url = await Promise.race([listening(life).catch(() => undefined), dead.promise])
  if (typeof url !== 'string') {
    if (!ending) throw new Error('The daemon ended before it listened. Read daemon.log.')
    await ending
    return void (await sleep(downMs))
  }
  const over = new AbortController()
  const acting = play.act({ url, signal: AbortSignal.any([signal, over.signal]), isLast: false })
  const lifeMs = isAimed ? AIMED_MS_MAX : random.within(LIFE_MS_MIN, play.lifeMsMax)
  await Promise.race([dead.promise, sleep(lifeMs)])
  aims.disarm()
  kill()
  await ending
  over.abort()
  await acting
  await sleep(downMs)
}

/** The last life, in which all work ends. Resolves to the work that is left once nothing moves any more. */
async function lastLife({ play, aims, lives, signal }: Omit<OneLife, 'random'>): Promise<readonly string[]> {
  const life = lives.begin()
  const url = await listening(life)
  const over = new AbortController()
  const acting = play.act({ url, signal: AbortSignal.any([signal, over.signal]), isLast: true })
  const settling = { url, left: play.left, moved: () => aims.reached, signal }
  const unfinished = [await settlePlay(settling)]
  if (play.lastWords) {
    await play.lastWords(signal)
    unfinished.push(await settlePlay(settling))
  }
  over.abort()
  await acting
  await life.end('SIGTERM')
  return unfinished.flatMap((left) => (left === undefined ? [] : `nothing moved any more, and this was left: ${left}`))
}

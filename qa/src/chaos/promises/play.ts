/** The interface of a play: people and programs in front of one daemon, and the judge of what became of their words. */
import type { Random } from '@sluice/testkit/random'
import type { Violation } from '../history.ts'
import type { Place } from '../place.ts'
import type { Aims } from './aims.ts'

export interface PlayOptions {
  readonly random: Random
  readonly aims: Aims
  /** The number of loops that follow. */
  readonly loops: number
}

/** One life of the daemon. */
export interface ActedLife {
  readonly url: string
  /** Aborts when the daemon is gone. */
  readonly signal: AbortSignal
  /** In the last life senders write nothing new, and answer every question at once. */
  readonly isLast: boolean
}

/** One line of the table at the end of a run. */
export interface PlayRow {
  readonly what: string
  /** The number of messages that the daemon accepted from platforms and callers. */
  readonly accepted: number
  /** The number of messages that had not ended when the last life gave up: neither lost nor done. */
  readonly unfinished: number
  readonly lost: number
  readonly doubled: number
  readonly toldTwice: number
  readonly outOfOrder: number
  /** Sends that a kill cut. The daemon cannot know whether the platform has them, so it does not repeat them. */
  readonly uncertain: number
}

export interface Verdict {
  readonly rows: readonly PlayRow[]
  readonly violations: readonly Violation[]
}

export interface Play {
  /** The configuration of the daemon, as TOML. */
  readonly config: string
  /** The moments at which a kill can be aimed; the play calls `Aims.reach` with them. */
  readonly moments: readonly [string, ...string[]]
  /** The moment after whose kill the daemon stays down for a while. */
  readonly downAfter?: string
  /** The longest life before a kill, in milliseconds. */
  readonly lifeMsMax: number
  /** Called once, before the first life. */
  prepare?(dataDir: string): void
  /** Writes for a short time, and takes part until `signal` aborts. */
  act(life: ActedLife): Promise<void>
  /** Describes the work that is still due; undefined without any. */
  left(): string | undefined
  /** Called in the last life, once all other work has ended. Writes what shows the effects of the work before. */
  lastWords?(signal: AbortSignal): Promise<void>
  /** Call it once the daemon has ended. */
  judge(place: Place): Promise<Verdict>
  close(): Promise<void>
}

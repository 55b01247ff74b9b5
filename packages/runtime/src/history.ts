/**
 * The history of a daemon by the hour: turns, failures, how long turns take, and how long messages wait; in all, by channel and by procedure.
 * It is counted in memory, written once a minute when it has changed, and kept for 31 days.
 */
import type { Clock, KeyValue, Logger, SluiceEvent } from '@sluice/sdk'
import * as v from 'valibot'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
export const HOURS_MAX = 31 * 24
/** One hour counts at most so many channels and procedures by themselves. */
const SUBJECTS_MAX = 64
/** The nodes of a cluster whose rows a list reads. */
const NODES_MAX = 64
/** The old rows that one write deletes. */
const OLD_ROWS = 200
/** The upper bounds of the classes of durations, in milliseconds: each is a quarter longer than the one before, from 50 ms to over an hour. */
const CLASSES = Array.from({ length: 52 }, (_, at) => Math.round(50 * 1.25 ** at))

const countsEntries = {
  turns: v.number(),
  failed: v.number(),
  /** The number of turns by the class of their duration. */
  took: v.record(v.string(), v.number()),
}
const countsSchema = v.object(countsEntries)
const hourSchema = v.object({ ...countsEntries, queue_secs: v.number(), of: v.record(v.string(), countsSchema) })
type Counts = v.InferOutput<typeof countsSchema>
type Hour = v.InferOutput<typeof hourSchema>

export interface HourOfHistory {
  readonly atMs: number
  readonly turns: number
  readonly failed: number
  /** 95 of 100 turns took at most so long, within a quarter; null without a turn. */
  readonly p95Ms: number | null
  /** The longest time that a message or reply has waited, as it was seen each minute; null for one channel or procedure. */
  readonly queueSecs: number | null
}

/** One channel, whose turns are counted, or one procedure, whose runs are. */
export type Subject = { readonly channel: string } | { readonly procedure: string }

export interface HistorySources {
  readonly clock: Pick<Clock, 'nowMs'>
  readonly keyValue: KeyValue
  /** The name of this node of a cluster; null without one. */
  readonly node: string | null
  readonly log: Pick<Logger, 'warn'>
  /** How long the oldest message or reply waits now. */
  readonly waitedSecs: () => number
}

/** An hour that is not written yet, or that goes on. */
interface Open {
  readonly hour: Hour
  /** Whether the counts of the store were added, such as counts from before a restart. */
  isRead: boolean
}

const FAILED_RUNS: ReadonlySet<string> = new Set(['failed', 'expired'])
const ENDED_RUNS: ReadonlySet<string> = new Set(['completed', 'cancelled', ...FAILED_RUNS])

const noCounts = (): Counts => ({ turns: 0, failed: 0, took: {} })
const noHour = (): Hour => ({ ...noCounts(), queue_secs: 0, of: {} })
const hourOf = (atMs: number): number => Math.floor(atMs / HOUR_MS) * HOUR_MS
/** Keys sort by time, and begin with their day. */
const keyOf = (hourMs: number, node: string | null): string => `${new Date(hourMs).toISOString()} ${node ?? ''}`
const dayOf = (atMs: number): string => new Date(atMs).toISOString().slice(0, 'yyyy-mm-dd'.length)
const nameOf = (subject: Subject): string => ('channel' in subject ? `channel ${subject.channel}` : `procedure ${subject.procedure}`)

export class History {
  readonly #sources: HistorySources
  readonly #open = new Map<number, Open>()
  #isChanged = false
  /** The hour whose first save has deleted the old rows. */
  #cleanedMs: number | undefined

  constructor(sources: HistorySources) {
    this.#sources = sources
  }

  /** Counts turns and runs that have ended. An aborted turn does not count as failed. */
  readonly observe = (event: SluiceEvent): void => {
    if (event.type === 'turn_completed') this.#count({ channel: event.source }, { tookMs: event.took_ms })
    else if (event.type === 'turn_failed') this.#count({ channel: event.source }, { isFailed: event.code !== 'aborted' })
    else if (event.type === 'sop_run' && ENDED_RUNS.has(event.status))
      this.#count({ procedure: event.sop }, { isFailed: FAILED_RUNS.has(event.status) })
  }

  /** Looks at how long messages wait, and writes what has changed. Call it each minute. Never rejects. */
  async save(): Promise<void> {
    this.#countWait(Math.round(this.#sources.waitedSecs()))
    if (!this.#isChanged) return
    this.#isChanged = false
    try {
      await this.#write()
    } catch (error) {
      this.#isChanged = true
      this.#sources.log.warn('the history of this hour was not written, and is tried again', { error })
    }
  }

  /** Lists the hours since a time, oldest first, without empty hours. The nodes of a cluster are added up. */
  async list(sinceMs: number, subject?: Subject): Promise<readonly HourOfHistory[]> {
    await this.#takeOver()
    const { keyValue, node, clock } = this.#sources
    const firstMs = hourOf(sinceMs)
    const days = Math.max(0, Math.ceil((hourOf(clock.nowMs()) + HOUR_MS - Math.floor(firstMs / DAY_MS) * DAY_MS) / DAY_MS))
    const lists = Array.from({ length: days }, (_, at) => keyValue.list(dayOf(firstMs + at * DAY_MS), 24 * NODES_MAX))
    const own = new Set([...this.#open.keys()].map((hourMs) => keyOf(hourMs, node)))
    const hours = new Map<number, Hour>()
    const add = (atMs: number, hour: Hour) => {
      if (atMs >= firstMs) hours.set(atMs, addTo(hours.get(atMs) ?? noHour(), hour))
    }
    for (const { key, value } of (await Promise.all(lists)).flat()) {
      const parsed = v.safeParse(hourSchema, value)
      if (parsed.success && !own.has(key)) add(Date.parse(key.split(' ')[0] ?? ''), parsed.output)
    }
    for (const [hourMs, { hour }] of this.#open) add(hourMs, hour)
    const sorted = [...hours].toSorted(([a], [b]) => a - b)
    if (subject === undefined) return sorted.map(([atMs, hour]) => ({ ...shown(atMs, hour), queueSecs: hour.queue_secs }))
    return sorted.flatMap(([atMs, { of }]) => {
      const counts = of[nameOf(subject)]
      return counts ? [{ ...shown(atMs, counts), queueSecs: null }] : []
    })
  }

  #now(): Open {
    const hourMs = hourOf(this.#sources.clock.nowMs())
    const open = this.#open.get(hourMs) ?? { hour: noHour(), isRead: false }
    this.#open.set(hourMs, open)
    return open
  }

  #count(subject: Subject, ended: { readonly tookMs?: number; readonly isFailed?: boolean }): void {
    const { hour } = this.#now()
    const name = nameOf(subject)
    this.#isChanged = true
    if ('channel' in subject) countIn(hour, ended)
    if (hour.of[name] === undefined && Object.keys(hour.of).length >= SUBJECTS_MAX) return
    hour.of[name] ??= noCounts()
    countIn(hour.of[name], ended)
  }

  #countWait(secs: number): void {
    if (secs === 0) return
    const { hour } = this.#now()
    if (secs <= hour.queue_secs) return
    hour.queue_secs = secs
    this.#isChanged = true
  }

  async #write(): Promise<void> {
    const { keyValue, node } = this.#sources
    await this.#takeOver()
    const nowMs = hourOf(this.#sources.clock.nowMs())
    const written = [...this.#open.keys()]
    const rows = written.map((hourMs) => [keyOf(hourMs, node), this.#open.get(hourMs)?.hour] as const)
    const oldest = keyOf(nowMs - HOURS_MAX * HOUR_MS, null)
    const old = nowMs !== this.#cleanedMs ? (await keyValue.list('', OLD_ROWS)).filter(({ key }) => key < oldest) : []
    await keyValue.setAll(new Map<string, unknown>([...old.map(({ key }) => [key, undefined] as const), ...rows]))
    this.#cleanedMs = nowMs
    for (const hourMs of written) if (hourMs !== hourOf(this.#sources.clock.nowMs())) this.#open.delete(hourMs)
  }

  /** Adds to each open hour what the store has of it: from before a restart, or from before the clock was set back. */
  async #takeOver(): Promise<void> {
    for (const [hourMs, open] of this.#open) {
      if (open.isRead) continue
      const parsed = v.safeParse(hourSchema, await this.#sources.keyValue.get(keyOf(hourMs, this.#sources.node)))
      // Another call may have read it meanwhile.
      if (parsed.success && !open.isRead) addTo(open.hour, parsed.output)
      open.isRead = true
    }
  }
}

function countIn(counts: Counts, { tookMs, isFailed = false }: { readonly tookMs?: number; readonly isFailed?: boolean }): void {
  counts.turns += 1
  if (isFailed) counts.failed += 1
  if (tookMs === undefined) return
  const found = CLASSES.findIndex((most) => tookMs <= most)
  const name = String(found === -1 ? CLASSES.length - 1 : found)
  counts.took[name] = (counts.took[name] ?? 0) + 1
}

/** Adds an hour to another one, and returns that one. */
function addTo(hour: Hour, other: Hour): Hour {
  addCounts(hour, other)
  hour.queue_secs = Math.max(hour.queue_secs, other.queue_secs)
  for (const [name, counts] of Object.entries(other.of)) {
    hour.of[name] ??= noCounts()
    addCounts(hour.of[name], counts)
  }
  return hour
}

function addCounts(counts: Counts, other: Counts): void {
  counts.turns += other.turns
  counts.failed += other.failed
  for (const [name, count] of Object.entries(other.took)) counts.took[name] = (counts.took[name] ?? 0) + count
}

function shown(atMs: number, { turns, failed, took }: Counts): Omit<HourOfHistory, 'queueSecs'> {
  const counts = CLASSES.map((_, at) => took[String(at)] ?? 0)
  const all = counts.reduce((total, count) => total + count, 0)
  let seen = 0
  const at = counts.findIndex((count) => {
    seen += count
    return seen >= all * 0.95
  })
  return { atMs, turns, failed, p95Ms: all === 0 ? null : (CLASSES[at] ?? null) }
}

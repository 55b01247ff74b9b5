/**
 * The events that all nodes of a cluster share. An append locks the row with the newest number until its commit, so that numbers are
 * in the order of commits and a reader never finds an event before an earlier one. The tables are unlogged: an append waits for no disk, and
 * a crash of the server empties them. Numbers begin at the time in microseconds, so that the numbers after a crash are higher than before.
 */
import { endsWithin, every } from '@sluice/kit'
import type { Clock, EventFollower, EventLog, LoggedEvent, Logger } from '@sluice/sdk'
import type { Leases } from '../cluster/leases.ts'
import type { Notices } from '../cluster/notices.ts'
import { type ConnectionSettings, sql } from '../connection/connection.ts'
import { isConnectionError } from '../connection/postgres-error.ts'
import { Reader } from '../connection/reader.ts'

/** Events, and their characters, that wait at most. A further one is dropped. */
export const WAITING_MAX = 4096
export const WAITING_CHARS_MAX = 8 * 1024 * 1024
/** The events of one statement. */
const BATCH_MAX = 256
/** The events that stay in the table for nodes that start or come late. */
const STORED_MAX = 4096
const READ_MAX = 512
const LOOK_EVERY_MS = 1000
const RETRY_MS = 250
/** Events that are emitted within this time share a statement: each one locks a row of all nodes, and wakes each of them. */
const GATHER_MS = 20
/** How long the last events may take when the store closes: a database that does not answer must not hold up the stop of its node. */
const CLOSE_MS = 1000
/** Old events are deleted after this number of appended ones. */
const TRIM_EVERY = 1024

// The first number is skipped over where events were dropped: followers see that numbers are missing.
const APPEND = `
  WITH head AS (UPDATE event_head SET seq = seq + $1::bigint + cardinality($3::text[]) RETURNING seq - cardinality($3::text[]) AS before, base),
    added AS (
      INSERT INTO events (seq, process, body)
      SELECT head.before + place, $2, body FROM head, unnest($3::text[]) WITH ORDINALITY AS given (body, place))
  SELECT before, base, pg_notify($4, json_build_object('what', 'events', 'seq', before + cardinality($3::text[]))::text) FROM head`
const BEGIN = `
  INSERT INTO event_head (base, seq)
  SELECT base, base FROM (SELECT greatest(floor(extract(epoch FROM clock_timestamp()) * 1000000)::bigint, $1::bigint + 1) AS base) AS first
  ON CONFLICT DO NOTHING`
const HEAD = 'SELECT seq, base FROM event_head'
const READ = `
  SELECT head.base, events.seq, process = $2 AS "isOwn", body AS text FROM event_head AS head
  LEFT JOIN LATERAL (SELECT * FROM events WHERE seq > $1 ORDER BY seq LIMIT ${READ_MAX}) AS events ON true ORDER BY events.seq`
const LAST_OWN = 'SELECT seq FROM events WHERE process = $1 AND seq > $2 ORDER BY seq LIMIT 1'
const TRIM = 'DELETE FROM events WHERE seq <= (SELECT seq FROM event_head) - $1'

interface Waiting {
  readonly text: string
  readonly stored: ((seq: number | null) => void) | undefined
}

interface Found {
  readonly base: number
  /** Null when nothing follows. */
  readonly seq: number | null
  readonly isOwn: boolean
  readonly text: string
}

export interface EventLogOptions {
  readonly settings: ConnectionSettings
  readonly process: string
  readonly leases: Pick<Leases, 'listen'>
  readonly notices: Notices
  readonly clock: Clock
  readonly log: Logger
}

export class PostgresEventLog implements EventLog {
  readonly #options: EventLogOptions
  /** A connection of its own: neither turns nor events wait for one another. */
  readonly #connection: Reader
  readonly #closing = new AbortController()
  #waiting: Waiting[] = []
  #waitingChars = 0
  /** The events that were dropped since the last append. */
  #dropped = 0
  #appending: Promise<void> | undefined
  #appended = 0
  /** When the last statement with events began. */
  #appendedAtMs = Number.NEGATIVE_INFINITY
  #follower: EventFollower | undefined
  /** The number of the newest event that the follower has, and the number at which the table began. */
  #seq = 0
  #base = 0
  #reading: Promise<void> | undefined
  #isReadAsked = false
  #isFailing = false

  constructor(options: EventLogOptions) {
    this.#options = options
    this.#connection = new Reader(options.settings, 1)
  }

  append(text: string, stored?: (seq: number | null) => void): void {
    const isFull = this.#waiting.length >= WAITING_MAX || this.#waitingChars + text.length > WAITING_CHARS_MAX
    if (isFull || this.#closing.signal.aborted) {
      this.#dropped++
      stored?.(null)
      return
    }
    this.#waiting.push({ text, stored })
    this.#waitingChars += text.length
    this.#appending ??= this.#appendAll()
  }

  async follow(follower: EventFollower, keptMax: number): Promise<void> {
    const { leases, notices, clock } = this.#options
    await leases.listen()
    let head = await this.#connection.get<{ seq: number; base: number }>(sql(HEAD))
    while (!head) {
      await this.#connection.all(sql(BEGIN, 0))
      head = await this.#connection.get<{ seq: number; base: number }>(sql(HEAD))
    }
    this.#base = head.base
    this.#seq = Math.max(head.base, head.seq - keptMax)
    this.#follower = follower
    follower.onStart({ seq: this.#seq, base: head.base })
    const { signal } = this.#closing
    const forget = notices.on('events', (seq = Number.POSITIVE_INFINITY) => {
      if (seq > this.#seq && follower.isWatched()) void this.#read()
    })
    signal.addEventListener('abort', forget, { once: true })
    void every(clock, LOOK_EVERY_MS, signal, () => void this.#read())
    await this.#read()
  }

  catchUp(): Promise<void> {
    return this.#read()
  }

  /** Appends what waits, unless the database does not take it soon. */
  async close(): Promise<void> {
    const { signal } = this.#closing
    if (this.#appending && !signal.aborted && !this.#isFailing) await endsWithin(this.#appending, CLOSE_MS, this.#options.clock)
    this.#closing.abort()
    await this.#connection.close()
    await Promise.all([this.#appending, this.#reading])
  }

  async #appendAll(): Promise<void> {
    while (this.#waiting.length > 0 && !this.#closing.signal.aborted) {
      await this.#gather()
      const batch = this.#waiting.splice(0, BATCH_MAX)
      const dropped = this.#dropped
      this.#dropped = 0
      const before = await this.#store(batch, dropped)
      for (const { text } of batch) this.#waitingChars -= text.length
      if (before === undefined) this.#dropped += dropped + batch.length
      for (const [at, { stored }] of batch.entries()) stored?.(before === undefined ? null : before + at + 1)
    }
    for (const { stored } of this.#waiting.splice(0)) stored?.(null)
    this.#appending = undefined
  }

  /** Waits for events that share the next statement: after a pause, only for events of the same tick. */
  async #gather(): Promise<void> {
    const { clock } = this.#options
    const restMs = this.#waiting.length < BATCH_MAX ? this.#appendedAtMs + GATHER_MS - clock.monotonicMs() : 0
    if (restMs > 0) await clock.sleep(restMs, this.#closing.signal)
    else await new Promise((resolve) => setImmediate(resolve))
    this.#appendedAtMs = clock.monotonicMs()
  }

  /** Resolves to the number before the first one of the batch, as soon as the database takes it; to undefined when the store was closed. */
  async #store(batch: readonly Waiting[], dropped: number): Promise<number | undefined> {
    const { process, notices, clock, log } = this.#options
    const texts = batch.map(({ text }) => text)
    const append = sql(APPEND, dropped, process, texts, notices.channel)
    // The connection may break after the commit: an own event after this number shows it.
    const after = this.#ownSeq
    for (let isRepeated = false; !this.#closing.signal.aborted; isRepeated = true) {
      try {
        const known = isRepeated ? await this.#connection.get<{ seq: number }>(sql(LAST_OWN, process, after)) : undefined
        const head = known
          ? { before: known.seq - 1, base: this.#base }
          : await this.#connection.once<{ before: number; base: number }>(append)
        if (head) {
          this.#isFailing = false
          this.#ownSeq = head.before + batch.length
          this.#deliverOwn(head, texts, dropped)
          this.#trim(batch.length)
          return head.before
        }
        await this.#connection.all(sql(BEGIN, Math.max(this.#seq, this.#ownSeq)))
      } catch (error) {
        if (!this.#isFailing && !this.#closing.signal.aborted) log.warn('events cannot be shared with other nodes now', { error })
        this.#isFailing = true
        if (!isConnectionError(error) && !isUnavailable(error)) return undefined
        await clock.sleep(RETRY_MS, this.#closing.signal)
      }
    }
    return undefined
  }

  /** The newest own number. */
  #ownSeq = 0

  /** Events that follow the newest known one need not be read. */
  #deliverOwn({ before, base }: { readonly before: number; readonly base: number }, texts: readonly string[], dropped: number): void {
    if (!this.#follower) return
    if (base !== this.#base || before - dropped !== this.#seq || this.#reading) {
      if (this.#follower.isWatched()) void this.#read()
    } else {
      this.#seq = before + texts.length
      this.#follower.onEvents(texts.map((text, at) => ({ seq: before + at + 1, text, isOwn: true })))
    }
  }

  #trim(count: number): void {
    this.#appended += count
    if (this.#appended < TRIM_EVERY) return
    this.#appended = 0
    // The next one repeats it.
    this.#connection.all(sql(TRIM, STORED_MAX)).catch(() => undefined)
  }

  #read(): Promise<void> {
    this.#isReadAsked = true
    this.#reading ??= this.#readAll().finally(() => {
      this.#reading = undefined
    })
    return this.#reading
  }

  async #readAll(): Promise<void> {
    const { process, log } = this.#options
    while (this.#isReadAsked && !this.#closing.signal.aborted) {
      this.#isReadAsked = false
      try {
        for (let count = READ_MAX; count === READ_MAX; ) {
          const rows = await this.#connection.all<Found>(sql(READ, this.#seq, process))
          count = this.#deliver(rows)
          this.#isFailing = false
        }
      } catch (error) {
        // The next look repeats this one.
        if (!this.#isFailing && !this.#closing.signal.aborted) log.warn('events of other nodes cannot be read now', { error })
        this.#isFailing = true
      }
    }
  }

  /** Returns the number of events that were read. */
  #deliver(rows: readonly Found[]): number {
    const base = rows[0]?.base
    // A server that has crashed has no row until the next event.
    if (base === undefined || !this.#follower) return 0
    if (base !== this.#base) {
      this.#base = base
      this.#seq = base
      this.#follower.onStart({ seq: base, base })
      return READ_MAX
    }
    const events = rows.flatMap(({ seq, text, isOwn }): LoggedEvent[] => (seq === null || seq <= this.#seq ? [] : [{ seq, text, isOwn }]))
    const last = events.at(-1)
    if (!last) return 0
    this.#seq = last.seq
    this.#follower.onEvents(events)
    return rows.length
  }
}

const isUnavailable = (error: unknown): boolean => error instanceof Error && 'code' in error && error.code === 'unavailable'

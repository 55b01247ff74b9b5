/** What processes tell each other through the database, besides what they store. A notice may be lost. */
import { EventEmitter } from 'node:events'
import type { ClusterNotice, ClusterNotices, Logger } from '@sluice/sdk'
import type { Database } from '../connection/database.ts'

/** What processes that wait for one session tell its holder, and the holder them. */
export type SessionNotice =
  /** A process has waited so long for the holder of this epoch. */
  | { readonly what: 'session wanted'; readonly epoch: number; readonly waitedMs: number }
  /** The session is free, first of all for this process. */
  | { readonly what: 'session free'; readonly name: string; readonly next: string }

/** Events, or another version of the configuration, were stored. Every process looks, including the one that stored them. */
export type SharedNotice = 'events' | 'config'

export type AnyNotice = ClusterNotice | SessionNotice

const TOLD = new Set<string>([
  'approval',
  'abort',
  'turn',
  'follow',
  'ended',
  'session wanted',
  'session free',
] satisfies AnyNotice['what'][])
const SEND = 'SELECT pg_notify($1, $2)'

export interface NoticesOptions {
  readonly db: Database
  readonly log: Logger
  readonly process: string
  /** The channel on which this process listens. */
  readonly channel: string
}

export class Notices implements ClusterNotices {
  readonly #options: NoticesOptions
  readonly #listeners = new Set<(notice: AnyNotice, from: string) => void>()
  readonly #shared = new EventEmitter().setMaxListeners(0)

  constructor(options: NoticesOptions) {
    this.#options = options
  }

  get channel(): string {
    return this.#options.channel
  }

  /** Calls `listener` for each notice about the state that nodes share, with its number if it has one. Returns an unsubscribe function. */
  on(what: SharedNotice, listener: (seq?: number) => void): () => void {
    this.#shared.on(what, listener)
    return () => void this.#shared.off(what, listener)
  }

  send(notice: AnyNotice): void {
    const { db, process, channel } = this.#options
    // Every look at the store finds what a lost notice was about.
    db.all(SEND, channel, JSON.stringify({ ...notice, from: process })).catch(() => undefined)
  }

  listen(listener: (notice: ClusterNotice) => void): () => void {
    return this.listenToAll((notice) => {
      if (notice.what !== 'session wanted' && notice.what !== 'session free') listener(notice)
    })
  }

  listenToAll(listener: (notice: AnyNotice, from: string) => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  /** Passes on a notice of the listening connection; ignores this process's own notices, and unknown ones. */
  heard(message: { readonly what?: unknown; readonly from?: unknown; readonly seq?: unknown }): void {
    const { what, from, seq } = message
    if (what === 'events' || what === 'config') this.#shared.emit(what, typeof seq === 'number' ? seq : undefined)
    if (typeof from !== 'string' || from === this.#options.process || typeof what !== 'string' || !TOLD.has(what)) return
    for (const listener of this.#listeners) {
      try {
        listener(message as AnyNotice, from)
      } catch (error) {
        this.#options.log.error('a notice of another process was not followed', { what, error })
      }
    }
  }
}

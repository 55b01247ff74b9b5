/** Hands single updates to the inbox, and gives up on an update that blocks all later ones. */
import { AppError, type Deliver, type Host } from '@sluice/sdk'
import { Albums } from './albums.ts'
import type { KnownNames } from './known-names.ts'
import type { Bot } from './mention.ts'
import { type Parsed, parseUpdate } from './parse.ts'

/** An update is skipped once it has failed for this long and this often although the inbox could store others. */
const REFUSED_MS = 3_600_000
const REFUSALS_MIN = 10

export class Intake {
  readonly #host: Host
  readonly #names: KnownNames
  readonly #bot: Bot
  readonly #mentionOnly: boolean
  readonly #albums: Albums
  #skipped = 0
  /** The update that failed last, and how often. */
  #blocking = { id: -1, sinceMs: 0, refusals: 0 }

  constructor(host: Host, names: KnownNames, bot: Bot, mentionOnly: boolean) {
    this.#host = host
    this.#names = names
    this.#bot = bot
    this.#mentionOnly = mentionOnly
    this.#albums = new Albums(bot)
  }

  /** Returns how many updates of a batch can be taken; the others come again with the next one. */
  countOf(batch: readonly unknown[]): number {
    return this.#albums.learn(batch)
  }

  /**
   * Resolves once the message of the update is durable. Returns `ignored` for an update that contains none for the bot.
   * Rejects if the caller should try again.
   */
  async take(update: unknown, id: number, deliver: Deliver): Promise<Parsed | 'ignored'> {
    const parsed = this.#parse(update, id)
    if (parsed === 'ignored' || !parsed.inbound) return parsed
    try {
      await this.#names.learn(parsed.inbound.sender, parsed.username)
      await deliver(parsed.inbound)
      return parsed
    } catch (error) {
      if (this.#isPermanentlyRefused(id, error)) return this.#skip(id, error)
      throw error
    }
  }

  #parse(update: unknown, id: number): Parsed | 'ignored' {
    try {
      return parseUpdate(update, this.#bot, this.#mentionOnly, this.#albums) ?? 'ignored'
    } catch (error) {
      return this.#skip(id, error)
    }
  }

  #isPermanentlyRefused(id: number, error: unknown): boolean {
    if (error instanceof AppError && error.code === 'unavailable') return false
    const nowMs = this.#host.clock.monotonicMs()
    const before = this.#blocking.id === id ? this.#blocking : { id, sinceMs: nowMs, refusals: 0 }
    this.#blocking = { ...before, refusals: before.refusals + 1 }
    return nowMs - before.sinceMs >= REFUSED_MS && this.#blocking.refusals >= REFUSALS_MIN
  }

  #skip(id: number, error: unknown): 'ignored' {
    this.#skipped += 1
    this.#host.log.error('skipped an update that could not be taken', { update: id, skipped: this.#skipped, error })
    return 'ignored'
  }
}

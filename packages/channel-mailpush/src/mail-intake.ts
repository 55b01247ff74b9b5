/** Takes one mail from the mailbox to the inbox: fetches it, reads it and delivers it. */
import { AppError, type Deliver, errorText, type Gap, type Host } from '@sluice/sdk'
import type { Mail } from './mail.ts'
import { type Reading, readMail } from './parse.ts'
import type { MailPolicy } from './why-ignored.ts'

/** Fetches a mail; see `MailApi.mail`. */
export type FetchMail = (id: string, signal: AbortSignal) => Promise<Mail | 'unreadable' | undefined>

export interface MailTarget {
  readonly deliver: Deliver
  /** Called when a mail is skipped because of a fault. */
  onGap(gap: Gap): void
}

export interface MailLimits {
  /** Skips mails that were not changed after this history id. */
  readonly unchangedSince?: bigint
  /** Skips mails that are older. */
  readonly sinceMs?: number
}

/** A refused mail is skipped once it has been refused for this time and at least this number of times. */
const REFUSED_MS = 3_600_000
const REFUSALS_MIN = 10

export class MailIntake {
  readonly #host: Host
  readonly #fetchMail: FetchMail
  readonly #policy: MailPolicy
  readonly #deliver: Deliver
  readonly #onGap: MailTarget['onGap']
  /** The mail that the API refuses. No later mail is read until it is fetched or skipped. */
  #refused = { id: '', sinceMs: 0, times: 0 }

  constructor(host: Host, fetchMail: FetchMail, policy: MailPolicy, { deliver, onGap }: MailTarget) {
    this.#host = host
    this.#fetchMail = fetchMail
    this.#policy = policy
    this.#deliver = deliver
    this.#onGap = onGap
  }

  /**
   * Delivers a mail unless the policy ignores it. Resolves to the time of the mail, or the current time without one, once it is
   * durable. Rejects when it cannot be fetched or stored, so that the caller tries again.
   */
  async take(id: string, signal: AbortSignal, { unchangedSince, sinceMs }: MailLimits = {}): Promise<number> {
    const { clock, log } = this.#host
    const mail = await this.#fetch(id, signal)
    if (mail === undefined) return clock.nowMs()
    if (mail === 'unreadable') {
      log.warn('mail skipped: the answer of the API is not a mail', { mail: id })
      this.#onGap({ why: `the answer of the API for the mail ${id} is not a mail` })
      return clock.nowMs()
    }
    const atMs = Number(mail.internalDate ?? clock.nowMs())
    const isUnchanged = unchangedSince !== undefined && mail.historyId !== undefined && mail.historyId <= unchangedSince
    if (isUnchanged || (sinceMs !== undefined && atMs < sinceMs)) return atMs
    const reading = this.#read(mail)
    if ('ignored' in reading) log.info('mail ignored', { mail: id, reason: reading.ignored })
    else await this.#deliver(reading.inbound)
    return atMs
  }

  async #fetch(id: string, signal: AbortSignal): Promise<Mail | 'unreadable' | undefined> {
    try {
      return await this.#fetchMail(id, signal)
    } catch (error) {
      if (!isFaultOfMail(error) || !this.#isRefusedTooLong(id)) throw error
      this.#host.log.error('mail skipped: refused for an hour', { mail: id, error })
      this.#onGap({ why: `the mail ${id} was refused for an hour: ${errorText(error)}` })
      return undefined
    }
  }

  #read(mail: Mail): Reading {
    try {
      return readMail(mail, this.#policy)
    } catch (error) {
      this.#host.log.error('mail cannot be read', { mail: mail.id, error })
      this.#onGap({ why: `the mail ${mail.id} cannot be read: ${errorText(error)}` })
      return { ignored: 'it could not be read' }
    }
  }

  /** Counts a refusal. Returns whether the mail is to be skipped. */
  #isRefusedTooLong(id: string): boolean {
    const nowMs = this.#host.clock.monotonicMs()
    const { sinceMs, times } = this.#refused.id === id ? this.#refused : { sinceMs: nowMs, times: 0 }
    this.#refused = { id, sinceMs, times: times + 1 }
    return nowMs - sinceMs >= REFUSED_MS && times + 1 >= REFUSALS_MIN
  }
}

/** Tells a fault of one mail from an outage, which ends. An error other than `AppError` is a bug that the mail triggers. */
const isFaultOfMail = (error: unknown): boolean =>
  !(error instanceof AppError) || error.code === 'invalid_request' || error.code === 'too_large'

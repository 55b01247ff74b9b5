/** Takes one mail from the mailbox to the inbox: fetches it, reads it and delivers it. */
import { storePatiently } from '@sluice/kit'
import { normaliseAddress } from '@sluice/mail-common'
import { AppError, type Deliver, errorText, type Gap, type Host, type Inbound, isAllowed } from '@sluice/sdk'
import { whyUnverified } from './authentication.ts'
import { fetchHeaderOnly, fetchMail } from './fetch-mail.ts'
import { coversSender } from './identity.ts'
import type { Imap } from './imap.ts'
import { ImapRefusal, UnreadableResponse } from './imap-line.ts'
import { type FetchedMail, type MailPolicy, readMail } from './parse.ts'
import { SenderLimit } from './sender-limit.ts'

export interface MailToTake {
  readonly uidValidity: string
  readonly uid: number
  /** Returns why a mail is skipped, as a clause for the log; undefined for one to deliver. */
  skips?(mail: FetchedMail, inbound: Inbound): string | undefined
}

/** What takes a mail over. */
export interface Taking {
  readonly deliver: Deliver
  readonly signal: AbortSignal
  /** Called when a mail is skipped because of a fault. */
  onGap(gap: Gap): void
}

/** A mail that the server refuses is skipped once it has been refused for this time and at least this number of times. */
const REFUSED_MS = 3_600_000
const REFUSALS_MIN = 10
/** A mail whose description cannot be read is tried again on other connections, because the connection may have been the cause. */
const UNREADABLE_MAX = 3

export class Intake {
  readonly #host: Pick<Host, 'log' | 'clock' | 'keyValue'>
  readonly #policy: MailPolicy
  readonly #limit: SenderLimit
  #isLimitLoaded = false
  /** The mail that cannot be fetched, and, once it was tried often enough, why. No later mail is read until it is fetched or skipped. */
  #failed: { readonly mail: string; readonly sinceMs: number; readonly times: number; readonly reason?: string } = {
    mail: '',
    sinceMs: 0,
    times: 0,
  }

  constructor(host: Pick<Host, 'log' | 'clock' | 'keyValue'>, policy: MailPolicy, mailsPerHour: number) {
    this.#host = host
    this.#policy = policy
    this.#limit = new SenderLimit(mailsPerHour)
  }

  /**
   * Resolves once the mail is durable or ignored: to its message, or undefined without one, and to `stopped` when `signal` aborted before
   * it was durable. Rejects when it cannot be fetched, so that the caller tries again over another connection.
   */
  async take(imap: Imap, mail: MailToTake, { deliver, signal, onGap }: Taking): Promise<Inbound | 'stopped' | undefined> {
    const { log } = this.#host
    const found = await this.#fetch(imap, mail, onGap)
    if (!found) return undefined
    const read = this.#read(mail.uid, found, onGap)
    if (!read) return undefined
    const { fetched, inbound } = read
    const skipped = mail.skips?.(fetched, inbound)
    if (skipped !== undefined) {
      log.info('mail skipped', { channel: 'email', uid: mail.uid, reason: skipped })
      return undefined
    }
    if (!(await this.#isWithinLimit(inbound))) return undefined
    this.#explain(fetched, inbound)
    if (!(await storePatiently(this.#host, { channel: 'email', inbound, deliver, signal }))) return 'stopped'
    // Stored after the mail: one that a crash brings again must not count twice, because it would be ignored as beyond the limit.
    await this.#limit.save(this.#host.keyValue, this.#host.clock.nowMs())
    return inbound
  }

  /** Returns undefined for a mail that was deleted, or that is skipped. */
  async #fetch(imap: Imap, { uidValidity, uid }: MailToTake, onGap: Taking['onGap']): Promise<Awaited<ReturnType<typeof fetchMail>>> {
    const mail = `${uidValidity}/${uid}`
    const reason = this.#failed.mail === mail ? this.#failed.reason : undefined
    if (reason !== undefined) return this.#fetchHeader(imap, { uidValidity, uid }, reason, onGap)
    try {
      return await fetchMail(imap, { uidValidity, uid }, this.#policy)
    } catch (error) {
      if (isFaultOfMail(error)) this.#count(mail, error)
      throw asUnavailable(error)
    }
  }

  /** Fetches the header of a mail that cannot be fetched as a whole, so that its sender gets an answer. */
  async #fetchHeader(
    imap: Imap,
    mail: { readonly uidValidity: string; readonly uid: number },
    reason: string,
    onGap: Taking['onGap'],
  ): Promise<Awaited<ReturnType<typeof fetchMail>>> {
    const { log } = this.#host
    const { uid } = mail
    try {
      const found = await fetchHeaderOnly(imap, mail, this.#policy)
      if (!found || 'ignored' in found) return found
      log.error('text of a mail skipped: it cannot be fetched', { channel: 'email', uid, reason })
      onGap({ why: `the text of the mail with the UID ${uid} cannot be fetched: ${reason}` })
      return found
    } catch (error) {
      if (!isFaultOfMail(error)) throw asUnavailable(error)
      log.error('mail skipped: it cannot be fetched', { channel: 'email', uid, error })
      onGap({ why: `the mail with the UID ${uid} cannot be fetched: ${errorText(error)}` })
      return undefined
    }
  }

  #read(
    uid: number,
    found: FetchedMail | { readonly ignored: string },
    onGap: Taking['onGap'],
  ): { fetched: FetchedMail; inbound: Inbound } | undefined {
    const { log } = this.#host
    try {
      if ('ignored' in found) log.info('mail ignored', { channel: 'email', uid, reason: found.ignored })
      else {
        const reading = readMail(found, this.#policy)
        if ('inbound' in reading) return { fetched: found, inbound: reading.inbound }
        log.info('mail ignored', { channel: 'email', uid, reason: reading.ignored })
      }
    } catch (error) {
      log.error('mail cannot be read', { channel: 'email', uid, error })
      onGap({ why: `the mail with the UID ${uid} cannot be read: ${errorText(error)}` })
    }
    return undefined
  }

  async #isWithinLimit({ sender }: Inbound): Promise<boolean> {
    if (!this.#isLimitLoaded) await this.#limit.load(this.#host.keyValue)
    this.#isLimitLoaded = true
    const verdict = this.#limit.count(sender, this.#host.clock.nowMs())
    if (verdict === 'first')
      this.#host.log.warn('mails ignored for up to an hour: more than max_mails_per_hour of one sender', { channel: 'email', sender })
    return verdict === 'within'
  }

  /** Tells the operator why the allowlist does not count for the sender that the mail names. */
  #explain({ headers }: FetchedMail, { unverified, sender, to }: Inbound): void {
    const { allow, authservIds } = this.#policy
    const named = allow.filter((entry) => entry !== '*')
    if (!unverified || !isAllowed(named, to.to, normaliseAddress, coversSender)) return
    this.#host.log.info('mail unverified: its sender may be forged', {
      channel: 'email',
      sender,
      reason: whyUnverified(headers('authentication-results'), authservIds),
    })
  }

  #count(mail: string, error: unknown): void {
    const nowMs = this.#host.clock.monotonicMs()
    const { sinceMs, times } = this.#failed.mail === mail ? this.#failed : { sinceMs: nowMs, times: 0 }
    const isUnreadable = error instanceof UnreadableResponse
    const isEnough = isUnreadable ? times + 1 >= UNREADABLE_MAX : nowMs - sinceMs >= REFUSED_MS && times + 1 >= REFUSALS_MIN
    this.#failed = { mail, sinceMs, times: times + 1, ...(isEnough && { reason: errorText(error) }) }
  }
}

/** Tells a fault of one mail from an outage of the server. */
const isFaultOfMail = (error: unknown): boolean => error instanceof UnreadableResponse || error instanceof ImapRefusal

const asUnavailable = (error: unknown): unknown =>
  error instanceof AppError ? error : new AppError('unavailable', `The IMAP server did not return a mail: ${errorText(error)}`)

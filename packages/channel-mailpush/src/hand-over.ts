/** One mail from the mailbox to the inbox: fetched, read, and durable once this resolves. */
import { AppError, type Deliver, type Host } from '@sluice/sdk'
import type { Mail } from './mail.ts'
import type { MailApi } from './mail-api.ts'
import { type Reader, type Reading, readMail } from './read-mail.ts'

export interface HandOverOptions {
  readonly host: Pick<Host, 'clock' | 'log'>
  readonly api: Pick<MailApi, 'mail'>
  readonly reader: Reader
  readonly deliver: Deliver
}

export interface HandOverLimits {
  /** Leaves out what was not touched after. */
  readonly unchangedSince?: bigint
  /** Leaves out what is older. */
  readonly sinceMs?: number
}

/** Resolves to the mail's time, or now if it has none. Rejects if it could not be fetched or kept, for another attempt. */
export type HandOver = (id: string, signal: AbortSignal, limits?: HandOverLimits) => Promise<number>

/** A mail is left out when it was refused for so long, and so often. */
const REFUSED_MS = 3_600_000
const REFUSALS_MIN = 10
/** What is wrong with the one mail, unlike all that may be an outage, which ends. What is no `AppError` is wrong with us, and its cause. */
const isOfOneMail = (error: unknown): boolean =>
  !(error instanceof AppError) || error.code === 'invalid_request' || error.code === 'too_large'

export function createHandOver({ host: { clock, log }, api, reader, deliver }: HandOverOptions): HandOver {
  /** The mail at which everything stands still. */
  let stuck = { id: '', sinceMs: 0, refusals: 0 }
  /** Whether to give the mail up. */
  const isRefusedForGood = (id: string): boolean => {
    const nowMs = clock.monotonicMs()
    stuck = stuck.id === id ? { ...stuck, refusals: stuck.refusals + 1 } : { id, sinceMs: nowMs, refusals: 1 }
    return nowMs - stuck.sinceMs >= REFUSED_MS && stuck.refusals >= REFUSALS_MIN
  }

  const fetchMail = async (id: string, signal: AbortSignal): Promise<Mail | 'unreadable' | undefined> => {
    try {
      return await api.mail(id, signal)
    } catch (error) {
      if (!isOfOneMail(error) || !isRefusedForGood(id)) throw error
      log.error('a mail was refused for an hour and is left out', { mail: id, error })
      return undefined
    }
  }
  const read = (mail: Mail): Reading => {
    try {
      return readMail(mail, reader)
    } catch (error) {
      log.error('a mail could not be read', { mail: mail.id, error })
      return { ignored: 'it could not be read' }
    }
  }

  return async (id, signal, { unchangedSince, sinceMs } = {}) => {
    const mail = await fetchMail(id, signal)
    if (mail === undefined) return clock.nowMs()
    if (mail === 'unreadable') {
      log.warn('a mail is left out: the API gave nothing that could be read', { mail: id })
      return clock.nowMs()
    }
    const atMs = Number(mail.internalDate ?? clock.nowMs())
    const isUnchanged = unchangedSince !== undefined && mail.historyId !== undefined && mail.historyId <= unchangedSince
    if (isUnchanged || (sinceMs !== undefined && atMs < sinceMs)) return atMs
    const reading = read(mail)
    if ('ignored' in reading) log.info('a mail is left out', { mail: id, reason: reading.ignored })
    else await deliver(reading.inbound)
    return atMs
  }
}

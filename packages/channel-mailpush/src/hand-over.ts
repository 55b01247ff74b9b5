/** One mail from the mailbox to the inbox: fetched, read, and durable once this resolves. */
import { AppError, type Deliver, type Host } from '@sluice/sdk'
import type { Mail } from './mail.ts'
import type { MailApi } from './mail-api.ts'
import { type Reader, type Reading, readMail } from './read-mail.ts'

export interface HandOverOptions {
  readonly host: Pick<Host, 'log'>
  readonly api: Pick<MailApi, 'mail'>
  readonly reader: Reader
  readonly deliver: Deliver
}

/** Rejects if the mail could not be fetched or kept, for another attempt; `unchangedSince` leaves out what was not touched after. */
export type HandOver = (id: string, signal: AbortSignal, options?: { readonly unchangedSince?: bigint }) => Promise<void>

/** About an hour of attempts with growing pauses, in all of which the mailbox could be listed and only this mail not be fetched. */
const ATTEMPTS_MAX = 20
/** These say nothing of the one mail. */
const OF_ALL = new Set(['aborted', 'unavailable', 'rate_limited', 'forbidden'])

export function createHandOver({ host: { log }, api, reader, deliver }: HandOverOptions): HandOver {
  /** The mail at which everything stands still. */
  let stuck = { id: '', attempts: 0 }

  const fetchMail = async (id: string, signal: AbortSignal): Promise<Mail | 'unreadable' | undefined> => {
    try {
      return await api.mail(id, signal)
    } catch (error) {
      if (!(error instanceof AppError) || OF_ALL.has(error.code)) throw error
      stuck = { id, attempts: stuck.id === id ? stuck.attempts + 1 : 1 }
      if (stuck.attempts < ATTEMPTS_MAX) throw error
      log.error('a mail could not be fetched for about an hour and is left out', { mail: id, error })
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

  return async (id, signal, { unchangedSince } = {}) => {
    const mail = await fetchMail(id, signal)
    if (mail === undefined) return
    if (mail === 'unreadable') return log.warn('a mail is left out: the API gave nothing that could be read', { mail: id })
    if (unchangedSince !== undefined && mail.historyId !== undefined && mail.historyId <= unchangedSince) return
    const reading = read(mail)
    if ('ignored' in reading) log.info('a mail is left out', { mail: id, reason: reading.ignored })
    else await deliver(reading.inbound)
  }
}

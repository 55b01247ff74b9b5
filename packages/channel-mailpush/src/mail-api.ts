/** What is asked of the mail API (§2.3), in our words. */
import { AppError } from '@sluice/sdk'
import type { RequestApi } from './api-request.ts'
import { type Mail, parseMail } from './mail.ts'
import {
  attachmentAnswer,
  expected,
  historyAnswer,
  listAnswer,
  mailAnswer,
  profileAnswer,
  sentAnswer,
  watchAnswer,
} from './mail-answers.ts'

/** The address of a mailbox whose API has no profile. */
export const UNNAMED = 'me'

/** A mail that arrived. The API does not tell the labels of every mail. */
export interface NewMail {
  readonly id: string
  readonly labels?: readonly string[]
}

export interface HistoryPage {
  readonly mails: readonly NewMail[]
  /** Of the newest change on this page. */
  readonly pageEnd: bigint | undefined
  /** Of the newest change in the mailbox. */
  readonly now: bigint
  readonly next: string | undefined
}

export interface MailApi {
  /** Our own address, in small letters, and the newest change in the mailbox, where the API tells it. */
  profile(signal: AbortSignal): Promise<{ readonly address: string; readonly historyId?: bigint }>
  /** Asks to be pushed, for seven days at most; once more is renewal. `historyId` is the mailbox's now. */
  watch(subscription: Subscription, signal: AbortSignal): Promise<{ readonly historyId: bigint; readonly expiresAtMs: number }>
  /** Mails that came after `since`, oldest first; undefined if that is too long ago for the provider to remember. */
  history(query: { since: bigint; label?: string; page?: string }, signal: AbortSignal): Promise<HistoryPage | undefined>
  /** Ids of mails that came after a moment, newest first. */
  list(query: { sinceMs: number; label?: string; page?: string }, signal: AbortSignal): Promise<{ ids: string[]; next: string | undefined }>
  /** Undefined if it is gone; `unreadable` if it is nothing that could be read. `invalid_request` and `too_large` are of this one mail. */
  mail(id: string, signal: AbortSignal): Promise<Mail | 'unreadable' | undefined>
  /** `too_large` beyond `bytesMax`. */
  attachment(ids: { mail: string; attachment: string }, bytesMax: number, signal: AbortSignal): Promise<Uint8Array>
  /** Sends a whole mail (RFC 5322) in a thread; resolves to its id. */
  send(mail: string, thread: string | undefined, signal: AbortSignal): Promise<string>
}

export interface Subscription {
  readonly topic: string
  readonly labels: readonly string[]
}

const MAIL_BYTES_MAX = 16 * 1_048_576
const PAGE_SIZE = '100'
const REDIRECTS = [301, 302, 303, 307, 308]

export function createMailApi(request: RequestApi): MailApi {
  return {
    async profile(signal) {
      // An API that keeps one mailbox alone may lack profiles; `me` is what all call the mailbox of the token.
      const { status, json } = await request({ method: 'GET', path: ['profile'], accept: [404], signal })
      if (status === 404) return { address: UNNAMED }
      const { emailAddress, historyId } = expected(profileAnswer, json)
      return { address: emailAddress.toLowerCase(), ...(historyId !== undefined && { historyId }) }
    },

    async watch({ topic, labels }, signal) {
      const filter = labels.length > 0 ? { labelIds: labels, labelFilterBehavior: 'INCLUDE' } : {}
      const { json } = await request({ method: 'POST', path: ['watch'], body: { topicName: topic, ...filter }, signal })
      const { historyId, expiration } = expected(watchAnswer, json)
      return { historyId, expiresAtMs: expiration }
    },

    async history({ since, label, page }, signal) {
      const query = {
        startHistoryId: String(since),
        historyTypes: 'messageAdded',
        maxResults: PAGE_SIZE,
        labelId: label,
        pageToken: page,
      }
      const { status, json } = await request({ method: 'GET', path: ['history'], query, accept: [404], signal })
      if (status === 404) return undefined
      const { history, historyId, nextPageToken } = expected(historyAnswer, json)
      const mails = history.flatMap(({ messagesAdded }) =>
        messagesAdded.map(({ message: { id, labelIds } }) => ({ id, ...(labelIds && { labels: labelIds }) })),
      )
      return { mails, pageEnd: history.at(-1)?.id, now: historyId, next: nextPageToken }
    },

    async list({ sinceMs, label, page }, signal) {
      const query = { q: `after:${Math.floor(sinceMs / 1000)}`, maxResults: PAGE_SIZE, labelIds: label, pageToken: page }
      const { json } = await request({ method: 'GET', path: ['messages'], query, signal })
      const { messages, nextPageToken } = expected(listAnswer, json)
      return { ids: messages.map(({ id }) => id), next: nextPageToken }
    },

    async mail(id, signal) {
      const get = (format: 'full' | 'metadata') =>
        request({
          method: 'GET',
          path: ['messages', id],
          query: { format },
          accept: [404, ...REDIRECTS],
          answerBytesMax: MAIL_BYTES_MAX,
          signal,
        })
      const { status, json } = await get('full').catch((error: unknown) => {
        // Its subject and its first words are better than nothing.
        if (error instanceof AppError && error.code === 'too_large') return get('metadata')
        throw error
      })
      if (status === 404) return undefined
      // Somebody between us and the API, who says nothing of the mail.
      if (REDIRECTS.includes(status)) throw new AppError('upstream', `mailpush answered ${status}, a redirect, which is not followed`)
      expected(mailAnswer(id), json)
      return parseMail(json) ?? 'unreadable'
    },

    async attachment({ mail, attachment }, bytesMax, signal) {
      const path = ['messages', mail, 'attachments', attachment]
      // Four characters for three bytes, and what is around them.
      const answerBytesMax = Math.ceil(bytesMax / 3) * 4 + 4096
      const { json } = await request({ method: 'GET', path, answerBytesMax, signal })
      const bytes = Buffer.from(expected(attachmentAnswer, json).data, 'base64')
      if (bytes.length > bytesMax) throw new AppError('too_large', `The attachment is larger than ${bytesMax} bytes`)
      return bytes
    },

    async send(mail, thread, signal) {
      const body = { raw: Buffer.from(mail).toString('base64url'), ...(thread !== undefined && { threadId: thread }) }
      const { json } = await request({ method: 'POST', path: ['messages', 'send'], body, signal })
      return expected(sentAnswer, json).id
    },
  }
}

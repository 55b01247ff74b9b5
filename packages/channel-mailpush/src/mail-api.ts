/** The methods of the mail API that the channel uses, with their answers checked. */
import { AppError } from '@sluice/sdk'
import * as v from 'valibot'
import type { ApiClient } from './api-client.ts'
import { historyIdSchema, type Mail, parseMail } from './mail.ts'

/** The name of the mailbox when the API has no profile. All APIs accept `me` for the mailbox of the token. */
export const UNNAMED_MAILBOX = 'me'

export interface Subscription {
  readonly topic: string
  /** The labels of the mails to receive; empty means all mails. */
  readonly labels: readonly string[]
}

/** A mail that arrived. The API does not state the labels of every mail. */
export interface NewMail {
  readonly id: string
  readonly labels?: readonly string[]
}

export interface HistoryPage {
  readonly mails: readonly NewMail[]
  /** The history id of the newest change on this page. */
  readonly pageEnd: bigint | undefined
  /** The history id of the newest change in the mailbox. */
  readonly newest: bigint
  /** The token of the next page. */
  readonly next: string | undefined
}

export interface MailPage {
  readonly ids: readonly string[]
  /** The token of the next page. */
  readonly next: string | undefined
}

const MAIL_BYTES_MAX = 16 * 1_048_576
const PAGE_SIZE = '100'
const REDIRECTS = [301, 302, 303, 307, 308]

const id = v.pipe(v.string(), v.minLength(1))
const profileAnswer = v.object({ emailAddress: v.pipe(v.string(), v.minLength(1)), historyId: v.optional(historyIdSchema) })
const watchAnswer = v.object({
  historyId: historyIdSchema,
  expiration: v.pipe(v.union([v.string(), v.number()]), v.transform(Number), v.safeInteger()),
})
const historyAnswer = v.object({
  historyId: historyIdSchema,
  nextPageToken: v.optional(v.string()),
  history: v.optional(
    v.array(
      v.object({
        id: historyIdSchema,
        messagesAdded: v.optional(v.array(v.object({ message: v.object({ id, labelIds: v.optional(v.array(v.string())) }) })), []),
      }),
    ),
    [],
  ),
})
const listAnswer = v.object({ messages: v.optional(v.array(v.object({ id })), []), nextPageToken: v.optional(v.string()) })
const attachmentAnswer = v.object({ data: v.string() })
const sentAnswer = v.object({ id })

/** Every method throws like `ApiClient.request`, and `upstream` for an answer of another shape. */
export class MailApi {
  readonly #client: ApiClient

  constructor(client: ApiClient) {
    this.#client = client
  }

  /** Returns the address of the mailbox in lower case, and its newest change if the API states it. */
  async profile(signal: AbortSignal): Promise<{ readonly address: string; readonly historyId?: bigint }> {
    const { status, json } = await this.#client.request({ method: 'GET', path: ['profile'], accept: [404], signal })
    if (status === 404) return { address: UNNAMED_MAILBOX }
    const { emailAddress, historyId } = expected(profileAnswer, json)
    return { address: emailAddress.toLowerCase(), ...(historyId !== undefined && { historyId }) }
  }

  /** Subscribes to pushes, or renews the subscription, for at most seven days. Returns the newest change of the mailbox. */
  async watch({ topic, labels }: Subscription, signal: AbortSignal): Promise<{ readonly historyId: bigint; readonly expiresAtMs: number }> {
    const filter = labels.length > 0 ? { labelIds: labels, labelFilterBehavior: 'INCLUDE' } : {}
    const { json } = await this.#client.request({ method: 'POST', path: ['watch'], body: { topicName: topic, ...filter }, signal })
    const { historyId, expiration } = expected(watchAnswer, json)
    return { historyId, expiresAtMs: expiration }
  }

  /** Returns a page of the mails that came after the change `since`, oldest first; undefined if the API no longer knows it. */
  async history(
    { since, label, page }: { since: bigint; label?: string; page?: string },
    signal: AbortSignal,
  ): Promise<HistoryPage | undefined> {
    const query = {
      startHistoryId: String(since),
      historyTypes: 'messageAdded',
      maxResults: PAGE_SIZE,
      labelId: label,
      pageToken: page,
    }
    const { status, json } = await this.#client.request({ method: 'GET', path: ['history'], query, accept: [404], signal })
    if (status === 404) return undefined
    const { history, historyId, nextPageToken } = expected(historyAnswer, json)
    const mails = history.flatMap(({ messagesAdded }) =>
      messagesAdded.map(({ message: { id, labelIds } }) => ({ id, ...(labelIds && { labels: labelIds }) })),
    )
    return { mails, pageEnd: history.at(-1)?.id, newest: historyId, next: nextPageToken }
  }

  /** Returns a page of the ids of mails that came after a time, newest first. */
  async list({ sinceMs, label, page }: { sinceMs: number; label?: string; page?: string }, signal: AbortSignal): Promise<MailPage> {
    const query = { q: `after:${Math.floor(sinceMs / 1000)}`, maxResults: PAGE_SIZE, labelIds: label, pageToken: page }
    const { json } = await this.#client.request({ method: 'GET', path: ['messages'], query, signal })
    const { messages, nextPageToken } = expected(listAnswer, json)
    return { ids: messages.map(({ id }) => id), next: nextPageToken }
  }

  /**
   * Returns a mail; undefined if it was deleted, and `unreadable` if the answer is not a mail. A mail beyond the size limit has
   * only its headers and snippet. Throws `invalid_request` and `too_large` for faults of this mail alone.
   */
  async mail(id: string, signal: AbortSignal): Promise<Mail | 'unreadable' | undefined> {
    const get = (format: 'full' | 'metadata') =>
      this.#client.request({
        method: 'GET',
        path: ['messages', id],
        query: { format },
        accept: [404, ...REDIRECTS],
        answerBytesMax: MAIL_BYTES_MAX,
        signal,
      })
    const { status, json } = await get('full').catch((error: unknown) => {
      if (error instanceof AppError && error.code === 'too_large') return get('metadata')
      throw error
    })
    if (status === 404) return undefined
    // A redirect comes from a proxy and is not a fault of the mail.
    if (REDIRECTS.includes(status)) throw new AppError('upstream', `mailpush answered ${status}, a redirect, which is not followed`)
    expected(v.object({ id: v.literal(id) }), json)
    return parseMail(json) ?? 'unreadable'
  }

  /** Returns the bytes of an attachment. Throws `too_large` beyond `bytesMax`. */
  async attachment(
    { mail, attachment }: { readonly mail: string; readonly attachment: string },
    bytesMax: number,
    signal: AbortSignal,
  ): Promise<Uint8Array> {
    const path = ['messages', mail, 'attachments', attachment]
    // Base64 has four characters for three bytes; the rest is for the JSON around it.
    const answerBytesMax = Math.ceil(bytesMax / 3) * 4 + 4096
    const { json } = await this.#client.request({ method: 'GET', path, answerBytesMax, signal })
    const bytes = Buffer.from(expected(attachmentAnswer, json).data, 'base64')
    if (bytes.length > bytesMax) throw new AppError('too_large', `The attachment is larger than ${bytesMax} bytes`)
    return bytes
  }

  /** Sends a complete mail (RFC 5322) in a thread, or in a new one. Returns its id. */
  async send(mail: Buffer, thread: string | undefined, signal: AbortSignal): Promise<string> {
    if (mail.length > RAW_CHARS_MAX) return this.#upload(mail, thread, signal)
    const body = { raw: mail.toString('base64url'), ...(thread !== undefined && { threadId: thread }) }
    const { json } = await this.#client.request({ method: 'POST', path: ['messages', 'send'], body, signal })
    return expected(sentAnswer, json).id
  }

  /** See https://developers.google.com/workspace/gmail/api/guides/uploads#multipart */
  async #upload(mail: Buffer, thread: string | undefined, signal: AbortSignal): Promise<string> {
    const boundary = `sluice-${crypto.randomUUID()}`
    const about = JSON.stringify(thread === undefined ? {} : { threadId: thread })
    const parts = [
      `--${boundary}\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n${about}\r\n`,
      `--${boundary}\r\nContent-Type: message/rfc822\r\n\r\n${mail}\r\n--${boundary}--\r\n`,
    ]
    const { json } = await this.#client.request({
      method: 'POST',
      path: ['messages', 'send'],
      query: { uploadType: 'multipart' },
      isUpload: true,
      headers: { 'content-type': `multipart/related; boundary="${boundary}"` },
      body: new TextEncoder().encode(parts.join('')),
      signal,
    })
    return expected(sentAnswer, json).id
  }
}

/** A longer mail is sent through the interface for uploads, which takes 35 MB. */
const RAW_CHARS_MAX = 1_000_000

function expected<Schema extends v.GenericSchema>(schema: Schema, json: unknown): v.InferOutput<Schema> {
  const { success, output } = v.safeParse(schema, json)
  if (!success) throw new AppError('upstream', 'The answer of mailpush does not have the format of the mail API')
  return output
}

/** The mailbox of the fake mail API: mails, threads, and a history of changes with increasing ids. */

/** A mail to deliver; only the sender is required. */
export interface MailParts {
  readonly from: string
  readonly subject?: string
  readonly text?: string
  readonly html?: string
  /** Headers in addition to the usual ones, topmost first; a header of the same name replaces the usual one. */
  readonly headers?: readonly (readonly [name: string, value: string])[]
  readonly attachments?: readonly { readonly name: string; readonly mime: string; readonly bytes: Uint8Array }[]
  readonly labels?: readonly string[]
  /** The thread of an earlier mail; default: a new thread. */
  readonly threadId?: string
  readonly atMs?: number
  /** Replaces the payload made from the other members. */
  readonly payload?: unknown
}

/** A mail as the API returns it. */
export interface StoredMail {
  readonly id: string
  readonly threadId: string
  readonly labelIds: string[]
  readonly snippet: string
  readonly internalDate: string
  historyId: string
  readonly payload: unknown
}

/** An entry of the history: a mail that was added. */
export interface Change {
  readonly id: bigint
  readonly mail: StoredMail
}

/** The mailbox and its history. */
export interface Mailbox {
  readonly address: string
  readonly mails: ReadonlyMap<string, StoredMail>
  readonly changes: readonly Change[]
  readonly attachments: ReadonlyMap<string, Uint8Array>
  /** The id of the newest change. */
  now(): bigint
  /** The oldest history id a listing may start from. */
  oldest(): bigint
  add(parts: MailParts): StoredMail
  remove(id: string): void
  /** Changes a mail without adding one, as reading it does. */
  touch(id: string): void
  /** Expires the whole history. */
  forget(): void
}

const FIRST_ID = 9_876_000n

/** Creates an empty mailbox. */
export function createMailbox(address: string, nowMs: () => number): Mailbox {
  const mails = new Map<string, StoredMail>()
  const changes: Change[] = []
  const attachments = new Map<string, Uint8Array>()
  let last = FIRST_ID
  let oldest = FIRST_ID
  let added = 0

  return {
    address,
    mails,
    changes,
    attachments,
    now: () => last,
    oldest: () => oldest,
    add(parts) {
      last += 1n
      const id = `m${(0x19b0000 + ++added).toString(16)}`
      const kept = (parts.attachments ?? []).map((attachment, at) => {
        const attachmentId = `ANGjdJ-${id}-${at}`
        attachments.set(`${id}/${attachmentId}`, attachment.bytes)
        return { ...attachment, attachmentId }
      })
      const mail: StoredMail = {
        id,
        threadId: parts.threadId ?? `t${id}`,
        labelIds: [...(parts.labels ?? ['INBOX', 'UNREAD'])],
        snippet: (parts.text ?? '').slice(0, 100).replaceAll('&', '&amp;').replaceAll("'", '&#39;'),
        internalDate: String(parts.atMs ?? nowMs()),
        historyId: String(last),
        payload: parts.payload ?? payloadOf(parts, { id, address, attachments: kept }),
      }
      mails.set(id, mail)
      changes.push({ id: last, mail })
      return mail
    },
    remove: (id) => void mails.delete(id),
    touch(id) {
      last += 1n
      const mail = mails.get(id)
      if (mail) mail.historyId = String(last)
    },
    forget() {
      last += 1000n
      oldest = last
    },
  }
}

interface Made {
  readonly id: string
  readonly address: string
  readonly attachments: readonly {
    readonly name: string
    readonly mime: string
    readonly bytes: Uint8Array
    readonly attachmentId: string
  }[]
}

/** Splits a mail into the parts that the provider returns. */
function payloadOf({ from, subject = 'Hello', text, html, headers = [] }: MailParts, { id, address, attachments }: Made): object {
  const texts = [...(text === undefined ? [] : [leaf('text/plain', text)]), ...(html === undefined ? [] : [leaf('text/html', html)])]
  const files = attachments.map(({ name, mime, bytes, attachmentId }) => ({
    mimeType: mime,
    filename: name,
    headers: [{ name: 'Content-Disposition', value: `attachment; filename="${name}"` }],
    body: { attachmentId, size: bytes.length },
  }))
  const [only, another] = texts
  const body = another || !only ? { mimeType: 'multipart/alternative', filename: '', headers: [], body: { size: 0 }, parts: texts } : only
  const content =
    files.length > 0 ? { mimeType: 'multipart/mixed', filename: '', headers: [], body: { size: 0 }, parts: [body, ...files] } : body
  const usual: [string, string][] = [
    ['Authentication-Results', 'mx.example.net; spf=pass smtp.mailfrom=x; dmarc=pass (p=NONE) header.from=x'],
    ['From', from],
    ['To', address],
    ['Subject', subject],
    ['Message-ID', `<${id}@mail.example.net>`],
  ]
  const given = new Set(headers.map(([name]) => name.toLowerCase()))
  const all = [...headers, ...usual.filter(([name]) => !given.has(name.toLowerCase()))]
  return { ...content, headers: [...all.map(([name, value]) => ({ name, value })), ...content.headers] }
}

const leaf = (mimeType: string, text: string) => ({
  mimeType,
  filename: '',
  headers: [{ name: 'Content-Type', value: `${mimeType}; charset="UTF-8"` }],
  body: { data: Buffer.from(text).toString('base64url'), size: Buffer.byteLength(text) },
})

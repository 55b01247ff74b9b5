/**
 * Reads the message of a stored row. A row has the message itself, or the body of a request from which its channel parses it again.
 */
import { type Channel, errorText, type Inbound, type InboxEntry } from '@sluice/sdk'

/** What tells a message from the others of its request, and its content. */
type Stored = Pick<InboxEntry, 'channel' | 'account' | 'messageId' | 'receivedAtMs' | 'raw' | 'message'>

/** The message, or the reason why it cannot be read. */
export type ReadMessage = { readonly message: Inbound } | { readonly unreadable: string }

export const noSuchMessage = (channel: string): string => `with its present configuration ${channel} finds no such message in the request`

/** Never rejects. `channel` is the channel of the row, if it is there. */
export async function readMessage(channel: Channel | undefined, row: Stored): Promise<ReadMessage> {
  if (row.message) return { message: row.message }
  if (!row.raw) return { unreadable: 'the content of the message is no longer kept' }
  const webhook = channel?.webhook
  if (!webhook?.parsesBodyAlone) return { unreadable: `the channel ${row.channel} is not there to parse the request` }
  try {
    const url = new URL(`http://localhost${webhook.path}`)
    const parsed = await webhook.parse({ headers: {}, url, body: row.raw, receivedAtMs: row.receivedAtMs })
    const message = parsed.map(wellFormed).find(({ account, id }) => account === row.account && id === row.messageId)
    return message ? { message } : { unreadable: noSuchMessage(row.channel) }
  } catch (error) {
    return { unreadable: `with its present configuration ${row.channel} cannot parse the request: ${errorText(error)}` }
  }
}

/** Returns an entry with its message, if that can be read. */
export async function withMessage(channels: readonly Channel[], entry: InboxEntry): Promise<InboxEntry> {
  if (entry.message || !entry.raw) return entry
  const channel = channels.find(({ name }) => name === entry.channel)
  const read = await readMessage(channel, entry)
  return 'message' in read ? { ...entry, message: read.message } : entry
}

/** Half a surrogate pair cannot be stored as it is, and every retry of the platform would bring it again. */
export const wellFormed = (message: Inbound): Inbound => (isWellFormed(message) ? message : (repaired(message) as Inbound))

function isWellFormed(value: unknown): boolean {
  if (typeof value === 'string') return value.isWellFormed()
  return typeof value !== 'object' || value === null || Object.values(value).every(isWellFormed)
}

function repaired(value: unknown): unknown {
  if (typeof value === 'string') return value.toWellFormed()
  if (Array.isArray(value)) return value.map(repaired)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, repaired(part)]))
}

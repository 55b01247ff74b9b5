/**
 * Posts and edits messages, opens threads, and shows the typing indicator. `allowed_mentions` keeps the text of a model from
 * notifying people or roles.
 */
import { pathSegment } from '@sluice/kit'
import { members } from '@sluice/kit/foreign-json'
import {
  type Address,
  AppError,
  type Attachment,
  type Button,
  errorText,
  type Logger,
  type Outbound,
  type Sent,
  sha256Hex,
} from '@sluice/sdk'
import { callDiscord, type DiscordApi } from './api.ts'
import { isSnowflake } from './snowflake.ts'

export interface Posted extends Sent {
  /** The conversation that the message was posted to. */
  readonly channel: string
  /** The thread that was opened on the message, if one was. */
  readonly thread?: string
}

const THREAD_NAME_CHARS_MAX = 100
/** The platform archives a thread after this many minutes without a message. */
const THREAD_ARCHIVE_MINUTES = 1440

const NOT_FOUND = 404
const UPLOAD_MS_MAX = 55_000

const messagesPath = (channel: string): string => `/channels/${pathSegment(channel)}/messages`

/** See `Channel.send`. A message with a topic opens a thread; if that fails, the failure is logged and the message stays. */
export async function postMessage(api: DiscordApi, to: Address, message: Outbound, log: Logger, signal: AbortSignal): Promise<Posted> {
  const { channel, answer } = await post(api, to, message, signal)
  const { id } = members(answer)
  if (!isSnowflake(id)) throw new AppError('upstream', 'discord accepted the message but did not return its id')
  if (!message.topic) return { id, channel }
  try {
    return { id, channel, thread: await openThread(api, channel, id, message.topic, signal) }
  } catch (error) {
    log.warn('no thread could be opened', { channel: 'discord', conversation: channel, reason: errorText(error) })
    return { id, channel }
  }
}

/** See `Channel.update`. */
export async function editMessage(api: DiscordApi, { to }: Address, sent: Sent, message: Outbound, signal: AbortSignal): Promise<void> {
  const path = `${messagesPath(to)}/${pathSegment(sent.id)}`
  await callDiscord(api, { method: 'PATCH', path, body: changedMessage(message), signal })
}

/** Shows the typing indicator for ten seconds or until the next message. */
export async function showTyping(api: DiscordApi, { to }: Address, signal: AbortSignal): Promise<void> {
  await callDiscord(api, { method: 'POST', path: `/channels/${pathSegment(to)}/typing`, signal })
}

/**
 * A thread is a conversation with the id of the message that it hangs on. If it does not exist, the message goes to the parent
 * conversation as a reply to that message.
 */
async function post(
  api: DiscordApi,
  { to, thread, replyTo }: Address,
  message: Outbound,
  signal: AbortSignal,
): Promise<{ readonly channel: string; readonly answer: unknown }> {
  const postTo = (address: Address, accept: readonly number[] = []) => {
    const body = withFiles(newMessage(address, message), message.attachments)
    const limit = message.attachments?.length ? { timeoutMs: UPLOAD_MS_MAX } : {}
    return callDiscord(api, { method: 'POST', path: messagesPath(address.to), body, signal, accept, ...limit })
  }
  const quoted = replyTo === undefined ? {} : { replyTo }
  if (thread === undefined) return { channel: to, answer: (await postTo({ to, ...quoted })).json }
  const { status, json } = await postTo({ to: thread, ...quoted }, [NOT_FOUND])
  if (status !== NOT_FOUND) return { channel: thread, answer: json }
  return { channel: to, answer: (await postTo({ to, replyTo: thread })).json }
}

/** Returns the id of the thread. */
async function openThread(api: DiscordApi, channel: string, message: string, topic: string, signal: AbortSignal): Promise<string> {
  const name = Array.from(topic).slice(0, THREAD_NAME_CHARS_MAX).join('')
  const path = `${messagesPath(channel)}/${message}/threads`
  const { json } = await callDiscord(api, { method: 'POST', path, body: { name, auto_archive_duration: THREAD_ARCHIVE_MINUTES }, signal })
  const { id } = members(json)
  return isSnowflake(id) ? id : message
}

/** Limits of one message: text in code points, number of files, and bytes of each file. */
export const LIMITS = { text: 2000, files: 10, fileBytes: 8 * 1024 * 1024 } as const

const NONCE_CHARS_MAX = 25
const LABEL_CHARS_MAX = 80
const BUTTONS_IN_ROW = 5
const ROWS_MAX = 5
const ACTION_ROW = 1
const BUTTON = 2
const STYLES = { good: 3, bad: 4 } as const

const NO_PINGS = { allowed_mentions: { parse: [] } } as const

/** The nonce makes a repeat safe: within a few minutes the platform answers it with the message that exists. */
const newMessage = ({ replyTo }: Address, { text, buttons = [], clientId }: Outbound) => ({
  content: text,
  ...NO_PINGS,
  ...(replyTo !== undefined && { message_reference: { message_id: replyTo, fail_if_not_exists: false } }),
  ...(buttons.length > 0 && { components: rows(buttons) }),
  nonce: sha256Hex(clientId).slice(0, NONCE_CHARS_MAX),
  enforce_nonce: true,
})

const changedMessage = ({ text, buttons = [] }: Outbound) => ({ content: text, ...NO_PINGS, components: rows(buttons) })

/** Returns the message itself, or a form with its attachments. Throws `invalid_request` for an attachment without bytes. */
function withFiles(message: ReturnType<typeof newMessage>, attachments: readonly Attachment[] = []): object {
  if (attachments.length === 0) return message
  const form = new FormData()
  const named = attachments.map(({ name }, id) => ({ id, filename: name }))
  form.append('payload_json', JSON.stringify({ ...message, attachments: named }))
  for (const [index, { name, mime, source }] of attachments.entries()) {
    if (!('bytes' in source)) throw new AppError('invalid_request', `The attachment ${JSON.stringify(name)} has no bytes`)
    const file = new Blob([new Uint8Array(source.bytes)], { type: mime ?? 'application/octet-stream' })
    form.append(`files[${index}]`, file, name)
  }
  return form
}

function rows(buttons: readonly Button[]): object[] {
  const shown = buttons.slice(0, BUTTONS_IN_ROW * ROWS_MAX).map(({ label, value, tone }) => ({
    type: BUTTON,
    style: STYLES[tone],
    label: Array.from(label).slice(0, LABEL_CHARS_MAX).join(''),
    custom_id: value,
  }))
  return Array.from({ length: Math.ceil(shown.length / BUTTONS_IN_ROW) }, (_, row) => ({
    type: ACTION_ROW,
    components: shown.slice(row * BUTTONS_IN_ROW, (row + 1) * BUTTONS_IN_ROW),
  }))
}

/** Posts and edits messages, opens threads, and shows the typing indicator. */
import { members } from '@sluice/kit/foreign-json'
import { type Address, AppError, errorText, type Logger, type Outbound, type Sent } from '@sluice/sdk'
import { callDiscord, type DiscordApi } from './api.ts'
import { changedMessage, newMessage, withFiles } from './outgoing-message.ts'
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

const messagesPath = (channel: string): string => `/channels/${encodeURIComponent(channel)}/messages`

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
  const path = `${messagesPath(to)}/${encodeURIComponent(sent.id)}`
  await callDiscord(api, { method: 'PATCH', path, body: changedMessage(message), signal })
}

/** Shows the typing indicator for ten seconds or until the next message. */
export async function showTyping(api: DiscordApi, { to }: Address, signal: AbortSignal): Promise<void> {
  await callDiscord(api, { method: 'POST', path: `/channels/${encodeURIComponent(to)}/typing`, signal })
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

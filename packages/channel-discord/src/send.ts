/** Messages out: post, edit, open a thread, show that an answer is being made. */

import { members } from '@sluice/kit/foreign-json'
import { type Address, AppError, errorText, type Logger, type Outbound, type Sent } from '@sluice/sdk'
import { callDiscord, type DiscordApi } from './api.ts'
import { changedMessage, newMessage, withFiles } from './message-body.ts'
import { isSnowflake } from './snowflake.ts'

export interface Posted extends Sent {
  /** Where it stands. */
  readonly channel: string
  /** The thread that was opened on it, if one was. */
  readonly thread?: string
}

const THREAD_NAME_CHARS_MAX = 100
/** Minutes without a word until a thread is put away. */
const THREAD_MINUTES = 1440

const NOT_FOUND = 404
const UPLOAD_MS_MAX = 55_000

const messagesOf = ({ to }: Address): string => `/channels/${encodeURIComponent(to)}/messages`

/** See `Channel.send`. A thread that could not be opened is logged, for the message is there. */
export async function postMessage(
  api: DiscordApi,
  to: Address,
  message: Outbound,
  { signal, log }: { readonly signal: AbortSignal; readonly log: Logger },
): Promise<Posted> {
  const { channel, answer } = await post(api, to, message, signal)
  const { id } = members(answer)
  if (!isSnowflake(id)) throw new AppError('upstream', 'The answer of discord names no message')
  if (!message.topic) return { id, channel }
  try {
    return { id, channel, thread: await openThread(api, { channel, message: id, name: message.topic, signal }) }
  } catch (error) {
    log.warn('no thread could be opened', { channel: 'discord', conversation: channel, reason: errorText(error) })
    return { id, channel }
  }
}

/** A thread is a conversation of its own, with the id of the message it hangs on. Where it is missing, that message is answered. */
async function post(
  api: DiscordApi,
  { to, thread, replyTo }: Address,
  message: Outbound,
  signal: AbortSignal,
): Promise<{ readonly channel: string; readonly answer: unknown }> {
  const postTo = (address: Address, accept: readonly number[] = []) => {
    const body = withFiles(newMessage(address, message), message.attachments)
    const patience = message.attachments?.length ? { timeoutMs: UPLOAD_MS_MAX } : {}
    return callDiscord(api, { method: 'POST', path: messagesOf(address), body, signal, accept, ...patience })
  }
  const quoted = replyTo === undefined ? {} : { replyTo }
  if (thread === undefined) return { channel: to, answer: (await postTo({ to, ...quoted })).json }
  const { status, json } = await postTo({ to: thread, ...quoted }, [NOT_FOUND])
  if (status !== NOT_FOUND) return { channel: thread, answer: json }
  return { channel: to, answer: (await postTo({ to, replyTo: thread })).json }
}

async function openThread(
  api: DiscordApi,
  { channel, message, name, signal }: { channel: string; message: string; name: string; signal: AbortSignal },
): Promise<string> {
  const short = Array.from(name).slice(0, THREAD_NAME_CHARS_MAX).join('')
  const path = `${messagesOf({ to: channel })}/${message}/threads`
  const { json } = await callDiscord(api, { method: 'POST', path, body: { name: short, auto_archive_duration: THREAD_MINUTES }, signal })
  const { id } = members(json)
  return isSnowflake(id) ? id : message
}

/** See `Channel.update`. */
export async function editMessage(api: DiscordApi, to: Address, sent: Sent, message: Outbound, signal: AbortSignal): Promise<void> {
  const path = `${messagesOf(to)}/${encodeURIComponent(sent.id)}`
  await callDiscord(api, { method: 'PATCH', path, body: changedMessage(message), signal })
}

/** Lasts ten seconds, or until the next message. */
export async function showTyping(api: DiscordApi, { to }: Address, signal: AbortSignal): Promise<void> {
  await callDiscord(api, { method: 'POST', path: `/channels/${encodeURIComponent(to)}/typing`, signal })
}

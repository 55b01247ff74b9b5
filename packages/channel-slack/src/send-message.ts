/** Messages that go out, and the edits of them. */

import { text } from '@sluice/kit/foreign-json'
import { type Address, AppError, type Outbound, type Sent } from '@sluice/sdk'
import { contentOf } from './blocks.ts'
import { escapeText } from './escape-text.ts'
import type { SlackApi } from './slack-api.ts'
import { isTimestamp } from './timestamp.ts'
import { uploadFiles } from './upload-files.ts'

export interface Outside {
  readonly fetch: typeof fetch
  readonly api: SlackApi
}

export interface SentToSlack extends Sent {
  /** False: the id is that of a file, for Slack makes its message later and does not tell which. */
  readonly isMessage: boolean
}

/** See `Channel.send`. */
export async function sendMessage(outside: Outside, to: Address, message: Outbound, signal: AbortSignal): Promise<SentToSlack> {
  const { attachments = [], buttons = [] } = message
  if (attachments.length === 0) return post(outside.api, to, message, signal)
  const files = await uploadFiles(outside, attachments, signal)
  const hasButtons = buttons.length > 0
  const share = { files, channel_id: to.to, thread_ts: to.thread }
  const comment = hasButtons || message.text === '' ? undefined : escapeText(message.text)
  await outside.api.call('files.completeUploadExternal', { ...share, initial_comment: comment }, { signal })
  if (!hasButtons) return { id: files[0]?.id ?? '', isMessage: false }
  try {
    return await post(outside.api, to, message, signal)
  } catch (error) {
    throw new AppError('upstream', 'The files were sent to slack, the message with the buttons was not', { cause: error })
  }
}

/** See `Channel.update`. */
export async function updateMessage(api: SlackApi, to: Address, sent: Sent, message: Outbound, signal: AbortSignal): Promise<void> {
  if (!isTimestamp(sent.id)) throw new AppError('invalid_request', 'slack edits no message that has files')
  await api.call('chat.update', { channel: to.to, ts: sent.id, ...QUIET, ...contentOf(message) }, { signal })
}

/** Nothing in a text becomes a mention or a preview. */
const QUIET = { parse: 'none', link_names: false }

async function post(api: SlackApi, to: Address, message: Outbound, signal: AbortSignal): Promise<SentToSlack> {
  const { text: fallback, blocks } = contentOf(message)
  const answer = await api.call(
    'chat.postMessage',
    {
      channel: to.to,
      thread_ts: to.thread,
      text: fallback,
      blocks: blocks.length > 0 ? blocks : undefined,
      ...QUIET,
      unfurl_links: false,
      unfurl_media: false,
    },
    { signal },
  )
  const id = text(answer.ts)
  if (!isTimestamp(id)) throw new AppError('upstream', 'slack took the message and did not say its id')
  return { id, isMessage: true }
}

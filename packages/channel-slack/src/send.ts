/** Posts and edits messages, and shows a status in threads. */
import { text } from '@sluice/kit/foreign-json'
import { type Address, AppError, type Button, type Outbound, type Sent } from '@sluice/sdk'
import type { SlackApi } from './api.ts'
import { uploadFiles } from './media.ts'
import { isBadBlocks, isThreadGone } from './refusal.ts'
import { needsRichText, richText } from './rich-text.ts'
import { isTimestamp } from './timestamp.ts'

export interface SentToSlack extends Sent {
  /** False if the id is that of a file: Slack creates the message of a file later and does not return its id. */
  readonly isMessage: boolean
}

/** Keeps Slack from turning words of a text into mentions. */
const NO_MENTIONS = { parse: 'none', link_names: false }
const STATUS = 'is thinking…'

/** See `Channel.send`. Files and buttons cannot be in one message, so a message with both becomes two. */
export async function sendMessage(api: SlackApi, to: Address, message: Outbound, signal: AbortSignal): Promise<SentToSlack> {
  const { attachments = [], buttons = [] } = message
  if (attachments.length === 0) return post(api, to, message, signal)
  const files = await uploadFiles(api, attachments, signal)
  const hasButtons = buttons.length > 0
  await shareFiles(api, to, { files, content: hasButtons || message.text === '' ? undefined : contentOf(message) }, signal)
  if (!hasButtons) return { id: files[0]?.id ?? '', isMessage: false }
  try {
    return await post(api, to, message, signal)
  } catch (error) {
    throw new AppError('upstream', 'The files were sent to slack, but the message with the buttons was not', { cause: error })
  }
}

/** Shares files with a text below them. Slack ignores the blocks of a message with a comment, and a comment is its only text without blocks. */
async function shareFiles(
  api: SlackApi,
  to: Address,
  { files, content }: { readonly files: readonly object[]; readonly content: Content | undefined },
  signal: AbortSignal,
): Promise<void> {
  const share = (text: object) =>
    outsideIfGone(to, ({ thread }) =>
      api.call('files.completeUploadExternal', { files, channel_id: to.to, thread_ts: thread, ...text }, { signal }),
    )
  const { text: comment, blocks } = content ?? { text: undefined, blocks: [] }
  if (blocks.length === 0) return void (await share({ initial_comment: comment }))
  await share({ blocks }).catch((error: unknown) => {
    if (!isBadBlocks(error)) throw error
    return share({ initial_comment: comment })
  })
}

/** See `Channel.update`. */
export async function updateMessage(api: SlackApi, to: Address, sent: Sent, message: Outbound, signal: AbortSignal): Promise<void> {
  if (!isTimestamp(sent.id)) throw new AppError('invalid_request', 'slack cannot edit a message that has files')
  await api.call('chat.update', { channel: to.to, ts: sent.id, ...NO_MENTIONS, ...contentOf(message) }, { signal })
}

/** A thread that is gone is left out, and blocks that Slack refuses become plain text, which is complete without them. */
async function post(api: SlackApi, to: Address, message: Outbound, signal: AbortSignal): Promise<SentToSlack> {
  const plain = { text: escapeText(message.text), blocks: [] }
  const inThread = outsideIfGone(to, (place) => postOnce(api, place, contentOf(message), signal))
  return inThread.catch((error: unknown) => {
    if (!isBadBlocks(error) || message.text === '') throw error
    return outsideIfGone(to, (place) => postOnce(api, place, plain, signal))
  })
}

async function outsideIfGone<T>(to: Address, work: (to: Address) => Promise<T>): Promise<T> {
  try {
    return await work(to)
  } catch (error) {
    if (to.thread === undefined || !isThreadGone(error)) throw error
    return work({ to: to.to })
  }
}

async function postOnce(api: SlackApi, to: Address, { text: fallback, blocks }: Content, signal: AbortSignal): Promise<SentToSlack> {
  const answer = await api.call(
    'chat.postMessage',
    {
      channel: to.to,
      thread_ts: to.thread,
      text: fallback,
      blocks: blocks.length > 0 ? blocks : undefined,
      ...NO_MENTIONS,
      unfurl_links: false,
      unfurl_media: false,
    },
    { signal },
  )
  const id = text(answer.ts)
  if (!isTimestamp(id)) throw new AppError('upstream', 'slack accepted the message but did not return its id')
  return { id, isMessage: true }
}

/** The status line of threads. Needs the scope `assistant:write`, which is optional. */
export class ThreadStatus {
  readonly #api: SlackApi
  #isRefused = false

  constructor(api: SlackApi) {
    this.#api = api
  }

  /** See `Channel.typing`. Slack removes the status with the next message, or after two minutes. Does nothing after a refusal. */
  async show({ to, thread }: Address, signal: AbortSignal): Promise<void> {
    if (thread === undefined || this.#isRefused) return
    try {
      await this.#api.call('assistant.threads.setStatus', { channel_id: to, thread_ts: thread, status: STATUS }, { signal })
    } catch (error) {
      if (!(error instanceof AppError) || !['invalid_request', 'forbidden'].includes(error.code)) throw error
      this.#isRefused = true
    }
  }
}

/** Counted after escaping. Slack refuses an edit with a longer text. */
const TEXT_CHARS_MAX = 4000
const SECTION_CHARS_MAX = 3000
const LABEL_CHARS_MAX = 75

/** The text and blocks of a message that the bot posts or edits. */
export interface Content {
  /** Slack shows it only in notifications when there are blocks. */
  readonly text: string
  readonly blocks: readonly object[]
}

const ESCAPES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;' }

/** Escapes Slack's markup, so that no text of a model mentions a person, a group or everyone. */
export const escapeText = (plain: string): string => plain.replaceAll(/[&<>]/g, (character) => ESCAPES[character] ?? character)

/** Returns plain text where possible, and blocks for a message with buttons or a text that is too long for an edit. */
export function contentOf({ text, styles, buttons = [] }: Pick<Outbound, 'text' | 'styles' | 'buttons'>): Content {
  const actions = buttons.length === 0 ? [] : [{ type: 'actions', elements: buttons.map(buttonElement) }]
  if (styles && needsRichText({ text, styles }))
    return { text: splitEscaped(text, TEXT_CHARS_MAX)[0] ?? '', blocks: [richText({ text, styles }), ...actions] }
  const escaped = escapeText(text)
  if (buttons.length === 0 && escaped.length <= TEXT_CHARS_MAX) return { text: escaped, blocks: [] }
  const parts = splitEscaped(text, SECTION_CHARS_MAX)
  // `verbatim` keeps Slack from turning words into mentions.
  const sections = parts.map((part) => ({ type: 'section', text: { type: 'mrkdwn', text: part, verbatim: true } }))
  return { text: splitEscaped(text, TEXT_CHARS_MAX)[0] ?? '', blocks: [...sections, ...actions] }
}

const buttonElement = ({ label, value, tone }: Button, index: number): object => ({
  type: 'button',
  action_id: `press-${index}`,
  text: { type: 'plain_text', text: label.slice(0, LABEL_CHARS_MAX) },
  value,
  style: tone === 'good' ? 'primary' : 'danger',
})

/**
 * Returns the escaped text in parts of at most `max` characters. Cuts at white space where possible, and never inside a
 * character or an escape.
 */
export function splitEscaped(text: string, max: number): readonly string[] {
  const parts: string[] = []
  let [part, cut] = ['', 0]
  for (const character of text) {
    const escaped = escapeText(character)
    if (part.length + escaped.length > max) {
      const at = cut > max / 2 ? cut : part.length
      parts.push(part.slice(0, at))
      part = part.slice(at)
      cut = 0
    }
    part += escaped
    if (/\s/.test(character)) cut = part.length
  }
  return [...parts, part].filter((each) => each.trim() !== '')
}

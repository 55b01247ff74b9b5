/**
 * Sends messages. One that answers a message names it for as long as QQ accepts that, and counts for no quota; later it is proactive.
 * QQ drops a second message with the same `msg_id` and `msg_seq`, so an answer with an unknown outcome is repeated once.
 */
import { BoundedMap } from '@sluice/kit'
import { text } from '@sluice/kit/foreign-json'
import { type Address, AppError, type Button, type Clock, type Outbound, type Sent, sha256Hex } from '@sluice/sdk'
import { answerable, pathOf } from './address.ts'
import type { QqApi, Refusal } from './api.ts'
import { uploadFile } from './media.ts'

const PLAIN = 0
const MARKDOWN = 2
const MEDIA = 7
/** Bots of the platform number their answers below a million. */
const SEQUENCE_MAX = 1_000_000
const UNCERTAIN_MAX = 1000
const LABEL_CHARS_MAX = 10
const ALL_PEOPLE = 2
const CALLBACK = 1
const UNCERTAIN = ['upstream', 'upstream_timeout']

export class Sender {
  readonly #api: QqApi
  readonly #clock: Clock
  /** Messages whose outcome is unknown: for these, "repeated" means that the first attempt was successful. */
  readonly #uncertain = new BoundedMap<string, true>(UNCERTAIN_MAX)

  constructor(api: QqApi, clock: Clock) {
    this.#api = api
    this.#clock = clock
  }

  /** Implements `Channel.send`. Each file is a message of its own, after the text. */
  async send(to: Address, message: Outbound, signal: AbortSignal): Promise<Sent> {
    const path = pathOf(to)
    const files: string[] = []
    for (const file of message.attachments ?? []) files.push(await uploadFile(this.#api, path, file, signal))
    let sent: Sent | undefined
    try {
      if (message.text !== '') sent = await this.#deliver(to, contentOf(message, this.#api.config), message.clientId, signal)
      for (const [index, file_info] of files.entries()) {
        const media = { msg_type: MEDIA, content: ' ', media: { file_info } }
        sent = (await this.#deliver(to, media, `${message.clientId}/${index}`, signal)) && (sent ?? { id: `files-${message.clientId}` })
      }
    } catch (error) {
      // Parts that were sent must not be sent again.
      if (sent === undefined) throw error
      throw new AppError('upstream', 'A part of the message was sent to qq, but not all of its files', { cause: error })
    }
    if (!sent) throw new AppError('invalid_request', 'The message has neither text nor files')
    return hasButtons(message, this.#api.config) ? { id: message.clientId } : sent
  }

  async #deliver(to: Address, content: object, key: string, signal: AbortSignal): Promise<Sent> {
    const msgId = answerable(to, this.#clock.nowMs())
    if (msgId === undefined) return this.#post(to, content, signal)
    try {
      return await this.#answer(to, { ...content, msg_id: msgId }, key, signal)
    } catch (error) {
      // The time or the number of answers is used up.
      if (causeOf(error) !== 'too late') throw error
      return this.#post(to, content, signal)
    }
  }

  async #answer(to: Address, content: object, key: string, signal: AbortSignal): Promise<Sent> {
    const attempt = () => this.#post(to, { ...content, msg_seq: sequenceOf(key) }, signal)
    try {
      return await attempt()
    } catch (error) {
      if (causeOf(error) === 'repeated') return this.#repeated(to, content, key, signal)
      if (!isUncertain(error)) throw error
      this.#uncertain.set(key, true)
      return await attempt().catch((again: unknown) => {
        if (causeOf(again) === 'repeated') return { id: `answer-${key}` }
        throw isUncertain(again) ? again : error
      })
    }
  }

  /** Two answers may have one number by chance. */
  #repeated(to: Address, content: object, key: string, signal: AbortSignal): Promise<Sent> {
    if (this.#uncertain.has(key)) return Promise.resolve({ id: `answer-${key}` })
    return this.#post(to, { ...content, msg_seq: sequenceOf(`${key}/other`) }, signal)
  }

  async #post(to: Address, body: object, signal: AbortSignal): Promise<Sent> {
    const id = text((await this.#api.call('POST', `${pathOf(to)}/messages`, body, signal)).id)
    if (id === '') throw new AppError('upstream', 'qq accepted the message but returned no id for it')
    return { id }
  }
}

const isUncertain = (error: unknown): boolean => error instanceof AppError && UNCERTAIN.includes(error.code)

const causeOf = (error: unknown): Refusal | undefined => (error instanceof AppError ? (error.cause as Refusal | undefined) : undefined)

/** The same for each attempt to send a message. */
const sequenceOf = (key: string): number => 1 + (Number.parseInt(sha256Hex(key).slice(0, 12), 16) % (SEQUENCE_MAX - 1))

interface Format {
  readonly markdown: boolean
  readonly buttons: boolean
}

const hasButtons = ({ buttons = [] }: Outbound, format: Format): boolean => format.buttons && buttons.length > 0

function contentOf(message: Outbound, format: Format): object {
  const words = withoutMentions(message.text)
  if (hasButtons(message, format)) return { msg_type: MARKDOWN, markdown: { content: words }, keyboard: keyboard(message) }
  return format.markdown ? { msg_type: MARKDOWN, markdown: { content: words } } : { msg_type: PLAIN, content: words }
}

/** The event of a press has the id of the button and not that of the message, so the id of the button names the message. */
const keyboard = ({ buttons = [], clientId }: Outbound): object => ({
  content: { rows: [{ buttons: buttons.map((button, index) => buttonOf(button, `${clientId}.${index}`)) }] },
})

const buttonOf = ({ label, value, tone }: Button, id: string): object => ({
  id,
  render_data: {
    label: [...label].slice(0, LABEL_CHARS_MAX).join(''),
    visited_label: [...label].slice(0, LABEL_CHARS_MAX).join(''),
    style: tone === 'good' ? 1 : 0,
  },
  action: { type: CALLBACK, permission: { type: ALL_PEOPLE }, data: value, unsupport_tips: 'Answer by text' },
})

/** Keeps a text from mentioning people or everyone; see "Text chain" of QQ's documentation. */
export const withoutMentions = (plain: string): string =>
  plain.replaceAll(/<(?=@|qqbot-)/gi, '<\u200B').replaceAll(/@(?=everyone\b|all\b|全体成员|所有人)/gi, '@\u200B')

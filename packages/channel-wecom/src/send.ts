/** Sends messages as an AI bot, as an app, or as a group robot. */
import { list, text as textOf } from '@sluice/kit/foreign-json'
import { type Address, AppError, type Attachment, type Button, type Clock, type Outbound, type Sent } from '@sluice/sdk'
import { type Target, targetOf, type Way } from './address.ts'
import type { WecomApi } from './api.ts'
import type { BotConnection } from './bot.ts'
import { appOf } from './config.ts'
import { bytesOf, formOf, md5, mediaIn, typeOf, uploadToBot } from './media.ts'

/** A `req_id` is accepted for five minutes; a reply is on its way for a moment. */
const REQUEST_MS = 290_000
const TITLE_CHARS_MAX = 26
const LABEL_CHARS_MAX = 10
const ROBOT_IMAGE_BYTES_MAX = 2 * 1024 * 1024

/** One part of a message: its text, a card with buttons, or a file. */
type Part = (isAnswer: boolean) => Promise<string>

export class Sender {
  readonly #api: WecomApi
  readonly #bot: () => Promise<BotConnection>
  readonly #clock: Clock
  readonly #ways: readonly Way[]

  constructor(api: WecomApi, bot: () => Promise<BotConnection>, clock: Clock, ways: readonly Way[]) {
    this.#api = api
    this.#bot = bot
    this.#clock = clock
    this.#ways = ways
  }

  /** Implements `Channel.send`. A card with buttons and each file are messages of their own, after the text. */
  async send(to: Address, message: Outbound, signal: AbortSignal): Promise<Sent> {
    const target = targetOf(to, this.#ways)
    const parts = await this.#partsOf(target, to, message, signal)
    const ids: string[] = []
    for (const part of parts) {
      try {
        ids.push(await part(ids.length === 0))
      } catch (error) {
        // Parts that were sent must not be sent again.
        if (ids.length === 0) throw error
        throw new AppError('upstream', 'A part of the message was sent to wecom, but not all of it', { cause: error })
      }
    }
    const [first] = ids
    if (first === undefined) throw new AppError('invalid_request', 'The message has neither text nor files')
    // The event of a press names the card by the id that this side gave it.
    return { id: hasCard(target, message) ? message.clientId : first }
  }

  /** Uploads the files first, so that a failure leaves nothing sent. */
  async #partsOf(target: Target, to: Address, message: Outbound, signal: AbortSignal): Promise<Part[]> {
    const { attachments = [], clientId } = message
    const files: object[] = []
    for (const file of attachments) files.push(await this.#upload(target, file, signal))
    // The text of an app's message is plain, so that nothing in it is a mention.
    const words = target.way === 'app' ? message.text : withoutMentions(message.text)
    const post =
      (content: object, key: string): Part =>
      () =>
        this.#post(target, content, key, signal)
    return [
      ...(message.text === '' ? [] : [(isAnswer: boolean) => this.#text(target, to, words, message, isAnswer, signal)]),
      ...(hasCard(target, message) ? [post(card(message), `${clientId}/card`)] : []),
      ...files.map((file, index) => post(file, `${clientId}/${index}`)),
    ]
  }

  async #text(target: Target, to: Address, words: string, message: Outbound, isAnswer: boolean, signal: AbortSignal): Promise<string> {
    const request = isAnswer && target.way === 'bot' ? this.#answerable(to) : undefined
    if (request !== undefined && (await this.#answer(request, words, message.clientId, signal))) return message.clientId
    const content =
      target.way === 'app' ? { msgtype: 'text', text: { content: words } } : { msgtype: 'markdown', markdown: { content: words } }
    return this.#post(target, content, message.clientId, signal)
  }

  #answerable({ more = {}, replyTo }: Address): string | undefined {
    if (replyTo === undefined || more.request === undefined) return undefined
    return this.#clock.nowMs() < Number(more.atMs) + REQUEST_MS ? more.request : undefined
  }

  /** Returns false if WeCom does not accept the answer any more; the message is proactive then. */
  async #answer(request: string, content: string, id: string, signal: AbortSignal): Promise<boolean> {
    try {
      await (await this.#bot()).request('aibot_respond_msg', { msgtype: 'stream', stream: { id, finish: true, content } }, signal, request)
      return true
    } catch (error) {
      if (error instanceof AppError && error.code === 'invalid_request') return false
      throw error
    }
  }

  async #post({ way, id, isChat }: Target, content: object, key: string, signal: AbortSignal): Promise<string> {
    if (way === 'robot') {
      await this.#api.asRobot('send', {}, content, signal)
      return key
    }
    if (way === 'bot') {
      // The number tells people from groups, whose ids may look the same.
      await (await this.#bot()).request('aibot_send_msg', { chatid: id, chat_type: isChat ? 2 : 1, ...content }, signal)
      return key
    }
    const answer = await this.#api.asApp('message/send', {}, { touser: id, agentid: appOf(this.#api.config)?.agentId, ...content }, signal)
    if (textOf(answer.invaliduser).split('|').includes(id) || list(answer.invaliduser).includes(id)) {
      throw new AppError('invalid_request', 'wecom knows no person with this user id that may use the app')
    }
    const sent = textOf(answer.msgid)
    if (sent === '') throw new AppError('upstream', 'wecom accepted the message but returned no id for it')
    return sent
  }

  async #upload({ way }: Target, file: Attachment, signal: AbortSignal): Promise<object> {
    const bytes = bytesOf(file)
    const type = typeOf(file.name, bytes.length)
    if (way === 'robot') {
      if (type === 'image' && bytes.length <= ROBOT_IMAGE_BYTES_MAX) {
        return { msgtype: 'image', image: { base64: Buffer.from(bytes).toString('base64'), md5: md5(bytes) } }
      }
      return {
        msgtype: 'file',
        file: { media_id: mediaIn(await this.#api.asRobot('upload_media', { type: 'file' }, formOf(file), signal)) },
      }
    }
    const media_id =
      way === 'app'
        ? mediaIn(await this.#api.asApp('media/upload', { type }, formOf(file), signal))
        : await uploadToBot(await this.#bot(), file, type, signal)
    return { msgtype: type, [type]: { media_id } }
  }
}

const hasCard = ({ way }: Target, { buttons = [] }: Outbound): boolean => way !== 'robot' && buttons.length > 0

/** `task_id` is unique for the app or the bot, and has letters, digits and `_-@` only. */
const card = ({ text, buttons = [], clientId }: Outbound): object => ({
  msgtype: 'template_card',
  template_card: {
    card_type: 'button_interaction',
    main_title: { title: [...(text.split('\n').find((line) => line.trim() !== '') ?? '')].slice(0, TITLE_CHARS_MAX).join('') || '?' },
    button_list: buttons.map(buttonOf),
    task_id: clientId,
  },
})

const buttonOf = ({ label, value, tone }: Button): object => ({
  text: [...label].slice(0, LABEL_CHARS_MAX).join(''),
  style: tone === 'good' ? 1 : 2,
  key: value,
})

/** Keeps a text from mentioning people or everyone. */
export const withoutMentions = (plain: string): string => plain.replaceAll('<@', '<\u200B@')

/** The chats of the telegram fake and their messages, with the refusals of the real server in its words. */
import type { ProviderReply } from '@sluice/testkit/fake-provider'
import { badRequest, fromNumber, members, object, type Params, refusal, result } from './fake-wire.ts'

/** A user or a bot. */
export interface TelegramUser {
  readonly id: number
  readonly username?: string
  readonly is_bot?: boolean
}

/** A chat of the bot. */
export interface TelegramChat {
  readonly id: number
  readonly type: 'private' | 'group' | 'supergroup'
  /** The ids of a forum's topics. */
  readonly threads?: readonly number[]
}

/** A message of any author. */
export interface TelegramMessage {
  readonly id: number
  readonly chat: number
  readonly from: TelegramUser
  /** The text, or the caption of a message with a file. */
  readonly text: string
  readonly thread?: number
  readonly replyTo?: number
  /** The data of the buttons, row by row. */
  readonly buttons?: readonly (readonly string[])[]
  readonly file?: { readonly method: string; readonly name: string; readonly bytes: Uint8Array }
  /** The number of edits of its text. */
  readonly edits: number
}

/** A text that is shown below the messages of a private chat, until the next message of the bot or for 30 seconds. */
export interface TelegramLiveDraft {
  readonly id: number
  readonly chat: number
  readonly thread: number
  /** An empty text is shown as "Thinking…". */
  readonly text: string
}

/** The chats and their messages. */
export interface TelegramChats {
  readonly messages: readonly TelegramMessage[]
  find(chat: unknown): TelegramChat | undefined
  add(chat: TelegramChat): void
  write(message: Omit<TelegramMessage, 'id' | 'edits'>): TelegramMessage
  get(chat: number, id: number): TelegramMessage | undefined
  /** The message in the format of the API. */
  shown(message: TelegramMessage): object
  /** The refusal of a request's chat or thread; `undefined` if both are valid. */
  refused(params: Params): ProviderReply | undefined
  /** Answers `sendMessage`, or, with the name of the form's file field, a method that sends a file. */
  send(params: Params, field?: string): Promise<ProviderReply>
  edit(params: Params): ProviderReply
  /** Answers `sendMessageDraft`. */
  draft(params: Params): ProviderReply
  /** The live drafts that are shown now. */
  readonly drafts: readonly TelegramLiveDraft[]
  block(chat: number): void
  closeTopic(chat: number, thread: number): void
  migrate(chat: number, to: TelegramChat): void
}

const MESSAGES_MAX = 100_000
const TEXT_MAX = 4096
const CAPTION_MAX = 1024
const DATA_BYTES_MAX = 64
const PHOTO_BYTES_MAX = 10 * 1024 * 1024
const FILE_BYTES_MAX = 50 * 1024 * 1024
const DRAFT_MS = 30_000

/** Creates it without chats; `nowSecs` gives the date of messages. */
export function createTelegramChats(bot: TelegramUser, nowSecs: () => number): TelegramChats {
  const chats = new Map<number, TelegramChat>()
  const blocked = new Set<number>()
  const closed = new Set<string>()
  const migrated = new Map<number, number>()
  const messages: TelegramMessage[] = []
  let drafts: (TelegramLiveDraft & { readonly untilMs: number })[] = []
  let lastId = 100

  const find = (chat: unknown) => chats.get(fromNumber(chat))
  const get = (chat: number, id: number) => messages.find((message) => message.chat === chat && message.id === id)

  const write: TelegramChats['write'] = (content) => {
    const message = { ...content, id: ++lastId, edits: 0 }
    messages.push(message)
    if (messages.length > MESSAGES_MAX) messages.shift()
    return message
  }

  const shown = (message: TelegramMessage): object => {
    const { id, chat, from, text, thread, replyTo, file } = message
    const answered = replyTo === undefined ? undefined : get(chat, replyTo)
    return {
      message_id: id,
      from: { is_bot: false, first_name: from.username ?? 'Somebody', ...from },
      chat: { id: chat, type: chats.get(chat)?.type },
      date: nowSecs(),
      ...(thread !== undefined && { message_thread_id: thread, is_topic_message: true }),
      ...(answered && { reply_to_message: shown(withoutReply(answered)) }),
      ...(file ? { caption: text, document: { file_id: `sent-${id}`, file_name: file.name } } : { text }),
    }
  }

  const refused: TelegramChats['refused'] = (params) => {
    if (params.chat_id === undefined || params.chat_id === '') return badRequest('chat_id is empty')
    const chat = fromNumber(params.chat_id)
    const newId = migrated.get(chat)
    if (newId !== undefined) return badRequest('group chat was upgraded to a supergroup chat', { migrate_to_chat_id: newId })
    if (blocked.has(chat)) return refusal(403, 'Forbidden: bot was blocked by the user')
    const known = chats.get(chat)
    if (!known) return badRequest('chat not found')
    // The words for a topic that was deleted: https://github.com/tdlib/telegram-bot-api/issues/854
    const thread = fromNumber(params.message_thread_id)
    return thread !== 0 && !known.threads?.includes(thread) ? badRequest('message thread not found') : undefined
  }

  /** Returns the button data row by row, or `invalid`. */
  const buttonsOf = (params: Params): readonly (readonly string[])[] | 'invalid' => {
    const rows: unknown = object(params.reply_markup).inline_keyboard ?? []
    if (!Array.isArray(rows)) return 'invalid'
    const buttons = rows.map((row: unknown) => (Array.isArray(row) ? row.map(members) : []))
    const isGood = ({ text, callback_data: data }: Params) =>
      typeof text === 'string' && text !== '' && typeof data === 'string' && data !== '' && Buffer.byteLength(data) <= DATA_BYTES_MAX
    if (!buttons.every((row) => row.every(isGood))) return 'invalid'
    return buttons.map((row) => row.map(({ callback_data }) => String(callback_data)))
  }

  const dropDrafts = (chat: number, thread: number): void => {
    drafts = drafts.filter((draft) => draft.chat !== chat || draft.thread !== thread)
  }

  return {
    messages,
    get drafts() {
      const nowMs = performance.now()
      return drafts.filter(({ untilMs }) => untilMs > nowMs).map(({ untilMs: _, ...draft }) => draft)
    },
    find,
    get,
    write,
    shown,
    refused,
    add: (chat) => void chats.set(chat.id, chat),
    block: (chat) => void blocked.add(chat),
    closeTopic: (chat, thread) => void closed.add(`${chat}/${thread}`),
    migrate(chat, to) {
      chats.set(to.id, to)
      migrated.set(chat, to.id)
    },
    async send(params, field) {
      const wrong = refused(params)
      if (wrong) return wrong
      const given = params[field === undefined ? 'text' : 'caption']
      const text = typeof given === 'string' ? given.trim() : ''
      if (field === undefined && text === '') return badRequest('message text is empty')
      if (text.length > (field === undefined ? TEXT_MAX : CAPTION_MAX)) {
        return badRequest(field === undefined ? 'message is too long' : 'message caption is too long')
      }
      const buttons = buttonsOf(params)
      if (buttons === 'invalid') return badRequest('BUTTON_DATA_INVALID')
      const chat = fromNumber(params.chat_id)
      const reply = object(params.reply_parameters)
      const replyTo = fromNumber(reply.message_id)
      const isThere = replyTo !== 0 && get(chat, replyTo) !== undefined
      if (replyTo !== 0 && !isThere && reply.allow_sending_without_reply !== true) return badRequest('message to be replied not found')
      // A quote puts a message into the topic of the quoted one: https://github.com/tdlib/telegram-bot-api/issues/447
      const thread = fromNumber(params.message_thread_id) || (get(chat, replyTo)?.thread ?? 0)
      if (closed.has(`${chat}/${thread}`)) return badRequest('TOPIC_CLOSED')
      const file = field === undefined ? undefined : params[field]
      if (field !== undefined && !(file instanceof File)) return badRequest(`there is no ${field} in the request`)
      if (file instanceof File && file.size > (field === 'photo' ? PHOTO_BYTES_MAX : FILE_BYTES_MAX)) {
        return refusal(413, 'Request Entity Too Large')
      }
      dropDrafts(chat, thread)
      const message = write({
        chat,
        from: bot,
        text,
        ...(thread !== 0 && { thread }),
        ...(isThere && { replyTo }),
        ...(buttons.length > 0 && { buttons }),
        ...(file instanceof File && { file: { method: field ?? '', name: file.name, bytes: new Uint8Array(await file.arrayBuffer()) } }),
      })
      return result(shown(message))
    },
    // Rules: https://core.telegram.org/bots/api#sendmessagedraft and https://core.telegram.org/api/bots/ai#live-response-streaming. Refusals:
    // https://github.com/nullclaw/nullclaw/issues/626 and the error RANDOM_ID_INVALID of messages.setTyping.
    draft(params) {
      const wrong = refused(params)
      if (wrong) return wrong
      const chat = fromNumber(params.chat_id)
      if (find(chat)?.type !== 'private') return badRequest('TEXTDRAFT_PEER_INVALID')
      const id = fromNumber(params.draft_id)
      if (id === 0) return badRequest('RANDOM_ID_INVALID')
      const text = typeof params.text === 'string' ? params.text.trim() : ''
      if (text.length > TEXT_MAX) return badRequest('message is too long')
      const thread = fromNumber(params.message_thread_id)
      dropDrafts(chat, thread)
      drafts.push({ id, chat, thread, text, untilMs: performance.now() + DRAFT_MS })
      return result(true)
    },
    edit(params) {
      const wrong = refused(params)
      if (wrong) return wrong
      const message = get(fromNumber(params.chat_id), fromNumber(params.message_id))
      if (!message) return badRequest('message to edit not found')
      if (message.from.id !== bot.id) return badRequest("message can't be edited")
      if (message.file) return badRequest('there is no text in the message to edit')
      const text = typeof params.text === 'string' ? params.text.trim() : ''
      if (text === '') return badRequest('message text is empty')
      if (text.length > TEXT_MAX) return badRequest('MESSAGE_TOO_LONG')
      const buttons = buttonsOf(params)
      if (buttons === 'invalid') return badRequest('BUTTON_DATA_INVALID')
      const isSame = text === message.text && JSON.stringify(buttons) === JSON.stringify(message.buttons ?? [])
      if (isSame) {
        return badRequest(
          'message is not modified: specified new message content and reply markup are exactly the same as a current content and reply markup of the message',
        )
      }
      const { buttons: _, ...rest } = message
      const edited = { ...rest, text, edits: message.edits + 1, ...(buttons.length > 0 && { buttons }) }
      messages[messages.indexOf(message)] = edited
      return result(shown(edited))
    },
  }
}

/** Removes the nested reply, because the server shows one level of replies. */
function withoutReply({ replyTo: _, ...rest }: TelegramMessage): TelegramMessage {
  return rest
}

/** The Bot API of telegram on loopback: users write and press buttons in chats, a bot polls, with the refusals of the real server. */
import { type FakeProvider, type ProviderReply, type ProviderRequest, startFakeProvider } from '@sluice/testkit/fake-provider'
import { createTelegramChats, type TelegramChat, type TelegramLiveDraft, type TelegramMessage, type TelegramUser } from './fake-chats.ts'
import { createTelegramUpdates, type TelegramUpdate } from './fake-updates.ts'
import { badRequest, fromNumber, type Params, paramsOf, refusal, result } from './fake-wire.ts'

/** How the fake of Telegram starts. */
export interface TelegramFakeOptions {
  readonly port?: number
  readonly token?: string
  /** The bot's user name. */
  readonly username?: string
  readonly chats?: readonly TelegramChat[]
  /** False: a server of before version 9.3 of the Bot API, which does not know `sendMessageDraft`. */
  readonly hasDrafts?: false
}

/** A user's message; the members of `extra` are copied into it. */
export interface TelegramSaid {
  readonly chat?: number
  readonly from?: TelegramUser
  readonly text?: string
  readonly replyTo?: number
  readonly thread?: number
  readonly extra?: object
}

/** A running fake of Telegram. */
export interface TelegramFake extends FakeProvider {
  readonly token: string
  readonly bot: TelegramUser & { readonly username: string }
  /** Writes a message as a user. The first message of a private chat creates it. */
  say(said: TelegramSaid): TelegramMessage
  /** Edits a message as its author. The platform tells bots nothing of deletions. */
  edit(message: { readonly chat: number; readonly id: number }, text: string, by?: TelegramUser): void
  /** Presses a button as a user, with any data. Returns the id of the callback query. */
  press(pressed: { readonly message: TelegramMessage; readonly from?: TelegramUser; readonly data: string }): string
  /** Queues an update of any type. */
  update(type: string, content: object): void
  /** The last 100,000 messages of one chat or of all chats. */
  messages(chat?: number): readonly TelegramMessage[]
  /** The bot's own messages of one chat or of all chats. */
  sent(chat?: number): readonly TelegramMessage[]
  /** The live drafts that are shown now. */
  readonly drafts: readonly TelegramLiveDraft[]
  /** The unconfirmed updates, oldest first. */
  readonly waiting: readonly TelegramUpdate[]
  /** Sets the id of the next update, as the server does after a week without updates. */
  renumber(next: number): void
  /** Ends the current poll as if its time were over. */
  lapse(): void
  /** Whether a poll is waiting. */
  readonly polled: boolean
  /** Ids of the answered callback queries. */
  readonly answered: readonly string[]
  /** The chat actions shown, as `<chat>:<action>` or `<chat>:<action>:<thread>`. */
  readonly actions: readonly string[]
  /** The commands in the menu of the bot. */
  readonly menu: readonly { readonly command: string; readonly description: string }[]
  /** Stores a file and returns its id. */
  file(bytes: Uint8Array, path: string): string
  /** Replaces the token that requests must carry. */
  changeToken(token: string): void
  /** Blocks the bot in a chat. */
  block(chat: number): void
  /** Refuses each further message to a topic. */
  closeTopic(chat: number, thread: number): void
  /** Gives a group a new id. */
  migrate(chat: number, to: TelegramChat): void
}

/** The default bot token. */
export const TELEGRAM_TOKEN = '700100:telegram-Bot_Token-01-abcdefghijklm'
/** The default author of messages; the private chat with the bot has the same id. */
export const TELEGRAM_ADA: TelegramUser = { id: 1001, username: 'Ada' }
/** The id of a group. */
export const TELEGRAM_GROUP = -100_200
/** The id of a supergroup with topics. */
export const TELEGRAM_FORUM = -100_300

const CHATS: readonly TelegramChat[] = [
  { id: 1001, type: 'private' },
  { id: TELEGRAM_GROUP, type: 'group' },
  { id: TELEGRAM_FORUM, type: 'supergroup', threads: [7, 8] },
]
const CALL = /^\/bot(?<token>[^/]*)\/(?<method>\w+)$/
const FILE = /^\/file\/bot(?<token>[^/]*)\/(?<path>.+)$/
const TOKEN = /^\d+:[\w-]+$/
/** The limits of `setMyCommands`: https://core.telegram.org/bots/api#botcommand */
const COMMANDS_MAX = 100
const COMMAND = /^[a-z0-9_]{1,32}$/
const DESCRIPTION_MAX = 256
const FILE_BYTES_MAX = 20 * 1024 * 1024
/** The methods that send a file, and the form field of the file. */
const UPLOADS: Readonly<Record<string, string>> = {
  sendphoto: 'photo',
  senddocument: 'document',
  sendaudio: 'audio',
  sendvideo: 'video',
  sendvoice: 'voice',
}

/** Starts the fake; call `close` to end it. */
export async function startTelegramFake(options: TelegramFakeOptions = {}): Promise<TelegramFake> {
  let { token = TELEGRAM_TOKEN } = options
  const bot = { id: Number(token.split(':')[0]), is_bot: true, username: options.username ?? 'sluice_bot' }
  const updates = createTelegramUpdates()
  const chats = createTelegramChats(bot, () => 1_767_225_600)
  for (const chat of options.chats ?? CHATS) chats.add(chat)
  const files = new Map<string, { readonly bytes: Uint8Array; readonly path: string }>()
  const queries = new Set<string>()
  const answered: string[] = []
  const actions: string[] = []
  const menu: { command: string; description: string }[] = []

  const methods: Readonly<Record<string, (params: Params) => ProviderReply | Promise<ProviderReply>>> = {
    getme: () => result({ ...bot, first_name: 'Sluice', can_join_groups: true }),
    getupdates: (params) => updates.poll(params),
    sendmessage: (params) => chats.send(params),
    editmessagetext: (params) => chats.edit(params),
    ...(options.hasDrafts !== false && { sendmessagedraft: (params: Params) => chats.draft(params) }),
    sendchataction(params) {
      const wrong = chats.refused(params)
      if (wrong) return wrong
      actions.push([params.chat_id, params.action, params.message_thread_id].filter((part) => part !== undefined).join(':'))
      return result(true)
    },
    setmycommands({ commands }) {
      const given: unknown = typeof commands === 'string' ? JSON.parse(commands) : commands
      if (!Array.isArray(given)) return badRequest("can't parse BotCommand: Expected an Array of BotCommand")
      if (given.length > COMMANDS_MAX) return badRequest('BOT_COMMANDS_TOO_MUCH')
      for (const { command = '', description = '' } of given) {
        if (!COMMAND.test(command)) return badRequest('BOT_COMMAND_INVALID')
        if (description.trim() === '' || description.length > DESCRIPTION_MAX) return badRequest('BOT_COMMAND_DESCRIPTION_INVALID')
      }
      menu.splice(0, menu.length, ...given)
      return result(true)
    },
    deletemycommands() {
      menu.length = 0
      return result(true)
    },
    answercallbackquery({ callback_query_id: id }) {
      if (!queries.delete(String(id))) return badRequest('query is too old and response timeout expired or query ID is invalid')
      answered.push(String(id))
      return result(true)
    },
    getfile({ file_id: id }) {
      const file = files.get(String(id))
      if (!file) return badRequest('invalid file_id')
      if (file.bytes.length > FILE_BYTES_MAX) return badRequest('file is too big')
      return result({ file_id: id, file_unique_id: `u-${id}`, file_size: file.bytes.length, file_path: file.path })
    },
    ...Object.fromEntries(Object.entries(UPLOADS).map(([name, field]) => [name, (params: Params) => chats.send(params, field)])),
  }

  const answer = async (request: ProviderRequest): Promise<ProviderReply> => {
    const path = decodeURIComponent(request.path)
    const { token: given = '', method, path: filePath } = { ...(CALL.exec(path) ?? FILE.exec(path))?.groups }
    if (!TOKEN.test(given)) return refusal(404, 'Not Found')
    if (given !== token) return refusal(401, 'Unauthorized')
    if (filePath !== undefined) {
      const found = [...files.values()].find((file) => file.path === filePath)
      return found ? { status: 200, headers: { 'content-type': 'application/octet-stream' }, body: found.bytes } : refusal(404, 'Not Found')
    }
    const name = (method ?? '').toLowerCase()
    const run = Object.hasOwn(methods, name) ? methods[name] : undefined
    return run ? run(await paramsOf(request)) : refusal(404, 'Not Found')
  }

  const provider = await startFakeProvider(answer, { port: options.port ?? 0 })
  const messages = (chat?: number) => chats.messages.filter((message) => chat === undefined || message.chat === chat)
  return {
    ...provider,
    get token() {
      return token
    },
    bot,
    say({ chat, from = TELEGRAM_ADA, text = '', replyTo, thread, extra = {} }) {
      const id = chat ?? from.id
      if (chat === undefined && !chats.find(id)) chats.add({ id, type: 'private' })
      const message = chats.write({
        chat: id,
        from,
        text,
        ...(replyTo !== undefined && { replyTo }),
        ...(thread !== undefined && { thread }),
      })
      const { text: _, ...rest } = chats.shown(message) as { readonly text?: string }
      updates.add('message', { ...rest, ...(text !== '' && { text }), ...extra })
      return message
    },
    edit({ chat, id }, text, by) {
      const { text: _, ...rest } = chats.shown({ id, chat, from: by ?? chats.get(chat, id)?.from ?? TELEGRAM_ADA, text, edits: 1 }) as {
        readonly text?: string
        readonly date?: number
      }
      updates.add('edited_message', { ...rest, edit_date: (rest.date ?? 0) + 1, text })
    },
    press({ message, from = TELEGRAM_ADA, data }) {
      const id = String(4_000_000 + queries.size + answered.length + 1)
      queries.add(id)
      const person = { is_bot: false, first_name: 'Somebody', ...from }
      updates.add('callback_query', { id, from: person, message: chats.shown(message), chat_instance: '1', data })
      return id
    },
    update: (type, content) => updates.add(type, content),
    messages,
    sent: (chat) => messages(chat).filter(({ from }) => fromNumber(from.id) === bot.id),
    get drafts() {
      return chats.drafts
    },
    get waiting() {
      return updates.waiting
    },
    renumber: updates.renumber,
    lapse: updates.lapse,
    get polled() {
      return updates.polled
    },
    answered,
    actions,
    menu,
    file(bytes, path) {
      const id = `file-${files.size + 1}`
      files.set(id, { bytes, path })
      return id
    },
    changeToken(next) {
      token = next
    },
    block: chats.block,
    closeTopic: chats.closeTopic,
    migrate: chats.migrate,
  }
}

if (import.meta.main) {
  const fake = await startTelegramFake({ port: Number(process.argv[2] ?? 0) })
  console.log(`api_url = "${fake.url}", bot_token = "${TELEGRAM_TOKEN}"`)
}

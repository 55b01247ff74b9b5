/**
 * A Matrix homeserver on loopback, written from the client-server API (https://spec.matrix.org/latest/client-server-api/). It has one
 * bot, people, and rooms that tests create; real clients, such as matrix-nio, work with it, too.
 */
import { type FakeProvider, startFakeProvider } from '@sluice/testkit/fake-provider'
import { FakeAccounts, type FakeDevice, type Json } from './fake-accounts.ts'
import { type FakeRoom, FakeRooms, type RoomEvent } from './fake-rooms.ts'
import { answer, type FakeState } from './fake-routes.ts'

export const FEDCHAT_TOKEN = 'fedchat-access-token-01-abcdefghij'
export const FEDCHAT_PASSWORD = 'fedchat-password-01'
export const FEDCHAT_BOT = '@sluice:example.org'
export const FEDCHAT_ROOM = '!ops:example.org'
export const FEDCHAT_PEOPLE = ['@ada:example.org', '@bob:example.org', '@eve:example.org'] as const
const SERVER_NAME = 'example.org'
const UPLOAD_BYTES_MAX = 52_428_800

export interface FedchatFakeOptions {
  readonly nowMs?: () => number
  readonly port?: number
  /** Whether the first room is encrypted. */
  readonly isEncrypted?: boolean
  readonly hasOldMediaOnly?: boolean
  /** The status for unknown addresses; some releases of homeservers answer 400. Default: 404. */
  readonly unknownStatus?: 400 | 404
  readonly uploadBytesMax?: number
}

/** A message that a person writes without encryption. */
export interface FedchatSaid {
  readonly text: string
  readonly from?: string
  readonly room?: string
  readonly thread?: string
  readonly replyTo?: string
  /** Further members of the content. */
  readonly more?: Json
}

export interface FedchatFake extends FakeProvider {
  readonly state: FakeState
  readonly bot: FakeDevice
  /** The syncs of the bot that were answered or wait for news. */
  readonly syncs: number
  /** Creates a room with the bot and these people in it. */
  addRoom(options?: {
    readonly id?: string
    readonly people?: readonly string[]
    readonly isEncrypted?: boolean
    readonly hasBot?: boolean
  }): FakeRoom
  say(said: FedchatSaid): string
  /** Adds any event. */
  emit(event: {
    readonly type: string
    readonly content: Json
    readonly from?: string
    readonly room?: string
    readonly stateKey?: string
  }): string
  redact(event: string, from: string, room?: string): string
  invite(room: FakeRoom, userId?: string, from?: string): void
  /** The events of the bot in a room, or in all rooms. */
  sent(room?: string): readonly RoomEvent[]
  /** Ends the token of the bot. */
  logOut(isSoft: boolean): void
}

export async function startFedchatFake(options: FedchatFakeOptions = {}): Promise<FedchatFake> {
  const {
    nowMs = Date.now,
    port = 0,
    isEncrypted = false,
    hasOldMediaOnly = false,
    unknownStatus = 404,
    uploadBytesMax = UPLOAD_BYTES_MAX,
  } = options
  let seq = 0
  let syncs = 0
  let wake = Promise.withResolvers<void>()
  const nextSeq = (): number => ++seq
  const accounts = new FakeAccounts(nextSeq)
  const rooms = new FakeRooms(nextSeq, nowMs, SERVER_NAME)
  const state: FakeState = {
    accounts,
    rooms,
    media: new Map(),
    transactions: new Map(),
    typing: [],
    receipts: [],
    serverName: SERVER_NAME,
    hasOldMediaOnly,
    unknownStatus,
    uploadBytesMax,
    now: () => seq,
    async news(ms) {
      const { promise } = wake
      let timer: NodeJS.Timeout | undefined
      const late = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, ms)
        timer.unref()
      })
      await Promise.race([promise, late])
      clearTimeout(timer)
    },
    announce() {
      wake.resolve()
      wake = Promise.withResolvers()
    },
  }
  for (const userId of [FEDCHAT_BOT, ...FEDCHAT_PEOPLE]) accounts.add(userId, FEDCHAT_PASSWORD)
  let bot = accounts.logIn(FEDCHAT_BOT, 'SLUICEDEV', FEDCHAT_TOKEN)

  const addRoom: FedchatFake['addRoom'] = ({ id, people = [FEDCHAT_PEOPLE[0]], isEncrypted: encrypted = false, hasBot = true } = {}) => {
    const [creator = FEDCHAT_PEOPLE[0], ...others] = people
    const room = rooms.create(creator, { ...(id !== undefined && { id }), isEncrypted: encrypted })
    for (const userId of [...others, ...(hasBot ? [FEDCHAT_BOT] : [])]) rooms.setMembership(room, userId, 'join')
    state.announce()
    return room
  }
  addRoom({ id: FEDCHAT_ROOM, people: FEDCHAT_PEOPLE, isEncrypted })
  rooms.aliases.set('#ops:example.org', FEDCHAT_ROOM)

  const emit: FedchatFake['emit'] = ({ type, content, from = FEDCHAT_PEOPLE[0], room = FEDCHAT_ROOM, stateKey }) => {
    const { event } = rooms.add(rooms.room(room), { type, sender: from, content, ...(stateKey !== undefined && { stateKey }) })
    state.announce()
    return event.event_id
  }
  const fake = await startFakeProvider(
    (request) => {
      if (request.path.endsWith('/sync') && request.headers.get('authorization') === `Bearer ${bot.token}`) syncs += 1
      return answer(request, state)
    },
    { port },
  )
  return {
    ...fake,
    state,
    get bot() {
      return bot
    },
    get syncs() {
      return syncs
    },
    addRoom,
    emit,
    say: ({ text, from, room, thread, replyTo, more = {} }) =>
      emit({
        type: 'm.room.message',
        content: { msgtype: 'm.text', body: text, ...relation(thread, replyTo), ...more },
        ...defined({ from, room }),
      }),
    redact(event, from, room = FEDCHAT_ROOM) {
      const redaction = rooms.redact(rooms.room(room), from, event, {})
      state.announce()
      return redaction.event.event_id
    },
    invite(room, userId = FEDCHAT_BOT, from = FEDCHAT_PEOPLE[0]) {
      rooms.setMembership(room, userId, 'invite', from)
      state.announce()
    },
    sent: (only) =>
      [...rooms.rooms.values()]
        .filter(({ id }) => only === undefined || id === only)
        .flatMap(({ timeline }) => timeline)
        .filter(({ event }) => event.sender === FEDCHAT_BOT && event.type.startsWith('m.') && event.state_key === undefined)
        .sort((a, b) => a.seq - b.seq)
        .map(({ event }) => event),
    logOut(isSoft) {
      const ended = bot
      accounts.logOut(ended, isSoft)
      bot = { ...ended }
      state.announce()
    },
  }
}

function relation(thread: string | undefined, replyTo: string | undefined): Json {
  const reply = replyTo === undefined ? {} : { 'm.in_reply_to': { event_id: replyTo } }
  if (thread !== undefined) {
    const fallback = replyTo === undefined ? { is_falling_back: true, 'm.in_reply_to': { event_id: thread } } : reply
    return { 'm.relates_to': { rel_type: 'm.thread', event_id: thread, ...fallback } }
  }
  return replyTo === undefined ? {} : { 'm.relates_to': reply }
}

const defined = <Value extends object>(value: Value) =>
  Object.fromEntries(Object.entries(value).filter(([, member]) => member !== undefined)) as {
    [Key in keyof Value]: NonNullable<Value[Key]>
  }

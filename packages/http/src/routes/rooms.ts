/** `/api/rooms`: the rooms of channels, their rules, and which turns a rule would run. */
import { agentsOfChats, operatorsOf, roomsOf } from '@sluice/config'
import { commandIn, isAdmitted, judgeInRoom, type Room, Rooms, respondsTo, standingOfSender } from '@sluice/delivery'
import { isoTime } from '@sluice/kit'
import type { Runtime } from '@sluice/runtime'
import { configuredChannels } from '@sluice/runtime/configured-channels'
import { beginRoomAnew, eraseRoom, shownErased } from '@sluice/runtime/conversations'
import {
  AppError,
  adviceOnUnreadable,
  agentKey,
  type Channel,
  chatSessionKey,
  defineRoute,
  MAIN_AGENT,
  parseRoomId,
  RESPONDS,
  ROOM_KEYS,
  ROOM_SESSIONS,
  ROOMS,
  type RoomPlace,
  type RoomRule,
  type Route,
  roomId,
  roomKey,
  roomRuleSchema,
  type SessionRow,
  STANDINGS,
  sharedRoom,
} from '@sluice/sdk'
import * as v from 'valibot'
import { recordAction } from '../request/record-action.ts'
import { erasedSchema } from './sessions.ts'

const ROOMS_MAX = 1000
const LINES_MAX = 5000
/** Room for a transcript of the 4 MiB that the command line reads, with a rule. */
const TRY_BYTES_MAX = 4 * 1_048_576 + 65_536

const roomSchema = v.object({
  room: v.pipe(v.string(), v.description('Its id: `<channel>/<account>/<conversation>`, whose parts are percent-encoded')),
  channel: v.string(),
  account: v.string(),
  conversation: v.string(),
  rule: v.pipe(roomRuleSchema, v.description('The parts of the stored rule that this release can read')),
  unreadable: v.pipe(
    v.array(v.string()),
    v.description('The parts of the stored rule that this release cannot read. While there are any, nobody is answered there'),
  ),
  session: v.pipe(v.picklist(ROOM_SESSIONS), v.description('In force: by the rule, else by `room_session` of the channel')),
  respond: v.pipe(
    v.picklist(RESPONDS),
    v.description('In force; with `mention_only` of the channel, messages that are not addressed to the bot are at most overheard'),
  ),
  overhears: v.boolean(),
  agent: v.string(),
  last_activity: v.pipe(v.nullable(v.string()), v.description('Of the conversation that its people share; null without one')),
})
/** A room, as the API answers it. */
export type ShownRoom = v.InferOutput<typeof roomSchema>

const lineSchema = v.object({
  sender: v.pipe(v.string(), v.minLength(1)),
  text: v.optional(v.string(), ''),
  addressed: v.optional(v.picklist(['mention', 'reply', 'command', 'overheard']), 'overheard'),
})

const triedSchema = v.object({
  sender: v.string(),
  text: v.string(),
  outcome: v.pipe(
    v.picklist(['turn', 'judge', 'command', 'overheard', 'ignored', 'denied']),
    v.description(
      'turn: the agent answers; judge: it answers or is silent; command: such as /stop, which starts no turn; overheard: kept for the next turn; ignored: dropped by the rule; denied: dropped by the allowlist',
    ),
  ),
  standing: v.picklist(STANDINGS),
  overheard: v.pipe(v.number(), v.description('The overheard messages that the model reads before this one')),
})
/** What a rule does with one message. */
export type TriedLine = v.InferOutput<typeof triedSchema>

export function roomRoutes(runtime: Runtime): Route[] {
  const { store, clock, files, snapshot } = runtime
  const rules = store.keyValue(ROOMS)
  const rooms = new Rooms({ store, rooms: (channel) => roomsOf(runtime.snapshot().config, channel) })

  const channelOf = ({ channel }: RoomPlace): Channel | undefined => runtime.snapshot().channels.find(({ name }) => name === channel)

  /** Lists the conversations that all people of a room share, of each agent, the newest of each agent first. The prefix is of the main agent. */
  const sharedSessions = async (prefix: string, limit: number): Promise<SessionRow[]> => {
    const agents = new Set([MAIN_AGENT, ...runtime.snapshot().registries.keys()])
    const lists = [...agents].map((agent) => store.sessions.list({ limit, prefix: agentKey(agent, prefix), suffix: '/' }))
    return (await Promise.all(lists)).flat().toSorted((one, other) => other.lastActiveAtMs - one.lastActiveAtMs)
  }

  const shownAlone = async (place: RoomPlace): Promise<ShownRoom> =>
    shown(place, (await sharedSessions(chatSessionKey(place), 1))[0]?.lastActiveAtMs)

  const shown = async (place: RoomPlace, lastActiveAtMs?: number): Promise<ShownRoom> => {
    const room = await rooms.at(place)
    const { rule, readable, isShared, overhears, unreadable = [] } = room
    return {
      room: roomId(place),
      channel: place.channel,
      account: place.account,
      conversation: place.conversation,
      rule: readable ?? rule,
      unreadable: [...unreadable],
      session: isShared ? 'shared' : 'person',
      respond: respondsTo(room),
      overhears: isShared && overhears,
      agent: rule.agent ?? agentsOfChats(() => runtime.snapshot().config)(place),
      last_activity: lastActiveAtMs === undefined ? null : isoTime(lastActiveAtMs),
    }
  }

  /** Throws `invalid_request` for a rule that names what is not configured. No rule names nothing, and a channel that has failed is configured. */
  const check = ({ channel }: RoomPlace, rule: RoomRule): void => {
    if (Object.keys(rule).length === 0) return
    const { agent } = rule
    const snapshot = runtime.snapshot()
    const channels = new Set([...snapshot.channels, ...configuredChannels(snapshot).broken].map(({ name }) => name))
    if (!channels.has(channel)) {
      const others = channels.size === 0 ? '' : ` The channels are ${[...channels].join(', ')}.`
      throw new AppError('invalid_request', `There is no channel "${channel}".${others}`)
    }
    const agents = [...snapshot.registries.keys()]
    if (agent !== undefined && !agents.includes(agent))
      throw new AppError('invalid_request', `agent: there is no agent "${agent}". The agents are ${agents.join(', ')}.`)
  }

  return [
    defineRoute({
      method: 'GET',
      path: '/api/rooms',
      summary: `The rooms that have a rule or a conversation of all their people, the most recently active first; at most ${ROOMS_MAX} of each`,
      auth: 'operator',
      answers: { 200: { description: 'The rooms', schema: v.object({ rooms: v.array(roomSchema) }) } },
      async handle() {
        const found = new Map<string, { readonly place: RoomPlace; readonly lastActiveAtMs?: number }>()
        for (const { id, lastActiveAtMs } of await sharedSessions('channel:', ROOMS_MAX)) {
          const place = sharedRoom(id)
          if (place && !found.has(roomId(place))) found.set(roomId(place), { place, lastActiveAtMs })
        }
        for (const { key } of await rules.list(ROOM_KEYS, ROOMS_MAX)) {
          const id = key.slice(ROOM_KEYS.length)
          const place = parseRoomId(id)
          if (place && !found.has(id)) found.set(id, { place })
        }
        const all: ShownRoom[] = []
        for (const { place, lastActiveAtMs } of found.values()) all.push(await shown(place, lastActiveAtMs))
        return { rooms: all }
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/api/rooms/:id',
      summary: 'One room with its rule, and what is in force there',
      auth: 'operator',
      answers: { 200: { description: 'The room', schema: roomSchema } },
      handle: ({ params }) => shownAlone(placeIn(params)),
    }),
    defineRoute({
      method: 'PUT',
      path: '/api/rooms/:id',
      summary:
        'Set the rule of a room. When other people share a conversation than before, a new one begins. Refused where it would remove parts that this release cannot read',
      auth: 'operator',
      query: v.object({
        give_up: v.optional(
          v.pipe(v.string(), v.description('The parts that this release cannot read and that are removed, with commas between them')),
          '',
        ),
      }),
      body: roomRuleSchema,
      answers: { 200: { description: 'The room', schema: roomSchema } },
      async handle({ by, params, body, query }) {
        const place = placeIn(params)
        check(place, body)
        const before = await rooms.at(place)
        checkGivenUp(before, [...Object.keys(body), ...query.give_up.split(',')])
        if (Object.keys(body).length === 0) await rules.delete(roomKey(place))
        else await rules.set(roomKey(place), body)
        const { isShared } = await rooms.at(place)
        if (isShared !== before.isShared) await beginRoomAnew({ store, snapshot }, place, { isShared, nowMs: clock.nowMs() })
        await recordAction(runtime, 'room_changed', by, { room: roomId(place), rule: body })
        return shownAlone(place)
      },
    }),
    defineRoute({
      method: 'DELETE',
      path: '/api/rooms/:id',
      summary: 'Erase a room: its rule, and the conversations that its people share, with their memories, files and overheard messages',
      auth: 'operator',
      answers: {
        200: { description: 'Erased', schema: v.object({ deleted: v.literal(true), room: v.string(), erased: v.nullable(erasedSchema) }) },
      },
      async handle({ by, params }) {
        const place = placeIn(params)
        const hadRule = (await rules.get(roomKey(place))) !== undefined
        const erased = await eraseRoom({ store, files, snapshot }, place, { atMs: clock.nowMs(), by })
        if (!erased && !hadRule) throw new AppError('not_found', `Nothing is kept of the room ${roomId(place)}.`)
        await rules.delete(roomKey(place))
        await recordAction(runtime, 'room_erased', by, { room: roomId(place) })
        return { deleted: true, room: roomId(place), erased: erased ? shownErased(erased) : null }
      },
    }),
    defineRoute({
      method: 'POST',
      path: '/api/rooms/:id/try',
      summary: 'Play messages against the rule of a room, or against another rule. Nothing is run, stored or sent',
      auth: 'operator',
      bodyBytesMax: TRY_BYTES_MAX,
      body: v.object({
        rule: v.exactOptional(v.pipe(roomRuleSchema, v.description('In place of the rule of the room'))),
        messages: v.pipe(v.array(lineSchema), v.maxLength(LINES_MAX)),
      }),
      answers: { 200: { description: 'The outcome for each message', schema: v.object({ messages: v.array(triedSchema) }) } },
      async handle({ params, body: { rule, messages } }) {
        const place = placeIn(params)
        const channel = channelOf(place)
        if (!channel) throw new AppError('not_found', `The channel ${place.channel} is not connected.`)
        const inForce = await rooms.at(place)
        const { isShared } = roomsOf(runtime.snapshot().config, place.channel)
        const tried = rule ? { ...inForce, rule, isShared: rule.session === undefined ? isShared : rule.session === 'shared' } : inForce
        return { messages: play(channel, tried, operatorsOf(runtime.snapshot().config, channel.name), messages) }
      },
    }),
  ]
}

/** The overheard messages that a room keeps at most. */
const OVERHEARD_MAX = 50

function play(
  channel: Channel,
  room: Room,
  operators: readonly string[],
  messages: readonly v.InferOutput<typeof lineSchema>[],
): TriedLine[] {
  let heard = 0
  return messages.map((message) => {
    const { sender, text } = message
    const outcome = isAdmitted(channel, sender) ? outcomeOf(channel, room, message) : 'denied'
    const isTurn = outcome === 'turn' || outcome === 'judge'
    const line = { sender, text, outcome, standing: standingOfSender(channel, message, operators), overheard: isTurn ? heard : 0 }
    heard = isTurn ? 0 : Math.min(OVERHEARD_MAX, heard + (outcome === 'overheard' ? 1 : 0))
    return line
  })
}

function outcomeOf(channel: Channel, room: Room, message: v.InferOutput<typeof lineSchema>): TriedLine['outcome'] {
  const verdict = judgeInRoom(channel, room, message)
  return (verdict === 'turn' || verdict === 'judge') && commandIn(message.text) ? 'command' : verdict
}

/** Throws `conflict` where a new rule would remove parts that cannot be read and that the request does not name. */
function checkGivenUp({ place, unreadable = [] }: Pick<Room, 'place' | 'unreadable'>, named: readonly string[]): void {
  const lost = unreadable.filter((name) => !named.includes(name))
  if (lost.length === 0) return
  const message = `The rule of this room has parts that this release cannot read: ${lost.join(', ')}. Nothing was changed: ${adviceOnUnreadable(roomId(place), lost)}`
  throw new AppError('conflict', message)
}

function placeIn({ id = '' }: Readonly<Record<string, string>>): RoomPlace {
  const place = parseRoomId(id)
  if (!place)
    throw new AppError(
      'invalid_request',
      'A room has an id of the form <channel>/<account>/<conversation>, whose parts are percent-encoded.',
    )
  return place
}

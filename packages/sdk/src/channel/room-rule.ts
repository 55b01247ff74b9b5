/** The rules of a room: a conversation of several people on a channel. */
import * as v from 'valibot'
import { type RoomPlace, roomId } from '../values/session-key.ts'

const text = v.pipe(v.string(), v.minLength(1), v.maxLength(200))
const texts = v.pipe(v.array(text), v.minLength(1), v.maxLength(1000))

export const ROOM_SESSIONS = ['shared', 'person'] as const
/** `judge`: the agent reads every message, and may answer with silence. */
export const RESPONDS = ['mention', 'always', 'never', 'judge'] as const

/** The decisions of an operator for one room. An absent member leaves it to the configuration of the channel. */
export const roomRuleSchema = v.strictObject({
  session: v.exactOptional(
    v.pipe(v.picklist(ROOM_SESSIONS), v.description('shared: one conversation for all people of the room; person: one for each of them')),
  ),
  agent: v.exactOptional(v.pipe(text, v.description('The agent that answers'))),
  people: v.exactOptional(
    v.pipe(texts, v.description('The only people who are answered there. Each must be on the allowlist of the channel too')),
  ),
  respond: v.exactOptional(
    v.pipe(
      v.picklist(RESPONDS),
      v.description(
        'The messages that are answered: mention, those addressed to the bot; always, all; never, none; judge, those that the agent finds worth an answer',
      ),
    ),
  ),
  tools: v.exactOptional(v.pipe(texts, v.description('The only tools that turns of the room call'))),
  turns_per_hour: v.exactOptional(v.pipe(v.number(), v.integer(), v.minValue(1), v.description('The turns of all people together'))),
  usd_per_day: v.exactOptional(v.pipe(v.number(), v.minValue(0.01), v.description('The costs of all people together'))),
  language: v.exactOptional(v.pipe(text, v.description('The language of the answers'))),
})
export type RoomRule = v.InferOutput<typeof roomRuleSchema>

/** The owner of the keys of rooms in the store. */
export const ROOMS = 'gateway:rooms'

/** The beginning of the keys of rooms. */
export const ROOM_KEYS = 'room:'

/** The key of a room in the store. */
export const roomKey = (room: RoomPlace): string => ROOM_KEYS + roomId(room)

export interface StoredRoomRule {
  /** The rule in force. */
  readonly rule: RoomRule
  /** The parts of the stored rule that can be read. A change of the rule begins with them. */
  readonly readable: RoomRule
  /** The parts that this release cannot read, such as those of a later one. */
  readonly unreadable: readonly string[]
}

/** Names a rule of which no part can be read. */
const WHOLE_RULE = 'whole_rule'

/**
 * Reads a stored rule. A part that cannot be read may restrict who is answered and with which tools, so that then nobody is answered; the
 * other parts are kept. Where the part says who shares a conversation, each person has one.
 */
export function parseRoomRule(stored: unknown): StoredRoomRule {
  const whole = v.safeParse(roomRuleSchema, stored ?? {})
  if (whole.success) return { rule: whole.output, readable: whole.output, unreadable: [] }
  const parts = v.safeParse(v.record(v.string(), v.unknown()), stored)
  if (!parts.success) return { rule: { session: 'person', respond: 'never' }, readable: {}, unreadable: [WHOLE_RULE] }
  const entries = Object.entries(parts.output)
  const isReadable = ([name, value]: readonly [string, unknown]): boolean => v.safeParse(roomRuleSchema, { [name]: value }).success
  const unreadable = entries.filter((entry) => !isReadable(entry)).map(([name]) => name)
  const readable = v.parse(roomRuleSchema, Object.fromEntries(entries.filter(isReadable)))
  const rule: RoomRule = { ...readable, ...(unreadable.includes('session') && { session: 'person' }), respond: 'never' }
  return { rule, readable, unreadable }
}

/** What an operator does about parts of the rule of a room that this release cannot read. */
export const adviceOnUnreadable = (room: string, unreadable: readonly string[]): string =>
  `upgrade this node. Without these parts, what they restrict is allowed; to give them up: sluice rooms set ${room} ${unreadable.map((name) => `${name}=`).join(' ')}`

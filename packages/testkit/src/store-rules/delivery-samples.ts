/** Sample requests and replies with defaults for every member a rule does not care about. */
import type { Arrival, Inbound, NewReply, Store, TurnEnd } from '@sluice/sdk'
import { turnEnd } from './samples.ts'

/** The limit of attempts in rules about other things; no such rule reaches it. */
export const STARTS_MAX = 5

/** A message with this id. */
export const inbound = (id: string, part: Partial<Inbound> = {}): Inbound => ({
  id,
  account: 'bot',
  sender: '+15550100',
  to: { to: 'room', thread: 'thread', more: { subject: 's' } },
  text: `text of ${id}`,
  sentAtMs: 900,
  ...part,
})

/** The request body of the messages with these ids. */
export const bodyOf = (id: string): Uint8Array => new TextEncoder().encode(`body of ${id}`)

/** A request with these messages, all in one session. The messages themselves are stored. */
export const arrival = (ids: string | readonly string[], part: Partial<Arrival> = {}): Arrival => ({
  channel: 'roomchat',
  verdict: 'signature',
  raw: null,
  receivedAtMs: 1_000,
  messages: [ids].flat().map((id) => ({ message: inbound(id), session: 'roomchat:room' })),
  ...part,
})

/** As `arrival`; the body of the request is stored. */
export const bodyArrival = (ids: string | readonly string[], part: Partial<Arrival> = {}): Arrival =>
  arrival(ids, { raw: bodyOf([ids].flat().join(' ')), ...part })

/** A request with one message. */
export const arrivalOf = (message: Inbound, part: Partial<Arrival> = {}): Arrival =>
  arrival([], { messages: [{ message, session: 'roomchat:room' }], ...part })

/** Stores one new message; resolves to its number. */
export async function keepOne(store: Store, id: string, part: Partial<Arrival> = {}): Promise<number> {
  const kept = await store.inbox.keep(arrival(id, part))
  const number = kept === 'replayed' ? undefined : kept[0]
  if (typeof number !== 'number') throw new Error(`the message ${id} is already known`)
  return number
}

/** A reply with this text. */
export const reply = (text: string, part: Partial<NewReply> = {}): NewReply => ({
  channel: 'roomchat',
  account: 'bot',
  to: { to: 'room', thread: 'thread', replyTo: 'm1' },
  text,
  part: 1,
  parts: 1,
  clientId: `client id of ${text}`,
  turnId: 'turn',
  createdAtMs: 2_000,
  ...part,
})

/** A long reply in parts. */
export const replyParts = (texts: readonly string[], part: Partial<NewReply> = {}): NewReply[] =>
  texts.map((text, at) => reply(text, { part: at + 1, parts: texts.length, ...part }))

/** Stores and starts a message and ends its turn with these replies; resolves to the message's number. */
export async function answerOne(store: Store, id: string, replies: readonly NewReply[] = [], part: Partial<TurnEnd> = {}): Promise<number> {
  const number = await keepOne(store, id)
  await store.inbox.start(number, `turn of ${id}`, STARTS_MAX)
  await store.turns.finish(turnEnd(`turn of ${id}`, { delivery: { inbox: number, replies }, ...part }))
  return number
}

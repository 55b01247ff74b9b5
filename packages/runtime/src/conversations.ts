/** The kept conversations: listed, exported, found by their person, and erased with everything that belongs to them. */

import { setImmediate } from 'node:timers/promises'
import { beginConversation, overheardSessions, type People, sessionsOfSender } from '@sluice/delivery'
import { isoTime } from '@sluice/kit'
import {
  agentKey,
  agentOfSession,
  channelOwner,
  type Erased,
  escapedParts,
  MAIN_AGENT,
  type ModelMessage,
  parseChatSession,
  parseSenderKey,
  type RoomPlace,
  roomId,
  roomOwner,
  type SessionRow,
  type SessionStore,
  type SessionSummary,
  type Store,
  senderKey,
  sessionOfLane,
  sharedRoom,
  untrustedSource,
  withoutFrames,
} from '@sluice/sdk'
import type { Runtime } from './runtime.ts'

/** A sender, by the name that the channel has for it. */
export interface Person {
  readonly channel: string
  readonly sender: string
}

const PAGE_ROWS = 500

/** One line of an exported conversation. */
export interface SaidLine extends Omit<PlainMessage, 'role'> {
  /** RFC 3339. */
  readonly at: string
  readonly role: PlainMessage['role'] | 'summary'
  /** The number of messages that a summary covers, from the first of the session. */
  readonly messages?: number
}

/** The summary of a session in the form that the API shows. */
export const shownSummary = ({ text, upTo, model, atMs, untrusted }: SessionSummary) => ({
  text,
  messages: upTo,
  model,
  at: isoTime(atMs),
  untrusted,
})

/** Every message of a session, oldest first, and then its summary if it has one. */
export async function* exported(sessions: SessionStore, id: string): AsyncGenerator<SaidLine> {
  yield* exportedMessages(sessions, id)
  const summary = await sessions.summary(id)
  if (!summary) return
  const { text, messages, at } = shownSummary(summary)
  yield { at, role: 'summary', content: text, messages }
}

async function* exportedMessages(sessions: SessionStore, id: string): AsyncGenerator<SaidLine> {
  for (let after = 0; ; ) {
    const page = await sessions.messagesByTurn(id, { after, limit: PAGE_ROWS })
    for (const { atMs, messages } of page) for (const message of messages) yield { at: isoTime(atMs), ...plainMessage(message) }
    const last = page.at(-1)
    if (!last || page.length < PAGE_ROWS) return
    after = last.upTo
  }
}

/** The beginning and the end of the ids that the sessions of a channel, or of one of its senders, have. */
export function sessionsEnds(channel: string, sender?: string): { readonly prefix: string; readonly suffix?: string } {
  const { prefix, suffix } = sessionsOfSender(channel, sender ?? '')
  return sender === undefined ? { prefix } : { prefix, suffix }
}

/**
 * Returns the ids of a person's sessions, including sessions whose messages have no finished turn. A session that the people of a room
 * share belongs to the room.
 */
export const sessionsOf = (deps: SessionDeps, { channel, sender }: Person): Promise<string[]> =>
  findSessions(deps, channel, sessionsOfSender(channel, sender), (row) => row.sender === sender && !sharedRoom(row.session))

/** Returns the ids of the sessions that the people of a room share, with those of its threads. */
const sessionsOfRoom = async (deps: SessionDeps, room: RoomPlace): Promise<string[]> => {
  const isOfRoom = (session: string): boolean => {
    const shared = sharedRoom(session)
    return shared !== undefined && roomId(shared) === roomId(room)
  }
  const found = await findSessions(deps, room.channel, { prefix: roomPrefix(room), suffix: '/' }, ({ session }) => isOfRoom(session))
  const overheard: string[] = []
  for (const agent of agentsOf(deps)) overheard.push(...(await overheardSessions(deps.store, agentKey(agent, roomPrefix(room)))))
  return [...new Set([...found, ...overheard.filter(isOfRoom)])]
}

type SessionDeps = Pick<Runtime, 'store' | 'snapshot'>

/** The beginning of ids, without the agent, and their end. */
interface Ends {
  readonly prefix: string
  readonly suffix?: string
}

const agentsOf = ({ snapshot }: Pick<SessionDeps, 'snapshot'>): ReadonlySet<string> =>
  new Set([MAIN_AGENT, ...snapshot().registries.keys()])

/** Lists the ids of the sessions of all agents with these ends. */
async function* listSessions(deps: SessionDeps, { prefix, ...end }: Ends): AsyncGenerator<string> {
  const { sessions } = deps.store
  for (const agent of agentsOf(deps)) {
    const ends = { prefix: agentKey(agent, prefix), ...end }
    for (let before: SessionRow | undefined; ; ) {
      const page: SessionRow[] = await sessions.list({ limit: PAGE_ROWS, ...ends, ...(before && { before }) })
      for (const { id } of page) yield id
      before = page.at(-1)
      if (page.length < PAGE_ROWS) break
    }
  }
}

/** Finds sessions by the ends of their ids, and those of the messages of a channel for which `isOne` holds. */
async function findSessions(
  deps: SessionDeps,
  channel: string,
  ends: Ends,
  isOne: (row: { readonly sender: string; readonly session: string }) => boolean,
): Promise<string[]> {
  const { inbox } = deps.store
  const found = new Set<string>()
  for await (const id of listSessions(deps, ends)) found.add(id)
  for (let before = Number.MAX_SAFE_INTEGER; ; ) {
    const page = await inbox.list({ limit: PAGE_ROWS, before, channel })
    for (const { sender, session: lane } of page) {
      const session = sessionOfLane(lane)
      if (isOne({ sender, session })) found.add(session)
    }
    before = page.at(-1)?.number ?? 0
    if (page.length < PAGE_ROWS) break
    // A channel may have a million messages: other work gets its turn between the pages.
    await setImmediate()
  }
  return [...found]
}

/** The amount of erased data, with the number of erased files. */
export interface ErasedWithFiles extends Erased {
  readonly files: number
}

type EraseDeps = Pick<Runtime, 'store' | 'files' | 'snapshot'>
type EraseAbout = Parameters<SessionStore['erase']>[1]

/** Erases a conversation with its files, and ends its commands. Resolves to undefined if nothing was kept; rejects as `SessionStore.erase` does. */
export async function eraseConversation(
  { store, files, snapshot }: EraseDeps,
  id: string,
  about: EraseAbout,
): Promise<ErasedWithFiles | undefined> {
  const named = await files.namedBy(id)
  const erased = await store.sessions.erase(id, about)
  if (!erased) return undefined
  await snapshot().service('endCommands')?.(id)
  return { ...erased, files: await files.erased(id, named) }
}

/** Erases all conversations of a person, with the memories and the files of that person. Resolves to undefined if nothing was kept. */
export async function erasePerson(deps: EraseDeps, person: Person, about: EraseAbout): Promise<ErasedWithFiles | undefined> {
  return eraseAll(deps, await sessionsOf(deps, person), about, (id) => {
    const { account } = parseChatSession(id) ?? {}
    return account === undefined ? undefined : senderKey(person.channel, { account, sender: person.sender })
  })
}

/** The accounts of a linked person, of which everything is erased, and what is left of them. */
export interface ErasedPerson {
  /** Undefined if nothing was kept. */
  readonly erased: ErasedWithFiles | undefined
  /** The keys of the accounts that were linked with the one that was named. */
  readonly linked: readonly string[]
}

/**
 * Erases a person with all accounts that are linked: the conversations, memories and files of senders of channels, and the memories of
 * devices and of the command line, whose conversations stay. The link goes last, so that a repeat after a crash finds it.
 */
export async function eraseLinked(
  deps: EraseDeps & { readonly people: People; readonly agents: readonly string[] },
  named: Person,
  about: EraseAbout,
): Promise<ErasedPerson> {
  const { people, store, agents } = deps
  await people.refresh()
  const isNamed = (account: string): boolean => {
    const sender = parseSenderKey(account)
    return sender?.channel === named.channel && sender.sender === named.sender
  }
  const accounts = people
    .list()
    .filter((person) => person.some(({ account }) => isNamed(account)))
    .flat()
  const linked = accounts.filter(({ account }) => !isNamed(account))
  let erased = await erasePerson(deps, named, about)
  for (const { account } of linked) {
    const sender = parseSenderKey(account)
    const more = sender ? await erasePerson(deps, sender, about) : undefined
    erased = erased && more ? sum(erased, more) : (erased ?? more)
  }
  // Memories may be left of an account without a conversation.
  let memories = 0
  for (const { account } of accounts) for (const agent of agents) memories += await forgetAll(store, agentKey(agent, account))
  if (memories > 0) erased = sum(erased ?? NOTHING_ERASED, { ...NOTHING_ERASED, memories })
  await people.forget((account) => isNamed(account) || linked.some((one) => one.account === account))
  for (const { account } of accounts) {
    const change = await people.unlink({ account, by: about.by })
    if (change) await people.settled(change)
  }
  return { erased, linked: linked.map(({ account }) => account) }
}

const NOTHING_ERASED: ErasedWithFiles = {
  ...{ historyTurns: 0, turns: 0, messages: 0, replies: 0, approvals: 0, memories: 0, files: 0, held: 0 },
  purged: true,
  copies: [],
}

async function forgetAll({ memory }: Pick<Store, 'memory'>, owner: string): Promise<number> {
  let forgotten = 0
  for (;;) {
    const page = await memory.list({ limit: PAGE_ROWS, owner })
    for (const { key } of page) if (await memory.delete(owner, key)) forgotten += 1
    if (page.length < PAGE_ROWS) return forgotten
  }
}

/**
 * Erases the conversations that the people of a room share, with the memories and the files of the room. Resolves to undefined if nothing
 * was kept.
 */
export async function eraseRoom(deps: EraseDeps, room: RoomPlace, about: EraseAbout): Promise<ErasedWithFiles | undefined> {
  return eraseAll(deps, await sessionsOfRoom(deps, room), about, () => roomOwner(room))
}

/**
 * Begins the conversations of a room anew after other people share them than before: nobody reads on in an earlier conversation, and its
 * background commands end. The messages stay stored and are listed as before.
 */
export async function beginRoomAnew(
  deps: SessionDeps,
  room: RoomPlace,
  { isShared, nowMs }: { readonly isShared: boolean; readonly nowMs: number },
): Promise<void> {
  for await (const id of listSessions(deps, { prefix: roomPrefix(room) })) {
    if ((sharedRoom(id) !== undefined) !== isShared) continue
    await beginConversation(deps.store.sessions, id, nowMs)
    await deps.snapshot().service('endCommands')?.(id)
  }
}

const roomPrefix = ({ channel, account, conversation }: RoomPlace): string =>
  `${channelOwner(channel)}/${escapedParts([account, conversation])}/`

/** `ownerOf` returns the owner of a session, without the agent; undefined for a session of which only its own files are erased. */
async function eraseAll(
  deps: EraseDeps,
  ids: readonly string[],
  about: EraseAbout,
  ownerOf: (id: string) => string | undefined,
): Promise<ErasedWithFiles | undefined> {
  const { store, files, snapshot } = deps
  let total: ErasedWithFiles | undefined
  const ofOwners = new Map<string, string>()
  for (const id of ids) {
    const key = ownerOf(id)
    const owner = key === undefined ? undefined : agentKey(agentOfSession(id), key)
    const erased =
      owner === undefined
        ? await eraseConversation(deps, id, about)
        : await withResults(await store.sessions.erase(id, { ...about, memoriesOf: owner }), async () => {
            await snapshot().service('endCommands')?.(id)
            return files.erasedResults(id)
          })
    total = total && erased ? sum(total, erased) : (erased ?? total)
    if (owner !== undefined) ofOwners.set(owner, id)
  }
  // A conversation that cannot be erased now keeps its attachments, so these go last.
  if (total) for (const id of ofOwners.values()) total = { ...total, files: total.files + (await files.erasedOwner(id)) }
  return total
}

const withResults = async (erased: Erased | undefined, remove: () => Promise<number>): Promise<ErasedWithFiles | undefined> =>
  erased && { ...erased, files: await remove() }

/** The result of an erasure as `DELETE /api/sessions` answers it and `sluice sessions erase` prints it as JSON. */
export const shownErased = ({ historyTurns, ...others }: ErasedWithFiles) => ({ said: historyTurns, ...others })

const sum = (a: ErasedWithFiles, b: ErasedWithFiles): ErasedWithFiles => ({
  historyTurns: a.historyTurns + b.historyTurns,
  turns: a.turns + b.turns,
  messages: a.messages + b.messages,
  replies: a.replies + b.replies,
  approvals: a.approvals + b.approvals,
  memories: a.memories + b.memories,
  files: a.files + b.files,
  held: a.held + b.held,
  purged: b.purged,
  copies: b.copies,
})

/** A session in the form that the API and the command line show to operators. */
export const shownConversation = ({ id, name, createdAtMs, lastActiveAtMs, messageCount }: SessionRow) => {
  const person = parseChatSession(id)
  return {
    session_id: id,
    agent: agentOfSession(id),
    name,
    channel: person?.channel ?? null,
    sender: person?.sender ?? null,
    created_at: isoTime(createdAtMs),
    last_activity: isoTime(lastActiveAtMs),
    message_count: messageCount,
  }
}

/** A kept message in the form that the API shows: its text, without the frames that the model sees, and the tools that it used. */
export interface PlainMessage {
  readonly role: ModelMessage['role']
  /** The text parts, joined. */
  readonly content: string
  /** The source of the first untrusted text in it. */
  readonly untrusted?: string
  readonly tool_calls?: readonly { readonly id: string; readonly name: string; readonly input: unknown }[]
  readonly tool_results?: readonly { readonly id: string; readonly name: string; readonly output: unknown }[]
}

export function plainMessage(message: ModelMessage): PlainMessage {
  const { role, content } = message
  if (typeof content === 'string') return { role, content: withoutFrames(content) }
  const text: string[] = []
  const calls: { id: string; name: string; input: unknown }[] = []
  const results: { id: string; name: string; output: unknown }[] = []
  let untrusted: string | undefined
  for (const part of content) {
    if (part.type === 'text') {
      untrusted ??= untrustedSource(part.text)
      text.push(withoutFrames(part.text))
    }
    if (part.type === 'tool-call') calls.push({ id: part.toolCallId, name: part.toolName, input: part.input })
    else if (part.type === 'tool-result') {
      const output = 'value' in part.output ? part.output.value : part.output.type
      if (typeof output === 'string') untrusted ??= untrustedSource(output)
      results.push({ id: part.toolCallId, name: part.toolName, output: typeof output === 'string' ? withoutFrames(output) : output })
    }
  }
  return {
    role,
    content: text.join(''),
    ...(untrusted !== undefined && { untrusted }),
    ...(calls.length > 0 ? { tool_calls: calls } : {}),
    ...(results.length > 0 ? { tool_results: results } : {}),
  }
}

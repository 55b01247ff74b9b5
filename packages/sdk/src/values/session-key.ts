/**
 * The keys of sessions and callers. A key of the main agent has no prefix; a key of another agent begins with `agent:<name>/`, which
 * no other key does. The key of a chat session is `channel:<channel>/<account>/<conversation>[/<thread>]/<sender>`, where the sender
 * is empty for a session that all people of a room share.
 */

/** The default agent, which `[agent]` configures. */
export const MAIN_AGENT = 'main'

/** The names that `[agents.<name>]` accepts. */
export const AGENT_NAME = /^[a-z0-9-]{1,32}$/

const AGENT_PREFIX = 'agent:'
const CHANNEL_PREFIX = 'channel:'

/** Returns the header of the section with the policy of an agent, for messages to operators. */
export const policyHeader = (agent: string): string => (agent === MAIN_AGENT ? '[security.policy]' : `[agents.${agent}.policy]`)

/** Returns the key under which an agent keeps what has this key for the main agent. */
export const agentKey = (agent: string, key: string): string => (agent === MAIN_AGENT ? key : `${AGENT_PREFIX}${agent}/${key}`)

/** Splits a key into its agent and the key without the agent. Any text is a valid key. */
export function parseAgentKey(key: string): { readonly agent: string; readonly key: string } {
  const end = key.indexOf('/')
  const agent = key.slice(AGENT_PREFIX.length, end)
  const isPrefixed = key.startsWith(AGENT_PREFIX) && end > 0 && agent !== MAIN_AGENT && AGENT_NAME.test(agent)
  return isPrefixed ? { agent, key: key.slice(end + 1) } : { agent: MAIN_AGENT, key }
}

/** Returns the agent of a stored session; the main agent for a turn without a session. */
export const agentOfSession = (session: string | null): string => (session === null ? MAIN_AGENT : parseAgentKey(session).agent)

/** A session in one conversation of a channel: of one sender, or of all people of a room. */
export interface ChatSession {
  readonly channel: string
  readonly account: string
  /** `Address.to`. */
  readonly conversation: string
  readonly thread?: string
  /** Absent: all people of the room share the session. */
  readonly sender?: string
}

/** Returns the owner of the turns and sessions of a channel. No device has such a name. */
export const channelOwner = (channel: string): string => `${CHANNEL_PREFIX}${channel}`

/** Returns the key of a chat session of the main agent. */
export const chatSessionKey = ({ channel, account, conversation, thread, sender = '' }: ChatSession): string =>
  `${channelOwner(channel)}/${escapedParts([account, conversation, ...(thread === undefined ? [] : [thread]), sender])}`

/** Parses the key of a chat session, of any agent. Returns undefined for a key of anything else. */
export function parseChatSession(session: string): ChatSession | undefined {
  const [owner = '', ...escaped] = parseAgentKey(session).key.split('/')
  if (!owner.startsWith(CHANNEL_PREFIX) || escaped.length < 3 || escaped.length > 4) return undefined
  try {
    const parts = escaped.map(decodeURIComponent)
    const [account = '', conversation = '', thread = ''] = parts
    const sender = parts.at(-1) ?? ''
    const chat = { channel: owner.slice(CHANNEL_PREFIX.length), account, conversation }
    return { ...chat, ...(parts.length === 4 && { thread }), ...(sender !== '' && { sender }) }
  } catch {
    return undefined
  }
}

/** The identity of a sender, the same on every connection and after a restart; as `TurnRequest.caller`. */
export const senderKey = (channel: string, { account, sender }: { readonly account: string; readonly sender: string }): string =>
  `${channelOwner(channel)}/${escapedParts([account, sender])}`

/** Parses a key of `senderKey`, of any agent. Returns undefined for the key of any other caller. */
export function parseSenderKey(
  caller: string,
): { readonly channel: string; readonly account: string; readonly sender: string } | undefined {
  const [owner = '', ...escaped] = parseAgentKey(caller).key.split('/')
  if (!owner.startsWith(CHANNEL_PREFIX) || escaped.length !== 2) return undefined
  try {
    const [account = '', sender = ''] = escaped.map(decodeURIComponent)
    return { channel: owner.slice(CHANNEL_PREFIX.length), account, sender }
  } catch {
    return undefined
  }
}

const ROOM_PREFIX = 'room:'

/** A conversation of several people on a channel. */
export type RoomPlace = Pick<ChatSession, 'channel' | 'account' | 'conversation'>

/** The id of a room in the API and on the command line: `<channel>/<account>/<conversation>`. */
export const roomId = ({ channel, account, conversation }: RoomPlace): string => `${channel}/${escapedParts([account, conversation])}`

/** Parses an id of `roomId`. */
export function parseRoomId(id: string): RoomPlace | undefined {
  const chat = parseChatSession(`${CHANNEL_PREFIX}${id}/`)
  return chat && chat.thread === undefined && chat.channel !== '' ? chat : undefined
}

/** Returns the owner of the memories and files that belong to all people of a room. */
export const roomOwner = (room: RoomPlace): string => `${ROOM_PREFIX}${roomId(room)}`

/** Returns the room whose people share a session; undefined for a session of one person. */
export function sharedRoom(session: string | null): (RoomPlace & { readonly thread?: string }) | undefined {
  const chat = session === null ? undefined : parseChatSession(session)
  return chat?.sender === undefined ? chat : undefined
}

/** Returns the key of the session that a writer would have alone where all people of a room share one; any other session as it is. */
export function sessionOfWriter(session: string, sender: string): string {
  const room = sharedRoom(session)
  return room ? agentKey(agentOfSession(session), chatSessionKey({ ...room, sender })) : session
}

/** A call whose memories are looked for; see `ToolContext`. */
export interface RememberingCall {
  readonly session: string | null
  readonly caller?: string | undefined
  readonly person?: string | undefined
}

/** Returns the owner of the memories of a call: the room that shares its session, else the person of its caller, else its caller. */
export function memoryOwner({ session, caller, person = caller }: RememberingCall): string | undefined {
  const room = sharedRoom(session)
  return room && session !== null ? agentKey(agentOfSession(session), roomOwner(room)) : person
}

/** Escapes the parts of a key, so that no part can pass for two, and joins them. */
export const escapedParts = (parts: readonly string[]): string => parts.map((part) => encodeURIComponent(part.toWellFormed())).join('/')

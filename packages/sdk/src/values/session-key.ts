/**
 * The keys of sessions and callers. A key of the main agent has no prefix; a key of another agent begins with `agent:<name>/`, which
 * no other key does. The key of a chat session is `channel:<channel>/<account>/<conversation>[/<thread>]/<sender>`.
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

/** A session of one sender in one conversation of a channel. */
export interface ChatSession {
  readonly channel: string
  readonly account: string
  /** `Address.to`. */
  readonly conversation: string
  readonly thread?: string
  readonly sender: string
}

/** Returns the owner of the turns and sessions of a channel. No device has such a name. */
export const channelOwner = (channel: string): string => `${CHANNEL_PREFIX}${channel}`

/** Returns the key of a chat session of the main agent. */
export const chatSessionKey = ({ channel, account, conversation, thread, sender }: ChatSession): string =>
  `${channelOwner(channel)}/${escapedParts([account, conversation, ...(thread === undefined ? [] : [thread]), sender])}`

/** Parses the key of a chat session, of any agent. Returns undefined for a key of anything else. */
export function parseChatSession(session: string): ChatSession | undefined {
  const [owner = '', ...escaped] = parseAgentKey(session).key.split('/')
  if (!owner.startsWith(CHANNEL_PREFIX) || escaped.length < 3 || escaped.length > 4) return undefined
  try {
    const parts = escaped.map(decodeURIComponent)
    const [account = '', conversation = '', thread = ''] = parts
    const sender = parts.at(-1) ?? ''
    const chat = { channel: owner.slice(CHANNEL_PREFIX.length), account, conversation, sender }
    return parts.length === 4 ? { ...chat, thread } : chat
  } catch {
    return undefined
  }
}

/** Escapes the parts of a key, so that no part can pass for two, and joins them. */
export const escapedParts = (parts: readonly string[]): string => parts.map((part) => encodeURIComponent(part.toWellFormed())).join('/')

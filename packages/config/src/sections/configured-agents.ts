/** The agents of a configuration, each with everything that it does not set itself taken from the main agent's sections. */
import { join, resolve } from 'node:path'
import { type ChatSession, type Feature, isUnloaded, MAIN_AGENT, type Policy, rowOf, type Section, sectionsOfFeature } from '@sluice/sdk'
import type { LoadedConfig } from '../types.ts'
import { agentsSection, routingSchema } from './further-agents-section.ts'
import { type AgentConfig, agentSection } from './main-agent-sections.ts'
import { policySection } from './policy-section.ts'
import { type ProviderConfig, providerSection } from './provider-section.ts'
import { expandHome, workspaceRoot } from './workspace-root.ts'

/** An agent: `main`, or one of `[agents.<name>]`. */
export interface ConfiguredAgent {
  readonly name: string
  /** `[agent]` with the agent's own system prompt and limits. */
  readonly agent: AgentConfig
  readonly provider: ProviderConfig
  readonly policy: Policy
  /** The only tools that it may call; undefined for all. */
  readonly tools: readonly string[] | undefined
  /** The absolute path of its workspace. */
  readonly workspace: string
}

/** Returns the agents by name, `main` first. */
export function configuredAgents(config: LoadedConfig, dataDir: string): ReadonlyMap<string, ConfiguredAgent> {
  const given = config.core(policySection)
  const main: ConfiguredAgent = {
    name: MAIN_AGENT,
    agent: config.core(agentSection),
    provider: config.core(providerSection),
    policy: { ...given, shell: given.shell ?? (plainReasons(config).length > 0 ? 'plain' : 'script') },
    tools: undefined,
    workspace: workspaceRoot(config, dataDir),
  }
  const others = Object.entries(config.core(agentsSection)).map(([name, own]): ConfiguredAgent => {
    const { workspace = join('workspaces', name), tools, provider = {}, policy = {}, reset: _, identity_sha256 = [], ...limits } = own
    return {
      name,
      // Files are accepted for one workspace.
      agent: { ...main.agent, ...definedIn(limits), identity_sha256 },
      provider: isEmpty(provider) ? main.provider : providerOf(main.provider, provider),
      policy: { ...main.policy, ...(isEmpty(definedIn(policy)) ? {} : { shell: 'plain' as const }), ...definedIn(policy) },
      tools,
      workspace: resolve(dataDir, expandHome(workspace)),
    }
  })
  return new Map([main, ...others].map((agent) => [agent.name, agent]))
}

/**
 * Returns what makes plain commands the rule of an agent while its file does not name a mode: such a file was written when all commands were
 * plain, and must not allow more than it did.
 */
export function plainReasons(config: LoadedConfig, agent: string = MAIN_AGENT): readonly string[] {
  const own = agent === MAIN_AGENT ? undefined : config.core(agentsSection)[agent]?.policy
  if (own && !isEmpty(definedIn(own))) return [`agents.${agent}.policy`]
  return ['allowed_commands', 'always_ask']
    .filter((key) => config.source(['security', 'policy', key]).kind !== 'default')
    .map((key) => `security.policy.${key}`)
}

/** Takes the other keys from `main`, but not for an endpoint of its own, because a key must not reach another endpoint than its own. */
const providerOf = (main: ProviderConfig, own: Partial<Given<ProviderConfig>>): ProviderConfig =>
  own.kind === undefined ? { ...main, ...definedIn(own) } : { fallback: [], ...definedIn(own) }

/** The members as a schema returns them, where an absent key may be present as undefined. */
type Given<Values> = { readonly [Name in keyof Values]: Values[Name] | undefined }

const definedIn = <Values extends object>(values: Given<Values>): Values =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as Values

const isEmpty = (values: object): boolean => Object.keys(values).length === 0

/** Returns the names of the agents, `main` first. */
export const agentNames = (config: LoadedConfig): readonly string[] => [MAIN_AGENT, ...Object.keys(config.core(agentsSection))]

/** Returns the absolute paths of the workspaces of all agents, that of `main` first. */
export const workspaceRoots = (config: LoadedConfig, dataDir: string): readonly string[] =>
  [...configuredAgents(config, dataDir).values()].map(({ workspace }) => workspace)

const CHANNELS = 'channels_config.'

/** Returns the keys of the core in the sections of these channels. */
export const routingSections = (features: readonly Feature[]): readonly Section<typeof routingSchema>[] =>
  features.flatMap((feature) => {
    if (isUnloaded(feature) || (rowOf(feature.id)?.kind ?? 'channel') !== 'channel') return []
    const sections = sectionsOfFeature(feature).filter(({ path }) => path.startsWith(CHANNELS))
    return sections.map(({ path }) => ({ path, schema: routingSchema }))
  })

/** The agents of a channel: of its conversations, of its accounts, and of the others. */
interface ChannelAgents {
  readonly rooms: ReadonlyMap<string, string>
  readonly accounts: ReadonlyMap<string, string>
  readonly agent: string
}

/**
 * Returns a function that names the agent of a conversation in the configuration in force: that of the conversation, else of the account,
 * else of the channel. It looks up the settings of a channel once for each configuration, because every message asks.
 */
export function agentsOfChats(config: () => LoadedConfig): (chat: Pick<ChatSession, 'channel' | 'account' | 'conversation'>) => string {
  let before: LoadedConfig | undefined
  const channels = new Map<string, ChannelAgents>()
  const agentsOf = (channel: string): ChannelAgents => {
    const now = config()
    if (now !== before) channels.clear()
    before = now
    const known = channels.get(channel) ?? agentsOfChannel(now, channel)
    channels.set(channel, known)
    return known
  }
  return ({ channel, account, conversation }) => {
    const { rooms, accounts, agent } = agentsOf(channel)
    if (rooms.size === 0 && accounts.size === 0) return agent
    return rooms.get(conversation) ?? accounts.get(account) ?? agent
  }
}

function agentsOfChannel(config: LoadedConfig, channel: string): ChannelAgents {
  const path = `${CHANNELS}${channel}`
  if (!config.hasCore(path)) return { rooms: new Map(), accounts: new Map(), agent: MAIN_AGENT }
  const { agent, account_agents, room_agents } = config.core({ path, schema: routingSchema })
  return { rooms: new Map(Object.entries(room_agents)), accounts: new Map(Object.entries(account_agents)), agent }
}

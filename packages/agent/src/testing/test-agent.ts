/** An agent with everything around it in memory. */

import { type AgentConfig, agentSection, type CostConfig, costSection, policySection } from '@sluice/config'
import type { LaneQueue } from '@sluice/kit'
import {
  type ClientId,
  defineTool,
  type LanguageModel,
  MAIN_AGENT,
  type Observation,
  type Policy,
  type ProviderSettings,
  type SluiceEvent,
  type Tool,
  type Trace,
  type Workspace,
} from '@sluice/sdk'
import { type TestClock, testClock } from '@sluice/testkit/clock'
import { type LogLine, testHost } from '@sluice/testkit/host'
import { agentWorkspace } from '@sluice/testkit/memory-workspace'
import * as v from 'valibot'
import type { Registry } from '../model/registry.ts'
import { type AgentDeps, createAgent } from '../run/agent.ts'
import type { AgentSettings } from '../turn/agent-settings.ts'
import { newTrace } from '../turn/ids.ts'
import type { Agent, TurnRequest } from '../turn/turn.ts'
import { createTurnQueue } from '../turn/turn-queue.ts'
import { type MemoryBooks, memoryBooks } from './memory-books.ts'

export interface TestAgent {
  readonly agent: Agent
  readonly lanes: LaneQueue
  readonly books: MemoryBooks
  readonly clock: TestClock
  readonly events: readonly SluiceEvent[]
  readonly observations: readonly Observation[]
  readonly logs: readonly LogLine[]
  /** Resumes the turns of the books. */
  resume(): Promise<number>
  /** Returns the number of registries in use. */
  leased(): number
}

export interface TestAgentOptions extends Partial<Omit<AgentDeps, 'config' | 'store' | 'clock' | 'lanes'>> {
  readonly models?: readonly LanguageModel[]
  readonly settings?: readonly ProviderSettings[]
  readonly workspace?: Partial<Workspace>
  readonly labels?: Registry['models']['labels']
  readonly tools?: readonly Tool[]
  readonly stubs?: readonly Tool[]
  readonly agent?: Partial<AgentConfig>
  readonly cost?: Partial<CostConfig>
  readonly policy?: Partial<Policy>
  readonly books?: MemoryBooks
  readonly clock?: TestClock
  readonly prompt?: string
  /** The settings of further agents, by name; called for each use. */
  readonly others?: () => Readonly<Record<string, AgentSettings>>
}

export const client = 'client-1' as ClientId

export function testAgent(options: TestAgentOptions = {}): TestAgent {
  const { models = [], tools = [], stubs = [], books = memoryBooks(), clock = testClock() } = options
  const observations: Observation[] = []
  const { log, logs, events, emitted, by } = testHost()
  const workspace = agentWorkspace({ ...by.workspace, ...options.workspace })
  const settings = {
    agent: { ...v.parse(agentSection.schema, {}), ...options.agent },
    cost: { ...v.parse(costSection.schema, {}), ...options.cost },
  }
  let leased = 0
  const windows: number[] = []
  let ids = 0
  const registry: Registry = {
    tools: new Map([...tools, ...stubs].map((tool) => [tool.name, tool])),
    offered: tools,
    models: {
      labels: options.labels ?? models.map(({ modelId }) => ({ provider: 'scripted', model: modelId })),
      load: async (index) => models[index] ?? Promise.reject(new Error('no such model')),
      settings: (index) => options.settings?.[index],
      limits: () => [],
      window: (index) => ({ tokens: options.settings?.[index]?.context_window ?? 32_000, source: 'default' }),
      findWindow: async () => {},
      learntTokens: (index) => windows[index],
      learnWindow(index, tokens) {
        windows[index] = tokens
      },
      offered: () => undefined,
      loadForTest: async ({ model }) => models.find(({ modelId }) => modelId === model) ?? Promise.reject(new Error('no such model')),
    },
    prompt: () => options.prompt ?? '',
    observe: (observation) => void observations.push(observation),
  }
  const pinRegistry = () => {
    leased++
    return { registry, release: () => void leased-- }
  }
  const lanes = createTurnQueue(clock, () => settings.agent.max_concurrent_turns)
  const agent = createAgent({
    pinRegistry,
    events,
    log,
    mintClient: (source) => `client of ${source}` as ClientId,
    newId: () => `turn-${++ids}`,
    ...options,
    store: books,
    clock,
    lanes,
    // Read for each use, because a test may change its policy while a turn runs.
    config: (name) =>
      name === MAIN_AGENT
        ? { ...settings, policy: { ...v.parse(policySection.schema, {}), ...options.policy }, tools: undefined, workspace }
        : options.others?.()[name],
  })
  return { agent, lanes, books, clock, events: emitted, observations, logs, resume: () => agent.resume(books), leased: () => leased }
}

export const request = (text: string, more: Partial<Omit<TurnRequest, 'trace'>> = {}): TurnRequest & { readonly trace: Trace } => ({
  owner: 'owner',
  limited: { client: 'owner', standing: 'operator' },
  source: 'test',
  session: null,
  text,
  client,
  trace: newTrace(),
  ...more,
})

/** A tool that takes `{ key }` and returns what `run` makes of it. */
export const testTool = (name: string, run: (key: string) => string | Promise<string>, risk: Tool['risk'] = 'read'): Tool =>
  defineTool({
    name,
    description: `The ${name} tool.`,
    input: v.object({ key: v.optional(v.string(), 'none') }),
    risk,
    egress: false,
    untrusted: false,
    run: async ({ key }) => run(key),
  })

/** The tool results the newest message of a prompt holds, as text. */
export function resultsIn(prompt: readonly { role: string; content: unknown }[]): string[] {
  const newest = prompt.at(-1)
  if (newest?.role !== 'tool' || !Array.isArray(newest.content)) return []
  return newest.content.map((part: { output: { value: string } }) => part.output.value)
}

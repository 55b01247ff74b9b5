/** Tests a model within the spending limits, and records the cost. */
import { AppError, type Clock, type Logger, MAIN_AGENT, type ProviderSettings, Secret, type Usage } from '@sluice/sdk'
import { addUsage, NO_USAGE } from '../model/call-model.ts'
import type { RegistryPin } from '../model/registry.ts'
import { systemPrompt } from '../run/system-prompt.ts'
import type { SettingsSource } from '../turn/agent-settings.ts'
import type { Budget } from '../turn/budget.ts'
import { createScrub, type Scrub } from '../turn/scrub.ts'
import type { TurnStorage } from '../turn/turn-home.ts'
import type { ModelTestReport, ModelTestRequest, ModelTestResult } from './report.ts'
import { testModel } from './test-model.ts'

export interface ModelTestDeps extends SettingsSource {
  readonly store: TurnStorage
  readonly pinRegistry: (agent: string) => RegistryPin
  readonly budget: Budget
  readonly clock: Clock
  readonly log: Logger
  readonly scrub: Scrub
  readonly newId: () => string
}

export async function testConfiguredModel(deps: ModelTestDeps, request: ModelTestRequest): Promise<ModelTestReport> {
  const { clock, budget } = deps
  const { agent = MAIN_AGENT, settings, tests, signal } = request
  const configured = deps.config(agent)
  if (!configured) throw new AppError('not_found', `There is no agent "${agent}"`)
  // The key need not be one of the configuration.
  const scrubOwn = createScrub(() => secretsOf(settings))
  const pin = deps.pinRegistry(agent)
  try {
    const run: Run = {
      id: deps.newId(),
      agent,
      label: `${settings.kind}:${settings.model ?? 'default'}`,
      startedAtMs: clock.nowMs(),
      results: [],
      usage: NO_USAGE,
    }
    try {
      const limits = await testModel({
        load: (onLimit) => pin.registry.models.loadForTest(settings, onLimit),
        settings,
        agent: configured.agent,
        prices: configured.cost.prices,
        tests,
        clock,
        scrub: (text) => scrubOwn(deps.scrub(text)),
        signal,
        tasks: {
          tools: pin.registry.tools,
          policy: configured.policy,
          systemPrompt: (tools) => systemPrompt({ offered: tools, prompt: () => '' }, configured.agent, { identity: '' }),
        },
        beforeRequest: () => budget.check(configured.cost),
        onUsage(usage) {
          run.usage = addUsage(run.usage, usage)
          budget.add(usage.costUsd)
        },
        onResult(result) {
          run.results.push(result)
          request.onResult(result)
        },
      })
      return { turnId: run.id, usage: run.usage, limits }
    } finally {
      await record(deps, run)
    }
  } finally {
    pin.release()
  }
}

const secretsOf = ({ api_key, headers = {} }: ProviderSettings): Secret[] =>
  [api_key, ...Object.values(headers)].filter((value) => value instanceof Secret)

interface Run {
  readonly id: string
  readonly agent: string
  readonly label: string
  readonly startedAtMs: number
  readonly results: ModelTestResult[]
  usage: Usage
}

/** Records the tests as a turn without a session, so that spending limits and statistics count them. */
async function record({ store, clock, log }: ModelTestDeps, { id, agent, label, startedAtMs, results, usage }: Run): Promise<void> {
  if (results.length === 0 && usage === NO_USAGE) return
  try {
    await store.turns.finish({
      id,
      agent,
      sessionId: null,
      source: 'models',
      status: 'done',
      input: `Test of ${label}`,
      response: results.map(({ test, outcome }) => `${test}: ${outcome}`).join('\n'),
      model: label,
      error: null,
      ...usage,
      attempts: 1,
      createdAtMs: startedAtMs,
      endedAtMs: clock.nowMs(),
      messages: [],
    })
  } catch (error) {
    log.error('The cost of the tests of a model could not be recorded', { model: label, costUsd: usage.costUsd, error })
  }
}

/** Tries the chosen model with a text and a tool call, and explains a failure with its cure. */
import { createScrub, type ModelTestResult, readsPictures } from '@sluice/agent'
import { testModel } from '@sluice/agent/test-model'
import { agentSection } from '@sluice/config'
import { systemClock } from '@sluice/kit'
import { outboundFetch } from '@sluice/runtime/outbound-fetch'
import { AppError, type Provider, type ProviderSettings, Secret } from '@sluice/sdk'
import * as v from 'valibot'
import type { Api } from '../api/api.ts'
import { modelTestFrames } from '../api/model-test-frames.ts'
import type { CliContext } from '../context.ts'
import { askRunning } from '../probe-daemon.ts'
import type { EndpointChoice } from './choice.ts'

const SETUP_TESTS = ['text', 'tool_call'] as const
const PICTURES = 'image'

/** The result of one test. */
export type Tried = Pick<ModelTestResult, 'test' | 'outcome' | 'detail' | 'tookMs'>

interface TryOptions {
  readonly settings: ProviderSettings
  /** Whether the configuration says what the model reads. */
  readonly isMediaSet: boolean
  readonly signal: AbortSignal
  onResult(result: Tried): void
}

interface Trial extends Omit<TryOptions, 'isMediaSet'> {
  readonly tests: readonly Tried['test'][]
}

/**
 * Runs the tests with the settings that are not written yet: in the running daemon, which counts and records their cost, or in this
 * process. A picture is tried where it is not known whether the model reads pictures. Rejects with `config_invalid` when the model cannot
 * be loaded, and with `rate_limited` at the spending limit of the daemon.
 */
export async function tryModel(
  context: CliContext,
  { provider }: EndpointChoice,
  { settings, isMediaSet, signal, onResult }: TryOptions,
): Promise<{ readonly isGood: boolean; readonly seesPictures: boolean }> {
  const results: Tried[] = []
  const triesPictures = !isMediaSet && !readsPictures([settings])
  const trial: Trial = {
    // The endpoint gets the picture of the test as it would get those of messages.
    settings: triesPictures ? { ...settings, media: [PICTURES] } : settings,
    tests: triesPictures ? [...SETUP_TESTS, PICTURES] : SETUP_TESTS,
    signal,
    onResult(result) {
      results.push(result)
      onResult(result)
    },
  }
  const isTried = await askRunning(context, (api) => tryInDaemon(api, trial))
  if (!isTried) await tryHere(provider, trial)
  return {
    isGood: results.every(({ test, outcome }) => test === PICTURES || outcome !== 'failed'),
    seesPictures: results.some(({ test, outcome }) => test === PICTURES && outcome === 'ok'),
  }
}

/** Resolves to false when the running daemon is of a release without these tests. */
async function tryInDaemon(api: Api, { settings, tests, signal, onResult }: Trial): Promise<boolean> {
  const body = { endpoint: plainSettings(settings), tests }
  try {
    for await (const frame of modelTestFrames(api, body, signal)) if (frame.type === 'result') onResult({ ...frame, tookMs: frame.took_ms })
    return true
  } catch (error) {
    if (error instanceof AppError && error.code === 'not_found') return false
    throw error
  }
}

/** Returns the settings with their secrets, for the control socket. */
function plainSettings({ api_key, headers = {}, ...settings }: ProviderSettings) {
  const plain = Object.entries(headers).map(([name, value]) => [name, value instanceof Secret ? value.reveal() : value] as const)
  return { ...settings, ...(api_key && { api_key: api_key.reveal() }), headers: Object.fromEntries(plain) }
}

async function tryHere(provider: Provider, { settings, tests, signal, onResult }: Trial): Promise<void> {
  await testModel({
    load: (onLimit) => provider.load(settings, { fetch: outboundFetch, onLimit }),
    settings,
    agent: v.parse(agentSection.schema, {}),
    prices: {},
    tests,
    clock: systemClock,
    scrub: createScrub(() => (settings.api_key ? [settings.api_key] : [])),
    signal,
    onResult,
  })
}

/** Returns what to do about a result; undefined for a test that passed. */
export function cureOf({ test, outcome, detail }: Omit<Tried, 'tookMs'>): string | undefined {
  if (outcome === 'ok') return undefined
  if (test === PICTURES) return 'The agent gets the paths of pictures, and not the pictures.'
  if (outcome === 'not_supported' && test === 'tool_call')
    return 'The agent can talk with this model, but it cannot use tools. Choose a model that supports tools if it is to do more than talk.'
  if (/refused our credentials/.test(detail)) return 'The key is wrong, or it may not use this model. Type the key again.'
  if (/quota|credit|billing|balance|HTTP 402/i.test(detail))
    return 'The account has no credit left. Add credit at the provider, or choose another one.'
  if (/HTTP 404|not found|no such model|does not exist|unknown model/i.test(detail))
    return 'The endpoint does not have this model, or its address is wrong. Choose another one.'
  if (/could not be reached|did not answer/.test(detail)) return 'Check that the server runs, and that its address is right.'
  if (/HTTP 429/.test(detail)) return 'The endpoint limits requests. Try again in a minute.'
  return undefined
}

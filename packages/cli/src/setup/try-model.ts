/** Tries the chosen model with a text and a tool call, and explains a failure with its cure. */
import { createScrub, type ModelTestResult } from '@sluice/agent'
import { testModel } from '@sluice/agent/test-model'
import { agentSection } from '@sluice/config'
import { systemClock } from '@sluice/kit'
import { outboundFetch } from '@sluice/runtime/outbound-fetch'
import type { ProviderSettings } from '@sluice/sdk'
import * as v from 'valibot'
import type { EndpointChoice } from './choice.ts'

export const SETUP_TESTS = ['text', 'tool_call'] as const

/** Runs the tests with the settings that are not written yet. Rejects with `config_invalid` when the model cannot be loaded. */
export async function tryModel(
  { provider }: EndpointChoice,
  settings: ProviderSettings,
  { signal, onResult }: { readonly signal: AbortSignal; onResult(result: ModelTestResult): void },
): Promise<boolean> {
  const results: ModelTestResult[] = []
  await testModel({
    load: (onLimit) => provider.load(settings, { fetch: outboundFetch, onLimit }),
    settings,
    agent: v.parse(agentSection.schema, {}),
    prices: {},
    tests: SETUP_TESTS,
    clock: systemClock,
    scrub: createScrub(() => (settings.api_key ? [settings.api_key] : [])),
    signal,
    onResult(result) {
      results.push(result)
      onResult(result)
    },
  })
  return results.every(({ outcome }) => outcome !== 'failed')
}

/** Returns what to do about a result; undefined for a test that passed. */
export function cureOf({ test, outcome, detail }: Pick<ModelTestResult, 'test' | 'outcome' | 'detail'>): string | undefined {
  if (outcome === 'ok') return undefined
  if (outcome === 'not_supported' && test === 'tool_call')
    return 'The agent can talk with this model, but it cannot use tools. Choose a model that supports tools if it is to do more than talk.'
  if (/refused our credentials/.test(detail)) return 'The key is wrong, or it may not use this model. Type the key again.'
  if (/quota|credit|billing|balance|HTTP 402/i.test(detail))
    return 'The account has no credit left. Add credit at the provider, or choose another one.'
  if (/HTTP 404|not found|no such model|does not exist|unknown model/i.test(detail))
    return 'The endpoint does not have this model. Choose another one.'
  if (/could not be reached|did not answer/.test(detail)) return 'Check that the server runs, and that its address is right.'
  if (/HTTP 429/.test(detail)) return 'The endpoint limits requests. Try again in a minute.'
  return undefined
}

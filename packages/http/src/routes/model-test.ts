/** `POST /api/models/test`: tries what a configured model can do. */

import { MODEL_TESTS_AND_TASKS, type ModelTestReport, type ModelTestResult } from '@sluice/agent'
import { providerEndpoint } from '@sluice/config'
import type { Runtime, Snapshot } from '@sluice/runtime'
import { AppError, defineRoute, ERRORS, type ErrorCode, MAIN_AGENT, type Route, type Usage } from '@sluice/sdk'
import * as v from 'valibot'
import { requireCredential } from '../auth/require-credential.ts'
import { jsonLines } from '../streams/json-lines.ts'
import { chosenEntries, type ModelEntry, PROVIDER_MEANING } from './model-entries.ts'

const bodySchema = v.object({
  provider: v.optional(v.pipe(v.string(), v.description(`${PROVIDER_MEANING} (default: every entry, or 0 with \`model\`)`))),
  model: v.optional(v.pipe(v.string(), v.minLength(1), v.description('Another model of the same endpoint'))),
  endpoint: v.optional(
    v.pipe(
      providerEndpoint,
      v.description('A model that is not configured, with the keys of `[provider]`, instead of `provider` and `model`; needs a credential'),
    ),
  ),
  tests: v.optional(
    v.pipe(
      v.array(v.picklist(MODEL_TESTS_AND_TASKS)),
      v.minLength(1),
      v.description('Only these tests and tasks (default: all tests, no task)'),
    ),
  ),
})

const usageEntries = { input_tokens: v.number(), output_tokens: v.number(), cost_usd: v.number() }

const frameSchema = v.variant('type', [
  v.object({ type: v.literal('started'), entry: v.string(), provider: v.string(), model: v.string() }),
  v.object({
    type: v.literal('result'),
    test: v.picklist(MODEL_TESTS_AND_TASKS),
    outcome: v.picklist(['ok', 'failed', 'not_supported']),
    detail: v.pipe(v.string(), v.description('What the model did, or the reason in the words of the provider')),
    took_ms: v.number(),
    ...usageEntries,
  }),
  v.object({
    type: v.literal('done'),
    turn_id: v.pipe(v.string(), v.description('The turn under which the cost is recorded')),
    limits: v.pipe(v.array(v.string()), v.description('What the model refused, such as `does not support tools`')),
    ...usageEntries,
  }),
  v.object({ type: v.literal('error'), code: v.picklist(Object.keys(ERRORS) as ErrorCode[]), message: v.string() }),
])

/** A line of `POST /api/models/test`: for each entry `started`, a `result` for each test and `done`; `error` ends the answer. */
export type ModelTestFrame = v.InferOutput<typeof frameSchema>

export const modelTestRoute = (runtime: Runtime, snapshot: Snapshot): Route =>
  defineRoute({
    method: 'POST',
    path: '/api/models/test',
    summary: 'Test what configured models can do, one JSON object per line. The requests are real, and their cost is recorded',
    auth: 'operator',
    body: bodySchema,
    mediaType: 'application/x-ndjson',
    answers: { 200: { description: 'The results, each as soon as it is known', schema: frameSchema } },
    handle(request) {
      const { tests, ...wanted } = request.body
      if (wanted.endpoint) requireCredential(request, 'An endpoint that is not configured is tested with a credential only')
      const { signal: caller } = request
      const models = testedModels(snapshot, wanted)
      return jsonLines<ModelTestFrame>(caller, async (send, signal) => {
        try {
          for (const model of models) await testOne(runtime, model, { tests, signal, send })
        } catch (error) {
          if (!(error instanceof AppError)) runtime.log.error('The test of a model failed', { error })
          const { code, message } =
            error instanceof AppError ? error : new AppError('internal', 'The test failed because of an internal error')
          send({ type: 'error', code, message: runtime.hideSecrets(message) })
        }
      })
    },
  })

const OFFLINE = 'The offline provider answers. It is not a language model, so there is nothing to test: run `sluice setup` to choose one'

type TestedModel = Pick<ModelEntry, 'agent' | 'entry' | 'settings'>

/** Throws `invalid_request` when only the offline provider is meant. */
function testedModels(snapshot: Snapshot, { provider, model, endpoint }: Omit<v.InferOutput<typeof bodySchema>, 'tests'>): TestedModel[] {
  if (endpoint) return [{ agent: MAIN_AGENT, entry: 'endpoint', settings: endpoint }]
  const entries = chosenEntries(snapshot, provider ?? (model === undefined ? undefined : '0'))
  const models = entries.filter(({ settings }) => settings.kind !== 'offline')
  if (models.length === 0) throw new AppError('invalid_request', OFFLINE)
  return models.map(({ agent, entry, settings }) => ({ agent, entry, settings: model === undefined ? settings : { ...settings, model } }))
}

interface Line {
  readonly tests: ModelTestResult['test'][] | undefined
  readonly signal: AbortSignal
  send(frame: ModelTestFrame): void
}

async function testOne(
  { agent, hideSecrets }: Runtime,
  { agent: name, entry, settings }: TestedModel,
  { tests, signal, send }: Line,
): Promise<void> {
  send({ type: 'started', entry, provider: settings.kind, model: settings.model ?? 'default' })
  const onResult = (result: ModelTestResult) => send(hideSecrets(shownResult(result)))
  const report = await agent.testModel({ agent: name, settings, tests, signal, onResult })
  send(shownReport(report))
}

const shownUsage = ({ inputTokens, outputTokens, costUsd }: Usage) => ({
  input_tokens: inputTokens,
  output_tokens: outputTokens,
  cost_usd: costUsd,
})

const shownResult = ({ test, outcome, detail, tookMs, usage }: ModelTestResult): ModelTestFrame => ({
  type: 'result',
  test,
  outcome,
  detail,
  took_ms: tookMs,
  ...shownUsage(usage),
})

const shownReport = ({ turnId, limits, usage }: ModelTestReport): ModelTestFrame => ({
  type: 'done',
  turn_id: turnId,
  limits: [...limits],
  ...shownUsage(usage),
})

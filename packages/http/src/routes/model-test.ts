/** `POST /api/models/test`: tries what a configured model can do. */

import { MODEL_TESTS, type ModelTestReport, type ModelTestResult } from '@sluice/agent'
import type { Runtime, Snapshot } from '@sluice/runtime'
import { AppError, defineRoute, ERRORS, type ErrorCode, type Route, type Usage } from '@sluice/sdk'
import * as v from 'valibot'
import { jsonLines } from '../streams/json-lines.ts'
import { chosenEntries, type ModelEntry, modelEntries } from './model-entries.ts'

const bodySchema = v.object({
  provider: v.optional(
    v.pipe(v.string(), v.description('The endpoints of this kind, or one entry: 0 is `[provider]`, 1 its first fallback')),
    '0',
  ),
  model: v.optional(v.pipe(v.string(), v.minLength(1), v.description('Another model of the same endpoint'))),
  tests: v.optional(v.pipe(v.array(v.picklist(MODEL_TESTS)), v.minLength(1), v.description('Only these tests'))),
})

const usageEntries = { input_tokens: v.number(), output_tokens: v.number(), cost_usd: v.number() }

const frameSchema = v.variant('type', [
  v.object({ type: v.literal('started'), entry: v.string(), provider: v.string(), model: v.string() }),
  v.object({
    type: v.literal('result'),
    test: v.picklist(MODEL_TESTS),
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
    handle({ body: { provider, model, tests }, signal: caller }) {
      const entries = chosenEntries(modelEntries(snapshot), provider)
      if (entries.every(({ settings }) => settings.kind === 'offline')) throw new AppError('invalid_request', OFFLINE)
      return jsonLines<ModelTestFrame>(caller, async (send, signal) => {
        try {
          for (const entry of entries) await testEntry(runtime, { ...entry, model }, { tests, signal, send })
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

interface Line {
  readonly tests: ModelTestResult['test'][] | undefined
  readonly signal: AbortSignal
  send(frame: ModelTestFrame): void
}

async function testEntry(
  { agent, hideSecrets }: Runtime,
  { agent: name, entry, index, settings, model }: ModelEntry & { readonly model: string | undefined },
  { tests, signal, send }: Line,
): Promise<void> {
  send({ type: 'started', entry, provider: settings.kind, model: model ?? settings.model ?? 'default' })
  const onResult = (result: ModelTestResult) => send(hideSecrets(shownResult(result)))
  const report = await agent.testModel({ agent: name, index, model, tests, signal, onResult })
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

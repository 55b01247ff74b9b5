/**
 * One answer of the model chain: each entry is asked, asked again where that may help, then the next one is.
 *
 * With a listener the reply is streamed, and once a piece of it has been heard a failure is final: another attempt would
 * tell the listener the beginning twice. Without a listener the reply is asked for as a whole and any failure is retried.
 */
import type { Logger } from '@sluice/sdk'
import { backoffMs } from './backoff.ts'
import { type Attempt, type CallModelDeps, callModel, type ModelAsk } from './call-model.ts'
import { type ModelFailure, noModelAnswered } from './model-failure.ts'
import type { ModelReply } from './model-reply.ts'
import type { TurnScope } from './turn-scope.ts'

export type AskModel = (scope: TurnScope, ask: ModelAsk) => Promise<ModelReply>

/** A provider that wants a longer pause is given up for this call. */
const RETRY_WAIT_MAX_MS = 60_000

/** The result rejects with `upstream`, `upstream_timeout`, `rate_limited`, or whatever the turn was cancelled for. */
export function createAskModel(deps: CallModelDeps): AskModel {
  const { budget, clock, log } = deps

  return async (scope, ask) => {
    const { registry, progress } = scope
    const failures: { label: string; failure: ModelFailure }[] = []
    for (; progress.entry < registry.models.labels.length; progress.entry++) {
      const outcome = await askEntry(scope, ask)
      if ('reply' in outcome) return outcome.reply
      const { failure, isFinal } = outcome
      failures.push({ label: labelOf(scope), failure })
      report(log, scope, failure)
      if (isFinal) break
    }
    throw noModelAnswered(failures)
  }

  async function askEntry(scope: TurnScope, ask: ModelAsk): Promise<Attempt> {
    const { cancellation } = scope.turn
    for (let attempt = 0; ; attempt++) {
      await budget.check(scope.cost)
      cancellation.throwIfCancelled()
      const outcome = await callModel(deps, scope, ask)
      if ('reply' in outcome || outcome.isFinal) return outcome
      const { repeat, retryAfterMs } = outcome.failure
      const retriesMax = { often: scope.agent.max_retries, once: 1, never: 0 }[repeat]
      const waitMs = backoffMs(attempt, retryAfterMs)
      if (attempt >= retriesMax || waitMs > RETRY_WAIT_MAX_MS) return outcome
      log.debug('model is asked again', { turn: scope.turn.id, model: labelOf(scope), reason: outcome.failure.reason, waitMs })
      await clock.sleep(waitMs, cancellation.signal)
      cancellation.throwIfCancelled()
    }
  }
}

/** Of a fault of ours the log gets the cause; of everything else what the provider said, without the request it answers. */
function report(log: Logger, scope: TurnScope, { reason, kind, cause }: ModelFailure): void {
  const fields = { turn: scope.turn.id, model: labelOf(scope), reason }
  if (kind === 'fault') log.error('model failed', { ...fields, error: cause })
  else if (kind === 'refused') log.error('model failed', fields)
  else log.warn('model failed', fields)
}

const labelOf = ({ registry, progress }: TurnScope): string => {
  const label = registry.models.labels[progress.entry]
  return `${label?.provider}:${label?.model}`
}

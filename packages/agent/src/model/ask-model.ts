/**
 * Gets one reply from the model chain: calls each entry, retries it where that may help, and then goes on to the next entry.
 *
 * With a listener the reply is streamed, and after the first piece of the answer a failure is final, because another attempt would
 * send the beginning twice. Reasoning may be sent twice. Without a listener the whole reply is requested at once and every failure can be retried.
 */
import { backoffMs } from '@sluice/kit'
import type { Logger } from '@sluice/sdk'
import type { Admission } from '../turn/admission.ts'
import { isFree, priceOf } from '../turn/cost.ts'
import type { TurnScope } from '../turn/turn-scope.ts'
import { type Attempt, type CallModelDeps, callModel, type ModelAsk } from './call-model.ts'
import { endpointLimits } from './endpoint-limits.ts'
import { EMPTY, type ModelFailure, noModelAnswered } from './model-failure.ts'
import { type ModelReply, UNCOUNTED } from './model-reply.ts'

export type AskModel = (scope: TurnScope, ask: ModelAsk) => Promise<ModelReply>

/** When a provider asks for a longer pause, the call goes on to the next entry. */
const RETRY_WAIT_MAX_MS = 60_000
/** How often a conversation that is too long is shortened for one reply: to the size that the refusal names, and then by halves. */
const SHORTENED_MAX = 3
/** Full jitter, so that turns that failed together do not retry together. */
const RETRY_BACKOFF = { firstMs: 500, longestMs: 8000, fixedShare: 0 }

/** The returned function rejects with `upstream`, `upstream_timeout`, `rate_limited`, or the reason of the turn's cancellation. */
export function createAskModel(deps: CallModelDeps & { readonly admission?: Admission | undefined }): AskModel {
  const { admission, budget, clock, log } = deps

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
    if (ask.mayBeEmpty && failures.length > 0 && failures.every(({ failure }) => failure === EMPTY)) return EMPTY_REPLY
    throw noModelAnswered(failures)
  }

  async function askEntry(scope: TurnScope, ask: ModelAsk): Promise<Attempt> {
    const { cancellation } = scope.turn
    if (isUnpriced(scope, admission)) return { failure: UNPRICED, isFinal: false }
    let shortened = 0
    for (let attempt = 0; ; attempt++) {
      await budget.check(scope.cost)
      await admission?.checkSpending(scope.turn.limited)
      cancellation.throwIfCancelled()
      const beforeUsd = scope.progress.usage.costUsd
      const counted = () => admission?.spent(scope.turn.limited, scope.progress.usage.costUsd - beforeUsd)
      const outcome = await callModel(deps, scope, ask).catch(async (reason: unknown) => {
        await counted()?.catch((error: unknown) =>
          log.error('the cost of an interrupted model call was not counted', { turn: scope.turn.id, error }),
        )
        throw reason
      })
      await counted()
      const { entry, shortened: to } = scope.progress
      // A length that did not help is not learnt, because something else was refused.
      if ('reply' in outcome && to?.entry === entry) scope.registry.models.learnWindow(entry, to.tokens)
      if ('reply' in outcome || outcome.isFinal) return outcome
      const { failure, promptTokens } = outcome
      if (failure.fits !== undefined && promptTokens !== undefined && shortened++ < SHORTENED_MAX) {
        const tokens = Math.floor(promptTokens * failure.fits)
        scope.progress.shortened = { entry, tokens, isCut: true }
        if (shortened === 1 && (await ask.compact?.())) scope.progress.shortened = { entry, tokens, isCut: false }
        log.warn('the conversation is longer than the window of the model, and is asked again shortened', {
          turn: scope.turn.id,
          model: labelOf(scope),
          tokens,
          reason: failure.reason,
        })
        attempt--
        continue
      }
      const { repeat, retryAfterMs } = outcome.failure
      const retriesMax = { often: endpointLimits(scope).max_retries, once: 1, never: 0 }[repeat]
      const waitMs = (retryAfterMs ?? 0) + backoffMs(attempt, RETRY_BACKOFF)
      if (attempt >= retriesMax || waitMs > RETRY_WAIT_MAX_MS) return outcome
      log.debug('model call retried', { turn: scope.turn.id, model: labelOf(scope), reason: outcome.failure.reason, waitMs })
      await clock.sleep(waitMs, cancellation.signal)
      cancellation.throwIfCancelled()
    }
  }
}

/** Its usage is counted with the attempts. */
const EMPTY_REPLY: ModelReply = { text: '', calls: [], content: [], finish: 'stop', usage: UNCOUNTED }

const UNPRICED: ModelFailure = {
  reason: 'was not asked, because it has no price and [cost] unknown = "refuse". Add its price to [cost.prices]',
  repeat: 'never',
  kind: 'provider',
}

/** Whether `[cost] unknown` refuses the model, whose cost no limit in dollars could count. */
function isUnpriced({ cost, registry, progress, turn }: TurnScope, admission: Admission | undefined): boolean {
  if (cost.unknown !== 'refuse') return false
  const hasLimit =
    cost.daily_limit_usd !== undefined || cost.monthly_limit_usd !== undefined || admission?.hasOwnSpendingLimit(turn.limited)
  const label = registry.models.labels[progress.entry]
  return Boolean(hasLimit && label && !priceOf(cost.prices, label) && !isFree(label, registry.models.settings(progress.entry)))
}

/** Logs the cause of an internal error, and for other failures the answer of the provider without the request. */
function report(log: Logger, scope: TurnScope, { reason, kind, cause }: ModelFailure): void {
  const fields = { turn: scope.turn.id, model: labelOf(scope), reason }
  if (kind === 'fault') log.error('model failed', { ...fields, error: cause })
  else if (kind === 'refused' || kind === 'quota') log.error('model failed', fields)
  else log.warn('model failed', fields)
}

const labelOf = ({ registry, progress }: TurnScope): string => {
  const label = registry.models.labels[progress.entry]
  return `${label?.provider}:${label?.model}`
}

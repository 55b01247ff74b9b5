/** Checks each configured model: whether its endpoint accepts the key and offers the model, and whether the model answers. */
import { type Agent, isSameModel, type ModelChain, type ModelTestResult } from '@sluice/agent'
import { nearestName, signalScope } from '@sluice/kit'
import { errorText, type ProviderSettings } from '@sluice/sdk'
import { type Check, fail, ok, warn } from './check.ts'

const ANSWER_MS_MAX = 10_000
/** An agent with its tools needs a larger window than this. */
const WINDOW_MIN = 16_384
const OLLAMA_WINDOW =
  'start Ollama with OLLAMA_CONTEXT_LENGTH=32768 in its environment, or make a model with `PARAMETER num_ctx 32768`, and set no larger context_window here'
/** The time for one short answer. */
const TEXT_MS_MAX = 20_000

/** A configured model as doctor tries it. */
export interface TriedModel {
  /** Its table, such as `provider.fallback[0]`. */
  readonly entry: string
  readonly settings: ProviderSettings
}

/** Sends a model one short message. Rejects when it cannot be sent, and when the signal aborts. */
export type TryText = (model: TriedModel, signal: AbortSignal) => Promise<Pick<ModelTestResult, 'outcome' | 'detail'> | undefined>

/** Returns the test of the models of an agent in this process, which has the store that records the cost. */
export const tryTextHere =
  (tester: Pick<Agent, 'testModel'>, agent?: string): TryText =>
  async ({ settings }, signal) => {
    let last: ModelTestResult | undefined
    await tester.testModel({
      agent,
      settings,
      tests: ['text'],
      signal,
      onResult(result) {
        last = result
      },
    })
    return last
  }

/**
 * Asks all endpoints at the same time. An endpoint that has not answered within ten seconds has failed. `table` is the table that
 * configures the models; with `tryText`, each model that its endpoint offers gets a short message.
 */
export async function checkProvider(
  models: Pick<ModelChain, 'labels' | 'settings' | 'offered' | 'window'>,
  { table = 'provider', tryText }: { readonly table?: string; readonly tryText?: TryText } = {},
): Promise<Check[]> {
  using limit = signalScope([], ANSWER_MS_MAX)
  return await Promise.all(
    models.labels.map(async ({ provider, model }, index) => {
      const check = index === 0 ? 'provider' : `provider fallback ${index}`
      const section = index === 0 ? table : `${table}.fallback[${index - 1}]`
      const settings = models.settings(index)
      if (provider === 'offline')
        return warn(check, 'the offline provider answers; it is not a language model', `set ${section} kind, model and api_key`)
      try {
        const listed = await models.offered(index, limit.signal)
        const offered = listed?.map(({ id }) => id)
        const loadedTokens = listed?.find(({ id }) => isSameModel(id, model))?.contextTokens
        if (provider === 'ollama' && loadedTokens !== undefined && loadedTokens < Math.max(WINDOW_MIN, models.window(index).tokens))
          return warn(
            check,
            `Ollama loads ${model} with a window of ${loadedTokens} tokens, and cuts longer conversations without a word`,
            OLLAMA_WINDOW,
          )
        const isOffered = !offered || offered.length === 0 || offered.some((id) => isSameModel(id, model))
        if (isOffered)
          return tryText && settings
            ? await checkText(check, `${provider}:${model}`, (signal) => tryText({ entry: section, settings }, signal))
            : ok(check, `${provider}:${model} answers; window: ${models.window(index).tokens} tokens (${models.window(index).source})`)
        const near = nearestName(model, offered)
        const detail = `${provider} answers, but does not list the model ${model}${near === undefined ? '' : `; did you mean ${near}?`}`
        return warn(check, detail, `set ${section}.model to one of ${offered.length} models, such as ${offered.slice(0, 5).join(', ')}`)
      } catch (error) {
        return fail(check, `${provider}:${model}: ${errorText(error)}`, `check ${section} base_url and api_key, and that the endpoint runs`)
      }
    }),
  )
}

/** A local model that is not loaded yet may take longer than the limit. This is not a failure. */
async function checkText(check: string, label: string, tryText: (signal: AbortSignal) => ReturnType<TryText>): Promise<Check> {
  using limit = signalScope([], TEXT_MS_MAX)
  try {
    const result = await tryText(limit.signal)
    if (result?.outcome === 'failed') return fail(check, `${label}: ${result.detail}`, LONG_FORM)
    return ok(check, `${label} answers; run \`sluice models test\` for streaming, tools and images`)
  } catch (error) {
    const reason = limit.timedOut ? `it has not answered within ${TEXT_MS_MAX / 1000} s` : errorText(error)
    return warn(check, `${label}: ${reason}`, LONG_FORM)
  }
}

const LONG_FORM = '`sluice models test` shows what the model can do; `sluice setup` chooses another one'

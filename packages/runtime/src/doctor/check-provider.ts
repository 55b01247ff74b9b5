/** The row of `sluice doctor` for each model: its endpoint answers, accepts the key and offers the model. */
import type { ModelChain } from '@sluice/agent'
import { nearestName, signalScope } from '@sluice/kit'
import { errorText } from '@sluice/sdk'
import { type Check, fail, ok, warn } from './check.ts'

const ANSWER_MS_MAX = 10_000

/** Asks every endpoint of the chain at once; an endpoint that has not answered within ten seconds has failed. */
export async function checkProvider(models: Pick<ModelChain, 'labels' | 'offered'>): Promise<Check[]> {
  using limit = signalScope([], ANSWER_MS_MAX)
  return await Promise.all(
    models.labels.map(async ({ provider, model }, index) => {
      const check = index === 0 ? 'provider' : `provider fallback ${index}`
      const section = index === 0 ? 'provider' : `provider.fallback[${index - 1}]`
      if (provider === 'offline')
        return warn(check, 'the offline provider answers; it is not a language model', `set ${section} kind, model and api_key`)
      try {
        const offered = await models.offered(index, limit.signal)
        if (!offered) return ok(check, `${provider}:${model}; its endpoint cannot be asked`)
        if (offered.length === 0 || offered.some((name) => isSame(name, model))) return ok(check, `${provider}:${model} answers`)
        const near = nearestName(model, offered)
        const detail = `${provider} answers, but does not list the model ${model}${near === undefined ? '' : `; did you mean ${near}?`}`
        return warn(check, detail, `set ${section}.model to one of ${offered.length} models, such as ${offered.slice(0, 5).join(', ')}`)
      } catch (error) {
        return fail(check, `${provider}:${model}: ${errorText(error)}`, `check ${section} base_url and api_key, and that the endpoint runs`)
      }
    }),
  )
}

/** Ollama lists `llama3.2:latest` for the model that requests may name `llama3.2`. */
const isSame = (listed: string, model: string): boolean => listed === model || listed === `${model}:latest`

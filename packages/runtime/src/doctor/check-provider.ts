/** Checks each configured model: whether its endpoint answers, accepts the key and offers the model. */
import { isSameModel, type ModelChain } from '@sluice/agent'
import { nearestName, signalScope } from '@sluice/kit'
import { errorText } from '@sluice/sdk'
import { type Check, fail, ok, warn } from './check.ts'

const ANSWER_MS_MAX = 10_000

/**
 * Asks all endpoints at the same time. An endpoint that has not answered within ten seconds has failed. `table` is the table that
 * configures the models.
 */
export async function checkProvider(models: Pick<ModelChain, 'labels' | 'offered'>, table = 'provider'): Promise<Check[]> {
  using limit = signalScope([], ANSWER_MS_MAX)
  return await Promise.all(
    models.labels.map(async ({ provider, model }, index) => {
      const check = index === 0 ? 'provider' : `provider fallback ${index}`
      const section = index === 0 ? table : `${table}.fallback[${index - 1}]`
      if (provider === 'offline')
        return warn(check, 'the offline provider answers; it is not a language model', `set ${section} kind, model and api_key`)
      try {
        const offered = (await models.offered(index, limit.signal))?.map(({ id }) => id)
        if (!offered) return ok(check, `${provider}:${model}; its endpoint has no list of models`)
        if (offered.length === 0 || offered.some((id) => isSameModel(id, model))) return ok(check, `${provider}:${model} answers`)
        const near = nearestName(model, offered)
        const detail = `${provider} answers, but does not list the model ${model}${near === undefined ? '' : `; did you mean ${near}?`}`
        return warn(check, detail, `set ${section}.model to one of ${offered.length} models, such as ${offered.slice(0, 5).join(', ')}`)
      } catch (error) {
        return fail(check, `${provider}:${model}: ${errorText(error)}`, `check ${section} base_url and api_key, and that the endpoint runs`)
      }
    }),
  )
}

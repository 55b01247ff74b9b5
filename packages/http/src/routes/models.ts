/** `/api/models`: the models that the configured endpoints offer, and the tests of a model. */

import { isSameModel, WINDOW_SOURCES } from '@sluice/agent'
import { providerEndpoint } from '@sluice/config'
import { signalScope } from '@sluice/kit'
import type { Runtime, Snapshot } from '@sluice/runtime'
import { defineRoute, errorText, type OfferedModel, type Route } from '@sluice/sdk'
import * as v from 'valibot'
import { requireCredential } from '../auth/require-credential.ts'
import { chosenEntries, isSameEndpoint, type ModelEntry, PROVIDER_MEANING } from './model-entries.ts'
import { modelTestRoute } from './model-test.ts'

/** An endpoint has failed when it has not answered within this time. */
const ANSWER_MS_MAX = 10_000

const modelSchema = v.object({
  id: v.string(),
  context_tokens: v.pipe(v.nullable(v.number()), v.description('The context window; null when the endpoint does not tell it')),
  price: v.pipe(
    v.nullable(v.object({ input: v.number(), output: v.number() })),
    v.description('US dollars for a million tokens; null when the endpoint does not tell them'),
  ),
  in_use: v.pipe(v.array(v.string()), v.description('The entries that use it, such as `provider` or `provider.fallback[0]`')),
})

const endpointSchema = v.object({
  provider: v.pipe(v.string(), v.description('The kind of the provider')),
  base_url: v.pipe(v.nullable(v.string()), v.description("The configured address; null for the provider's own")),
  entries: v.pipe(
    v.array(
      v.object({
        entry: v.string(),
        model: v.string(),
        limits: v.array(v.string()),
        context_window: v.pipe(
          v.object({ tokens: v.number(), source: v.picklist(WINDOW_SOURCES) }),
          v.description(
            'The tokens of a request with its reply, and from where they are known: the setting, the list of the endpoint, a refused request, the name of the model, or the default',
          ),
        ),
      }),
    ),
    v.description('The configured models of this endpoint, with the limits that they have shown'),
  ),
  models: v.pipe(v.nullable(v.array(modelSchema)), v.description('Null when the endpoint has no list or did not answer')),
  error: v.pipe(v.nullable(v.string()), v.description('Why there is no list; null when the endpoint has none')),
})

const pageSchema = v.object({ endpoints: v.array(endpointSchema) })

export type ListedModel = v.InferOutput<typeof modelSchema>
export type ListedEndpoint = v.InferOutput<typeof endpointSchema>
/** The answer of `GET /api/models`. */
export type ModelsPage = v.InferOutput<typeof pageSchema>

export const modelRoutes = (runtime: Runtime, snapshot: Snapshot): Route[] => [
  listRoute(snapshot),
  providersRoute(snapshot),
  offeredRoute(runtime, snapshot),
  modelTestRoute(runtime, snapshot),
]

const listRoute = (snapshot: Snapshot): Route =>
  defineRoute({
    method: 'GET',
    path: '/api/models',
    summary: 'Ask the endpoint of each configured model for the models that it offers',
    auth: 'operator',
    query: v.object({
      provider: v.optional(v.pipe(v.string(), v.description(PROVIDER_MEANING))),
    }),
    answers: { 200: { description: 'One object per endpoint', schema: pageSchema } },
    async handle({ query: { provider }, signal }) {
      using limit = signalScope([signal], ANSWER_MS_MAX)
      const endpoints = groupedByEndpoint(chosenEntries(snapshot, provider))
      return { endpoints: await Promise.all(endpoints.map((entries) => listEndpoint(entries, limit))) }
    },
  })

const providersSchema = v.object({
  providers: v.array(
    v.object({
      kind: v.pipe(v.string(), v.description('The value of `[provider] kind`')),
      base_url: v.pipe(v.nullable(v.string()), v.description('Its own address; null when `base_url` has to be set')),
      key_variable: v.pipe(
        v.nullable(v.string()),
        v.description('The variable of the environment with its key; null when it usually needs none'),
      ),
    }),
  ),
})

/** The answer of `GET /api/models/providers`. */
export type ProvidersPage = v.InferOutput<typeof providersSchema>

const providersRoute = ({ instances }: Snapshot): Route =>
  defineRoute({
    method: 'GET',
    path: '/api/models/providers',
    summary: 'The kinds of providers that this build can set up',
    auth: 'operator',
    answers: { 200: { description: 'One object per kind', schema: providersSchema } },
    handle() {
      const providers = instances.flatMap((instance) => (instance.state() === 'ready' ? (instance.parts.providers ?? []) : []))
      return {
        providers: providers.flatMap(({ kinds, usual }) =>
          usual ? kinds.map((kind) => ({ kind, base_url: usual.baseUrl ?? null, key_variable: usual.keyVariable ?? null })) : [],
        ),
      }
    },
  })

const offeredSchema = v.object({ models: endpointSchema.entries.models, error: endpointSchema.entries.error })

const offeredRoute = (runtime: Runtime, { registry }: Snapshot): Route =>
  defineRoute({
    method: 'POST',
    path: '/api/models/offered',
    summary: 'Ask an endpoint that is not configured for the models that it offers',
    auth: 'operator',
    body: v.object({ endpoint: v.pipe(providerEndpoint, v.description('The keys of `[provider]`; `model` may be absent')) }),
    answers: { 200: { description: 'The models', schema: offeredSchema } },
    async handle(request) {
      requireCredential(request, 'An endpoint that is not configured is asked with a credential only')
      using limit = signalScope([request.signal], ANSWER_MS_MAX)
      const { endpoint } = request.body
      const { models, error } = await offeredBy(() => registry.models.offered(endpoint, limit.signal), limit)
      // The key need not be one of the configuration, and the words of an endpoint may repeat it.
      const key = endpoint.api_key?.reveal()
      const reason = error !== null && key ? error.replaceAll(key, '***') : error
      return { models: models?.map((model) => shownModel(model, [])) ?? null, error: reason && runtime.hideSecrets(reason) }
    },
  })

/** Asks an endpoint for its models. Never rejects. */
async function offeredBy(
  ask: () => Promise<readonly OfferedModel[]> | undefined,
  limit: ReturnType<typeof signalScope>,
): Promise<{ readonly models: readonly OfferedModel[] | null; readonly error: string | null }> {
  try {
    return { models: (await ask()) ?? null, error: null }
  } catch (error) {
    const reason = limit.timedOut ? `The endpoint did not answer within ${ANSWER_MS_MAX / 1000} s` : errorText(error)
    return { models: null, error: reason }
  }
}

function groupedByEndpoint(entries: readonly ModelEntry[]): ModelEntry[][] {
  const endpoints: [ModelEntry, ...ModelEntry[]][] = []
  for (const one of entries) {
    const known = endpoints.find(([first]) => isSameEndpoint(first.settings, one.settings))
    if (known) known.push(one)
    else endpoints.push([one])
  }
  return endpoints
}

async function listEndpoint(used: readonly ModelEntry[], limit: ReturnType<typeof signalScope>): Promise<ListedEndpoint> {
  const [first] = used
  const { models, error } = await offeredBy(() => first?.chain.offered(first.index, limit.signal), limit)
  const entries = await Promise.all(
    used.map(async ({ entry, chain, index, settings }) => {
      // The first one has just been listed.
      if (index !== first?.index) await chain.findWindow(index)
      return { entry, model: settings.model ?? 'default', limits: [...chain.limits(index)], context_window: chain.window(index) }
    }),
  )
  return {
    provider: first?.settings.kind ?? '',
    base_url: first?.settings.base_url ?? null,
    entries,
    models: models?.map((model) => shownModel(model, entries)) ?? null,
    error,
  }
}

const shownModel = ({ id, contextTokens, price }: OfferedModel, entries: ListedEndpoint['entries']): ListedModel => ({
  id,
  context_tokens: contextTokens ?? null,
  price: price ?? null,
  in_use: entries.filter(({ model }) => isSameModel(id, model)).map(({ entry }) => entry),
})

/** Asks servers that load models themselves for the window that a model has there, which the list of OpenAI does not tell. */
import { readUpTo } from '@sluice/kit'
import { type Members, members, parsedOrUndefined, text } from '@sluice/kit/foreign-json'
import type { ModelEndpoint } from '@sluice/provider-common'

const ANSWER_BYTES_MAX = 4 * 1024 * 1024
/** The window of a model that Ollama loads with its default, on most machines: https://docs.ollama.com/context-length */
const OLLAMA_TOKENS = 4096

/** Sends a request to a path of the server. Resolves to the members of its answer; empty when it does not answer. */
type Ask = (path: string, body?: object) => Promise<Members>

/** Returns the window of a listed model, and undefined where the server does not tell it. */
export type WindowOf = (id: string) => number | undefined

type FindWindows = (ask: Ask, model: string) => Promise<WindowOf>

const tokens = (value: unknown): number | undefined => {
  const count = Number(value)
  return Number.isInteger(count) && count > 0 ? count : undefined
}

const listIn = (value: unknown): readonly Members[] => (Array.isArray(value) ? value.map(members) : [])

/**
 * The loaded model has the window that `/api/ps` tells. A model that is not loaded gets that of its own parameters, else the default of the
 * server, and never more than it was trained for. https://docs.ollama.com/api/ps, https://docs.ollama.com/api-reference/show-model-details
 */
const ofOllama: FindWindows = async (ask, model) => {
  const [running, shown] = await Promise.all([ask('/api/ps'), ask('/api/show', { model })])
  const names = [model, `${model}:latest`]
  const loaded = listIn(running.models).find((entry) => names.includes(text(entry.name)))
  const own = /^num_ctx\s+(\d+)\s*$/m.exec(text(shown.parameters))?.[1]
  const trained = Object.entries(members(shown.model_info)).find(([name]) => name.endsWith('.context_length'))?.[1]
  const isKnown = loaded !== undefined || shown.model_info !== undefined
  const found = tokens(loaded?.context_length) ?? Math.min(tokens(own) ?? OLLAMA_TOKENS, tokens(trained) ?? Number.POSITIVE_INFINITY)
  return (id) => (isKnown && names.includes(id) ? found : undefined)
}

/** https://lmstudio.ai/docs/developer/rest/endpoints: only a loaded model has its window. */
const ofLmStudio: FindWindows = async (ask) => {
  const models = listIn((await ask('/api/v0/models')).data)
  return (id) => tokens(models.find((entry) => entry.id === id)?.loaded_context_length)
}

/** https://github.com/ggml-org/llama.cpp/tree/master/tools/server: the window of one conversation. The list has the one of the training. */
const ofLlamaCpp: FindWindows = async (ask) => {
  const found = tokens(members((await ask('/props')).default_generation_settings).n_ctx)
  return () => found
}

const SERVERS: Readonly<Record<string, FindWindows>> = { ollama: ofOllama, lmstudio: ofLmStudio, llamacpp: ofLlamaCpp }

export interface LocalWindowOptions {
  readonly headers: Readonly<Record<string, string>>
  readonly signal: AbortSignal
  /** The configured model. */
  readonly model: string
}

/** Resolves to the windows of the models of a server of this kind. Never rejects: a server that does not tell them is used without. */
export async function localWindows(
  kind: string,
  { baseUrl, headers: extra, fetch }: ModelEndpoint,
  { headers, signal, model }: LocalWindowOptions,
): Promise<WindowOf> {
  const find = SERVERS[kind]
  const root = baseUrl.endsWith('/v1') ? baseUrl.slice(0, -'/v1'.length) : undefined
  if (!find || root === undefined) return () => undefined
  const ask: Ask = async (path, body) => {
    try {
      const init = body && { method: 'POST', body: JSON.stringify(body) }
      const type = body && { 'content-type': 'application/json' }
      const response = await fetch(`${root}${path}`, {
        ...init,
        headers: { accept: 'application/json', ...type, ...headers, ...extra },
        signal,
      })
      const answer = await readUpTo(response, ANSWER_BYTES_MAX)
      return response.ok ? members(parsedOrUndefined(answer ?? '')) : {}
    } catch {
      return {}
    }
  }
  return find(ask, model)
}

import { modelEndpoint } from '@sluice/provider-common'
import { expect, it } from 'vitest'
import { localWindows } from './local-windows.ts'

const { signal } = new AbortController()

/** Asks a server that gives these answers by path; any other path answers 404. */
async function windowsOf(kind: string, model: string, answers: Readonly<Record<string, unknown>>) {
  const asked: string[] = []
  const server: typeof fetch = async (url, init) => {
    const { pathname } = new URL(String(url))
    asked.push(`${init?.method ?? 'GET'} ${pathname} ${init?.body ?? ''}`.trim())
    return pathname in answers ? Response.json(answers[pathname]) : new Response('no', { status: 404 })
  }
  const endpoint = modelEndpoint({ kind, model }, { baseUrl: 'http://127.0.0.1:1/v1', fetch: server })
  return { of: await localWindows(kind, endpoint, { headers: {}, signal, model }), asked }
}

const SHOWN = { model_info: { 'qwen3.context_length': 40_960 } }

it.each<[string, Readonly<Record<string, unknown>>, number | undefined]>([
  [
    'the window that it is loaded with',
    { '/api/ps': { models: [{ name: 'qwen3:latest', context_length: 16_384 }] }, '/api/show': SHOWN },
    16_384,
  ],
  ['the window of its parameters', { '/api/ps': { models: [] }, '/api/show': { ...SHOWN, parameters: 'stop  "x"\nnum_ctx   8192' } }, 8192],
  ['the default of the server', { '/api/ps': { models: [{ name: 'other', context_length: 9 }] }, '/api/show': SHOWN }, 4096],
  ['no more than it was trained for', { '/api/show': { model_info: { 'gemma.context_length': 2048 }, parameters: 'num_ctx 8192' } }, 2048],
  ['nothing of a model that the server does not know', {}, undefined],
  ['nothing of an answer of another form', { '/api/ps': [], '/api/show': { model_info: 'x', parameters: 7 } }, 4096],
])('Ollama: a model has %s', async (_what, answers, tokens) => {
  const { of, asked } = await windowsOf('ollama', 'qwen3', answers)
  expect(of('qwen3:latest')).toBe(tokens)
  expect(of('llama3:latest')).toBeUndefined()
  expect(asked).toEqual(['GET /api/ps', 'POST /api/show {"model":"qwen3"}'])
})

it('LM Studio: a loaded model has its window, and any other has none', async () => {
  const data = [
    { id: 'a', loaded_context_length: 8192, max_context_length: 131_072 },
    { id: 'b', max_context_length: 131_072 },
  ]
  const { of } = await windowsOf('lmstudio', 'a', { '/api/v0/models': { data } })
  expect([of('a'), of('b'), of('c')]).toEqual([8192, undefined, undefined])
})

it('llama.cpp: the model has the window of one conversation', async () => {
  const { of } = await windowsOf('llamacpp', 'a', { '/props': { default_generation_settings: { n_ctx: 12_288 } } })
  expect(of('a')).toBe(12_288)
})

it('other servers are not asked', async () => {
  const { of, asked } = await windowsOf('vllm', 'a', {})
  expect([of('a'), asked]).toEqual([undefined, []])
})

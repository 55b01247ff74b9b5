/** No command lets the text of a model control the terminal. */
import { createServer } from 'node:http'
import { scratch } from '@sluice/qa/daemons/bundle'
import { sluiceWith } from '@sluice/qa/daemons/run-command'
import { defineFeature, type LanguageModel, type ModelStreamPart } from '@sluice/sdk'
import { listenOnLoopback } from '@sluice/testkit/loopback-server'
import { expect, test } from 'vitest'

const SAID = 'fine\u001b[8m\nand more\u001b]0;title\u0007'
const SHOWN = 'fine\\u001b[8m\nand more\\u001b]0;title\\u0007'

const parts: readonly ModelStreamPart[] = [
  { type: 'text-delta', id: '0', delta: SAID },
  {
    type: 'finish',
    finishReason: { unified: 'stop', raw: undefined },
    usage: {
      inputTokens: { total: 1, noCache: undefined, cacheRead: undefined, cacheWrite: undefined },
      outputTokens: { total: 1, text: undefined, reasoning: undefined },
    },
  },
]
const model: LanguageModel = {
  specificationVersion: 'v4',
  provider: 'offline',
  modelId: 'offline',
  supportedUrls: {},
  doGenerate: () => Promise.reject(new Error('not asked for')),
  doStream: async () => ({ stream: ReadableStream.from(parts) }),
}
const REFUSAL = Object.assign(new Error('no\u001b[8m'), { name: 'AI_APICallError', statusCode: 400 })
const TALKS = defineFeature({ id: 'provider-offline', build: () => ({ providers: [{ kinds: ['offline'], load: async () => model }] }) })
const sluice = sluiceWith([TALKS])

test('sluice agent escapes control characters in the reply', async () => {
  const { dir, dispose } = scratch()
  try {
    expect(await sluice('agent', '-m', 'hello', '--data-dir', dir)).toEqual({ code: 0, out: `${SHOWN}\n`, err: '' })
  } finally {
    dispose()
  }
})

test('sluice agent escapes control characters in an error', async () => {
  const refused = sluiceWith([
    defineFeature({
      id: 'provider-offline',
      build: () => ({ providers: [{ kinds: ['offline'], load: async () => ({ ...model, doStream: () => Promise.reject(REFUSAL) }) }] }),
    }),
  ])
  const { dir, dispose } = scratch()
  try {
    const { code, err } = await refused('agent', '-m', 'hello', '--data-dir', dir)
    expect([code, err]).toEqual([1, expect.stringContaining('answered HTTP 400: no\\u001b[8m')])
    expect(err).not.toContain('\u001b')
  } finally {
    dispose()
  }
})

test('sluice webhook send escapes control characters in reply and model', async () => {
  const { dir, dispose } = scratch()
  const server = createServer((_request, response) => response.end(JSON.stringify({ model: 'm\u0007', turn_id: 't', response: SAID })))
  const { url, close } = await listenOnLoopback(server)
  try {
    const { code, out } = await sluice('webhook', 'send', 'hello', '--url', url, '--data-dir', dir)
    expect([code, out]).toEqual([0, `200 answered by m\\u0007 in turn t\n${SHOWN}\n`])
  } finally {
    await close()
    dispose()
  }
})

import type { LanguageModel, ModelPrompt, ModelStreamPart } from '@sluice/sdk'
import { Secret } from '@sluice/sdk'
import { type ModelServer, startModelServer } from '@sluice/testkit/model-server'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { anthropic } from './anthropic.ts'

let server: ModelServer
let model: LanguageModel
beforeEach(async () => {
  server = await startModelServer()
  const settings = { kind: 'anthropic', base_url: `${server.url}/v1`, api_key: new Secret(server.apiKey), model: 'small' }
  model = await anthropic.load(settings, { fetch })
})
afterEach(() => server.close())

const prompt: ModelPrompt = [{ role: 'user', content: [{ type: 'text', text: 'hello' }] }]

async function collect(): Promise<ModelStreamPart[]> {
  const parts: ModelStreamPart[] = []
  for await (const part of (await model.doStream({ prompt })).stream) parts.push(part)
  return parts
}

const textOf = (parts: readonly ModelStreamPart[]) => parts.map((part) => (part.type === 'text-delta' ? part.delta : '')).join('')

const start = {
  type: 'message_start',
  message: {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'small',
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage: { input_tokens: 3, output_tokens: 1 },
  },
}
const blockStart = (index: number, content_block: object) => ({ type: 'content_block_start', index, content_block })
const delta = (index: number, value: object) => ({ type: 'content_block_delta', index, delta: value })
const stop = (index: number) => ({ type: 'content_block_stop', index })
const text = (index: number, value: string) => [
  blockStart(index, { type: 'text', text: '' }),
  delta(index, { type: 'text_delta', text: value }),
  stop(index),
]
const end = [
  { type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: { output_tokens: 4 } },
  { type: 'message_stop' },
]

// https://docs.anthropic.com/en/docs/build-with-claude/streaming: "handle unknown event types gracefully"
describe('parts of unknown types do not end a reply', () => {
  it.each<[string, object[]]>([
    ['an event', [start, { type: 'message_progress', done: 0.5 }, ...text(0, 'fine'), ...end]],
    ['the first event', [{ type: 'queue_position', position: 3 }, start, ...text(0, 'fine'), ...end]],
    [
      'a content block',
      [
        start,
        blockStart(0, { type: 'hologram', shape: 1 }),
        delta(0, { type: 'hologram_delta', shape: 2 }),
        stop(0),
        ...text(1, 'fine'),
        ...end,
      ],
    ],
    [
      'the result of a call in an earlier message',
      [
        start,
        blockStart(0, { type: 'mcp_tool_result', tool_use_id: 'mcptoolu_1', is_error: false, content: [{ type: 'text', text: 'a page' }] }),
        stop(0),
        ...text(1, 'fine'),
        ...end,
      ],
    ],
    [
      'a content block with known deltas',
      [start, blockStart(0, { type: 'aside' }), delta(0, { type: 'text_delta', text: 'not this' }), stop(0), ...text(1, 'fine'), ...end],
    ],
    [
      'a delta',
      [
        start,
        blockStart(0, { type: 'text', text: '' }),
        delta(0, { type: 'mood_delta', mood: 'good' }),
        delta(0, { type: 'citations_delta', citation: { type: 'dream_location' } }),
        delta(0, { type: 'text_delta', text: 'fine' }),
        stop(0),
        ...end,
      ],
    ],
  ])('%s', async (_what, frames) => {
    for (const pieceBytes of [undefined, 1, 13]) {
      server.script({ frames, ...(pieceBytes && { pieceBytes }) })
      const parts = await collect()
      expect(textOf(parts)).toBe('fine')
      expect(parts.at(-1)).toMatchObject({ type: 'finish', finishReason: { unified: 'stop' } })
    }
  })

  it('a whole message', async () => {
    const content = [
      { type: 'hologram', shape: 1 },
      { type: 'text', text: 'fine', citations: [{ type: 'dream_location' }] },
    ]
    server.script({ status: 200, body: { ...start.message, content, stop_reason: 'end_turn' } })
    expect(await model.doGenerate({ prompt })).toMatchObject({ content: [{ type: 'text', text: 'fine' }] })
  })
})

it('an error event keeps its type, first or later', async () => {
  const error = { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }
  server.script({ frames: [error] }, { frames: [start, ...text(0, 'half'), error] })
  await expect(model.doStream({ prompt })).rejects.toMatchObject({ statusCode: 529, isRetryable: true })
  expect(await collect()).toContainEqual(expect.objectContaining({ type: 'error', error: expect.objectContaining({ statusCode: 529 }) }))
})

it('a paused turn and a refusal keep their reasons', async () => {
  const ended = (stop_reason: string) => [start, ...text(0, 'so far'), { ...end[0], delta: { stop_reason, stop_sequence: null } }, end[1]]
  server.script({ frames: ended('pause_turn') }, { frames: ended('refusal') })
  expect((await collect()).at(-1)).toMatchObject({ finishReason: { raw: 'pause_turn' } })
  expect((await collect()).at(-1)).toMatchObject({ finishReason: { unified: 'content-filter', raw: 'refusal' } })
})

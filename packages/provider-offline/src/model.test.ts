import type { ModelMessage, ModelPrompt } from '@sluice/sdk'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { offlineModel } from './model.ts'

const model = offlineModel()
const user = (text: string): ModelMessage => ({ role: 'user', content: [{ type: 'text', text }] })
const said = (...texts: string[]): ModelPrompt =>
  texts.flatMap((text, index) => [user(text), ...(index < texts.length - 1 ? [assistant('fine')] : [])])
const assistant = (text: string): ModelMessage => ({ role: 'assistant', content: [{ type: 'text', text }] })
const call = (toolCallId: string): ModelMessage => ({
  role: 'assistant',
  content: [{ type: 'tool-call', toolCallId, toolName: 'look', input: {} }],
})
type Output = Extract<Extract<ModelMessage, { role: 'tool' }>['content'][number], { type: 'tool-result' }>['output']
const result = (toolCallId: string, output: Output): ModelMessage => ({
  role: 'tool',
  content: [{ type: 'tool-result', toolCallId, toolName: 'look', output }],
})

const answer = async (prompt: ModelPrompt) => (await model.doGenerate({ prompt })).content[0]
const text = async (prompt: ModelPrompt) => {
  const content = await answer(prompt)
  return content?.type === 'text' ? content.text : ''
}
const deltas = async (prompt: ModelPrompt) => {
  const found: string[] = []
  for await (const part of (await model.doStream({ prompt })).stream) if (part.type === 'text-delta') found.push(part.delta)
  return found
}

it('echoes a plain message and says that no model is configured', async () => {
  expect(await text(said('lights off'))).toBe(
    'Offline provider (no model is configured). You said: lights off\nYou sent no earlier message in this session.',
  )
})

it('states how many messages came before and quotes the last one', async () => {
  expect(await text(said('one', 'two'))).toContain('You sent one earlier message; the last one: one')
  expect(await text(said('one', 'two', 'three'))).toContain('You sent 2 earlier messages; the last one: two')
})

it('/history lists the newest 50 messages, each cut to one line', async () => {
  expect(await text(said('/history'))).toContain('you sent no earlier message')
  expect(await text(said('one', 'a\nb', '/history'))).toMatch(/:\n1\. one\n2\. a b$/)
  const long = await text(said(...Array.from({ length: 60 }, (_, index) => `m${index} ${'x'.repeat(500)}`), ' /history '))
  expect(long.split('\n')).toHaveLength(51)
  expect(long).toContain('\n11. m10 ')
  expect(long.length).toBeLessThan(51 * 220)
})

it('/help lists the commands', async () => {
  for (const command of ['/tool', '/history', '/help']) expect(await text(said('/help'))).toContain(command)
})

it('/tool calls a tool by name, with the JSON after it or an empty object', async () => {
  expect(await answer(said('/tool look {"at":\n "it"}'))).toEqual({
    type: 'tool-call',
    toolCallId: 'offline-1',
    toolName: 'look',
    input: '{"at":"it"}',
  })
  expect(await answer(said('/tool look'))).toMatchObject({ type: 'tool-call', toolName: 'look', input: '{}' })
})

it.each([
  ['/tool', 'name the tool'],
  ['/tool look {"at"', 'the input of look is not JSON'],
  ['/tool look ["at"]', 'the input of look must be a JSON object'],
  ['/tool look null', 'the input of look must be a JSON object'],
])('answers an invalid /tool command with its fault: %s', async (message, wrong) => {
  expect(await text(said(message))).toContain(wrong)
})

it('treats a message that only starts like a command as text', async () => {
  expect(await text(said('/toolbox please'))).toContain('You said: /toolbox please')
})

it('numbers call ids after the highest id in the prompt', async () => {
  const done = [call('offline-7'), result('offline-7', { type: 'text', value: 'seen' }), assistant('fine')]
  expect(await answer([user('/tool look'), ...done, user('/tool look')])).toMatchObject({ toolCallId: 'offline-8' })
})

it.each<[Output, string]>([
  [{ type: 'text', value: 'a lamp' }, 'look answered:\na lamp'],
  [{ type: 'json', value: { lamp: 1 } }, 'look answered:\n{"lamp":1}'],
  [{ type: 'content', value: [{ type: 'text', text: 'a lamp' }] }, 'look answered:\na lamp'],
  [{ type: 'error-text', value: 'no light' }, 'look failed:\nno light'],
  [{ type: 'error-json', value: ['dark'] }, 'look failed:\n["dark"]'],
  [{ type: 'execution-denied' }, 'look failed:\nthe call was denied'],
])('answers a tool result with its text: %o', async (output, expected) => {
  expect(await text([user('/tool look'), call('offline-1'), result('offline-1', output)])).toBe(`Offline provider: ${expected}`)
})

it('is deterministic, and streams the generated text in at most 256 deltas', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.string({ maxLength: 2000 }), { minLength: 1, maxLength: 4 }), async (texts) => {
      const prompt = said(...texts)
      const once = await model.doGenerate({ prompt })
      expect(await model.doGenerate({ prompt })).toEqual(once)
      if (once.content[0]?.type !== 'text') return
      const streamed = await deltas(prompt)
      expect(streamed.join('')).toBe(once.content[0].text)
      expect(streamed.length).toBeLessThanOrEqual(256)
    }),
    { numRuns: 50 },
  )
})

it('streams a long text in at most 256 deltas', async () => {
  const streamed = await deltas(said('word '.repeat(13_000)))
  expect(streamed.length).toBeGreaterThan(100)
  expect(streamed.length).toBeLessThanOrEqual(256)
})

it('counts four characters of the whole prompt as one token', async () => {
  const { usage } = await model.doGenerate({ prompt: [{ role: 'system', content: 'x'.repeat(400) }, ...said('y'.repeat(40))] })
  expect(usage.inputTokens.total).toBe(110)
  expect(usage.outputTokens.total).toBeGreaterThan(10)
})

import type { ModelMessage } from '@sluice/sdk'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { estimateTokens, fitConversation, messageChars } from './history.ts'

const user = (text: string): ModelMessage => ({ role: 'user', content: [{ type: 'text', text }] })
const said = (text: string): ModelMessage => ({ role: 'assistant', content: [{ type: 'text', text }] })
const called = (...ids: string[]): ModelMessage => ({
  role: 'assistant',
  content: ids.map((toolCallId) => ({ type: 'tool-call', toolCallId, toolName: 'look', input: { at: toolCallId } })),
})
const result = (text: string, ...ids: string[]): ModelMessage => ({
  role: 'tool',
  content: ids.map((toolCallId) => ({ type: 'tool-result', toolCallId, toolName: 'look', output: { type: 'text', value: text } })),
})

const wide = { messagesMax: 100, tokensMax: 100_000 }
const tokens = (messages: readonly ModelMessage[]) => messages.reduce((sum, message) => sum + estimateTokens(messageChars(message)) + 4, 0)

test('keeps a conversation within the limits unchanged', () => {
  const history = [user('a'), called('1', '2'), result('found', '1', '2'), said('b')]
  expect(fitConversation(history, [user('c')], wide)).toEqual([...history, user('c')])
})

test('drops the oldest messages and marks the beginning with a person’s message', () => {
  const history = [user('first'), said('one'), user('second'), said('two')]
  expect(fitConversation(history, [user('now')], { ...wide, messagesMax: 2 })).toEqual([user('second'), said('two'), user('now')])
  const [opening, ...rest] = fitConversation(history, [user('now')], { ...wide, messagesMax: 1 })
  expect(opening).toMatchObject({ role: 'user' })
  expect(rest).toEqual([said('two'), user('now')])
})

test('leaves out calls without results and results without calls', () => {
  const history = [result('orphan', '0'), user('a'), called('1', '2'), result('half', '1'), said('b'), called('3')]
  expect(fitConversation(history, [], wide)).toEqual([user('a'), said('b')])
})

test('shortens old tool results, except of the newest four messages, before it drops messages', () => {
  const long = 'x'.repeat(10_000)
  const history = [user('a'), called('1'), result(long, '1'), said('b'), user('c'), called('2'), result(long, '2'), said('d')]
  const fitted = fitConversation(history, [user('now')], { ...wide, tokensMax: 4000 })
  expect(fitted.map(({ role }) => role)).toEqual([...history.map(({ role }) => role), 'user'])
  expect(messageChars(fitted[2] ?? user(''))).toBeLessThan(2100)
  expect(messageChars(fitted[6] ?? user(''))).toBe(10_000)
})

test('never drops the current turn, only shortens its old results', () => {
  const long = 'x'.repeat(10_000)
  const current = [user('do it'), called('1'), result(long, '1'), called('2'), result(long, '2'), called('3'), result(long, '3')]
  const fitted = fitConversation([user('before'), said('yes')], current, { ...wide, tokensMax: 100 })
  expect(fitted.map(({ role }) => role)).toEqual(current.map(({ role }) => role))
  expect(messageChars(fitted[2] ?? user(''))).toBeLessThan(2100)
  expect(fitted.at(-1)).toEqual(current.at(-1))
})

const text = fc.string({ maxLength: 400 })
const ids = fc.uniqueArray(fc.constantFrom('1', '2', '3'), { minLength: 1, maxLength: 3 })
const stretch = fc.oneof(
  text.map((t) => [user(t)]),
  text.map((t) => [said(t)]),
  fc.tuple(ids, fc.string({ maxLength: 6000 })).map(([some, t]) => [called(...some), result(t, ...some)]),
  ids.map((some) => [called(...some)]),
  ids.map((some) => [result('orphan', ...some)]),
)
const conversation = fc.array(stretch, { maxLength: 30 }).map((stretches) => stretches.flat())

test('selects the newest messages without gaps for any history', () => {
  fc.assert(
    fc.property(conversation, fc.integer({ min: 1, max: 30 }), fc.integer({ min: 20, max: 5000 }), (history, messagesMax, tokensMax) => {
      const now = user('now')
      const fitted = fitConversation(history, [now], { messagesMax, tokensMax })
      const kept = fitted.slice(0, -1)
      expect(fitted.at(-1)).toBe(now)
      expect(kept.length).toBeLessThanOrEqual(messagesMax + 1)
      if (kept.length > 0) expect(tokens(fitted)).toBeLessThanOrEqual(tokensMax)
      expect(kept[0]?.role ?? 'user').toBe('user')

      let open: string[] = []
      for (const message of kept) {
        if (message.role === 'tool') {
          for (const part of message.content) {
            if (part.type !== 'tool-result') continue
            expect(open).toContain(part.toolCallId)
            open = open.filter((id) => id !== part.toolCallId)
          }
        } else {
          expect(open).toEqual([])
          if (message.role === 'assistant') open = message.content.flatMap((part) => (part.type === 'tool-call' ? part.toolCallId : []))
        }
      }
      expect(open).toEqual([])

      // The selected messages are an unbroken tail of the messages that fit without limits.
      const roles = fitConversation(history, [now], wide).map(({ role }) => role)
      const tail = fitted.map(({ role }) => role)
      const opened = tail.length > roles.length || roles.slice(roles.length - tail.length).join() !== tail.join()
      expect(roles.slice(-(tail.length - (opened ? 1 : 0))).join()).toBe(tail.slice(opened ? 1 : 0).join())
    }),
    { numRuns: 300 },
  )
})

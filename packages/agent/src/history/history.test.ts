import type { ModelMessage, SessionSummary } from '@sluice/sdk'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { fitConversation, fitsWindow, type HistoryLimits, summarizedCount } from './history.ts'
import { asRead, withNote } from './message-notes.ts'
import { estimateTokens, messagesTokens } from './tokens.ts'

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

const fit = (messages: readonly ModelMessage[], current: readonly ModelMessage[], limits: HistoryLimits, summary?: SessionSummary) =>
  fitConversation({ upTo: messages.length + (summary?.upTo ?? 0), messages, summary }, current, limits)
const summary = (text: string): SessionSummary => ({ text, upTo: 1, upToMs: 0, model: 'm', atMs: 0, untrusted: false })
const textOf = (message: ModelMessage | undefined): string =>
  message?.role === 'system' ? '' : (message?.content.map((part) => (part.type === 'text' ? part.text : '')).join('|') ?? '')

const wide = { messagesMax: 100, tokensMax: 100_000 }
const charsOf = (message: ModelMessage | undefined): number => JSON.stringify(message).length

test('leaves out an empty summary, which begins a new conversation', () => {
  expect(fit([], [user('c')], wide, summary(''))).toEqual([user('c')])
  expect(fit([user('a'), said('b')], [user('c')], wide, summary(''))).toEqual([user('a'), said('b'), user('c')])
})

test('keeps a conversation within the limits unchanged', () => {
  const history = [user('a'), called('1', '2'), result('found', '1', '2'), said('b')]
  expect(fit(history, [user('c')], wide)).toEqual([...history, user('c')])
})

test('drops the oldest messages and marks the beginning with a person’s message', () => {
  const history = [user('first'), said('one'), user('second'), said('two')]
  expect(fit(history, [user('now')], { ...wide, messagesMax: 2 })).toEqual([user('second'), said('two'), user('now')])
  const [opening, ...rest] = fit(history, [user('now')], { ...wide, messagesMax: 1 })
  expect(opening).toMatchObject({ role: 'user' })
  expect(rest).toEqual([said('two'), user('now')])
})

test('leaves out calls without results and results without calls', () => {
  const history = [result('orphan', '0'), user('a'), called('1', '2'), result('half', '1'), said('b'), called('3')]
  expect(fit(history, [], wide)).toEqual([user('a'), said('b')])
})

test('drops the oldest messages of a conversation that is too long, and changes no message', () => {
  const long = 'x'.repeat(10_000)
  const history = [user('a'), called('1'), result(long, '1'), said('b'), user('c'), called('2'), result(long, '2'), said('d')]
  const fitted = fit(history, [user('now')], { ...wide, tokensMax: 4000 })
  expect(fitted.slice(1)).toEqual([...history.slice(3), user('now')])
  expect(fitted[0]).toEqual(user('(Earlier messages were left out.)'))
})

test('never drops or changes a message of the current turn', () => {
  const long = 'x'.repeat(10_000)
  const current = [user('do it'), called('1'), result(long, '1'), called('2'), result(long, '2'), called('3'), result(long, '3')]
  expect(fit([user('before'), said('yes')], current, { ...wide, tokensMax: 100 })).toEqual(current)
})

test('cuts results only after the model has refused the length', () => {
  const long = 'x'.repeat(10_000)
  const current = [user('do it'), called('1'), result(long, '1'), called('2'), result(long, '2')]
  const fitted = fit([], current, { ...wide, tokensMax: 1000, mustFit: true })
  expect(fitted.map(({ role }) => role)).toEqual(current.map(({ role }) => role))
  expect(charsOf(fitted[2])).toBeLessThan(2300)
})

test('reads the summary of a long turn in place of the messages that it covers', () => {
  const noted = withNote(result('r2', '2'), { compaction: { count: 4, text: 'looked twice', untrusted: false } })
  const turn = [user('do it'), called('1'), result('r1', '1'), called('2'), noted, called('3'), result('r3', '3'), said('done')]
  const read = asRead(turn)
  expect(read.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'assistant'])
  expect(JSON.stringify(read[0])).toMatch(/do it.*looked twice/)
  expect(fit(turn, [user('and?')], wide)).toEqual([...read, user('and?')])
  // Messages that the summary covers do not count any more.
  const large = [user('do it'), called('1'), result('x'.repeat(10_000), '1'), called('2'), noted, said('done')]
  expect(fitsWindow({ upTo: 6, summary: undefined, messages: large }, [], { ...wide, tokensMax: 300 })).toBe(true)
  expect(summarizedCount(large, 0, { ...wide, tokensMax: 300 })).toBe(0)
})

test('reads the situation of a message before its text', () => {
  const asked = withNote(user('hello'), { situation: '[Monday]' })
  expect(asRead([asked])).toEqual([{ role: 'user', content: [{ type: 'text', text: '[Monday]\nhello' }] }])
})
test.each([
  ['plain English words', 'The quick brown fox jumps over the lazy dog. '.repeat(10), 90, 130],
  ['numbers', Array.from({ length: 200 }, (_, at) => at + 10_000).join('\n'), 400, 600],
  ['Japanese', '明日の会議は何時からですか。'.repeat(10), 90, 160],
  ['Russian', 'Завтра совещание в десять часов. '.repeat(10), 80, 180],
])('estimates the tokens of %s', (_, text, least, most) => {
  expect(estimateTokens(text)).toBeGreaterThanOrEqual(least)
  expect(estimateTokens(text)).toBeLessThanOrEqual(most)
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
      const fitted = fit(history, [now], { messagesMax, tokensMax })
      const kept = fitted.slice(0, -1)
      expect(fitted.at(-1)).toBe(now)
      expect(kept.length).toBeLessThanOrEqual(messagesMax + 1)
      if (kept.length > 0) expect(messagesTokens(fitted)).toBeLessThanOrEqual(tokensMax)
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
      const roles = fit(history, [now], wide).map(({ role }) => role)
      const tail = fitted.map(({ role }) => role)
      const opened = tail.length > roles.length || roles.slice(roles.length - tail.length).join() !== tail.join()
      expect(roles.slice(-(tail.length - (opened ? 1 : 0))).join()).toBe(tail.slice(opened ? 1 : 0).join())
    }),
    { numRuns: 300 },
  )
})

test('puts the summary before the first message, within the same message of a person', () => {
  const [first, ...rest] = fit([user('a'), said('b')], [user('c')], wide, summary('They met.'))
  expect(first).toMatchObject({ role: 'user', content: [{ type: 'text' }, { type: 'text', text: 'a' }] })
  expect(textOf(first)).toContain('\nThey met.\n')
  expect(rest).toEqual([said('b'), user('c')])
  const [alone, ...others] = fit([said('b')], [user('c')], wide, summary('They met.'))
  expect(alone?.content).toHaveLength(1)
  expect(others).toEqual([said('b'), user('c')])
  expect(fit([], [user('c')], wide, summary('They met.'))).toHaveLength(1)
})

test('marks messages that are left out between the summary and the rest', () => {
  const [first, ...rest] = fit([user('a'), said('b'), user('c'), said('d')], [user('e')], { ...wide, messagesMax: 2 }, summary('They met.'))
  expect(textOf(first)).toMatch(/They met\.[^|]*\|\(Earlier messages were left out\.\)/)
  expect(rest).toEqual([user('c'), said('d'), user('e')])
})

test('marks messages that are neither in the summary nor read', () => {
  const conversation = { upTo: 9, summary: summary('They met.'), messages: [user('a'), said('b')] }
  const [first, ...rest] = fitConversation(conversation, [user('c')], wide)
  expect(textOf(first)).toMatch(/They met\.[^|]*\|\(Earlier messages were left out\.\)/)
  expect(rest).toEqual([user('a'), said('b'), user('c')])
})

test('cuts a summary to half of the window', () => {
  const [first] = fit([user('a')], [user('b')], { ...wide, tokensMax: 400 }, summary('s'.repeat(10_000)))
  expect(charsOf(first)).toBeLessThan(1200)
})

test('fits the window by messages and by tokens', () => {
  const conversation = { upTo: 2, summary: undefined, messages: [user('a'.repeat(400)), said('b')] }
  expect(fitsWindow(conversation, [], { messagesMax: 2, tokensMax: 110 })).toBe(true)
  expect(fitsWindow(conversation, [], { messagesMax: 1, tokensMax: 110 })).toBe(false)
  expect(fitsWindow(conversation, [user('c'.repeat(40))], { messagesMax: 2, tokensMax: 110 })).toBe(false)
  expect(fitsWindow({ ...conversation, summary: summary('s'.repeat(40)) }, [], { messagesMax: 2, tokensMax: 110 })).toBe(false)
})

test('leaves at most half of the window, from a message of a person on', () => {
  const turns = Array.from({ length: 10 }, (_, at) => [user(`q${at}`), called(`${at}`), result('r', `${at}`), said(`a${at}`)]).flat()
  expect(summarizedCount(turns, 0, { ...wide, messagesMax: 20 })).toBe(32)
  expect(turns[32]).toEqual(user('q8'))
  expect(summarizedCount(turns, 0, { ...wide, messagesMax: 7 })).toBe(37)
  expect(summarizedCount(turns, 0, { ...wide, messagesMax: 4 })).toBe(39)
})

test('never leaves a tool result without its call', () => {
  const turn = [user('q'), called('1'), result('r', '1'), called('2'), result('r', '2'), called('3'), result('r', '3')]
  for (let messagesMax = 2; messagesMax <= 14; messagesMax++)
    expect(turn[summarizedCount(turn, 0, { ...wide, messagesMax })]?.role).not.toBe('tool')
})

test('leaves nothing of messages that are larger than the window', () => {
  expect(summarizedCount([user('a'), said('b'.repeat(10_000))], 0, { ...wide, tokensMax: 1000 })).toBe(2)
})

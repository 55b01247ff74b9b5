/** What a chat client may send. */
import { expect, test } from 'vitest'
import { CONTENT_BYTES_MAX, parseClientFrame } from './chat-frames.ts'

test.each([
  ['no JSON', '{', 'INVALID_JSON'],
  ['no object', '[]', 'INVALID_JSON'],
  ['an unknown type', '{"type":"shout"}', 'UNKNOWN_MESSAGE_TYPE'],
  ['no content', '{"type":"message"}', 'EMPTY_CONTENT'],
  ['blank content', '{"type":"message","content":" "}', 'EMPTY_CONTENT'],
  ['half a surrogate pair', '{"type":"message","content":"a\\ud800b"}', 'INVALID_JSON'],
  ['too much', JSON.stringify({ type: 'message', content: 'x'.repeat(CONTENT_BYTES_MAX + 1) }), 'TOO_LARGE'],
])('%s is refused', (_what, text, code) => expect(parseClientFrame(text)).toMatchObject({ type: 'invalid', code }))

test('a message is its content', () =>
  expect(parseClientFrame('{"type":"message","content":"hello"}')).toEqual({ type: 'message', content: 'hello' }))

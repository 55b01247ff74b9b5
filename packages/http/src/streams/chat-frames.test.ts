/** The frames that a chat client may send. */

import * as v from 'valibot'
import { expect, test } from 'vitest'
import { CONTENT_BYTES_MAX, clientFrameSchema, parseClientFrame } from './chat-frames.ts'

test.each([
  ['text that is not JSON', '{', 'INVALID_JSON'],
  ['an array', '[]', 'INVALID_JSON'],
  ['an unknown type', '{"type":"shout"}', 'UNKNOWN_MESSAGE_TYPE'],
  ['a message without content', '{"type":"message"}', 'EMPTY_CONTENT'],
  ['blank content', '{"type":"message","content":" "}', 'EMPTY_CONTENT'],
  ['half a surrogate pair', '{"type":"message","content":"a\\ud800b"}', 'INVALID_JSON'],
  ['content over the limit', JSON.stringify({ type: 'message', content: 'x'.repeat(CONTENT_BYTES_MAX + 1) }), 'TOO_LARGE'],
])('%s is refused', (_what, text, code) => expect(parseClientFrame(text)).toMatchObject({ type: 'invalid', code }))

test.each([
  [
    { type: 'message', content: 'hello' },
    { type: 'message', content: 'hello' },
  ],
  [{ type: 'abort' }, { type: 'abort' }],
  [
    { type: 'approval_response', request_id: 'r', decision: 'approve' },
    { type: 'approval_response', requestId: 'r', approved: true },
  ],
  [
    { type: 'approval_response', request_id: 'r', decision: 'deny' },
    { type: 'approval_response', requestId: 'r', approved: false },
  ],
])('a documented frame is accepted: %o', (frame, taken) => {
  expect(v.is(clientFrameSchema, frame)).toBe(true)
  expect(parseClientFrame(JSON.stringify(frame))).toEqual(taken)
})

test('every documented frame type is accepted', () => {
  expect(clientFrameSchema.options.map((option) => option.entries.type.literal)).toEqual(['message', 'abort', 'approval_response'])
})

test('a message has its content', () =>
  expect(parseClientFrame('{"type":"message","content":"hello"}')).toEqual({ type: 'message', content: 'hello' }))

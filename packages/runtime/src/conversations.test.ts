import { frameUntrusted } from '@sluice/sdk'
import { expect, test } from 'vitest'
import { plainMessage } from './conversations.ts'

test('people read a message without the frames of untrusted text, and its source', () => {
  const text = frameUntrusted('mail from eve@example.org', 'Hello.')
  const shown = { role: 'user', content: 'Hello.', untrusted: 'mail from eve@example.org' }
  expect(plainMessage({ role: 'user', content: [{ type: 'text', text }] })).toEqual(shown)
})

test('people read the result of a tool without frames', () => {
  const value = frameUntrusted('http_request https://example.org', 'A page.')
  const part = { type: 'tool-result', toolCallId: 'c', toolName: 'http_request', output: { type: 'text', value } } as const
  expect(plainMessage({ role: 'tool', content: [part] })).toMatchObject({
    untrusted: 'http_request https://example.org',
    tool_results: [{ output: 'A page.' }],
  })
})

test('a plain message has no source', () => {
  expect(plainMessage({ role: 'assistant', content: [{ type: 'text', text: 'Hi.' }] })).toEqual({ role: 'assistant', content: 'Hi.' })
})

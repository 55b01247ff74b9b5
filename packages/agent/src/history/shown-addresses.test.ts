import { frameUntrusted, type ModelMessage } from '@sluice/sdk'
import { expect, test } from 'vitest'
import { isShown } from './shown-addresses.ts'

const URL_SHOWN = 'https://a.example/x?q=1'
const user = (text: string): ModelMessage => ({ role: 'user', content: [{ type: 'text', text }] })
const result = (toolName: string, text: string): ModelMessage => ({
  role: 'tool',
  content: [{ type: 'tool-result', toolCallId: 'c', toolName, output: { type: 'text', value: frameUntrusted(toolName, text) } }],
})
const framed = (toolName: string, source: string, text: string): ModelMessage => ({
  role: 'tool',
  content: [{ type: 'tool-result', toolCallId: 'c', toolName, output: { type: 'text', value: frameUntrusted(source, text) } }],
})
const failed = (toolName: string, value: string): ModelMessage => ({
  role: 'tool',
  content: [{ type: 'tool-result', toolCallId: 'c', toolName, output: { type: 'error-text', value } }],
})
const shown = (...messages: ModelMessage[]) => {
  const inHistory = isShown(URL_SHOWN, { messages }, [], (tool) => tool === 'web_search')
  expect(isShown(URL_SHOWN, { messages: [] }, messages, (tool) => tool === 'web_search')).toBe(inHistory)
  return inHistory
}

test.each([
  [user(`read ${URL_SHOWN}`), true],
  [user(`(${URL_SHOWN}), please`), true],
  [user(`${URL_SHOWN}.`), true],
  [user(`<${URL_SHOWN}>`), true],
  [user(`${frameUntrusted('mail', 'words')}\nI mean ${URL_SHOWN}`), true],
  [result('web_search', `1. Title\n${URL_SHOWN}\nwords`), true],
  [user(`${URL_SHOWN}&r=2`), false],
  [user(`${URL_SHOWN}0`), false],
  [user(`${URL_SHOWN}.5`), false],
  [user(`x${URL_SHOWN}`), false],
  [user('https://a.example/x?q='), false],
  [user(frameUntrusted('mail', `open ${URL_SHOWN}`)), false],
  [user(frameUntrusted('mail', `open ${URL_SHOWN}`).slice(0, -10)), false],
  [result('file_read', URL_SHOWN), false],
  // The frame of a result names the input of its call, which the model has written.
  [framed('web_search', `web_search ${URL_SHOWN}`, 'Nothing was found.'), false],
  [failed('web_search', URL_SHOWN), false],
  [{ role: 'assistant', content: [{ type: 'text', text: URL_SHOWN }] }, false],
] as const)('%j shows the address: %s', (message, expected) => {
  expect(shown(message as ModelMessage)).toBe(expected)
})

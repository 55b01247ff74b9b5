import type { Channel } from '@sluice/sdk'
import { expect, test } from 'vitest'
import { asOutbound, loadReplyParts } from './reply-parts.ts'

const channel = (changes: Partial<Channel> = {}): Channel => ({
  name: 'x',
  allow: [],
  limits: { text: 20, unit: 'utf16' },
  send: async () => ({ id: '' }),
  ...changes,
})
const marked = (text: string): string => `<${text}>`

test('a channel without markup receives the Markdown', async () => {
  const plain = channel()
  const parts = (await loadReplyParts(plain))('**a** and more words', plain)
  expect(parts.map((part) => asOutbound(part, plain))).toEqual([{ text: '**a** and more words' }])
})

test('styles travel apart from the text', async () => {
  const beside = channel({ markup: { shows: ['bold'] } })
  const parts = (await loadReplyParts(beside))('**a long bold text of words**', beside)
  expect(parts.map((part) => asOutbound(part, beside))).toEqual([
    { text: 'a long bold text of', styles: [{ kind: 'bold', from: 0, to: 19 }] },
    { text: 'words', styles: [{ kind: 'bold', from: 0, to: 5 }] },
  ])
})

test('a channel with marks receives the text with them, counted with them', async () => {
  const within = channel({ markup: { shows: [], write: ({ text }) => marked(text) } })
  const parts = (await loadReplyParts(within))('1234567890 123456789', within)
  expect(parts.map((part) => asOutbound(part, within))).toEqual([
    { text: '<1234567890>', plain: '1234567890' },
    { text: '<123456789>', plain: '123456789' },
  ])
})

test('a text that has no room for its marks goes without them, and so does one without styles', () => {
  const within = channel({ markup: { shows: [], write: ({ text }) => marked(text) } })
  expect(asOutbound({ text: 'x'.repeat(20), styles: [] }, within)).toEqual({ text: 'x'.repeat(20) })
  expect(asOutbound({ text: 'notice' }, within)).toEqual({ text: 'notice' })
})

import fc from 'fast-check'
import { expect, test } from 'vitest'
import { contentOf, splitEscaped } from './blocks.ts'
import { escapeText } from './escape-text.ts'

const button = { label: 'Approve', value: 'approve:1', tone: 'good' } as const
const anyText = fc.string({
  unit: fc.oneof(fc.constantFrom(' ', '\n', '&', '<', 'x', '😀'), fc.string({ unit: 'grapheme', minLength: 1, maxLength: 1 })),
  maxLength: 200,
})

test('the parts of a text are the text, none is too long, and no character or escape is torn', () => {
  fc.assert(
    fc.property(anyText, fc.integer({ min: 12, max: 40 }), (text, max) => {
      const parts = splitEscaped(text, max)
      for (const part of parts) {
        expect(part.length).toBeLessThanOrEqual(max)
        expect(part.isWellFormed() || !text.isWellFormed()).toBe(true)
        expect(part).not.toMatch(/&(?!amp;|lt;|gt;)/)
      }
      expect(parts.join('').replaceAll(/\s/g, '')).toBe(escapeText(text).replaceAll(/\s/g, ''))
    }),
  )
})

test('a part ends at a line or a word where there is one', () => {
  expect(splitEscaped('one two three\nfour', 15)).toEqual(['one two three\n', 'four'])
  expect(splitEscaped('a verylongwordwithoutend', 12)).toEqual(['a verylongwo', 'rdwithoutend'])
})

test('a message without buttons has no blocks, so that an edit takes them away', () => {
  expect(contentOf({ text: 'x' })).toEqual({ text: 'x', blocks: [] })
  expect(contentOf({ text: 'x', buttons: [button] }).blocks).toHaveLength(2)
})

test('the longest text keeps to every limit of Slack', () => {
  for (const text of ['&'.repeat(4000), 'x'.repeat(4000), '😀'.repeat(2000)]) {
    const { text: fallback, blocks } = contentOf({ text, buttons: [button, { ...button, value: 'reject:1', tone: 'bad' }] })
    expect(fallback.length).toBeLessThanOrEqual(4000)
    expect(blocks.length).toBeLessThanOrEqual(50)
    for (const block of blocks as { text?: { text: string } }[]) expect(block.text?.text.length ?? 0).toBeLessThanOrEqual(3000)
  }
})

import fc from 'fast-check'
import { expect, test } from 'vitest'
import { contentOf, escapeText, splitEscaped } from './send.ts'

const button = { label: 'Approve', value: 'approve:1', tone: 'good' } as const
const anyText = fc.string({
  unit: fc.oneof(fc.constantFrom(' ', '\n', '&', '<', 'x', '😀'), fc.string({ unit: 'grapheme', minLength: 1, maxLength: 1 })),
  maxLength: 200,
})

test('splitEscaped keeps the whole text and cuts no character or escape', () => {
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

test('splitEscaped cuts at line breaks and spaces where possible', () => {
  expect(splitEscaped('one two three\nfour', 15)).toEqual(['one two three\n', 'four'])
  expect(splitEscaped('a verylongwordwithoutend', 12)).toEqual(['a verylongwo', 'rdwithoutend'])
})

test('contentOf returns no blocks for a short text without buttons', () => {
  expect(contentOf({ text: 'x' })).toEqual({ text: 'x', blocks: [] })
  expect(contentOf({ text: 'x', buttons: [button] }).blocks).toHaveLength(2)
})

test('contentOf keeps within every limit of Slack for the longest texts', () => {
  for (const text of ['&'.repeat(4000), 'x'.repeat(4000), '😀'.repeat(2000)]) {
    const { text: fallback, blocks } = contentOf({ text, buttons: [button, { ...button, value: 'reject:1', tone: 'bad' }] })
    expect(fallback.length).toBeLessThanOrEqual(4000)
    expect(blocks.length).toBeLessThanOrEqual(50)
    for (const block of blocks as { text?: { text: string } }[]) expect(block.text?.text.length ?? 0).toBeLessThanOrEqual(3000)
  }
})

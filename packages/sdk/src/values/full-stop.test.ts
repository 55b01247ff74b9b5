import { expect, test } from 'vitest'
import { withFullStop } from './full-stop.ts'

test.each([
  ['the model is away', 'the model is away.'],
  ['The API key is wrong.', 'The API key is wrong.'],
  ['Is it down?\n', 'Is it down?'],
  ['wait…', 'wait…'],
  ['', '.'],
])('%j ends a sentence as %j', (text, ended) => {
  expect(withFullStop(text)).toBe(ended)
})

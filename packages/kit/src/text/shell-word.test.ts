import { expect, test } from 'vitest'
import { shellWord } from './shell-word.ts'

test.each([
  ['tidy-1.2_b', 'tidy-1.2_b'],
  ['two words', "'two words'"],
  ["it's", String.raw`'it'\''s'`],
  ['$(reboot)', "'$(reboot)'"],
  ['', "''"],
])('%j is one word of a shell', (name, word) => expect(shellWord(name)).toBe(word))

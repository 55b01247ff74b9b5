import { describe, expect, test } from 'vitest'
import { commandLine } from './command-line.ts'

describe('commandLine', () => {
  test.each([
    [['ls', '-la'], 'ls -la'],
    [['bash', '-lc', 'cd src && ls | wc'], "bash -lc 'cd src && ls | wc'"],
    [['grep', "it's", 'a b.txt'], String.raw`grep 'it'\''s' 'a b.txt'`],
    [['cd src && ls'], 'cd src && ls'],
  ])('joins %j', (words, line) => {
    expect(commandLine(words)).toBe(line)
  })

  test.each([[['cd src', 'ls -la']], [['ls', '|', 'wc']], [['make', '&&', 'ls']], [['ls', '2>&1']], [['ls;', 'pwd']], [['ls', 1]], [[]]])(
    'leaves %j, which can be read in several ways',
    (words) => {
      expect(commandLine(words)).toBeUndefined()
    },
  )
})

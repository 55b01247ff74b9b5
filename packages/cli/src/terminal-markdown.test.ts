import { describe, expect, test } from 'vitest'
import { BlockReader, terminalText } from './terminal-markdown.ts'

const marked = (markdown: string) => terminalText(markdown, (kind, text) => `<${kind}>${text}</${kind}>`)

describe('terminalText', () => {
  test.each([
    ['bold and *italic*', '**Hello** and *there*', '<bold>Hello</bold> and <italic>there</italic>'],
    ['a title', '## Title\n\nwords', '<bold>Title</bold>\n\nwords'],
    ['lists', '- one\n  - two\n\n1. three', '• one\n  ◦ two\n\n1. three'],
    ['code', 'run `ls -l` now', 'run <cyan>ls -l</cyan> now'],
    ['a block of code', '```sh\nls\n```', '<cyan>ls</cyan>'],
    ['styles within each other', '**run `ls` now**', '<bold>run </bold><cyan><bold>ls</bold></cyan><bold> now</bold>'],
    ['a link with its address', 'see [the page](https://example.org/a)', 'see the page (https://example.org/a)'],
    ['a table', '| a | b |\n|---|---|\n| 1 | `x` |', '<cyan>a  b\n─  ─\n1  x</cyan>'],
    ['a quote', '> words', '“words”'],
  ])('shows %s', (_name, markdown, shown) => {
    expect(marked(markdown)).toBe(shown)
  })

  test('has no marks where the terminal has no colours', () => {
    expect(terminalText('**a** `b`\n\n- c', (_kind, text) => text)).toBe('a b\n\n• c')
  })
})

describe('BlockReader', () => {
  const blocksOf = (text: string, size: number): string[] => {
    const reader = new BlockReader()
    const blocks: string[] = []
    for (let at = 0; at < text.length; at += size) blocks.push(reader.push(text.slice(at, at + size)))
    return [...blocks, reader.end()].filter((block) => block !== '')
  }
  const TEXT = 'One\nline.\n\n```\na\n\nb\n```\n\n- x\n\n  more\n- y\n\nEnd\n\n'

  test.each([1, 2, 3, 1000])('gives whole blocks of pieces of %i characters', (size) => {
    const blocks = blocksOf(TEXT, size)
    expect(blocks.join('')).toBe(TEXT)
    if (size > 3) return
    expect(blocks).toEqual(['One\nline.\n\n', '```\na\n\nb\n```\n\n', '- x\n\n  more\n- y\n\n', 'End\n\n'])
  })

  test('reads a long block that arrives line by line in linear time', () => {
    const reader = new BlockReader()
    reader.push('```\n')
    const startMs = performance.now()
    for (let line = 0; line < 20_000; line++) expect(reader.push('a line of code that is as long as most of them are\n')).toBe('')
    expect(performance.now() - startMs).toBeLessThan(5000)
    expect(reader.push('```\n\nEnd')).toHaveLength(20_000 * 51 + 9)
  })

  test('keeps a fence that has not ended as one block', () => {
    expect(blocksOf('~~~~\na\n\n~~~\n\nb', 1)).toEqual(['~~~~\na\n\n~~~\n\nb'])
  })
})

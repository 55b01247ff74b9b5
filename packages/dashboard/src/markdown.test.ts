import { expect, test } from 'vitest'
import { type Block, type Inline, inlineOf, openable, parseMarkdown } from '../page/src/ui/markdown.ts'

/** Writes parts in a short form: `strong(a)`, `link(label -> url)`. */
const shown = (parts: readonly Inline[]): string =>
  parts
    .map((part) => {
      if (part.kind === 'text') return part.text
      if (part.kind === 'code') return `code(${part.text})`
      return part.kind === 'link' ? `link(${part.label} -> ${part.url})` : `${part.kind}(${shown(part.inner)})`
    })
    .join('')

const outline = (blocks: readonly Block[]): unknown[] => blocks.map(outlineOf)

function outlineOf(block: Block): unknown {
  switch (block.kind) {
    case 'paragraph':
      return shown(block.inner)
    case 'heading':
      return { [`h${block.level}`]: shown(block.inner) }
    case 'code':
      return { code: block.text, language: block.language }
    case 'quote':
      return { quote: outline(block.blocks) }
    case 'list':
      return { list: block.items.map(outline), start: block.start }
    case 'table':
      return { head: block.head.map(shown), rows: block.rows.map((row) => row.map(shown)) }
    case 'rule':
      return 'rule'
  }
}

test.each([
  ['plain', 'plain'],
  ['**bold** and *slanted* and _slanted_ and ~~gone~~', 'strong(bold) and em(slanted) and em(slanted) and del(gone)'],
  ['**bold with *slanted* inside**', 'strong(bold with em(slanted) inside)'],
  ['`a * b` and ``a ` b``', 'code(a * b) and code(a ` b)'],
  ['snake_case_name and 2 * 3 * 4', 'snake_case_name and 2 * 3 * 4'],
  ['**never closed', '**never closed'],
  ['\\*not slanted\\*', '*not slanted*'],
  ['[here](https://example.com/a_b)', 'link(here -> https://example.com/a_b)'],
  [
    'see https://example.com/x, or (http://example.com/y).',
    'see link(https://example.com/x -> https://example.com/x), or (link(http://example.com/y -> http://example.com/y)).',
  ],
  ['***both***, **bold *both***', 'strong(em(both)), strong(bold em(both))'],
  ['**a **b** c** d, __a __b__ c__, ~~a ~~b~~ c~~', 'strong(a strong(b) c) d, strong(a strong(b) c), del(a del(b) c)'],
  ['**a **b** c', 'strong(a **b) c'],
  ['**a** and **b**', 'strong(a) and strong(b)'],
  ['[Ada](https://example.com/Ada_(name)) and more)', 'link(Ada -> https://example.com/Ada_(name)) and more)'],
  [
    '[x](https://example.com/x "a title") [y](<https://example.com/y>)',
    'link(x -> https://example.com/x) link(y -> https://example.com/y)',
  ],
  [
    '<https://example.com/x> and <https://example.com',
    'link(https://example.com/x -> https://example.com/x) and <link(https://example.com -> https://example.com/)',
  ],
  ['one<br>two<br/>three', 'one\ntwo\nthree'],
  [
    '![a picture](https://example.com/x.png) ![](https://example.com/y.png)',
    'link(a picture -> https://example.com/x.png) link(https://example.com/y.png -> https://example.com/y.png)',
  ],
  ['<img src=x onerror=alert(1)> <b>b</b>', '<img src=x onerror=alert(1)> <b>b</b>'],
  ['[x](javascript:alert(1))', '[x](javascript:alert(1))'],
  ['[x](data:text/html,hi)', '[x](data:text/html,hi)'],
  ['[x](https://user:pass@example.com/)', '[x](link(https://user:pass@example.com/ -> none))'],
])('%j is read as %j', (text, expected) => {
  if (expected.includes('-> none')) expect(shown(inlineOf(text))).toBe(text)
  else expect(shown(inlineOf(text))).toBe(expected)
})

test('distinguishes blocks', () => {
  const text = [
    '# Title',
    'one',
    'two',
    '',
    '- a',
    '- b',
    '  - inner',
    '',
    '  more of b',
    '1. first',
    '2. second',
    '> said **loudly**',
    '---',
    '```ts',
    'const a = "<script>"',
    '',
    '```',
    '| a | b |',
    '|---|:-:|',
    '| 1 | `2` |',
  ].join('\n')
  expect(outline(parseMarkdown(text))).toEqual([
    { h1: 'Title' },
    'one\ntwo',
    { list: [['a'], ['b', { list: [['inner']], start: null }, 'more of b']], start: null },
    { list: [['first'], ['second']], start: 1 },
    { quote: ['said strong(loudly)'] },
    'rule',
    { code: 'const a = "<script>"\n', language: 'ts' },
    { head: ['a', 'b'], rows: [['1', 'code(2)']] },
  ])
})

test('tasks are shown with their boxes', () => {
  expect(outline(parseMarkdown('- [ ] buy milk\n- [x] **pay**\n- [link](https://example.com)'))).toEqual([
    { list: [['☐ buy milk'], ['☑ strong(pay)'], ['link(link -> https://example.com/)']], start: null },
  ])
})

test('code that is still arriving is code', () => {
  expect(outline(parseMarkdown('```sh\nnpm start'))).toEqual([{ code: 'npm start', language: 'sh' }])
})

test.each([
  'javascript:alert(1)',
  'JaVaScRiPt:alert(1)',
  'data:text/html,x',
  'vbscript:x',
  'file:///etc/passwd',
  '//example.com',
  'https://a:b@example.com',
  `https://example.com/${'x'.repeat(3000)}`,
])('%s is never opened', (address) => expect(openable(address)).toBeUndefined())

test.each([
  ['open marks', '**a '.repeat(50_000)],
  ['brackets', '['.repeat(200_000)],
  ['links', '[a]('.repeat(50_000)],
  ['brackets in links', `[a](${'('.repeat(2000)}`.repeat(100)],
  ['titles of links', `[a](x ${'"'.repeat(2000)}`.repeat(100)],
  ['marks within marks', '**a **b** '.repeat(30_000)],
  ['marks within marks that end', `${'**a '.repeat(30_000)}${'b** '.repeat(30_000)}`],
  ['three marks', '***a '.repeat(40_000)],
  ['tags', '<br'.repeat(70_000)],
  ['backticks', Array.from({ length: 600 }, (_, index) => '`'.repeat(index + 1)).join(' ')],
  ['quotes', `${'>'.repeat(100_000)} x`],
  ['lists', Array.from({ length: 5000 }, (_, index) => `${' '.repeat(index % 12)}- x`).join('\n')],
  ['addresses', 'https://'.repeat(25_000)],
  ['a long line', 'x'.repeat(1_000_000)],
])('%s take linear time', (_, text) => {
  const startedAt = performance.now()
  parseMarkdown(text)
  // The quadratic algorithms that this test is about take minutes.
  expect(performance.now() - startedAt).toBeLessThan(3000)
})

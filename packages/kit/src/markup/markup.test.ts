import type { StyledText, StyleKind } from '@sluice/sdk'
import { effort } from '@sluice/testkit/random'
import { RAW_MARK, replyCorpus } from '@sluice/testkit/reply-corpus'
import { describe, expect, test } from 'vitest'
import { measure } from '../text/split-text-units.ts'
import { renderMarkdown } from './markdown.ts'
import { writeHtml } from './styled-html.ts'
import { splitStyled } from './styled-text.ts'
import { writeCommonMark, writeDiscord, writeLark, writeUnescaped, writeWhatsapp } from './written-marks.ts'

const ALL: readonly StyleKind[] = ['bold', 'italic', 'strike', 'code', 'pre', 'quote', 'link']
const styled = (source: string, shows = ALL) => renderMarkdown(source, { shows })
const plain = (source: string) => renderMarkdown(source, { shows: [] }).text
const spoken = (source: string) => renderMarkdown(source, { shows: [], spoken: true }).text
/** The styles with the words that they cover. */
const covered = ({ text, styles }: StyledText) =>
  styles.map(({ kind, from, to, value }) => [kind, text.slice(from, to), ...(value ? [value] : [])])
const CORPUS = replyCorpus(effort(200))

describe('reading Markdown', () => {
  test.each<[string, string, string, readonly (readonly string[])[]]>([
    [
      'emphasis',
      '**a** *b* ~~c~~ `d`',
      'a b c d',
      [
        ['bold', 'a'],
        ['italic', 'b'],
        ['strike', 'c'],
        ['code', 'd'],
      ],
    ],
    ['a list of HTML', 'Before:\n<ul>\n<li>one</li>\n<li><b>two</b></li>\n</ul>\nafter', 'Before:\n• one\n• two\nafter', [['bold', 'two']]],
    ['lists of HTML in a line', '<ol start="3"><li>a<ul><li>b</li></ul></li><li>c</li></ol> d', '3. a\n   ◦ b\n4. c\nd', []],
    ['a list of HTML in several paragraphs', '<ul>\n\n<li>one</li>\n\n<li>two</li>\n\n</ul>', '• one\n\n• two', []],
    ['a list of HTML without closing tags', '<ul>\n<li>one\n<li>two\n</ul>', '• one\n• two', []],
    ['words of a list that no item has', '<ul>a<li>b</li></ul>', '• a\n• b', []],
    ['descriptions of HTML', '<dl><dt>Term</dt><dd>Meaning</dd></dl>', '• Term: Meaning', []],
    [
      'a table of HTML',
      '<table>\n<thead><tr><th>Name</th><th>Age</th></tr></thead>\n<tr><td>Ada</td><td>36</td></tr>\n</table>',
      'Name  Age\n────  ───\nAda   36',
      [['pre', 'Name  Age\n────  ───\nAda   36']],
    ],
    ['a table of HTML without closing tags', '<table><tr><td>a<td>b<tr><td>c<td>d</table>', 'a  b\nc  d', [['pre', 'a  b\nc  d']]],
    ['a list in a cell', '| k |\n|---|\n| <ul><li>a</li><li>b</li></ul> |', '• k: \n  • a\n  • b', [['bold', 'k']]],
    [
      'code at the end of a quote within a quote',
      '> a\n>\n> > ```\n> > b\n> > ```',
      'a\n\n“\nb\n”',
      [
        ['quote', 'a\n\n“\nb\n”'],
        ['pre', 'b'],
      ],
    ],
    ['a quote of HTML', 'x\n<blockquote>a<br>b</blockquote>\ny', 'x\na\nb\ny', [['quote', 'a\nb']]],
    ['names of tags in a sentence', 'Use <li> within <ul>, and <td> for cells.', 'Use <li> within <ul>, and <td> for cells.', []],
    ['emphasis within a word', 'un**believ**able', 'unbelievable', [['bold', 'believ']]],
    ['names with underscores', 'snake_case_name __init__', 'snake_case_name init', [['bold', 'init']]],
    [
      'a heading',
      '## Title *x*\ntext',
      'Title x\n\ntext',
      [
        ['bold', 'Title x'],
        ['italic', 'x'],
      ],
    ],
    ['a link', '[words](https://a.b/c_d)', 'words', [['link', 'words', 'https://a.b/c_d']]],
    ['a bare address', 'https://a.b/c_d_e', 'https://a.b/c_d_e', []],
    ['an address in brackets', '<https://a.b> a@b.c', 'https://a.b a@b.c', []],
    ['a link that claims another address', '[https://a.b](https://c.d)', 'https://a.b (https://c.d)', []],
    ['a link to a scheme that platforms refuse', '[x](javascript:y)', 'x (javascript:y)', []],
    ['code with its own marks', '```js\na **b**\n  c\n```', 'a **b**\n  c', [['pre', 'a **b**\n  c', 'js']]],
    ['code that is never closed', '```\na', 'a', [['pre', 'a']]],
    ['a mark that is never closed', '**a', '**a', []],
    ['emphasis that ends with punctuation before a word', '**注意：**请先备份', '注意：请先备份', [['bold', '注意：']]],
    ['the same in a script with spaces', '**Note:**text', 'Note:text', [['bold', 'Note:']]],
    [
      'the same within other emphasis',
      '**見て *注意：*東京 です**',
      '見て 注意：東京 です',
      [
        ['bold', '見て 注意：東京 です'],
        ['italic', '注意：'],
      ],
    ],
    ['quoted emphasis behind a word', '这是**“重点”**内容', '这是“重点”内容', [['bold', '“重点”']]],
    ['a particle behind emphasis', '**한국어(Korean)**는', '한국어(Korean)는', [['bold', '한국어(Korean)']]],
    [
      'several such marks in a line',
      '日本語の**「A」**と**「B」**を、**C：**と**D**',
      '日本語の「A」と「B」を、C：とD',
      [
        ['bold', '「A」'],
        ['bold', '「B」'],
        ['bold', 'C：'],
        ['bold', 'D'],
      ],
    ],
    [
      'strong text within emphasis',
      '*他说：**重点**。*',
      '他说：重点。',
      [
        ['italic', '他说：重点。'],
        ['bold', '重点'],
      ],
    ],
    [
      'strong code before a word',
      '**`a`**后',
      'a后',
      [
        ['code', 'a'],
        ['bold', 'a'],
      ],
    ],
    ['powers and products', 'x**(y) and 2*3*4 and z**(2)', 'x**(y) and 2*3*4 and z**(2)', []],
    ['emphasis that ends with punctuation in a script without spaces', '*注意：*请', '注意：请', [['italic', '注意：']]],
    ['quoted emphasis in such a script', '这是*“重点”*内容', '这是“重点”内容', [['italic', '“重点”']]],
    [
      'deleted words beside punctuation',
      '~~删除。~~请 是~~“旧”~~的',
      '删除。请 是“旧”的',
      [
        ['strike', '删除。'],
        ['strike', '“旧”'],
      ],
    ],
    ['products in brackets', 'x*(y)*z + (q)*w', 'x*(y)*z + (q)*w', []],
    ['HTML and references', '<b>x</b> &lt;&#65;&#x42;&amp;', 'x <AB&', [['bold', 'x']]],
    ['names of references', '&ldquo;a&rdquo; &ne; &frac12;&deg;C &nosuch;', '“a” ≠ ½°C &nosuch;', []],
    ['Markdown within HTML', '<div>\n**a**\n</div>', 'a', [['bold', 'a']]],
    [
      'tags that mark words',
      '<strong>a</strong> <em>b</em> <i>c</i> <s>d</s> <u>e</u> <code>f *g* &lt;</code> <kbd>Ctrl</kbd>',
      'a b c d e f *g* < Ctrl',
      [
        ['bold', 'a'],
        ['italic', 'b'],
        ['italic', 'c'],
        ['strike', 'd'],
        ['code', 'f *g* <'],
        ['code', 'Ctrl'],
      ],
    ],
    [
      'tags within one another',
      '<B>a <i>b</B> c</i> **<u>d</u>**',
      'a b c d',
      [
        ['bold', 'a b'],
        ['bold', 'd'],
      ],
    ],
    ['a tag over paragraphs', '<details>\n<summary>More</summary>\n\n- a\n\n</details>\n\nb', 'More\n\n• a\n\nb', [['bold', 'More']]],
    ['line breaks and comments', 'a<br>b<br/>c <!-- hidden -->\n\n<!-- hidden -->\n\nd', 'a\nb\nc\n\nd', []],
    ['small letters', 'H<sub>2</sub>O x<sup>2</sup> 1<sup>st</sup> e<sup>-kt</sup> a<sub>max</sub>', 'H₂O x² 1st e^(-kt) amax', []],
    ['a link of HTML', '<a href="https://a.b/?c=1&amp;d">e</a>', 'e', [['link', 'e', 'https://a.b/?c=1&d']]],
    ['a picture of HTML', '<img alt="a" src="https://b.c">', 'a', [['link', 'a', 'https://b.c']]],
    [
      'text with angle brackets',
      'a < b, c > d, Map<string, number>, List<b>, <your-key> <name>x</name>',
      'a < b, c > d, Map<string, number>, List<b>, <your-key> <name>x</name>',
      [],
    ],
    [
      'tags in code',
      '`<b>a</b>` <code><b></code>\n\n```\n<i>b</i>\n```',
      '<b>a</b> <b>\n\n<i>b</i>',
      [
        ['code', '<b>a</b>'],
        ['code', '<b>'],
        ['pre', '<i>b</i>'],
      ],
    ],
    ['a block of code in HTML', '<pre><code class="language-js">a\n  b</code></pre>', 'a\n  b', [['pre', 'a\n  b']]],
    ['lines', 'a\nb', 'a\nb', []],
    ['lists', '- a\n  - b\n    - c\n- [ ] d\n- [x] e', '• a\n  ◦ b\n    ▪ c\n☐ d\n☑ e', []],
    ['numbers', '3. a\n4. b', '3. a\n4. b', []],
    ['numbered tasks', '1. [ ] a\n2. [x] b', '1. ☐ a\n2. ☑ b', []],
    ['approximations', 'near (~3 km), far (~5 to ~10 km)', 'near (~3 km), far (~5 to ~10 km)', []],
    ['paragraphs of an item', '- a\n\n  b', '• a\n\n  b', []],
    ['code of an item', '- a\n  ```\n  b\n  ```', '• a\nb', [['pre', 'b']]],
    [
      'a quote',
      '> a\n> **b**',
      'a\nb',
      [
        ['quote', 'a\nb'],
        ['bold', 'b'],
      ],
    ],
    ['a narrow table', '| a | b |\n|---|---|\n| 東京 | `d` |', 'a     b\n────  ─\n東京  d', [['pre', 'a     b\n────  ─\n東京  d']]],
    ['a line', 'a\n\n---\n\nb', 'a\n\n———\n\nb', []],
    ['only a definition', '[a]: https://b.c', '[a]: https://b.c', []],
  ])('%s', (_what, source, text, styles) => {
    expect([styled(source).text, covered(styled(source))]).toEqual([text, styles])
  })

  test('two neighbours of one kind are one', () => {
    expect(covered(styled('**a****b**')).flat()).not.toContain('a')
  })

  test('a wide table is a list of its rows, and so is a table with links', () => {
    const wide = `| a | b |\n|---|---|\n| ${'x'.repeat(60)} | y |`
    expect(styled(wide).text).toBe(`• a: ${'x'.repeat(60)}\n  b: y`)
    expect(styled('| a | b |\n|---|---|\n| [c](https://d.e) | y |').text).toBe('• a: c\n  b: y')
  })

  test('writes what a platform does not show as words', () => {
    expect(plain('**a** [b](https://c.d) ![e](https://f.g)\n> h')).toBe('a b (https://c.d) e (https://f.g)\n\n“h”')
    expect(plain('| a | b |\n|---|---|\n| c | |\n| d | e |')).toBe('• a: c\n• a: d\n  b: e')
  })

  test('speaks words without marks and addresses', () => {
    expect(spoken('# a\n- **b** [c](https://d.e/f)\n- https://g.h/i')).toBe('a\n\nb c\ng.h')
  })

  test('takes a short time for any text', () => {
    const long = 30_000
    for (const piece of [
      '*',
      '*a ',
      'a**b',
      '_a ',
      '[',
      '[a](',
      '`a``b',
      '<',
      '>',
      '- ',
      '|a',
      '~a~~b',
      '![a',
      '\\',
      '<!-- ',
      '<b>',
      '<b>a</b>',
      '<b><i></b></i>',
      '<code>',
      '&amp',
      '*。*请',
      '\n',
      '> - ',
    ])
      expect(plain(piece.repeat(long / piece.length)).length).toBeGreaterThan(0)
    const nested = Array.from({ length: 300 }, (_, at) => `${' '.repeat(2 * at)}- x`).join('\n')
    expect(plain(nested).split('x').length).toBe(301)
  })
})

describe('writing marks', () => {
  test.each<[string, string, string, string]>([
    ['emphasis', '**a** *b* ~~c~~ `d`', '**a** _b_ ~~c~~ `d`', '*a* _b_ ~c~ `d`'],
    ['emphasis within a word', 'un**believ**able', 'un**believ**able', 'unbelievable'],
    ['emphasis that a letter touches', 'a**"b"**c', 'a**"b"**c', 'a**"b"**c'],
    ['both', '***a***', '**_a_**', '*_a_*'],
    ['names', 'snake_case_name', 'snake_case_name', 'snake_case_name'],
    [
      'characters that are no marks',
      '2 * 3 \\*a\\* \\_b\\_ \\`c',
      '2 * 3 \\*a\\* \\_b\\_ \\`c',
      '2 * 3 *\u200ba*\u200b _\u200bb_\u200b `\u200bc',
    ],
    ['what begins a line', '\\# a\n\n\\> b\n\n\\- c', '\\# a\n\n\\> b\n\n\\- c', '#\u200b a\n\n>\u200b b\n\n-\u200b c'],
    ['addresses', 'https://a.b/c_d_ [e](https://f.g/h_(i))', 'https://a.b/c_d_ [e](https://f.g/h_%28i%29)', ''],
    ['a block of code', '```js\na `b`\n```', '```js\na `b`\n```', '```\na `b`\n```'],
    ['a quote', '> a\n> b', '> a\n> b', '> a\n> b'],
  ])('%s', (_what, source, common, whatsapp) => {
    expect(writeCommonMark(styled(source))).toBe(source.includes('a**"b"') ? String.raw`a\*\*"b"\*\*c` : common)
    if (whatsapp !== '' && !source.includes('a**"b"')) expect(writeWhatsapp(styled(source))).toBe(whatsapp)
  })

  test('code with backticks', () => {
    expect(writeCommonMark(styled('`` a`b ``'))).toBe('`` a`b ``')
    expect(writeCommonMark(styled('````\n```\n````'))).toBe('````\n```\n````')
    expect(writeDiscord(styled('````\n```\n````'))).not.toContain('\n```\n```')
    expect(writeLark(styled('\\*a\\*'))).toBe('&#42;a&#42;')
    expect(writeUnescaped(styled('\\*a\\*'))).toBe('*\u200ba*\u200b')
  })

  test('HTML has no tag that the text brings', () => {
    const html = writeHtml(styled('<q>x</q> **b** [l](https://a.b/?c="d")\n> q\n\n```js\n<i>\n```'))
    expect(html).toBe(
      '&lt;q&gt;x&lt;/q&gt; <strong>b</strong> <a href="https://a.b/?c=&quot;d&quot;">l</a>'.concat(
        '<blockquote>q</blockquote><pre><code class="language-js">&lt;i&gt;\n</code></pre>',
      ),
    )
  })

  test('a reader of the dialect sees the text and the styles again', () => {
    const tidy = (text: string) => text.replace(/[\s\u00a0\u200b]+/g, ' ').trim()
    for (const { markdown } of CORPUS) {
      for (const write of [writeCommonMark, writeDiscord]) {
        const before = styled(markdown)
        const again = styled(write(before))
        expect(tidy(again.text), markdown.slice(0, 300)).toBe(tidy(before.text))
        const bold = (text: StyledText) =>
          covered(text)
            .filter(([kind]) => kind === 'code' || kind === 'pre')
            .map(([, words = '']) => tidy(words))
        expect(bold(again), markdown.slice(0, 300)).toEqual(bold(before))
      }
    }
  })
})

describe('the corpus', () => {
  test.each([
    ['styles beside the text', ALL, undefined],
    ['plain text', [], undefined],
    ['CommonMark', ALL, writeCommonMark],
    ['Discord', ALL, writeDiscord],
    ['WhatsApp', ALL.filter((kind) => kind !== 'link'), writeWhatsapp],
    ['Lark', ALL, writeLark],
  ] as const)('%s: parts keep the limit, show no mark, and lose no word', (_what, shows, write) => {
    for (const { markdown, words, literals } of CORPUS) {
      for (const unit of ['utf16', 'byte'] as const) {
        const parts = splitStyled(renderMarkdown(markdown, { shows }), { text: 1500, unit }, write)
        for (const part of parts) {
          expect(measure(write ? write(part) : part.text, unit), markdown.slice(0, 300)).toBeLessThanOrEqual(1500)
          for (const { from, to } of part.styles) expect([from < to, to <= part.text.length]).toEqual([true, true])
        }
        const text = parts.map((part) => part.text).join('\n')
        const lost = [...words, ...literals].filter((word) => !text.includes(word))
        expect(lost, markdown.slice(0, 300)).toEqual([])
        const rest = literals.reduce((left, literal) => left.replace(literal, ''), text).replace(/https:\S+/g, '')
        expect(RAW_MARK.exec(rest)?.[0], markdown.slice(0, 300)).toBeUndefined()
      }
    }
  })
})

test('a long list is rendered whole, and its text is read no more often than that of a short one', () => {
  const short = readsOf(() => renderMarkdown('- a\n'.repeat(1000), { shows: ['bold'] }))
  const long = readsOf(() => renderMarkdown('- a\n'.repeat(12_000), { shows: ['bold'] }))
  expect(long.result.text.split('\n')).toHaveLength(12_000)
  expect(long.reads).toBe(short.reads)
})

/** Each of these methods copies a text that was put together from pieces, before it reads the text. */
const READING = [
  'endsWith',
  'startsWith',
  'at',
  'charAt',
  'charCodeAt',
  'slice',
  'trim',
  'trimEnd',
  'includes',
  'indexOf',
  'lastIndexOf',
] as const

/** Counts how often the methods of strings read a text that begins as a list does. */
function readsOf<Result>(work: () => Result): { readonly reads: number; readonly result: Result } {
  const given = READING.map((name) => [name, Object.getOwnPropertyDescriptor(String.prototype, name) ?? {}] as const)
  const { charCodeAt } = String.prototype
  let reads = 0
  for (const [name, descriptor] of given) {
    const method = descriptor.value as (...args: unknown[]) => unknown
    const value = function (this: string, ...args: unknown[]) {
      if (this.length > 100 && charCodeAt.call(this, 0) === 0x2022) reads++
      return method.apply(this, args)
    }
    Object.defineProperty(String.prototype, name, { ...descriptor, value })
  }
  try {
    return { result: work(), reads }
  } finally {
    for (const [name, descriptor] of given) Object.defineProperty(String.prototype, name, descriptor)
  }
}

import type { Channel } from '@sluice/sdk'
import { effort } from '@sluice/testkit/random'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { splitText } from './split-text.ts'

type Unit = Channel['limits']['unit']

const lengthOf: Readonly<Record<Unit, (text: string) => number>> = {
  utf16: (text) => text.length,
  codepoint: (text) => [...text].length,
  byte: (text) => Buffer.byteLength(text),
}
const units = Object.keys(lengthOf) as Unit[]
const split = (text: string, limit: number, unit: Unit = 'utf16') => splitText(text, { text: limit, unit })

const FENCE = /^[ \t]*(`{3,}|~{3,})(.*)$/s

/** The text without the lines that open and close fences, and whether the last fence is closed. */
function withoutFences(text: string): { rest: string; closed: boolean } {
  let marks: string | undefined
  const rest: string[] = []
  for (const line of text.split('\n')) {
    const [, found, info = ''] = FENCE.exec(line) ?? []
    if (found && !marks && !(found.startsWith('`') && info.includes('`'))) marks = found
    else if (found && marks && found.startsWith(marks) && info.trim() === '') marks = undefined
    else rest.push(line)
  }
  return { rest: rest.join('\n'), closed: marks === undefined }
}

/** The characters as people see them, without white space. */
const characters = (text: string): string[] =>
  [...new Intl.Segmenter().segment(text)].map(({ segment }) => segment.replace(/\s/g, '')).filter((segment) => segment !== '')
const visible = (text: string): string => withoutFences(text).rest.replace(/\s/g, '')

/** Returns the forms of a part of which one is in the text: the whole, or without an added first line, last line or both. */
function asInText(part: string): string[] {
  const withoutLast = part.slice(0, Math.max(0, part.lastIndexOf('\n')))
  return [part, withoutLast].flatMap((piece) => [piece, piece.slice(piece.indexOf('\n') + 1)])
}

describe('short texts', () => {
  test.each<[Unit, string]>([
    ['utf16', 'aé€😀'],
    ['codepoint', 'aé€😀x'],
    ['byte', '€😀'],
  ])('a text of exactly the limit in %s stays as it is, one more makes two', (unit, text) => {
    const limit = lengthOf[unit](text)
    expect(split(text, limit, unit)).toEqual([text])
    expect(split(`${text}z`, limit, unit)).toEqual([text, 'z'])
  })

  test('a short text keeps its white space and its unclosed code block', () => {
    expect(split('  a\n\n```js\nb  \n', 20)).toEqual(['  a\n\n```js\nb  \n'])
  })

  test.each(['', ' ', '\n\n\t'])('splits %j into no parts', (text) => {
    expect(split(text, 10)).toEqual([])
    expect(split(text.repeat(100), 10)).toEqual([])
  })
})

describe('the place of a break', () => {
  test.each<[why: string, text: string, limit: number, parts: string[]]>([
    ['a blank line comes before a newline and a space', 'aaa bbb\n\nccc\nddd eee', 14, ['aaa bbb', 'ccc\nddd eee']],
    ['a newline comes before a space', 'aaa bbb\nccc ddd eee', 13, ['aaa bbb', 'ccc ddd eee']],
    ['a space comes before a hard break', 'aaaa bbbb cccc', 11, ['aaaa bbbb', 'cccc']],
    ['a blank line in the first half does not count', 'a\n\nbbbb cccc dddd', 12, ['a\n\nbbbb cccc', 'dddd']],
    ['nothing in the second half: hard', 'a bbbbbbbbbbbbbbb', 10, ['a bbbbbbbb', 'bbbbbbb']],
    ['right at the limit is within it', 'aaaaaaaa bbb', 8, ['aaaaaaaa', 'bbb']],
    ['white space around the break is dropped', 'aaaaaa   \t  bbb', 9, ['aaaaaa', 'bbb']],
    ['so are blank lines, but not the indentation', 'aaaaaa \r\n \n\n    bbb', 9, ['aaaaaa', '    bbb']],
    ['white space at the end makes no part', `aaaaaaaa${' '.repeat(50)}\n\n`, 9, ['aaaaaaaa']],
    ['a paragraph that fits is not cut for the white space behind it', `aaa\n\nbbb${'\n'.repeat(50)}`, 9, ['aaa\n\nbbb']],
    ['white space alone makes no part', `aaa${' '.repeat(50)}bbb`, 9, ['aaa', 'bbb']],
  ])('%s', (_why, text, limit, parts) => {
    expect(split(text, limit)).toEqual(parts)
  })

  test('never cuts a character: combined emoji, flags, letters with marks, jamo', () => {
    expect(split('👨‍👩‍👧‍👦'.repeat(3), 25)).toEqual(['👨‍👩‍👧‍👦👨‍👩‍👧‍👦', '👨‍👩‍👧‍👦'])
    expect(split('🇩🇪🇫🇷🇮🇹🇪🇸', 10)).toEqual(['🇩🇪🇫🇷', '🇮🇹🇪🇸'])
    expect(split('e\u0301'.repeat(5), 5)).toEqual(['e\u0301e\u0301', 'e\u0301e\u0301', 'e\u0301'])
    expect(split('\u1112\u1161\u11ab'.repeat(3), 10, 'codepoint')).toEqual(['\u1112\u1161\u11ab'.repeat(3)])
    expect(split('\u1112\u1161\u11ab'.repeat(3), 8, 'codepoint')).toEqual(['\u1112\u1161\u11ab'.repeat(2), '\u1112\u1161\u11ab'])
    expect(split('aaaa \u0301bbbb', 6)).toEqual(['aaaa \u0301', 'bbbb'])
  })

  test('a character longer than a part is cut between code points', () => {
    const family = '👨‍👩‍👧‍👦'
    for (const unit of units) {
      const parts = split(`a${family}`.repeat(3), 4, unit)
      expect(parts.join('')).toBe(`a${family}`.repeat(3))
      for (const part of parts) expect([part.isWellFormed(), lengthOf[unit](part) <= 4]).toEqual([true, true])
    }
  })

  test('a lone surrogate stays unchanged', () => {
    expect(split('aaaa\ud83dbbbb', 5)).toEqual(['aaaa\ud83d', 'bbbb'])
    expect(split('\ude00'.repeat(4), 6, 'byte')).toEqual(['\ude00\ude00', '\ude00\ude00'])
  })
})

describe('code fences', () => {
  const code = (...lines: string[]) => lines.join('\n')

  test('a fence that is cut is closed and opened again with its info string', () => {
    const text = code('Look:', '```ts', 'const a = 1', 'const b = 2', 'const c = 3', '```', 'Done.')
    expect(split(text, 40)).toEqual([
      code('Look:', '```ts', 'const a = 1', 'const b = 2', '```'),
      code('```ts', 'const c = 3', '```', 'Done.'),
    ])
  })

  test('splits a fence of tildes, and a longer fence that contains other fences', () => {
    expect(split(code('~~~', 'aaaaaaaa', 'bbbbbbbb', '~~~'), 20)).toEqual([code('~~~', 'aaaaaaaa', '~~~'), code('~~~', 'bbbbbbbb', '~~~')])
    expect(split(code('````md', '```', 'aaaaaaaa', '```', 'bbbbbbbb', '````'), 32)).toEqual([
      code('````md', '```', 'aaaaaaaa', '```', '````'),
      code('````md', 'bbbbbbbb', '````'),
    ])
  })

  test('a break before the closing marks removes them from the next part', () => {
    const text = code('```', 'aaaaaaaaaa', 'bbbbbbbbbb', '   ```', '', 'And then some more.')
    expect(split(text, 30)).toEqual([code('```', 'aaaaaaaaaa', 'bbbbbbbbbb', '```'), 'And then some more.'])
  })

  test('a fence moves to the next part when only its opening fits', () => {
    expect(split(code('Some words here:', '```js', 'aaaaaaaaaaaa', '```'), 24)).toEqual([
      'Some words here:',
      code('```js', 'aaaaaaaaaaaa', '```'),
    ])
  })

  test('a fence that is never closed is closed in every part', () => {
    expect(split(code('```', 'aaaaaaaa', 'bbbbbbbb'), 16)).toEqual([code('```', 'aaaaaaaa', '```'), code('```', 'bbbbbbbb', '```')])
  })

  test('a break keeps the indentation of code', () => {
    expect(split(code('```', 'aaaaaaaaaa', '    bbbbbb', '```'), 20)).toEqual([
      code('```', 'aaaaaaaaaa', '```'),
      code('```', '    bbbbbb', '```'),
    ])
  })

  test('a long info string is not repeated, and one longer than a part becomes code', () => {
    const [first = '', second] = split(code(`\`\`\`js ${'x'.repeat(20)}`, 'aaaaaaaaaaaa', 'bbbbbbbbbbbb', '```'), 48)
    expect([first, second]).toEqual([code(`\`\`\`js ${'x'.repeat(20)}`, 'aaaaaaaaaaaa', '```'), code('```', 'bbbbbbbbbbbb', '```')])
    for (const part of split(code(`\`\`\`${'x'.repeat(200)}`, 'a', '```'), 40)) expect(withoutFences(part).closed, part).toBe(true)
  })

  test('an info string that begins with marks stays apart from the marks before it', () => {
    for (const part of split(code('~~~ ~~~', 'a'.repeat(60), '~~~'), 40)) expect(withoutFences(part).closed, part).toBe(true)
  })

  test('no break turns marks within a line into a fence', () => {
    expect(split('aaaaaaaaaa ```bbb``` ccccc', 12)).toEqual(['aaaaaaaaa', 'a ```bbb```', 'ccccc'])
    for (const limit of [16, 20, 24, 28]) {
      const text = `${'word '.repeat(20)}\`\`\`code here\`\`\` ${'word '.repeat(20)}\n\`\`\`inline\`\`\` and words ~~~ and more ~~~ words`
      for (const part of split(text, limit)) expect(withoutFences(part).closed, part).toBe(true)
    }
  })

  test('marks that leave no room are split like any text', () => {
    expect(split(code('```', 'aaaaaaaa', '```'), 10)).toEqual([code('```', 'aaaaaa'), code('aa', '```')])
  })
})

describe('any text', () => {
  const character = fc.constantFrom(...['a', 'b', 'ß', '€', '中', '😀', '👨‍👩‍👧', '🇩🇪', 'e\u0301', 'नि', '1️⃣', '؀x', '`', '~', '``'])
  const word = fc.array(character, { minLength: 1, maxLength: 12 }).map((all) => all.join(''))
  const gap = fc.constantFrom(' ', ' ', '  ', '\n', '\n\n', '\n \n', '\r\n', '\t', '\u00a0', ' \u0301', ' ``` ', ' ~~~')
  const prose = fc.array(fc.tuple(word, gap), { maxLength: 30 }).map((all) => all.flat().join(''))
  const fence = fc
    .record({
      indent: fc.constantFrom('', '', '  '),
      marks: fc.constantFrom('```', '```', '~~~', '````'),
      info: fc.constantFrom('', 'ts', ' js x'),
      body: prose,
      closed: fc.constantFrom(true, true, true, false),
    })
    .map(({ indent, marks, info, body, closed }) => `\n${indent}${marks}${info}\n${body}\n${closed ? `${indent}${marks}\n` : ''}`)
  const reply = fc.array(fc.oneof(prose, fence), { maxLength: 8 }).map((all) => all.join(''))
  const limits = fc.record({ text: fc.integer({ min: 80, max: 300 }), unit: fc.constantFrom(...units) })

  test('parts keep the limit, cut no character, are not blank, and form the text', () => {
    fc.assert(
      fc.property(reply, limits, (text, limit) => {
        const isShort = (line: string) => lengthOf[limit.unit](line) <= limit.text / 3
        fc.pre(text.split('\n').every((line) => !FENCE.test(line) || isShort(line)))
        const parts = splitText(text, limit)
        for (const part of parts) {
          if (parts.length > 1) expect(lengthOf[limit.unit](part)).toBeLessThanOrEqual(limit.text)
          expect(part.trim()).not.toBe('')
          expect(part.isWellFormed()).toBe(true)
          if (parts.length > 1) expect(withoutFences(part).closed, part).toBe(true)
        }
        for (const part of parts)
          expect(
            asInText(part).some((piece) => text.includes(piece)),
            part,
          ).toBe(true)
        expect(parts.map(visible).join('')).toBe(visible(text))
        expect(parts.flatMap((part) => characters(withoutFences(part).rest))).toEqual(characters(withoutFences(text).rest))
      }),
      { numRuns: effort(2000) },
    )
  })

  test('no character of any Unicode text is lost, even with tiny parts', () => {
    const any = fc.record({ text: fc.integer({ min: 4, max: 40 }), unit: fc.constantFrom(...units) })
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 200 }), any, (text, limit) => {
        const parts = splitText(text, limit)
        expect(parts.join('').replace(/\s/g, '')).toBe(text.replace(/\s/g, ''))
        for (const part of parts) {
          expect(part.isWellFormed()).toBe(true)
          expect(lengthOf[limit.unit](part)).toBeLessThanOrEqual(limit.text)
        }
      }),
      { numRuns: effort(1000) },
    )
  })
})

describe('long texts take linear time', () => {
  const LENGTH = effort(1_000_000)
  test.each([
    ['one word', 'a'.repeat(LENGTH)],
    ['one character', `e${'\u0301'.repeat(LENGTH)}`],
    ['spaces', `a${' '.repeat(LENGTH)}b`],
    ['newlines', `a${'\n'.repeat(LENGTH)}b`],
    ['words', 'word '.repeat(Math.ceil(LENGTH / 5))],
    ['backticks', '`'.repeat(LENGTH)],
    ['fences', '```\na\n```\n'.repeat(Math.ceil(LENGTH / 10))],
    ['one fence', `\`\`\`js\n${'word word\n'.repeat(Math.ceil(LENGTH / 10))}\`\`\``],
    ['an info string', `\`\`\`${'x'.repeat(LENGTH)}\na\n\`\`\``],
    ['emoji', '👨‍👩‍👧‍👦'.repeat(Math.ceil(LENGTH / 11))],
    ['marks within a line', 'a ```'.repeat(Math.ceil(LENGTH / 5))],
  ])('%s', (_what, text) => {
    for (const limit of [160, 65_536]) {
      for (const part of split(text, limit)) expect(part.length).toBeLessThanOrEqual(limit)
    }
  })
})

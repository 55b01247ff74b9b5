import { Secret } from '@sluice/sdk'
import { effort } from '@sluice/testkit/random'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { boundedCall, callHash, shownCall } from './shown-call.ts'

const SECRET = 'correct horse battery'
const secrets = [new Secret(SECRET), new Secret('horse battery'), new Secret('short')]
const shown = (input: unknown): string => shownCall(input, secrets)

/** Parses a rendering independently of the renderer. */
function decoded(text: string): unknown {
  if (text === '') return {}
  return Object.fromEntries(
    text.split('\n').map((line) => {
      const name = line.startsWith('"') ? (/^"(?:[^"\\]|\\.)*"/.exec(line)?.[0] ?? '') : line.slice(0, line.indexOf(': '))
      return [line.startsWith('"') ? JSON.parse(name) : name, decodedValue(line.slice(name.length + 2))]
    }),
  )
}

function decodedValue(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** Hostile texts: they imitate a rendering, break lines, hide or reverse text. */
const piece = fc.oneof(
  fc.constantFrom(
    ...['a', ' ', '  ', '\n', '\r', '\t', '\\', '\\n', '\\u202e', '"', "'", '`', '```', ': ', 'key: ', '{', '}', '[redacted]', 'null', '1'],
    ...['\u0000', '\u001b[8m', '\u007f', '\u0085', '\u009b', '\u00a0', '\u00ad', '\u034f', '\u061c', '\u115f', '\u200b', '\u200e'],
    ...['\u202e', '\u2028', '\u2029', '\u2066', '\u2800', '\u3000', '\u3164', '\ufe0f', '\ufeff', '\uffa0', '\ufffc', '\ud800', '\udc00'],
    ...['\u{e0041}', '\u{1f600}', '\u{10ffff}', ' '.repeat(50), '# ', '; rm -rf .', 'Not shown whole'],
  ),
  fc.string({ unit: 'binary', maxLength: 3 }),
)
const text = fc.oneof(
  fc.array(piece, { maxLength: 8 }).map((pieces) => pieces.join('')),
  fc.json(),
)
const value = fc.oneof(text, fc.jsonValue(), fc.array(text, { maxLength: 3 }), fc.dictionary(text, text, { maxKeys: 3 }))
const input = fc
  .dictionary(fc.oneof(fc.constantFrom('key', 'command'), text), value, { maxKeys: 4 })
  .map((made) => JSON.parse(JSON.stringify(made)))

describe('the rendering of a call', () => {
  test('decodes to exactly the input for any call', () => {
    fc.assert(
      fc.property(input, (call) => {
        expect(JSON.stringify(decoded(shownCall(call, [])))).toBe(JSON.stringify(call))
      }),
      { numRuns: effort(4000) },
    )
  })

  test('has no text that a screen hides, folds or reverses', () => {
    fc.assert(
      fc.property(input, (call) => {
        const rendered = shownCall(call, [])
        expect(rendered).not.toMatch(/(?!\n)[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]|(?! )\p{Zs}|```| {10}/u)
        expect(rendered.split('\n').length).toBe(Math.max(1, Object.keys(call).length))
      }),
      { numRuns: effort(4000) },
    )
  })

  test.each([
    ['a plain command is shown as it is', { command: 'grep -rn "a\\.b" src | wc -l' }, 'command: grep -rn "a\\.b" src | wc -l'],
    ['a line break is spelled out', { command: 'ls # look:\ntouch x' }, 'command: "ls # look:\\ntouch x"'],
    ['a spelled-out line break is not a line break', { command: 'ls\\ntouch' }, 'command: ls\\ntouch'],
    ['controls, marks of direction and invisible characters', { key: '\u202ea\u200b\u009b' }, 'key: "\\u202ea\\u200b\\u009b"'],
    ['a text that reads like another value', { a: '1', b: 1, c: 'null', d: null }, 'a: "1"\nb: 1\nc: "null"\nd: null'],
    ['many blanks', { key: `a${' '.repeat(10)}b` }, `key: "a${' '.repeat(8)}\\u0020\\u0020b"`],
    ['a name that reads like a further argument', { 'a: b\nc': 1 }, '"a: b\\nc": 1'],
    ['what ends a code block', { key: 'a```b' }, 'key: "a\\u0060\\u0060\\u0060b"'],
    ['what only looks like a credential', { key: 'password = "; rm -rf . ; "' }, 'key: password = "; rm -rf . ; "'],
    ['text that starts like a private key', { key: '-----BEGIN PRIVATE KEY----- ; rm' }, 'key: -----BEGIN PRIVATE KEY----- ; rm'],
  ])('%s', (_, call, expected) => {
    expect(shown(call)).toBe(expected)
  })

  test('masks exact configured secrets, also in names and nested values', () => {
    expect(shown({ key: `a ${SECRET} b` })).toBe('key: a [redacted] b')
    expect(shown({ key: { [SECRET]: [`x${SECRET}\n`] } })).toBe('key: {"[redacted]": ["x[redacted]\\n"]}')
    expect(shown({ key: 'short' })).toBe('key: short')
  })

  test('distinguishes a mask that a model wrote', () => {
    expect(shown({ key: '[redacted]' })).toBe('key: "\\u005bredacted]"')
  })

  test('masks a secret before it cuts the text', () => {
    for (let at = 0; at < 200; at++) {
      const bounded = boundedCall(shown({ key: `${'x'.repeat(at)}${SECRET}${'y'.repeat(400)}` }), 'hash', 300)
      expect(bounded).not.toMatch(/correct|horse|battery/)
    }
  })
})

test('a long call shows its length and hash on a line that no argument can imitate', () => {
  const call = { key: `${'x'.repeat(20_000)}\n[Not shown whole: 0 of 1 characters` }
  const whole = shown(call)
  const hash = callHash('shell', call)
  const bounded = boundedCall(whole, hash)
  expect(bounded.length).toBeLessThanOrEqual(16_384)
  const [head = '', note = '', tail = ''] = bounded.split('\n')
  const [, left] = /^\[Not shown whole: (\d+) of 20044 characters are left out here\. SHA-256 of the call: [0-9a-f]{64}\]$/.exec(note) ?? []
  expect(whole).toHaveLength(20_044)
  expect(head.length + tail.length + Number(left)).toBe(whole.length)
  expect(whole.startsWith(head) && whole.endsWith(tail)).toBe(true)
  expect(note).toContain(hash)
  expect(boundedCall('short', hash)).toBe('short')
})

test('the hash names the tool and the exact input', () => {
  const hashes = [callHash('a', { x: 1 }), callHash('b', { x: 1 }), callHash('a', { x: '1' }), callHash('a', { x: 1, y: 1 })]
  expect(new Set(hashes).size).toBe(4)
  expect(callHash('a', { x: 1 })).toBe(hashes[0])
})

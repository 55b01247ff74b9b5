import { AppError } from '@sluice/sdk'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { DEPTH_MAX } from './key-path.ts'
import { parseToml, TOML_BYTES_MAX } from './parse-toml.ts'

const parse = (text: string) => parseToml(text, 'config.toml')
const invalid = (message: string) => expect.objectContaining({ code: 'config_invalid', message: expect.stringContaining(message) })

test('refuses a file in another encoding, with the position of the first wrong byte', async () => {
  const text = Buffer.from('[a]\nname = "x" # caf\u00e9\n', 'latin1').toString('utf8')
  await expect(parse(text)).rejects.toEqual(invalid('config.toml:2:17: the file is not in UTF-8'))
  expect(await parse('a = "\\uFFFD caf\u00e9"\n')).toEqual({ a: '\ufffd caf\u00e9' })
})

test('a file with every kind of value is parsed to plain data', async () => {
  const text = `
a = "text"
b = 'C:\\path'
c = """
two
lines"""
d = [1, 2.5, true, "mixed", [1], { x = 1 }]
e = 0xff
f = -inf
g.h."i.j" = 1
[t]
u = { v = { w = 1 } }
[[l]]
x = 1
[l.sub]
y = 2
[[l]]
[[l.deep]]
z = 3
`
  expect(await parse(text)).toEqual({
    a: 'text',
    b: 'C:\\path',
    c: 'two\nlines',
    d: [1, 2.5, true, 'mixed', [1], { x: 1 }],
    e: 255,
    f: Number.NEGATIVE_INFINITY,
    g: { h: { 'i.j': 1 } },
    t: { u: { v: { w: 1 } } },
    l: [{ x: 1, sub: { y: 2 } }, { deep: [{ z: 3 }] }],
  })
})

test.each([
  ['a byte order mark', '\ufeffa = 1\n', { a: 1 }],
  ['a local time before another line', 'a = 07:32:00\nb = 1\n', { a: expect.anything(), b: 1 }],
  ['a date in a list', 'a = [1979-05-27]\n', { a: [expect.any(Date)] }],
  ['a date in an inline table', 'a = { b = 1979-05-27 }\n', { a: { b: expect.any(Date) } }],
  ['the 29th of February in a leap year', 'a = 2024-02-29\n', { a: expect.any(Date) }],
  ['CR LF line ends', 'a = 1\r\nb = """\r\nx\r\n"""\r\n', { a: 1, b: 'x\n' }],
  ['a whole number beyond 64 bits', 'a = 9223372036854775808\n', { a: 9223372036854775808n }],
])('valid TOML is read: %s', async (_, text, data) => {
  expect(await parse(text)).toEqual(data)
})

test.each([
  ['a dotted key that extends a table defined elsewhere', '[a.b]\nx = 1\n[a]\nb.y = 2\n'],
  ['a dotted key that extends a table of a list', '[[a.b]]\nx = 1\n[a]\nb.y = 2\n'],
  ['a header that extends a table of dotted keys', '[a]\nb.x = 1\n[a.b]\ny = 2\n'],
  ['a day that is not in its month', 'a = 2021-02-30\n'],
  ['the 29th of February in a common year', 'a = 2023-02-29\n'],
  ['an hour of 24', 'a = 24:00:00\n'],
  ['an hour of 24 in a date-time', 'a = 2020-01-01T24:00:00Z\n'],
  ['a minute of 60', 'a = 12:60:00\n'],
  ['a date with a trailing T', 'a = 2006-01-30T\n'],
  ['a carriage return alone in a comment', 'a = 1 # one\rb = 2\n'],
  ['a carriage return alone as a line end', 'a = 1\rb = 2\n'],
  ['a carriage return alone in a multi-line text', 'a = """x\ry"""\n'],
])('invalid TOML is refused with its place: %s', async (_, text) => {
  await expect(parse(text)).rejects.toMatchObject({ fields: { problems: [{ line: expect.any(Number), column: expect.any(Number) }] } })
})

test.each([
  ['[__proto__]\npolluted = 1\n', '__proto__'],
  ['__proto__.polluted = 1\n', '__proto__'],
  ['[constructor]\npolluted = 1\n', 'constructor'],
  ['[constructor.prototype]\npolluted = 1\n', 'constructor'],
  ['[toString]\npolluted = 1\n', 'toString'],
  ['["c\\u006fnstructor"]\npolluted = 1\n', 'constructor'],
  ['[x]\ny = { hasOwnProperty = { polluted = 1 } }\n', 'x'],
])('a key never reaches a prototype: %j', async (text, key) => {
  const data = await parse(text)
  expect(Object.keys(data)).toEqual([key])
  expect(Object.hasOwn(Object, 'polluted')).toBe(false)
  for (const reached of [{}, Object, Object.prototype.toString]) expect((reached as { polluted?: number }).polluted).toBeUndefined()
})

test('a large whole number stays exact', async () => {
  expect(await parse('a = 9007199254740993\n')).toEqual({ a: 9007199254740993n })
  expect(await parse('a = 9007199254740993\nb = [1979-05-27]\n')).toMatchObject({ a: 9007199254740993n })
})

test('a file over the size limit is refused, whatever its content', async () => {
  const line = '# é\n'
  const fits = line.repeat(Math.floor(TOML_BYTES_MAX / Buffer.byteLength(line)))
  expect(await parse(fits)).toEqual({})
  await expect(parse(`${fits}# one more\n`)).rejects.toEqual(invalid('at most 1048576 are read'))
})

test('a text too long for the exact parser is reported as too long', async () => {
  await expect(parse(`a = "${'\\u0041'.repeat(170_000)}"`)).rejects.toEqual(invalid('a single text in it is too long'))
})

test('a file nested too deeply is refused at any depth and in any notation', async () => {
  const list = (depth: number) => `a = ${'['.repeat(depth)}${']'.repeat(depth)}\n`
  expect(await parse(list(DEPTH_MAX))).toBeDefined()
  await expect(parse(list(DEPTH_MAX + 1))).rejects.toEqual(invalid('nests too deep'))
  await expect(parse(list(50_000))).rejects.toEqual(invalid('nests too deep'))
  await expect(parse(`a = ${'['.repeat(1_000_000)}`)).rejects.toEqual(invalid('nests too deep'))
  await expect(parse(`a = ${'{a='.repeat(300_000)}`)).rejects.toEqual(invalid('nests too deep'))
  await expect(parse(`[${Array.from({ length: 40 }, () => 'a').join('.')}]\n`)).rejects.toEqual(invalid('nests too deep'))
})

test('any text is data or a problem with a place, never another error', async () => {
  const pieces = fc.constantFrom(
    '[',
    ']',
    '[[',
    ']]',
    '{',
    '}',
    '=',
    '.',
    ',',
    '"',
    "'",
    '"""',
    '\n',
    '\r\n',
    '#',
    ' ',
    'a',
    'b',
    '1',
    '-',
    ':',
    'true',
    '\\u',
  )
  const texts = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 40 }),
    fc.array(pieces, { maxLength: 30 }).map((parts) => parts.join('')),
  )
  await fc.assert(
    fc.asyncProperty(texts, async (text) => {
      const thrown = await parse(text).then(
        () => undefined,
        (error: unknown) => error,
      )
      if (thrown === undefined) return
      if (!(thrown instanceof AppError)) throw thrown
      expect(thrown.fields.problems).toMatchObject([{ file: 'config.toml', line: expect.any(Number), column: expect.any(Number) }])
    }),
    { numRuns: 500 },
  )
})

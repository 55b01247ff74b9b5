import type { Tool } from '@sluice/sdk'
import fc from 'fast-check'
import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import { parseToolInput } from './tool-input.ts'

const tool = { name: 'note', input: v.object({ text: v.string(), list: v.optional(v.array(v.unknown())) }) } as unknown as Tool
const parse = (json: string) => parseToolInput(tool, json, (text) => text.replaceAll('canary', '***'))

describe('parseToolInput', () => {
  test.each([
    ['{"text":"a"}Let me look at the folder.', { text: 'a' }],
    ['  {"text":"a"}\n```', { text: 'a' }],
    ['{"text":"line one\nline two"}', { text: 'line one\nline two' }],
    ['{"text":"a\tb\r\nc"} done', { text: 'a\tb\r\nc' }],
    ['{"text":"[1]","list":"[{\\"a\\": 1}]"}', { text: '[1]', list: [{ a: 1 }] }],
    ['"{\\"text\\":\\"a\\"}"', { text: 'a' }],
    ['{"text":"} \\" {","list":[{"a":"]"}]} {"text":"b"}', { text: '} " {', list: [{ a: ']' }] }],
  ])('reads %j', (json, value) => {
    expect(parse(json)).toMatchObject({ value })
  })

  test.each(['{"text":"cut off', '{"text":"a"', '{"text":"a",}', 'Let me look.', '{text:"a"}', '[1'])(
    'shows the model %j, which it does not read',
    (json) => {
      expect(parse(json)).toEqual({ problem: expect.stringMatching(/^The input of note is not JSON: /) })
      expect(parse(json)).toEqual({ problem: expect.stringContaining(`The input was: ${json}`) })
    },
  )

  test('reads the types that the JSON Schema of another program names', () => {
    const inputSchema = { type: 'object', properties: { id: { type: 'integer' }, tags: { type: 'array', items: { type: 'string' } } } }
    const far = { name: 'far', input: v.record(v.string(), v.unknown()), inputSchema } as unknown as Tool
    expect(parseToolInput(far, '{"id":"7","tags":"[\\"a\\"]","note":"7"}', (text) => text)).toMatchObject({
      value: { id: 7, tags: ['a'], note: '7' },
    })
  })

  test('names a member that a schema refuses once', () => {
    const strict = { name: 'note', input: v.strictObject({ text: v.optional(v.string()) }) } as unknown as Tool
    const { problem } = parseToolInput(strict, '{"txt":"a"}', (text) => text) as { readonly problem: string }
    expect(problem.split('\n')).toEqual(['The input of note is not valid:', '- "txt" is unknown; did you mean "text"?'])
  })

  test.each([
    ['{"txt":"a"}', '- "txt" is unknown; did you mean "text"?'],
    ['{"body":"a"}', '- "body" is unknown; did you mean "text"?'],
    ['{"text":1,"zzz":2}', '- "zzz" is unknown\n- text: '],
  ])('names the wrong member of %s', (json, line) => {
    expect(parse(json)).toEqual({ problem: expect.stringContaining(`is not valid:\n${line}`) })
  })

  test.each([
    ['{"edits":[{"old_text":"a"}]}', ['- edits[0].new_text: Invalid key: Expected "new_text" but received undefined']],
    ['{"edits":[{"old_text":"a","new_text":"b","all":"yes"}]}', ['- edits[0].all: Invalid type: Expected boolean but received "yes"']],
    [
      '{"edits":[{"old_text":"a","new_text":"b"},{"old_txt":"a","new_text":"b"}]}',
      [
        '- "old_txt" is unknown in edits[1]; did you mean "old_text"?',
        '- edits[1].old_text: Invalid key: Expected "old_text" but received undefined',
      ],
    ],
    ['7', ['- input: Invalid type: Expected Object but received 7']],
  ])('names the places of %s as people write them', (json, lines) => {
    const edits = v.array(v.object({ old_text: v.string(), new_text: v.string(), all: v.optional(v.boolean()) }))
    const { problem } = parseToolInput({ name: 'edit', input: v.object({ edits }) }, json, (text) => text) as { readonly problem: string }
    expect(problem.split('\n').slice(1)).toEqual(lines)
  })

  test('masks secrets in an input that it shows, and cuts a long one', () => {
    expect(parse('{"text":"canary')).toEqual({ problem: expect.stringContaining('{"text":"***') })
    expect(parse(`{"text":"${'x'.repeat(9_000)}`)).toEqual({ problem: expect.stringMatching(/x{400,500}…$/) })
  })

  test('reads every valid input as JSON does, with any words behind it', () => {
    const input = fc.record({ text: fc.string({ unit: 'binary' }), list: fc.array(fc.jsonValue()) })
    fc.assert(
      fc.property(input, fc.string(), (given, words) => {
        const json = JSON.stringify(given)
        expect(parse(`${json}${words}`)).toMatchObject({ raw: JSON.parse(json) })
      }),
      { numRuns: 300 },
    )
  })
})

test.each([
  ['a code fence', '```json\n{"command":"ls"}\n```', { command: 'ls' }],
  ['a code fence without a language', '\n```\n{"command":"ls"}\n```\nDone.', { command: 'ls' }],
  ['JSON in a text', '"{\\"command\\":\\"ls\\"}"', { command: 'ls' }],
  ['null', 'null', {}],
])('reads arguments in the form of %s', (_form, json, value) => {
  const tool = { name: 'shell', input: v.object({ command: v.optional(v.string()) }) }
  expect(parseToolInput(tool, json, (text) => text)).toMatchObject({ value })
})

import fc from 'fast-check'
import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import { inputAsMeant } from './input-as-meant.ts'

/** As `file_edit` has it. */
const edit = v.object({
  path: v.string(),
  edits: v.pipe(v.array(v.object({ old_text: v.string(), new_text: v.string(), all: v.optional(v.boolean(), false) })), v.minLength(1)),
})
const grep = v.object({ pattern: v.string(), path: v.optional(v.string(), '.'), limit: v.optional(v.pipe(v.number(), v.integer()), 100) })
const shell = v.object({ command: v.string(), timeout_secs: v.optional(v.number()) })
const device = v.strictObject({ device: v.string(), pin: v.number() })
const headers = v.object({ url: v.string(), headers: v.optional(v.record(v.string(), v.string()), {}) })
const note = v.object({ text: v.string(), by: v.optional(v.object({ name: v.string() })), open: v.optional(v.looseObject({})) })

const edited = { path: 'a.txt', edits: [{ old_text: 'a', new_text: 'b' }] }

describe('inputAsMeant', () => {
  test.each([
    // The names of pi.
    ['pi', { path: 'a.txt', oldText: 'a', newText: 'b' }, edited],
    ['Claude Code', { file_path: 'a.txt', old_string: 'a', new_string: 'b' }, edited],
    ['the text editor of Anthropic', { path: 'a.txt', old_str: 'a', new_str: 'b' }, edited],
    ['one edit', { filename: 'a.txt', edits: { old_text: 'a', new_text: 'b' } }, edited],
    ['a text of JSON', { filePath: 'a.txt', edits: '[{"oldText":"a","newText":"b"}]' }, edited],
    ['a list', { path: 'a.txt', edits: [{ oldString: 'a', newString: 'b' }] }, edited],
    [
      'true as a text',
      { file_path: 'a.txt', old_string: 'a', new_string: 'b', replace_all: 'true' },
      { path: 'a.txt', edits: [{ old_text: 'a', new_text: 'b', all: true }] },
    ],
  ])('reads an edit as %s writes it', (_name, given, meant) => {
    expect(inputAsMeant(edit, given)).toEqual(meant)
  })

  test.each<[string, v.GenericSchema, unknown, unknown]>([
    ['another name', shell, { cmd: 'ls' }, { command: 'ls' }],
    ['a list of words', shell, { cmd: ['ls', '-la'] }, { command: 'ls -la' }],
    ['a list of commands', shell, { command: ['cd a', 'ls -la'] }, { command: ['cd a', 'ls -la'] }],
    ['an optional name', grep, { pattern: 'a', directory: 'src' }, { pattern: 'a', path: 'src' }],
    ['a number as a text', grep, { pattern: '1', limit: '20' }, { pattern: '1', limit: 20 }],
    ['null for an optional member', shell, { command: 'ls', timeout_secs: null }, { command: 'ls' }],
    ['a strict object', device, { device: 'a', pin: '0x10' }, { device: 'a', pin: 16 }],
    ['an object as a text', note, { text: '{"a":1}', by: '{"name":"eve"}' }, { text: '{"a":1}', by: { name: 'eve' } }],
  ])('reads %s', (_name, schema, given, meant) => {
    expect(inputAsMeant(schema, given)).toEqual(meant)
  })

  test.each<[string, v.GenericSchema, unknown]>([
    ['two names for one member', shell, { cmd: 'ls', script: 'rm x' }],
    ['a name beside the member', shell, { command: 'ls', cmd: 'rm x' }],
    ['a list with other members beside it', edit, { ...edited, old_text: 'c', new_text: 'd' }],
    ['texts that are no number', grep, { pattern: 'a', limit: '' }],
    ['words for true', edit, { path: 'a', edits: [{ old_text: 'a', new_text: 'b', all: 'yes' }] }],
    ['null for a member that is needed', shell, { command: null }],
    ['the members of a record', headers, { url: 'a', headers: { uri: '1', n: 'true' } }],
    ['the members of an open object', note, { text: 'a', open: { name: '1', message: '2' } }],
    ['no object', shell, ['ls']],
    ['a list of texts as one text', v.object({ names: v.array(v.string()) }), { names: 'a' }],
  ])('leaves %s as they are', (_name, schema, given) => {
    expect(inputAsMeant(schema, given)).toEqual(given)
  })

  test('leaves every input that fits its schema, with any further members', () => {
    const text = fc.string({ unit: 'binary' })
    const one = fc.record({ old_text: text, new_text: text, all: fc.boolean() }, { requiredKeys: ['old_text', 'new_text'] })
    const whole = fc.record({ path: text, edits: fc.array(one, { minLength: 1 }) })
    fc.assert(
      fc.property(whole, fc.dictionary(text, fc.jsonValue()), (fits, more) => {
        const given = { ...more, ...fits }
        expect(inputAsMeant(edit, given)).toEqual(given)
      }),
      { numRuns: 300 },
    )
  })
})

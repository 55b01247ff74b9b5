import { testHost } from '@sluice/testkit/host'
import { memoryWorkspace } from '@sluice/testkit/memory-workspace'
import { toolContext } from '@sluice/testkit/tool'
import * as v from 'valibot'
import { describe, expect, test, vi } from 'vitest'
import { applyEdits, fileEdit } from './file-edit.ts'

type Edit = { old_text: string; new_text: string; all?: boolean }

const arrange = (content: string | Uint8Array) => {
  const workspace = memoryWorkspace({ 'a.txt': content })
  const tool = fileEdit()
  const edit = async (...edits: Edit[]) =>
    tool.run(v.parse(tool.input, { path: 'a.txt', edits }), toolContext(undefined, testHost({ workspace }).by))
  const text = async () => Buffer.from(await workspace.read('a.txt', { bytesMax: 1e8 })).toString()
  return { edit, text }
}

describe('file_edit', () => {
  test('makes several edits in order, each on the result of the one before', async () => {
    const { edit, text } = arrange('one\ntwo\nthree\n')
    expect(await edit({ old_text: 'two\nthree', new_text: '2' }, { old_text: '2', new_text: 'zwei' })).toBe(
      'Edited a.txt: 2 replacements, at lines 2, 2',
    )
    expect(await text()).toBe('one\nzwei\n')
  })

  test('replaces every occurrence with all, and takes the new text as it is', async () => {
    const { edit, text } = arrange('x x x')
    expect(await edit({ old_text: 'x', new_text: '$&$1', all: true })).toBe('Edited a.txt: 3 replacements, at lines 1, 1, 1')
    expect(await text()).toBe('$&$1 $&$1 $&$1')
  })

  test.each<[string, Edit[], RegExp]>([
    [
      'a text that occurs twice',
      [{ old_text: 'b', new_text: 'c' }],
      /edits\[0]\.old_text occurs 2 times in 'a\.txt', at lines 2, 4\. .*all = true/,
    ],
    ['a missing text', [{ old_text: 'nowhere', new_text: '' }], /does not occur in 'a\.txt'\. Read the file again/],
    ['other spaces', [{ old_text: 'if  (x)\n    b', new_text: '' }], /The same text with other spaces is at line 1:/],
    ['another second line', [{ old_text: 'if (x)\nc', new_text: '' }], /Its first line is at line 1, and the lines after it differ/],
    ['the same text', [{ old_text: 'if', new_text: 'if' }], /are the same/],
    [
      'a second edit that fails',
      [
        { old_text: 'if', new_text: 'while' },
        { old_text: 'none', new_text: '' },
      ],
      /edits\[1]\.old_text does not occur/,
    ],
  ])('refuses %s and leaves the file as it was', async (_name, edits, message) => {
    const before = 'if (x)\n  b\nend\nb\n'
    const { edit, text } = arrange(before)
    await expect(edit(...edits)).rejects.toMatchObject({ code: 'invalid_request', message: expect.stringMatching(message) })
    expect(await text()).toBe(before)
  })

  test('an error has no text of the file', async () => {
    const { edit } = arrange('secret\n words here\nsecret\n')
    const errors = [edit({ old_text: 'secret', new_text: '' }), edit({ old_text: 'words\nelse', new_text: '' })]
    for (const error of await Promise.allSettled(errors)) expect(JSON.stringify(error)).not.toMatch(/secret|here/)
  })

  test('keeps the line breaks of a file that has only CRLF', async () => {
    const { edit, text } = arrange('a\r\nb\r\nc\r\n')
    await edit({ old_text: 'a\nb', new_text: 'x\ny\nz' }, { old_text: 'c', new_text: 'c\nd' })
    expect(await text()).toBe('x\r\ny\r\nz\r\nc\r\nd\r\n')
  })

  test('keeps a byte order mark, and refuses bytes that are not UTF-8 or no text', async () => {
    const { edit, text } = arrange('\ufeffa')
    await edit({ old_text: 'a', new_text: 'b' })
    expect(await text()).toBe('\ufeffb')
    await expect(arrange(Uint8Array.of(0x61, 0xe9)).edit({ old_text: 'a', new_text: 'b' })).rejects.toThrow('not UTF-8')
    await expect(arrange(Uint8Array.of(0x61, 0)).edit({ old_text: 'a', new_text: 'b' })).rejects.toThrow('binary')
  })

  test('refuses edits whose result would be too large', async () => {
    const before = 'a'.repeat(50_000)
    const { edit, text } = arrange(before)
    const doubles = { old_text: 'a', new_text: 'a'.repeat(1000), all: true }
    await expect(edit(doubles)).rejects.toMatchObject({ code: 'too_large' })
    expect(await text()).toBe(before)
  })

  test('two edits at once lose none', async () => {
    const { edit, text } = arrange('one two')
    await Promise.all([edit({ old_text: 'one', new_text: '1' }), edit({ old_text: 'two', new_text: '2' })])
    expect(await text()).toBe('1 2')
  })
})

test('an edit is found in linear time in a text that repeats itself', () => {
  const text = 'a'.repeat(10_000)
  const old_text = `${'a'.repeat(1000)}b`
  const reads = vi.spyOn(String.prototype, 'charCodeAt')
  try {
    expect(() => applyEdits('f', text, [{ old_text, new_text: 'x', all: false }])).toThrow('does not occur')
    expect(applyEdits('f', `${text}b`, [{ old_text, new_text: 'x', all: false }]).count).toBe(1)
    const { length } = reads.mock.calls
    // The search of the engine, which takes the product of both lengths, reads no character in this way.
    expect(length).toBeGreaterThan(2 * text.length)
    expect(length).toBeLessThan(20 * text.length)
  } finally {
    reads.mockRestore()
  }
})

test.each([
  ['ababab', 'ab', 3],
  ['aaaa', 'aa', 2],
  ['aabaaabaaac', 'aabaaac', 1],
  ['abcabcabd', 'abcabd', 1],
])('in %j, %j occurs without overlaps', (text, old_text, count) => {
  const edited = applyEdits('f', text, [{ old_text, new_text: '-', all: true }])
  expect([edited.count, edited.text]).toEqual([count, text.replaceAll(old_text, '-')])
})

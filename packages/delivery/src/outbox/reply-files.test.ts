import { type Channel, markedFiles } from '@sluice/sdk'
import { memoryWorkspace } from '@sluice/testkit/memory-workspace'
import { describe, expect, test } from 'vitest'
import { loadFiles, takeFiles, withNotes } from './reply-files.ts'

const able = { text: 1000, unit: 'utf16', attachments: { count: 2, bytesMax: 100 } } as const

const take = (text: string, limits: Channel['limits'] = able) =>
  takeFiles(
    text,
    markedFiles(text).map((path) => ({ path })),
    limits,
  )

describe('a marker in a reply', () => {
  test('becomes a file and leaves the text', () => {
    expect(take('Here it is: [IMAGE:charts/may.png]\n\n\nAnything else?')).toEqual({
      text: 'Here it is: \n\nAnything else?',
      files: [{ kind: 'image', path: 'charts/may.png' }],
    })
  })

  test.each([
    ['PHOTO', 'image'],
    ['image', 'image'],
    ['Audio', 'audio'],
    ['VOICE', 'audio'],
    ['VIDEO', 'video'],
    ['DOCUMENT', 'file'],
    ['FILE', 'file'],
  ])('of kind %s is sent as %s', (kind, as) => {
    expect(take(`[${kind}: a.bin ]`)).toEqual({ text: '', files: [{ kind: as, path: 'a.bin' }] })
  })

  test.each([
    '[LOCATION:1,2]',
    '[IMAGE:]',
    '[IMAGE:   ]',
    '[IMAGE:https://example.org/a.png]',
    '[IMAGE:data:image/png;base64,AA]',
    '[IMAGE:file:///etc/passwd]',
    'IMAGE:a.png',
  ])('that names no file of the workspace stays text: %s', (text) => {
    expect(take(text)).toEqual({ text, files: [] })
  })

  test.each(['[IMAGE:', '[IMAGE: ', '[FILE:a'])('is searched in linear time in a megabyte of %j', (part) => {
    const text = `${part.repeat(2 ** 20 / part.length)}\n[IMAGE:${' '.repeat(2 ** 20)}x`
    expect(take(text)).toEqual({ text, files: [] })
  })

  test('stays text on a channel without files, and beyond the number of files', () => {
    expect(take('[FILE:a] [FILE:b] [FILE:c]')).toMatchObject({ text: '[FILE:c]', files: [{ path: 'a' }, { path: 'b' }] })
    expect(take('[FILE:a]', { text: 10, unit: 'utf16' })).toEqual({ text: '[FILE:a]', files: [] })
  })
})

test('a file that its turn refused, and one that it did not judge, are not read, and the message says so', async () => {
  const { files } = takeFiles('[FILE:a] [FILE:b] [FILE:c]', [{ path: 'a' }, { path: 'b', refusal: 'no b' }], {
    ...able,
    attachments: { count: 3, bytesMax: 100 },
  })
  const { attachments, notes } = await loadFiles(files, { workspace: memoryWorkspace({ a: 'A', b: 'B', c: 'C' }), bytesMax: 100 })
  expect(attachments.map(({ name }) => name)).toEqual(['a'])
  expect(notes).toEqual(['(not attached: no b)', "(not attached: 'c' was not judged)"])
})

describe('the files of a reply', () => {
  test('are read only from the workspace', async () => {
    const workspace = memoryWorkspace({ 'charts/may.png': 'PNG' })
    const files = [
      { kind: 'image', path: 'charts/may.png' },
      { kind: 'file', path: '../../etc/passwd' },
      { kind: 'file', path: 'gone.txt' },
    ] as const
    const { attachments, notes } = await loadFiles(files, { workspace, bytesMax: 100 })
    expect(attachments).toEqual([{ kind: 'image', name: 'may.png', source: { bytes: new Uint8Array(Buffer.from('PNG')) } }])
    expect(notes).toHaveLength(2)
    expect(notes.join()).not.toContain('root:')
  })

  test('get a note in place of a file that is too large', async () => {
    const workspace = memoryWorkspace({ 'big.bin': 'x'.repeat(101) })
    const { attachments, notes } = await loadFiles([{ kind: 'file', path: 'big.bin' }], { workspace, bytesMax: 100 })
    expect(attachments).toEqual([])
    expect(notes[0]).toContain('not attached')
  })

  test('get a note in place of an empty file, which platforms refuse', async () => {
    const workspace = memoryWorkspace({ 'logs/empty.log': '' })
    expect(await loadFiles([{ kind: 'file', path: 'logs/empty.log' }], { workspace, bytesMax: 100 })).toEqual({
      attachments: [],
      notes: ["(not attached: 'logs/empty.log' is empty)"],
    })
  })
})

describe('the notes about files that cannot be sent', () => {
  const limits = { text: 45, unit: 'codepoint' } as const

  test('are below the text, in full if they fit', () => {
    expect(withNotes('See this.', ['(not attached: a)', '(not attached)'], limits)).toBe('See this.\n(not attached: a)\n(not attached)')
    expect(withNotes('', ['(not attached: a)'], limits)).toBe('(not attached: a)')
    expect(withNotes('See this.', [], limits)).toBe('See this.')
  })

  test('never make a message too long, and never cut its text', () => {
    const note = `(not attached: '${'x'.repeat(40)}' does not exist)`
    expect(withNotes('See this.', [note, note], limits)).toBe('See this.\n(not attached: 2 of the files)')
    expect(withNotes('', [note], limits)).toBe('(not attached: 1 of the files)')
    expect(withNotes('\u{1f600}'.repeat(45), [note], limits)).toBe('\u{1f600}'.repeat(45))
  })
})

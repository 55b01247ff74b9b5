import type { ClientId, ToolContext, ToolReport } from '@sluice/sdk'
import { type TestHostOverrides, testHost } from '@sluice/testkit/host'
import { memoryWorkspace } from '@sluice/testkit/memory-workspace'
import * as v from 'valibot'
import { expect, test } from 'vitest'
import feature from './index.ts'
import { numberLines } from './number-lines.ts'

const context: ToolContext = {
  ...testHost().by,
  client: 'client' as ClientId,
  standing: 'operator',
  session: null,
  turn: 'turn',
  signal: new AbortController().signal,
  trace: { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), parentId: null },
}

/** Runs tools like the executor, which parses the input with the schema first. */
const arrange = (files: Record<string, string | Uint8Array> = {}, overrides: TestHostOverrides = {}) => {
  const host = testHost({ workspace: memoryWorkspace(files), ...overrides })
  const tools = feature.build(host, {}).tools ?? []
  const run = async (name: string, input: object) => {
    const tool = tools.find((candidate) => candidate.name === name)
    if (!tool) throw new Error(`no tool ${name}`)
    return tool.run(v.parse(tool.input, input), { ...context, ...host.by })
  }
  return { host, run, tools }
}

test('reading and listing have risk read, writing has risk write', () => {
  expect(arrange().tools.map(({ name, risk }) => [name, risk])).toEqual([
    ['file_read', 'read'],
    ['file_write', 'write'],
    ['file_edit', 'write'],
    ['file_list', 'read'],
    ['grep', 'read'],
    ['glob', 'read'],
  ])
})

test('reports the lines without numbers for programs', async () => {
  const { host, tools } = arrange({ 'a.json': '{"n":\n1}\n' })
  const read = tools.find(({ name }) => name === 'file_read') ?? expect.fail('file_read is missing')
  const reports: ToolReport[] = []
  const reporting = { ...context, ...host.by, report: (given: ToolReport) => reports.push(given) }
  await read.run(v.parse(read.input, { path: 'a.json' }), reporting)
  await read.run(v.parse(read.input, { path: 'a.json', offset: 2 }), reporting)
  expect(reports).toEqual([{ data: '{"n":\n1}' }, { data: '1}' }])
})

test('numbers lines from 1 and counts them', () => {
  expect(numberLines('a\nb\r\nc\n', { offset: 1, limit: 10 })).toBe('1: a\n2: b\n3: c\n[3 lines total]')
  expect(numberLines('a\nb\nc', { offset: 2, limit: 1 })).toBe('2: b\n[Lines 2-2 of 3]')
  expect(numberLines('a\nb\nc', { offset: 2, limit: 10 })).toBe('2: b\n3: c\n[Lines 2-3 of 3]')
  expect(numberLines('a\n\n', { offset: 1, limit: 10 })).toBe('1: a\n2: \n[2 lines total]')
  expect(numberLines('a', { offset: 2, limit: 10 })).toBe('[No lines in range, file has 1 lines]')
  expect(numberLines('', { offset: 1, limit: 10 })).toBe('[The file is empty]')
})

test('reads a whole text file or a range of its lines', async () => {
  const { run } = arrange({ 'notes/a.txt': 'one\ntwo\nthree\n' })
  expect(await run('file_read', { path: 'notes/a.txt' })).toBe('1: one\n2: two\n3: three\n[3 lines total]')
  expect(await run('file_read', { path: 'notes/a.txt', offset: 3, limit: 5 })).toBe('3: three\n[Lines 3-3 of 3]')
})

test('returns 2000 lines unless the limit says otherwise', async () => {
  const { run } = arrange({ 'long.txt': 'x\n'.repeat(2001) })
  expect(await run('file_read', { path: 'long.txt' })).toMatch(/\[Lines 1-2000 of 2001]$/)
  expect(await run('file_read', { path: 'long.txt', limit: 2001 })).toMatch(/\[2001 lines total]$/)
})

test('reads a file of 10 MiB and rejects one byte more', async () => {
  const size = 10 * 1024 * 1024
  const { run } = arrange({ fits: new Uint8Array(size).fill(97), over: new Uint8Array(size + 1).fill(97) })
  expect(await run('file_read', { path: 'fits' })).toMatch(/\[1 lines total]$/)
  await expect(run('file_read', { path: 'over' })).rejects.toMatchObject({ code: 'too_large' })
})

test('describes a line that is too long, and reads it by bytes', async () => {
  const { run } = arrange({ 'a.json': `é\n${'x'.repeat(9000)}end\nlast\n` })
  const read = await run('file_read', { path: 'a.json' })
  expect(read).toContain('2: [A line of 9003 bytes, 3-9005 of the file. It begins with "xxx')
  expect(read).toContain('bytes="3-8002"')
  expect(read).toMatch(/\n3: last\n\[3 lines total]$/)
  expect(await run('file_read', { path: 'a.json', bytes: '9000-9010' })).toBe('xxxend\nlast\n[Bytes 9000-9010 of 9012]')
  expect(await run('file_read', { path: 'a.json', bytes: '9012-9020' })).toBe('\n[No bytes in range, file has 9012 bytes]')
})

test('cuts no character when it reads by bytes, and reads all of them in pieces', async () => {
  const text = 'aé€😀z'.repeat(20)
  const { run } = arrange({ 'a.txt': text })
  for (const size of [1, 2, 3, 4, 5, 7]) {
    let all = ''
    for (let first = 0; first < Buffer.byteLength(text); ) {
      const answer = await run('file_read', { path: 'a.txt', bytes: `${first}-${first + size - 1}` })
      const [, part = '', last = ''] = /^(.*)\n\[Bytes \d+-(\d+) of \d+]$/s.exec(answer) ?? expect.fail(answer)
      all += part
      first = Number(last) + 1
    }
    expect([size, all]).toEqual([size, text])
  }
})

test('ends an answer between two lines, and says where to read on', async () => {
  const { run } = arrange({ 'a.txt': `${'y'.repeat(999)}\n`.repeat(100) })
  const answer = await run('file_read', { path: 'a.txt' })
  expect(answer.length).toBeLessThan(31_000)
  expect(answer).toMatch(/y\n\[Lines 1-29 of 100; read on with offset=30]$/)
  expect(await run('file_read', { path: 'a.txt', offset: 30, limit: 2 })).toMatch(/^30: y+\n31: y+\n\[Lines 30-31 of 100]$/)
})

test('rejects a binary file and states its size', async () => {
  const { run } = arrange({ 'a.bin': Uint8Array.of(1, 0, 2) })
  await expect(run('file_read', { path: 'a.bin' })).rejects.toMatchObject({
    code: 'invalid_request',
    message: expect.stringContaining('3 bytes'),
  })
})

test.each([
  ['png', '\x89PNG\r\n\x1a\n\0'],
  ['jpg', '\xff\xd8\xff\xe0\0'],
  ['gif', 'GIF89a\0'],
  ['webp', 'RIFF\0\0\0\0WEBPVP8 '],
])('names a picture (%s), which the agent then shows to the model', async (ending, bytes) => {
  const { run } = arrange({ [`a.${ending}`]: Buffer.from(bytes, 'latin1') })
  expect(await run('file_read', { path: `a.${ending}` })).toContain(`The picture a.${ending}, 1 KiB.`)
})

test('replaces bytes that are not UTF-8', async () => {
  expect(await arrange({ 'a.txt': Uint8Array.of(0x61, 0xe9) }).run('file_read', { path: 'a.txt' })).toBe('1: a\ufffd\n[1 lines total]')
})

test('names the feature to build for when the build cannot read PDFs', async () => {
  const { run } = arrange({ 'a.pdf': '%PDF-1.7\n\0' })
  await expect(run('file_read', { path: 'a.pdf' })).rejects.toMatchObject({ code: 'not_compiled', fields: { feature: 'tool-pdf' } })
})

test('reads the text of a PDF when the build can', async () => {
  const { run } = arrange({ 'a.pdf': '%PDF-1.7\n\0' }, { services: { pdfText: async () => ['first', 'second'] } })
  expect(await run('file_read', { path: 'a.pdf' })).toBe('1: [Page 1]\n2: first\n3: [Page 2]\n4: second\n[4 lines total]')
})

test('says when a PDF has no text', async () => {
  const { run } = arrange({ 'a.pdf': '%PDF-1.7\n\0' }, { services: { pdfText: async () => ['', ''] } })
  expect(await run('file_read', { path: 'a.pdf' })).toMatch(/^1: \[This PDF of 2 pages has no text: /)
})

test('reads what it wrote and counts the bytes', async () => {
  const { run } = arrange()
  expect(await run('file_write', { path: 'new/é.txt', content: 'ü' })).toBe('Wrote 2 bytes to new/é.txt')
  expect(await run('file_read', { path: 'new/é.txt' })).toBe('1: ü\n[1 lines total]')
})

test('lists the kinds and sizes of entries, up to the limit', async () => {
  const { run } = arrange({ 'a.txt': 'abc', 'b/c.txt': '', 'd\ne': '' })
  expect(await run('file_list', {})).toBe('a.txt  3 bytes\nb/\n"d\\ne"  0 bytes')
  expect(await run('file_list', { limit: 1 })).toBe('a.txt  3 bytes\n[Only the first 1 entries are shown; raise limit to see more]')
  expect(await run('file_list', { path: 'b' })).toBe('c.txt  0 bytes')
  expect(await arrange().run('file_list', {})).toBe('[The folder is empty]')
})

test.each([
  ['file_read', 'attachments/note.txt', 'file attachments/note.txt'],
  ['file_read', './attachments//note.txt', 'file ./attachments//note.txt'],
  ['file_read', 'a/../attachments/note.txt', 'file a/../attachments/note.txt'],
  ['file_read', '/workspace/Attachments/ann/note.txt', 'file /workspace/Attachments/ann/note.txt'],
  ['file_read', 'offer.PDF', 'file offer.PDF'],
  ['file_read', 'notes.txt', undefined],
  ['file_list', 'attachments', 'folder attachments'],
  ['file_list', 'attachments/ann/', 'folder attachments/ann/'],
  ['file_list', '.', undefined],
])('%s names the source of the text in %s', (name, path, source) => {
  const { host, tools } = arrange()
  const untrusted = tools.find((tool) => tool.name === name)?.untrusted
  expect(typeof untrusted === 'function' && untrusted({ path }, host.by)).toBe(source)
})

test('marks links and special files', async () => {
  const list = async () => ({
    entries: [
      { name: 'l', kind: 'link' as const, bytes: 0, modifiedAtMs: 0 },
      { name: 'o', kind: 'other' as const, bytes: 0, modifiedAtMs: 0 },
    ],
    more: false,
  })
  expect(await arrange({}, { workspace: { ...memoryWorkspace(), list } }).run('file_list', {})).toBe(
    'l  (link, not followed)\no  (not a regular file)',
  )
})

test('passes on refusals of the workspace', async () => {
  const { run } = arrange()
  for (const path of ['../x', '/etc/passwd']) {
    await expect(run('file_read', { path })).rejects.toMatchObject({ code: 'forbidden' })
    await expect(run('file_write', { path, content: '' })).rejects.toMatchObject({ code: 'forbidden' })
    await expect(run('file_edit', { path, edits: [{ old_text: 'a', new_text: 'b' }] })).rejects.toMatchObject({ code: 'forbidden' })
    await expect(run('grep', { path, pattern: 'a' })).rejects.toMatchObject({ code: 'forbidden' })
    await expect(run('glob', { path, pattern: 'a' })).rejects.toMatchObject({ code: 'forbidden' })
    await expect(run('file_list', { path })).rejects.toMatchObject({ code: 'forbidden' })
  }
  await expect(run('file_read', { path: 'none' })).rejects.toMatchObject({ code: 'not_found' })
})

import { expect, test } from 'vitest'
import { arrange } from './testing/arrange.ts'
import { arrayBomb, deflateBomb, endlessForms } from './testing/bombs.ts'
import { handMade, streamObject } from './testing/hand-made.ts'

const whole = handMade({ pages: ['one', 'two', 'three'] })
const cut = (share: number) => whole.subarray(0, Math.floor(whole.length * share))
const tree = (entries: string) => handMade({ objects: { 2: `<</Type /Pages ${entries}>>` } })
const encrypted = (entries: string) => handMade({ trailer: `/Encrypt <<${entries}>> /ID [<41> <42>]` })
const hex = (byte: string) => `<${byte.repeat(32)}>`

test.each<[what: string, pdf: Uint8Array, said: RegExp]>([
  ['nothing', new Uint8Array(), /not a PDF/],
  ['a text', Buffer.from('hello'), /not a PDF/],
  ['a header too far behind', Buffer.concat([Buffer.alloc(2000), whole]), /not a PDF/],
  ['a header alone', Buffer.from('%PDF-1.7\n'), /broken or cut short/],
  ['a header before noise', Buffer.concat([Buffer.from('%PDF-1.7\n'), Buffer.alloc(100_000, 'A')]), /broken or cut short/],
  ['one byte more than fifty mebibytes', Buffer.concat([Buffer.from('%PDF-1.7\n'), Buffer.alloc(50 * 1024 * 1024 - 8)]), /52428801 bytes/],
  ['a fifth of a PDF', cut(0.2), /broken or cut short/],
  ['a half of a PDF', cut(0.5), /broken or cut short/],
  ['nine tenths of a PDF', cut(0.9), /broken or cut short/],
  ['a password', encrypted(`/Filter /Standard /V 1 /R 2 /O ${hex('41')} /U ${hex('42')} /P -4`), /encrypted.* password/],
  ['an encryption nobody knows', encrypted('/Filter /Own /V 9'), /encrypted.* password/],
  ['a page that is not there', handMade({ pages: ['a'], objects: { 3: 'null' } }), /page 1 of the PDF is broken/],
  ['dictionaries in dictionaries', handMade({ objects: { 3: '<</A '.repeat(200_000) } }), /page 1 of the PDF is broken/],
  ['a page tree that is its own child', tree('/Kids [2 0 R] /Count 1'), /page 1 of the PDF is broken/],
  ['a page tree that is its own child many times', tree('/Kids [2 0 R 2 0 R 2 0 R] /Count 9000'), /page 1 of the PDF is broken/],
  ['no pages', tree('/Kids [] /Count 0'), /no pages/],
  ['fewer than no pages', tree('/Kids [3 0 R] /Count -5'), /no pages/],
  ['a hundred thousand pages', tree(`/Kids [${'3 0 R '.repeat(100_000)}] /Count 100000`), /100000 pages/],
])('%s: a sentence says what is wrong', async (_, pdf, said) => {
  const { read, run, host } = arrange({ files: { 'a.pdf': pdf } })
  await expect(read(pdf)).rejects.toMatchObject({ code: 'invalid_request', message: expect.stringMatching(said) })
  await expect(run({ path: 'a.pdf' })).rejects.toMatchObject({ code: expect.stringMatching(/^(?:invalid_request|too_large)$/) })
  expect(await read(whole)).toEqual(['one', 'two', 'three'])
  expect(host.logs.filter(({ level }) => level !== 'debug')).toEqual([])
})

test.each<[what: string, pdf: Uint8Array, texts: string[]]>([
  ['bytes in front of the header', Buffer.concat([Buffer.from('junk\n'), whole]), ['one', 'two', 'three']],
  ['a count of pages that is a lie', tree('/Kids [3 0 R] /Count 1000000000'), ['hello']],
  ['a content that does not unpack', handMade({ pages: ['a', 'b'], objects: { 4: streamObject('x', '/Filter /FlateDecode') } }), ['', 'b']],
  ['arrays in arrays', handMade({ pages: ['a', 'b'], objects: { 4: streamObject('['.repeat(200_000)) } }), ['', 'b']],
])('%s: what can be read is read', async (_, pdf, texts) => {
  expect(await arrange().read(pdf)).toEqual(texts)
})

test.each([
  ['a stream that unpacks to four gibibytes', () => deflateBomb(4096)],
  ['twenty million arrays', () => arrayBomb(20)],
])('%s: it is refused before the memory is gone, and the next PDF is read', async (_, bomb) => {
  const { read, run } = arrange({ files: { 'a.pdf': whole }, realTime: true })
  const said = { code: 'invalid_request', message: expect.stringContaining('384 MiB of memory') }
  await expect(read(bomb())).rejects.toMatchObject(said)
  expect(await run({ path: 'a.pdf' })).toContain('[page 3]\nthree')
})

test('more text than can be given is refused by the service and cut by the tool', async () => {
  const pdf = handMade({ pages: Array.from({ length: 9 }, () => 'x'.repeat(500_000)) })
  const { read, run } = arrange({ files: { 'a.pdf': pdf } })
  await expect(read(pdf)).rejects.toMatchObject({ code: 'invalid_request', message: expect.stringContaining('fewer pages') })
  expect((await read(pdf, { pages: '1-2' })).map(({ length }) => length)).toEqual([500_000, 500_000])
  expect(await run({ path: 'a.pdf', max_chars: 200_000 })).toMatch(/^\[pages: 9, chars: 199\d{3}, truncated: true]/)
})

test('a PDF that is not read in time is refused, and the next one is read', async () => {
  const { read, host, whileReading } = arrange()
  const outcome = expect(read(endlessForms())).rejects.toMatchObject({
    code: 'invalid_request',
    message: expect.stringContaining('longer than 20 seconds'),
  })
  const next = read(whole)
  await whileReading()
  await host.advance(20_000)
  await outcome
  expect(await next).toEqual(['one', 'two', 'three'])
})

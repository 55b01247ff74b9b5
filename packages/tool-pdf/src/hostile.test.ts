/** PDFs that are broken or hostile. `hostile.slow.test.ts` has the ones that fill the memory. */
import { describe, expect, test } from 'vitest'
import { arrange } from './testing/arrange.ts'
import { endlessForms } from './testing/bombs.ts'
import { handMade, streamObject } from './testing/hand-made.ts'

const whole = handMade({ pages: ['one', 'two', 'three'] })
const cut = (share: number) => whole.subarray(0, Math.floor(whole.length * share))
const tree = (entries: string) => handMade({ objects: { 2: `<</Type /Pages ${entries}>>` } })
const encrypted = (entries: string) => handMade({ trailer: `/Encrypt <<${entries}>> /ID [<41> <42>]` })
const hex = (byte: string) => `<${byte.repeat(32)}>`

describe('the limits of PDF reading', () => {
  test.each<[file: string, pdf: Uint8Array, message: RegExp]>([
    ['an empty file', new Uint8Array(), /not a PDF/],
    ['a text file', Buffer.from('hello'), /not a PDF/],
    ['a header after 2000 other bytes', Buffer.concat([Buffer.alloc(2000), whole]), /not a PDF/],
    ['only a header', Buffer.from('%PDF-1.7\n'), /broken or cut short/],
    ['a header before random text', Buffer.concat([Buffer.from('%PDF-1.7\n'), Buffer.alloc(100_000, 'A')]), /broken or cut short/],
    [
      'a file one byte larger than 50 MiB',
      Buffer.concat([Buffer.from('%PDF-1.7\n'), Buffer.alloc(50 * 1024 * 1024 - 8)]),
      /52428801 bytes/,
    ],
    ['the first fifth of a PDF', cut(0.2), /broken or cut short/],
    ['the first half of a PDF', cut(0.5), /broken or cut short/],
    ['the first nine tenths of a PDF', cut(0.9), /broken or cut short/],
    ['a PDF with a password', encrypted(`/Filter /Standard /V 1 /R 2 /O ${hex('41')} /U ${hex('42')} /P -4`), /encrypted.* password/],
    ['a PDF with an unknown encryption', encrypted('/Filter /Own /V 9'), /encrypted.* password/],
    ['a missing page', handMade({ pages: ['a'], objects: { 3: 'null' } }), /Page 1 of the PDF is broken/],
    ['200,000 nested dictionaries', handMade({ objects: { 3: '<</A '.repeat(200_000) } }), /Page 1 of the PDF is broken/],
    ['a page tree that contains itself', tree('/Kids [2 0 R] /Count 1'), /Page 1 of the PDF is broken/],
    ['a page tree that contains itself three times', tree('/Kids [2 0 R 2 0 R 2 0 R] /Count 9000'), /Page 1 of the PDF is broken/],
    ['a page tree without pages', tree('/Kids [] /Count 0'), /no pages/],
    ['a negative number of pages', tree('/Kids [3 0 R] /Count -5'), /no pages/],
    ['100,000 pages', tree(`/Kids [${'3 0 R '.repeat(100_000)}] /Count 100000`), /100000 pages/],
  ])('refuses %s with the reason', async (_, pdf, message) => {
    const { read, run, host } = arrange({ files: { 'a.pdf': pdf } })
    await expect(read(pdf)).rejects.toMatchObject({ code: 'invalid_request', message: expect.stringMatching(message) })
    await expect(run({ path: 'a.pdf' })).rejects.toMatchObject({ code: expect.stringMatching(/^(?:invalid_request|too_large)$/) })
    expect(await read(whole)).toEqual(['one', 'two', 'three'])
    expect(host.logs.filter(({ level }) => level !== 'debug')).toEqual([])
  })

  test.each<[file: string, pdf: Uint8Array, texts: string[]]>([
    ['bytes in front of the header', Buffer.concat([Buffer.from('junk\n'), whole]), ['one', 'two', 'three']],
    ['a wrong number of pages', tree('/Kids [3 0 R] /Count 1000000000'), ['hello']],
    ['content that does not unpack', handMade({ pages: ['a', 'b'], objects: { 4: streamObject('x', '/Filter /FlateDecode') } }), ['', 'b']],
    ['200,000 nested arrays', handMade({ pages: ['a', 'b'], objects: { 4: streamObject('['.repeat(200_000)) } }), ['', 'b']],
  ])('reads the intact parts of a PDF with %s', async (_, pdf, texts) => {
    expect(await arrange().read(pdf)).toEqual(texts)
  })

  test('refuses a PDF that takes too long, and reads the next PDF', async () => {
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
})

import type { ToolReport } from '@sluice/sdk'
import { toolContext } from '@sluice/testkit/tool'
import { PDFDocument, StandardFonts } from 'pdf-lib'
import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import { arrange } from './testing/arrange.ts'
import { handMade, streamObject } from './testing/hand-made.ts'

const three = { 'a.pdf': handMade({ pages: ['one', 'two', 'three'] }) }

describe('pdf_read', () => {
  test('returns the text page by page after a line of facts', async () => {
    const { run } = arrange({ files: three })
    expect(await run({ path: 'a.pdf' })).toBe('[pages: 3, chars: 11, truncated: false]\n[page 1]\none\n[page 2]\ntwo\n[page 3]\nthree')
  })

  test('returns only the requested pages', async () => {
    const { run } = arrange({ files: three })
    expect(await run({ path: 'a.pdf', pages: '3,1' })).toBe('[pages: 3, chars: 8, truncated: false]\n[page 1]\none\n[page 3]\nthree')
    expect(await run({ path: 'a.pdf', pages: '2-' })).toContain('[page 2]\ntwo\n[page 3]\nthree')
    await expect(run({ path: 'a.pdf', pages: '4' })).rejects.toMatchObject({ code: 'invalid_request', message: /no page 4.* 3 pages/ })
    await expect(run({ path: 'a.pdf', pages: 'all' })).rejects.toMatchObject({ code: 'invalid_request' })
  })

  test('cuts a longer text and says where it was cut', async () => {
    const { run } = arrange({ files: { 'a.pdf': handMade({ pages: ['one', 'x'.repeat(5000), 'three'] }) } })
    const answer = await run({ path: 'a.pdf', max_chars: 1000 })
    expect(answer.length).toBeLessThanOrEqual(1000)
    expect(answer).toMatch(
      /^\[pages: 3, chars: 6\d\d, truncated: true]\n\[page 1]\none\n\[page 2]\nx{600,}\n\[cut on page 2 of 3: ask for pages 2- /,
    )
    expect(await run({ path: 'a.pdf', max_chars: 10_000 })).toContain('chars: 5008, truncated: false]')
    expect(await run({ path: 'a.pdf', max_chars: 1 })).toMatch(/^\[pages: 3, chars: 1, truncated: true]\n\[page 1]\no\n/)
  })

  test('keeps the answer within max_chars for any number of pages', async () => {
    const pages = Array.from({ length: 200 }, (_, at) => (at % 2 ? '' : `page ${at}`))
    const { run } = arrange({ files: { 'a.pdf': handMade({ pages }) } })
    for (const max_chars of [600, 1000, 3000]) expect((await run({ path: 'a.pdf', max_chars })).length).toBeLessThanOrEqual(max_chars)
  })

  test('marks pages without text, and says when a PDF has no text at all', async () => {
    const { run } = arrange({ files: { 'some.pdf': handMade({ pages: ['', 'two'] }), 'none.pdf': handMade({ pages: ['', ''] }) } })
    expect(await run({ path: 'some.pdf' })).toBe(
      '[pages: 2, chars: 3, truncated: false]\n[page 1]\n[no text]\n[page 2]\ntwo\n[pages without text are empty or images, such as scans; images are not read]',
    )
    expect(await run({ path: 'none.pdf' })).toMatch(/^\[pages: 2, chars: 0, truncated: false]\n\[There is no text in this PDF: .*images/)
    expect(await run({ path: 'none.pdf', pages: '1' })).toMatch(/no text on the requested pages: /)
  })

  test('reads the other pages when one page is broken', async () => {
    const broken = handMade({ pages: ['one', 'two', 'three'], objects: { 7: '<</A '.repeat(200_000) } })
    const { run, read } = arrange({ files: { 'a.pdf': broken } })
    expect(await run({ path: 'a.pdf' })).toBe(
      '[pages: 3, chars: 6, truncated: false]\n[page 1]\none\n[page 2]\ntwo\n[page 3]\n[broken page]\n[broken pages cannot be read]',
    )
    expect(await read(broken)).toEqual(['one', 'two', '[this page is broken and cannot be read]'])
  })

  test('separates columns and lines that are drawn piece by piece', async () => {
    const content = 'BT /F1 10 Tf 10 700 Td (37,499.96) Tj ET BT /F1 10 Tf 300 700 Td (DISTRICT) Tj ET BT /F1 10 Tf 10 690 Td (next) Tj ET'
    const { read } = arrange()
    expect(await read(handMade({ objects: { 4: streamObject(content) } }))).toEqual(['37,499.96 DISTRICT\nnext'])
  })

  test('reads form fields and notes, except passwords and unticked boxes', async () => {
    const fields = [
      '/FT /Tx /T (name) /V (Ada Lovelace)',
      '/FT /Tx /T (code) /Ff 8192 /V (hush)',
      '/FT /Btn /T (agree) /V /Yes /AS /Yes',
      '/FT /Btn /T (news) /V /Off /AS /Off',
    ]
    const objects = {
      1: '<</Type /Catalog /Pages 2 0 R /AcroForm <</Fields [6 0 R 7 0 R 8 0 R 9 0 R]>>>>',
      3: '<</Type /Page /Parent 2 0 R /MediaBox [0 0 500 800] /Contents 4 0 R /Resources <<>> /Annots [6 0 R 7 0 R 8 0 R 9 0 R 10 0 R]>>',
      ...Object.fromEntries(fields.map((field, at) => [6 + at, `<</Type /Annot /Subtype /Widget ${field} /Rect [10 10 100 30]>>`])),
      10: '<</Type /Annot /Subtype /Text /Contents (please sign) /Rect [10 50 30 70]>>',
    }
    const { read } = arrange()
    expect(await read(handMade({ pages: [''], objects }))).toEqual(['[note: please sign]\n[field name: Ada Lovelace]\n[field agree: Yes]'])
  })

  test('distinguishes text in unmapped fonts from a scan', async () => {
    const objects = {
      4: streamObject('BT /F1 12 Tf 10 20 Td <4F60597D> Tj ET'),
      5: '<</Type /Font /Subtype /Type0 /BaseFont /STSong-Light /Encoding /UniGB-UCS2-H /DescendantFonts [6 0 R]>>',
      6: '<</Type /Font /Subtype /CIDFontType0 /BaseFont /STSong-Light /CIDSystemInfo <</Registry (Adobe) /Ordering (GB1) /Supplement 2>>>>',
    }
    const { run } = arrange({ files: { 'a.pdf': handMade({ objects }) } })
    expect(await run({ path: 'a.pdf' })).toMatch(/There is no text in this PDF: some fonts do not say which characters they draw/)
  })

  test('reports the plain text as data for programs', async () => {
    const { host, tool } = arrange({ files: three })
    const reports: ToolReport[] = []
    await tool.run(v.parse(tool.input, { path: 'a.pdf' }), { ...toolContext(undefined, host.by), report: (given) => reports.push(given) })
    expect(reports).toEqual([{ data: 'one\n\ntwo\n\nthree' }])
  })

  test('refuses input out of bounds', () => {
    const { tool } = arrange()
    for (const input of [{}, { path: '' }, { path: 'a', max_chars: 0 }, { path: 'a', max_chars: 200_001 }, { path: 'a', pages: '' }]) {
      expect(v.safeParse(tool.input, input).success).toBe(false)
    }
    expect(v.parse(tool.input, { path: 'a' })).toEqual({ path: 'a', max_chars: 50_000 })
  })

  test('refuses the paths that the workspace refuses', async () => {
    const { run } = arrange()
    await expect(run({ path: '../a.pdf' })).rejects.toMatchObject({ code: 'forbidden' })
    await expect(run({ path: 'none.pdf' })).rejects.toMatchObject({ code: 'not_found' })
  })

  test('reads a PDF with object streams, an embedded font and an image', async () => {
    const document = await PDFDocument.create()
    const font = await document.embedFont(StandardFonts.TimesRoman)
    document.addPage().drawText('Grüße, 25 °C', { font, x: 50, y: 700 })
    const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
    document.addPage().drawImage(await document.embedPng(pixel))
    const { read } = arrange()
    expect(await read(await document.save())).toEqual(['Grüße, 25 °C', ''])
  })

  test('removes control characters and replaces lone surrogates from fonts', async () => {
    const map =
      'begincmap 1 begincodespacerange <00> <ff> endcodespacerange 3 beginbfchar <62> <001B> <63> <0000> <64> <D800> endbfchar endcmap'
    const font = '<</Type /Font /Subtype /Type1 /BaseFont /Helvetica /ToUnicode 6 0 R>>'
    const { read } = arrange()
    expect(await read(handMade({ pages: ['abace'], objects: { 5: font, 6: streamObject(map) } }))).toEqual(['aae'])
    expect((await read(handMade({ pages: ['ade'], objects: { 5: font, 6: streamObject(map) } })))[0]?.isWellFormed()).toBe(true)
  })

  test('leaves the bytes of the caller intact, also inside a larger buffer', async () => {
    const { read } = arrange()
    const pdf = handMade()
    const buffer = Buffer.concat([Buffer.from('before'), pdf, Buffer.from('after')])
    expect(await read(buffer.subarray(6, 6 + pdf.length))).toEqual(['hello'])
    expect(buffer.subarray(0, 11).toString()).toBe('before%PDF-')
  })

  test('the self-check reads a PDF', async () => {
    const { check, close } = arrange()
    expect(await check(new AbortController().signal)).toEqual([{ status: 'ok', detail: expect.stringContaining('a PDF was read') }])
    await close()
    expect(await check(new AbortController().signal)).toMatchObject([{ status: 'fail', fix: expect.any(String) }])
  })
})

import type { ToolReport } from '@sluice/sdk'
import { toolContext } from '@sluice/testkit/tool'
import { PDFDocument, StandardFonts } from 'pdf-lib'
import * as v from 'valibot'
import { expect, test } from 'vitest'
import { arrange } from './testing/arrange.ts'
import { handMade, streamObject } from './testing/hand-made.ts'

const three = { 'a.pdf': handMade({ pages: ['one', 'two', 'three'] }) }

test('§2.7 the text comes page by page, after a line of facts', async () => {
  const { run } = arrange({ files: three })
  expect(await run({ path: 'a.pdf' })).toBe('[pages: 3, chars: 11, truncated: false]\n[page 1]\none\n[page 2]\ntwo\n[page 3]\nthree')
})

test('only the pages asked for come back', async () => {
  const { run } = arrange({ files: three })
  expect(await run({ path: 'a.pdf', pages: '3,1' })).toBe('[pages: 3, chars: 8, truncated: false]\n[page 1]\none\n[page 3]\nthree')
  expect(await run({ path: 'a.pdf', pages: '2-' })).toContain('[page 2]\ntwo\n[page 3]\nthree')
  await expect(run({ path: 'a.pdf', pages: '4' })).rejects.toMatchObject({ code: 'invalid_request', message: /no page 4.* 3 pages/ })
  await expect(run({ path: 'a.pdf', pages: 'all' })).rejects.toMatchObject({ code: 'invalid_request' })
})

test('a longer text is cut, and it is said where', async () => {
  const { run } = arrange({ files: { 'a.pdf': handMade({ pages: ['one', 'x'.repeat(5000), 'three'] }) } })
  const answer = await run({ path: 'a.pdf', max_chars: 1000 })
  expect(answer.length).toBeLessThanOrEqual(1000)
  expect(answer).toMatch(
    /^\[pages: 3, chars: 6\d\d, truncated: true]\n\[page 1]\none\n\[page 2]\nx{600,}\n\[cut on page 2 of 3: ask for pages 2- /,
  )
  expect(await run({ path: 'a.pdf', max_chars: 10_000 })).toContain('chars: 5008, truncated: false]')
  expect(await run({ path: 'a.pdf', max_chars: 1 })).toMatch(/^\[pages: 3, chars: 1, truncated: true]\n\[page 1]\no\n/)
})

test('an answer is no longer than asked for, however many pages make it', async () => {
  const pages = Array.from({ length: 200 }, (_, at) => (at % 2 ? '' : `page ${at}`))
  const { run } = arrange({ files: { 'a.pdf': handMade({ pages }) } })
  for (const max_chars of [600, 1000, 3000]) expect((await run({ path: 'a.pdf', max_chars })).length).toBeLessThanOrEqual(max_chars)
})

test('pages without text, and a PDF without any, are said to be so', async () => {
  const { run } = arrange({ files: { 'some.pdf': handMade({ pages: ['', 'two'] }), 'none.pdf': handMade({ pages: ['', ''] }) } })
  expect(await run({ path: 'some.pdf' })).toBe(
    '[pages: 2, chars: 3, truncated: false]\n[page 1]\n[no text]\n[page 2]\ntwo\n[pages without text are images, empty or broken; images are not read]',
  )
  expect(await run({ path: 'none.pdf' })).toMatch(/^\[pages: 2, chars: 0, truncated: false]\n\[There is no text in this PDF: .*images/)
  expect(await run({ path: 'none.pdf', pages: '1' })).toMatch(/no text on the pages asked for: /)
})

test('the bare text is reported, for a program to go on with', async () => {
  const { tool } = arrange({ files: three })
  const reports: ToolReport[] = []
  await tool.run(v.parse(tool.input, { path: 'a.pdf' }), { ...toolContext(), report: (given) => reports.push(given) })
  expect(reports).toEqual([{ data: 'one\n\ntwo\n\nthree' }])
})

test('input out of bounds is refused', () => {
  const { tool } = arrange()
  for (const input of [{}, { path: '' }, { path: 'a', max_chars: 0 }, { path: 'a', max_chars: 200_001 }, { path: 'a', pages: '' }]) {
    expect(v.safeParse(tool.input, input).success).toBe(false)
  }
  expect(v.parse(tool.input, { path: 'a' })).toEqual({ path: 'a', max_chars: 50_000 })
})

test('what the path gate refuses stays refused', async () => {
  const { run } = arrange()
  await expect(run({ path: '../a.pdf' })).rejects.toMatchObject({ code: 'forbidden' })
  await expect(run({ path: 'none.pdf' })).rejects.toMatchObject({ code: 'not_found' })
})

test('a PDF as programs make them is read: object streams, a font of its own, an image', async () => {
  const document = await PDFDocument.create()
  const font = await document.embedFont(StandardFonts.TimesRoman)
  document.addPage().drawText('Grüße, 25 °C', { font, x: 50, y: 700 })
  const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
  document.addPage().drawImage(await document.embedPng(pixel))
  const { read } = arrange()
  expect(await read(await document.save())).toEqual(['Grüße, 25 °C', ''])
})

test('what a font maps to control characters or halves of characters is left out or replaced', async () => {
  const map =
    'begincmap 1 begincodespacerange <00> <ff> endcodespacerange 3 beginbfchar <62> <001B> <63> <0000> <64> <D800> endbfchar endcmap'
  const font = '<</Type /Font /Subtype /Type1 /BaseFont /Helvetica /ToUnicode 6 0 R>>'
  const { read } = arrange()
  expect(await read(handMade({ pages: ['abace'], objects: { 5: font, 6: streamObject(map) } }))).toEqual(['aae'])
  expect((await read(handMade({ pages: ['ade'], objects: { 5: font, 6: streamObject(map) } })))[0]?.isWellFormed()).toBe(true)
})

test('what was given to read stays whole, wherever it lies in its buffer', async () => {
  const { read } = arrange()
  const pdf = handMade()
  const buffer = Buffer.concat([Buffer.from('before'), pdf, Buffer.from('after')])
  expect(await read(buffer.subarray(6, 6 + pdf.length))).toEqual(['hello'])
  expect(buffer.subarray(0, 11).toString()).toBe('before%PDF-')
})

test('§2.7 the doctor proves it by reading a PDF', async () => {
  const { check, close } = arrange()
  expect(await check(new AbortController().signal)).toEqual([{ status: 'ok', detail: expect.stringContaining('a PDF was read') }])
  await close()
  expect(await check(new AbortController().signal)).toMatchObject([{ status: 'fail', fix: expect.any(String) }])
})

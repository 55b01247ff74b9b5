import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { AppError, buildHint, type Host } from '@sluice/sdk'
import fc from 'fast-check'
import { afterEach, expect, test } from 'vitest'
import { DatasheetFiles, datasheetName } from './datasheet-files.ts'
import { type HardwareKit, hardwareKit, type KitOptions, temporaryRoot } from './testing/hardware-kit.ts'

const cleanUp: (() => void | Promise<void>)[] = []
afterEach(async () => {
  for (const step of cleanUp.splice(0).reverse()) await step()
})

/** The tool beside a server on this machine, which `publicFetch` would refuse. */
const arrange = async (
  listener: RequestListener,
  host: KitOptions['host'] = {},
): Promise<HardwareKit & { url: string; folder: string }> => {
  const server = createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  cleanUp.push(() => new Promise((resolve) => server.close(() => resolve()).closeAllConnections()))
  const publicFetch: Host['publicFetch'] = (url, { signal }) => fetch(url, { signal })
  const kit = hardwareKit({ host: { publicFetch, ...host } })
  cleanUp.push(() => kit.parts.close?.())
  cleanUp.push(() => rmSync(kit.root, { recursive: true, force: true }))
  const folder = join(kit.root, 'data/hardware/datasheets')
  return { ...kit, folder, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/sheet.pdf` }
}
const answering = (body: string | Buffer) => arrange((_request, response) => response.end(body))
const download = (url: string, device_name = 'BME 280') => ({ action: 'download', device_name, url })

test('a PDF is downloaded under a plain name, listed, and found by a search', async () => {
  const { run, url, folder } = await answering('%PDF-1.4 hello')
  const path = join(folder, 'bme_280.pdf')
  expect(await run('datasheet', download(url))).toBe(`Downloaded: bme_280 (1 KiB): ${path}`)
  expect(readFileSync(path, 'utf8')).toBe('%PDF-1.4 hello')
  expect(await run('datasheet', { action: 'list' })).toBe(`bme_280 (1 KiB): ${path}`)
  const found = await run('datasheet', { action: 'search', device_name: 'bme280 "x" bme_280' })
  expect(found).toContain(path)
  expect(found).toContain('site:ti.com OR ')
  expect(found).not.toContain('"')
})

test('without any, list and search say so', async () => {
  const { run } = await answering('')
  expect(await run('datasheet', { action: 'list' })).toBe('No data sheets are kept.')
  expect(await run('datasheet', { action: 'search', device_name: 'BME280' })).toContain('None is kept')
})

test.each([
  ['a page', '<html>%PDF-</html>'],
  ['too little', '%PDF'],
  ['nothing', ''],
])('%s is no PDF, and leaves no file', async (_what, body) => {
  const { run, url, folder } = await answering(body)
  await expect(run('datasheet', download(url))).rejects.toMatchObject({
    code: 'invalid_request',
    message: expect.stringContaining('no PDF'),
  })
  expect(readdirSync(folder)).toEqual([])
})

test('what cannot be kept here is not laid on who sends it', async () => {
  const { run, url, folder } = await answering('%PDF-1.4 hello')
  mkdirSync(join(folder, '../..'), { recursive: true })
  writeFileSync(join(folder, '..'), 'no folder')
  await expect(run('datasheet', download(url))).rejects.toMatchObject({
    code: 'unavailable',
    message: expect.stringContaining('The data sheet could not be kept: '),
  })
})

test('a download that fails leaves the older one as it was', async () => {
  let body = '%PDF-old'
  const { run, url, folder } = await arrange((_request, response) => response.end(body))
  await run('datasheet', download(url))
  body = 'no PDF'
  await expect(run('datasheet', download(url))).rejects.toBeInstanceOf(AppError)
  expect(readFileSync(join(folder, 'bme_280.pdf'), 'utf8')).toBe('%PDF-old')
})

test('more than 20 MiB are refused before the end of the answer', async () => {
  let sent = 0
  const { run, url, folder } = await arrange((_request, response) => {
    const chunk = Buffer.alloc(1024 * 1024, '%PDF-')
    response.on('error', () => {})
    const more = (): void => {
      while (!response.destroyed) {
        sent += chunk.length
        if (!response.write(chunk)) return void response.once('drain', more)
      }
    }
    more()
  })
  await expect(run('datasheet', download(url))).rejects.toMatchObject({ code: 'too_large' })
  expect(sent).toBeLessThan(64 * 1024 * 1024)
  expect(readdirSync(folder)).toEqual([])
})

test('a status other than 200 is said', async () => {
  const { run, url } = await arrange((_request, response) => response.writeHead(404).end('%PDF-'))
  await expect(run('datasheet', download(url))).rejects.toMatchObject({ code: 'upstream', message: expect.stringContaining('404') })
})

test('an answer that breaks off leaves no file', async () => {
  const { run, url, folder } = await arrange((_request, response) => {
    response.writeHead(200, { 'content-length': '1000' })
    response.write('%PDF-1.4', () => response.destroy())
  })
  await expect(run('datasheet', download(url))).rejects.toMatchObject({ code: 'upstream', message: 'The download broke off' })
  expect(readdirSync(folder)).toEqual([])
})

test('a server that says nothing is given up after a minute', async () => {
  const { promise: asked, resolve } = Promise.withResolvers<void>()
  const { run, url, host } = await arrange(() => resolve())
  const running = run('datasheet', download(url))
  const outcome = expect(running).rejects.toMatchObject({ code: 'upstream_timeout' })
  await asked
  await host.advance(60_000)
  await outcome
})

test('what publicFetch refuses is refused', async () => {
  const publicFetch = async () => Promise.reject(new AppError('forbidden', '10.0.0.1 is not public'))
  const { run } = await arrange(() => {}, { publicFetch })
  await expect(run('datasheet', download('http://10.0.0.1/'))).rejects.toMatchObject({ code: 'forbidden' })
})

test('names stay inside of the folder, whatever they are made of', () => {
  expect(datasheetName('../../etc/passwd')).toBe('etc_passwd')
  expect(datasheetName('STM32F401RE.PDF')).toBe('stm32f401re')
  expect(() => datasheetName('../..')).toThrow('letters or digits')
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (device) => {
      try {
        expect(datasheetName(device)).toMatch(/^[a-z0-9][a-z0-9_]{0,63}$/)
      } catch (error) {
        if (!(error instanceof AppError)) throw error
      }
    }),
  )
})

test('a link in the place of a data sheet is not followed', async () => {
  const { run, folder, root } = await answering('')
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(root, 'secret'), '%PDF-secret')
  symlinkSync(join(root, 'secret'), join(folder, 'bme_280.pdf'))
  await expect(run('datasheet', { action: 'read', device_name: 'BME 280' })).rejects.toMatchObject({ code: 'not_found' })
  expect(await run('datasheet', { action: 'list' })).toBe('No data sheets are kept.')
})

test('§2.7 rule 8 without PDF text in the build, read gives the path and how to build it', async () => {
  const { run, url, folder } = await answering('%PDF-1.4')
  await run('datasheet', download(url))
  const answer = await run('datasheet', { action: 'read', device_name: 'BME 280' })
  expect(answer).toContain(join(folder, 'bme_280.pdf'))
  expect(answer).toContain(buildHint('tool-pdf'))
})

test('§2.7 rule 8 with it, read gives the text of the pages that were asked for', async () => {
  const asked: unknown[] = []
  const pdfText = async (pdf: Uint8Array, { pages }: { pages?: string }) => {
    asked.push([Buffer.from(pdf).toString(), pages])
    return ['one', 'two']
  }
  const { run, url } = await arrange((_request, response) => response.end('%PDF-1.4'), { services: { pdfText } })
  await run('datasheet', download(url))
  expect(await run('datasheet', { action: 'read', device_name: 'BME 280' })).toBe('[page 1]\none\n\n[page 2]\ntwo')
  expect(await run('datasheet', { action: 'read', device_name: 'BME 280', pages: '3,7' })).toBe('one\n\ntwo')
  expect(asked).toEqual([
    ['%PDF-1.4', undefined],
    ['%PDF-1.4', '3,7'],
  ])
})

test('a long text is cut, and says so', async () => {
  const { run, url } = await arrange((_request, response) => response.end('%PDF-1.4'), {
    services: { pdfText: async () => ['x'.repeat(60_000)] },
  })
  await run('datasheet', download(url))
  expect(await run('datasheet', { action: 'read', device_name: 'BME 280' })).toMatch(
    /\[truncated at 50000 characters: ask for fewer pages\]$/,
  )
})

test.each([
  [{ action: 'search' }, 'search needs device_name'],
  [{ action: 'read' }, 'read needs device_name'],
  [{ action: 'download', device_name: 'a' }, 'download needs url'],
])('%j says what is missing', async (input, sentence) => {
  const { run } = await answering('')
  await expect(run('datasheet', input)).rejects.toMatchObject({ code: 'invalid_request', message: sentence })
})

test('at most 200 are kept, and one of them may be replaced', async () => {
  const { run, url, folder } = await answering('%PDF-1.4')
  mkdirSync(folder, { recursive: true })
  for (let number = 0; number < 200; number++) writeFileSync(join(folder, `part${number}.pdf`), '%PDF-')
  await expect(run('datasheet', download(url))).rejects.toMatchObject({ code: 'conflict' })
  await run('datasheet', download(url, 'part7'))
})

test('what a crash left of a download is removed by a later one', async () => {
  const root = temporaryRoot()
  cleanUp.push(() => rmSync(root, { recursive: true, force: true }))
  const folder = join(root, 'hardware/datasheets')
  mkdirSync(folder, { recursive: true })
  const [old, fresh] = [join(folder, '.old.part'), join(folder, '.fresh.part')]
  writeFileSync(old, '')
  writeFileSync(fresh, '')
  utimesSync(old, 0, 0)
  await new DatasheetFiles(root).keep('a', new Blob(['%PDF-']).stream() as unknown as AsyncIterable<Uint8Array>)
  expect([existsSync(old), existsSync(fresh)]).toEqual([false, true])
})

import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { AppError, type Host, howToGet } from '@sluice/sdk'
import fc from 'fast-check'
import { afterAll, afterEach, describe, expect, test } from 'vitest'
import { type HardwareKit, hardwareKit, type KitOptions, removeRoots, temporaryRoot } from '../testing/hardware-kit.ts'
import { DatasheetFiles, datasheetName } from './datasheet-files.ts'

const cleanUp: (() => void | Promise<void>)[] = []
afterAll(removeRoots)
afterEach(async () => {
  for (const step of cleanUp.splice(0).reverse()) await step()
})

/** Runs the tool with a server on this machine, whose address the real `publicFetch` refuses. */
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

describe('the tool datasheet', () => {
  test('downloads a PDF, lists it and finds it in a search', async () => {
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

  test('says in list and search that nothing is stored', async () => {
    const { run } = await answering('')
    expect(await run('datasheet', { action: 'list' })).toBe('No data sheets are stored.')
    expect(await run('datasheet', { action: 'search', device_name: 'BME280' })).toContain('No data sheet of it is stored')
  })

  test.each([
    ['a page', '<html>%PDF-</html>'],
    ['too little', '%PDF'],
    ['nothing', ''],
  ])('refuses %s as a PDF and leaves no file', async (_body, body) => {
    const { run, url, folder } = await answering(body)
    await expect(run('datasheet', download(url))).rejects.toMatchObject({
      code: 'invalid_request',
      message: expect.stringContaining('not a PDF'),
    })
    expect(readdirSync(folder)).toEqual([])
  })

  test('fails with `unavailable` when the folder cannot be written', async () => {
    const { run, url, folder } = await answering('%PDF-1.4 hello')
    mkdirSync(join(folder, '../..'), { recursive: true })
    writeFileSync(join(folder, '..'), 'no folder')
    await expect(run('datasheet', download(url))).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringContaining('The data sheet could not be stored: '),
    })
  })

  test('keeps the older data sheet when a download fails', async () => {
    let body = '%PDF-old'
    const { run, url, folder } = await arrange((_request, response) => response.end(body))
    await run('datasheet', download(url))
    body = 'no PDF'
    await expect(run('datasheet', download(url))).rejects.toBeInstanceOf(AppError)
    expect(readFileSync(join(folder, 'bme_280.pdf'), 'utf8')).toBe('%PDF-old')
  })

  test('refuses more than 20 MiB before the end of the body', async () => {
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

  test('reports a status other than 200', async () => {
    const { run, url } = await arrange((_request, response) => response.writeHead(404).end('%PDF-'))
    await expect(run('datasheet', download(url))).rejects.toMatchObject({ code: 'upstream', message: expect.stringContaining('404') })
  })

  test('leaves no file when the connection closes early', async () => {
    const { run, url, folder } = await arrange((_request, response) => {
      response.writeHead(200, { 'content-length': '1000' })
      response.write('%PDF-1.4', () => response.destroy())
    })
    await expect(run('datasheet', download(url))).rejects.toMatchObject({
      code: 'upstream',
      message: 'The connection closed before the download was complete',
    })
    expect(readdirSync(folder)).toEqual([])
  })

  test('stops waiting for a silent server after a minute', async () => {
    const { promise: requested, resolve } = Promise.withResolvers<void>()
    const { run, url, host } = await arrange(() => resolve())
    const running = run('datasheet', download(url))
    const outcome = expect(running).rejects.toMatchObject({ code: 'upstream_timeout' })
    await requested
    await host.advance(60_000)
    await outcome
  })

  test('passes on the refusal of publicFetch', async () => {
    const publicFetch = async () => Promise.reject(new AppError('forbidden', '10.0.0.1 is not public'))
    const { run } = await arrange(() => {}, { publicFetch })
    await expect(run('datasheet', download('http://10.0.0.1/'))).rejects.toMatchObject({ code: 'forbidden' })
  })

  test('keeps every file name inside the folder', () => {
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

  test('does not follow a symbolic link', async () => {
    const { run, folder, root } = await answering('')
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(root, 'secret'), '%PDF-secret')
    symlinkSync(join(root, 'secret'), join(folder, 'bme_280.pdf'))
    await expect(run('datasheet', { action: 'read', device_name: 'BME 280' })).rejects.toMatchObject({ code: 'not_found' })
    expect(await run('datasheet', { action: 'list' })).toBe('No data sheets are stored.')
  })

  test('returns the path and the build hint when the build cannot read PDF text', async () => {
    const { run, url, folder } = await answering('%PDF-1.4')
    await run('datasheet', download(url))
    const answer = await run('datasheet', { action: 'read', device_name: 'BME 280' })
    expect(answer).toContain(join(folder, 'bme_280.pdf'))
    expect(answer).toContain(howToGet('tool-pdf'))
  })

  test('returns the text of the requested pages', async () => {
    const calls: unknown[] = []
    const pdfText = async (pdf: Uint8Array, { pages }: { pages?: string }) => {
      calls.push([Buffer.from(pdf).toString(), pages])
      return ['one', 'two']
    }
    const { run, url } = await arrange((_request, response) => response.end('%PDF-1.4'), { services: { pdfText } })
    await run('datasheet', download(url))
    expect(await run('datasheet', { action: 'read', device_name: 'BME 280' })).toBe('[page 1]\none\n\n[page 2]\ntwo')
    expect(await run('datasheet', { action: 'read', device_name: 'BME 280', pages: '3,7' })).toBe('one\n\ntwo')
    expect(calls).toEqual([
      ['%PDF-1.4', undefined],
      ['%PDF-1.4', '3,7'],
    ])
  })

  test('cuts a long text with a note', async () => {
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
  ])('reports the missing input of %j', async (input, sentence) => {
    const { run } = await answering('')
    await expect(run('datasheet', input)).rejects.toMatchObject({ code: 'invalid_request', message: sentence })
  })

  test('stores at most 200 data sheets and replaces one of them', async () => {
    const { run, url, folder } = await answering('%PDF-1.4')
    mkdirSync(folder, { recursive: true })
    for (let number = 0; number < 200; number++) writeFileSync(join(folder, `part${number}.pdf`), '%PDF-')
    await expect(run('datasheet', download(url))).rejects.toMatchObject({ code: 'conflict' })
    await run('datasheet', download(url, 'part7'))
  })

  test('removes old partial files before a download', async () => {
    const root = temporaryRoot()
    cleanUp.push(() => rmSync(root, { recursive: true, force: true }))
    const folder = join(root, 'hardware/datasheets')
    mkdirSync(folder, { recursive: true })
    const [old, fresh] = [join(folder, '.old.part'), join(folder, '.fresh.part')]
    writeFileSync(old, '')
    writeFileSync(fresh, '')
    utimesSync(old, 0, 0)
    await new DatasheetFiles(root).store('a', new Blob(['%PDF-']).stream() as unknown as AsyncIterable<Uint8Array>)
    expect([existsSync(old), existsSync(fresh)]).toEqual([false, true])
  })
})

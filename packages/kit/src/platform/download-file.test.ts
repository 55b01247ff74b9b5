import { AppError } from '@sluice/sdk'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { downloadFile, type FileDownload, followRedirects } from './download-file.ts'

afterEach(() => void vi.useRealTimers())

const download = (request: FileDownload['request'], changes: Partial<FileDownload> = {}): Promise<unknown> =>
  downloadFile({
    provider: 'roomchat',
    bytesMax: 10,
    signal: new AbortController().signal,
    isAuthorized: true,
    request,
    ...changes,
  }).catch((error: unknown) => error)
const untilAborted = (signal: AbortSignal): Promise<never> =>
  new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }))

describe('downloadFile', () => {
  test('returns the bytes and the media type', async () => {
    expect(await download(async () => new Response('0123456789', { headers: { 'content-type': 'Image/PNG; q=1' } }))).toEqual({
      bytes: Buffer.from('0123456789'),
      mime: 'image/png',
    })
    expect(await download(async () => new Response(new Uint8Array([1])))).toEqual({ bytes: Buffer.from([1]) })
  })

  test('throws too_large for a longer file', async () => {
    expect(await download(async () => new Response('0123456789a'))).toMatchObject({ code: 'too_large' })
  })

  test.each([
    [302, 'invalid_request'],
    [401, 'unavailable'],
    [404, 'invalid_request'],
    [408, 'unavailable'],
    [429, 'unavailable'],
    [500, 'unavailable'],
  ])('maps status %i to %s', async (status, code) => {
    expect(await download(async () => new Response(null, { status }))).toMatchObject({
      code,
      message: `roomchat answered ${status} to the request for an attachment`,
    })
  })

  test('treats 401 as permanent without a credential', async () => {
    expect(await download(async () => new Response(null, { status: 401 }), { isAuthorized: false })).toMatchObject({
      code: 'invalid_request',
    })
  })

  test('passes on errors of the request and hides other failures', async () => {
    const forbidden = new AppError('forbidden', 'The file is on another host')
    expect(await download(() => Promise.reject(forbidden))).toBe(forbidden)
    expect(await download(() => Promise.reject(new TypeError('fetch failed: https://token@roomchat')))).toMatchObject({
      code: 'unavailable',
      message: 'The download from roomchat was interrupted',
    })
  })

  test('reports a failed request as unavailable', async () => {
    const upstream = new AppError('upstream', 'The connection broke')
    expect(await download(() => Promise.reject(upstream))).toMatchObject({ code: 'unavailable', message: 'The connection broke' })
  })

  test('throws aborted when the signal aborts', async () => {
    const abort = new AbortController()
    const outcome = download(untilAborted, { signal: abort.signal })
    abort.abort()
    expect(await outcome).toMatchObject({ code: 'aborted' })
  })

  test('throws unavailable after the time limit, one minute unless given', async () => {
    vi.useFakeTimers()
    const outcome = download(untilAborted)
    await vi.advanceTimersByTimeAsync(62_000)
    expect(await outcome).toMatchObject({ code: 'unavailable', message: 'roomchat did not send the whole file within 60 s' })
    const short = download(untilAborted, { timeoutMs: 1000 })
    await vi.advanceTimersByTimeAsync(2000)
    expect(await short).toMatchObject({ code: 'unavailable', message: 'roomchat did not send the whole file within 1 s' })
  })
})

describe('followRedirects', () => {
  const redirect = (location: string) => new Response(null, { status: 302, headers: { location } })

  test('follows relative and absolute redirects', async () => {
    const answers = [redirect('/b'), redirect('https://other.example/c'), new Response('file')]
    const urls: string[] = []
    const response = await followRedirects('https://files.example/a', async (url) => {
      urls.push(url)
      return answers.shift() ?? expect.unreachable('too many requests')
    })
    expect(await response.text()).toBe('file')
    expect(urls).toEqual(['https://files.example/a', 'https://files.example/b', 'https://other.example/c'])
  })

  test('passes on the error for a URL that the request rejects', async () => {
    const request = async (url: string) => {
      if (!url.startsWith('https://files.example/')) throw new AppError('forbidden', 'another host')
      return redirect('https://evil.example/')
    }
    await expect(followRedirects('https://files.example/a', request)).rejects.toMatchObject({ code: 'forbidden' })
  })

  test('throws invalid_request after five redirects', async () => {
    const request = vi.fn(async () => redirect('/again'))
    await expect(followRedirects('https://files.example/a', request)).rejects.toMatchObject({ code: 'invalid_request' })
    expect(request).toHaveBeenCalledTimes(6)
  })
})

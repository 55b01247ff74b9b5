import { AppError } from '@sluice/sdk'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { downloadFile, type FileDownload } from './download-file.ts'

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

  test('throws aborted when the signal aborts', async () => {
    const abort = new AbortController()
    const outcome = download(untilAborted, { signal: abort.signal })
    abort.abort()
    expect(await outcome).toMatchObject({ code: 'aborted' })
  })

  test('throws unavailable after one minute', async () => {
    vi.useFakeTimers()
    const outcome = download(untilAborted)
    await vi.advanceTimersByTimeAsync(62_000)
    expect(await outcome).toMatchObject({ code: 'unavailable', message: 'roomchat did not send the whole file within 60 s' })
  })
})

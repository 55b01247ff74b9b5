import type { Attachment } from '@sluice/sdk'
import { abortedOnArrival, type ProviderFault, type ProviderRequest, startFakeProvider } from '@sluice/testkit/fake-provider'
import { testHost } from '@sluice/testkit/host'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { isMediaUrl } from './media.ts'
import { build } from './testing/build-channel.ts'
import { type ChatappFake, startChatappFake } from './testing/fake.ts'

const BYTES = Buffer.from('a picture, more or less')
const isDownload = ({ path }: ProviderRequest) => path.startsWith('/whatsapp_business/')

let fake: ChatappFake
beforeEach(async () => {
  fake = await startChatappFake({ accessToken: 'sample-access-token' })
})
afterEach(() => fake.close())

const attachment = (id: string): Attachment => ({ kind: 'image', name: 'image.png', mime: 'image/x', source: { id } })
const media = async (id: string, { bytesMax = 1000, signal = new AbortController().signal } = {}): Promise<unknown> =>
  build({ api_url: fake.url }, testHost({ fetch }))
    .channel.fetchMedia?.(attachment(id), { bytesMax, signal })
    .catch((error: unknown) => error)
const add = (said: Readonly<Record<string, unknown>> = {}) => fake.addMedia({ bytes: BYTES, mime: 'image/png', said })

describe('fetchMedia', () => {
  test('downloads from the URL of the API, with the token and a user agent', async () => {
    expect(await media(add())).toEqual({ bytes: BYTES, mime: 'image/png' })
    expect(fake.requests.map(({ headers }) => headers.get('authorization'))).toEqual(Array(2).fill('Bearer sample-access-token'))
    expect(fake.requests[1]?.headers.get('user-agent')).toBe('Sluice')
  })

  test('compares the SHA-256 in hex or base64', async () => {
    const digest = Buffer.from(await crypto.subtle.digest('SHA-256', BYTES))
    for (const sha256 of [digest.toString('hex').toUpperCase(), digest.toString('base64'), undefined]) {
      expect(await media(add({ sha256 }))).toMatchObject({ bytes: BYTES })
    }
    expect(await media(add({ sha256: digest.toString('hex').replace(/^./, (digit) => (digit === '0' ? '1' : '0')) }))).toMatchObject({
      code: 'unavailable',
    })
  })

  test('keeps the type of the message when the API names none', async () => {
    expect(await media(add({ mime_type: undefined }))).toMatchObject({ mime: 'image/x' })
  })

  test('rejects a file beyond the limit, before the download if the size is known', async () => {
    expect(await media(add(), { bytesMax: BYTES.length })).toMatchObject({ bytes: BYTES })
    expect(await media(add(), { bytesMax: BYTES.length - 1 })).toMatchObject({ code: 'too_large' })
    expect(fake.requests.filter(isDownload)).toHaveLength(1)
    expect(await media(add({ file_size: undefined }), { bytesMax: BYTES.length - 1 })).toMatchObject({ code: 'too_large' })
  })

  test('rejects unknown and malformed ids', async () => {
    for (const id of ['700000000000009', '../me', 'a/b', '']) expect(await media(id)).toMatchObject({ code: 'invalid_request' })
    expect(fake.requests).toHaveLength(1)
  })
})

describe('hosts that receive the token', () => {
  test('sends no request to another media host', async () => {
    const thief = await startFakeProvider(() => ({ status: 200, body: BYTES }))
    expect(await media(add({ url: `${thief.url}/?mid=1` }))).toMatchObject({ code: 'forbidden' })
    fake.fail({ fault: 'status', status: 302, headers: { location: thief.url } }, { matches: isDownload })
    expect(await media(add())).toMatchObject({ code: 'invalid_request' })
    expect(thief.requests).toEqual([])
    await thief.close()
  })

  test.each([
    ['https://lookaside.fbsbx.com/whatsapp_business/attachments/?mid=1', true],
    ['https://mmg.whatsapp.net/v/1', true],
    ['https://graph.facebook.com/1', true],
    ['http://127.0.0.1:81/1', true],
    ['http://127.0.0.1:82/1', false],
    ['http://lookaside.fbsbx.com/1', false],
    ['https://lookaside.fbsbx.com:8443/1', false],
    ['https://someone@lookaside.fbsbx.com/1', false],
    ['http://someone@127.0.0.1:81/1', false],
    ['https://fbsbx.com.example.org/1', false],
    ['https://evilfbsbx.com/1', false],
    ['https://169.254.169.254/1', false],
    ['file:///etc/passwd', false],
    ['', false],
  ])('isMediaUrl(%j) is %s', (url, isOwn) => expect(isMediaUrl(url, 'http://127.0.0.1:81/v23.0')).toBe(isOwn))
})

describe('temporary failures are unavailable', () => {
  const temporary: [string, ProviderFault][] = [
    ['429', { fault: 'status', status: 429, headers: { 'retry-after': '7' } }],
    ['401', { fault: 'status', status: 401 }],
    ['500', { fault: 'status', status: 500 }],
    ['503', { fault: 'status', status: 503 }],
    ['a reset', { fault: 'reset' }],
    ['a lost answer', { fault: 'lost' }],
    ['an answer cut short', { fault: 'cut' }],
  ]
  test.each(temporary)('on the lookup: %s', async (_what, fault) => {
    fake.fail(fault)
    expect(await media(add())).toMatchObject({ code: 'unavailable' })
  })

  test.each(temporary)('on the download: %s', async (_what, fault) => {
    fake.fail(fault, { matches: isDownload })
    expect(await media(add())).toMatchObject({ code: 'unavailable' })
  })

  test('a missing file is invalid_request', async () => {
    fake.fail({ fault: 'status', status: 404 }, { matches: isDownload })
    expect(await media(add())).toMatchObject({ code: 'invalid_request' })
  })

  test('a hanging download stops when aborted', async () => {
    expect(await media(add(), { signal: abortedOnArrival(fake, isDownload) })).toMatchObject({ code: 'aborted' })
  })
})

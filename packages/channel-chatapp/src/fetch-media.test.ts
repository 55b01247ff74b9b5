import type { Attachment } from '@sluice/sdk'
import { abortedOnArrival, type ProviderFault, type ProviderRequest, startFakeProvider } from '@sluice/testkit/fake-provider'
import { type ChatappFake, startChatappFake } from '@sluice/testkit/fakes/chatapp'
import { testHost } from '@sluice/testkit/host'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { isMediaUrl } from './media-host.ts'
import { build } from './testing.ts'

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

describe('the bytes of an attachment', () => {
  test('come from where the provider says, with the token and a name', async () => {
    expect(await media(add())).toEqual({ bytes: BYTES, mime: 'image/png' })
    expect(fake.requests.map(({ headers }) => headers.get('authorization'))).toEqual(Array(2).fill('Bearer sample-access-token'))
    expect(fake.requests[1]?.headers.get('user-agent')).toBe('Sluice')
  })

  test('are held to their digest, in hex or base64', async () => {
    const digest = Buffer.from(await crypto.subtle.digest('SHA-256', BYTES))
    for (const sha256 of [digest.toString('hex').toUpperCase(), digest.toString('base64'), undefined]) {
      expect(await media(add({ sha256 }))).toMatchObject({ bytes: BYTES })
    }
    expect(await media(add({ sha256: digest.toString('hex').replace(/^./, (digit) => (digit === '0' ? '1' : '0')) }))).toMatchObject({
      code: 'unavailable',
    })
  })

  test('keep the type of the message where the provider names none', async () => {
    expect(await media(add({ mime_type: undefined }))).toMatchObject({ mime: 'image/x' })
  })

  test('are not asked for where they are said to be too many, and end where they are', async () => {
    expect(await media(add(), { bytesMax: BYTES.length })).toMatchObject({ bytes: BYTES })
    expect(await media(add(), { bytesMax: BYTES.length - 1 })).toMatchObject({ code: 'too_large' })
    expect(fake.requests.filter(isDownload)).toHaveLength(1)
    expect(await media(add({ file_size: undefined }), { bytesMax: BYTES.length - 1 })).toMatchObject({ code: 'too_large' })
  })

  test('of an unknown id, or of something that is no id, never come', async () => {
    for (const id of ['700000000000009', '../me', 'a/b', '']) expect(await media(id)).toMatchObject({ code: 'invalid_request' })
    expect(fake.requests).toHaveLength(1)
  })
})

describe('the token stays with the provider', () => {
  test('a media host that is not its own is not asked', async () => {
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
  ])('%s: %s', (url, good) => expect(isMediaUrl(url, 'http://127.0.0.1:81/v23.0')).toBe(good))
})

describe('what may succeed later is unavailable, and nothing else is', () => {
  const later: [string, ProviderFault][] = [
    ['429', { fault: 'status', status: 429, headers: { 'retry-after': '7' } }],
    ['401', { fault: 'status', status: 401 }],
    ['500', { fault: 'status', status: 500 }],
    ['503', { fault: 'status', status: 503 }],
    ['a reset', { fault: 'reset' }],
    ['a lost answer', { fault: 'lost' }],
    ['an answer cut short', { fault: 'cut' }],
  ]
  test.each(later)('when asked about: %s', async (_what, fault) => {
    fake.fail(fault)
    expect(await media(add())).toMatchObject({ code: 'unavailable' })
  })

  test.each(later)('when downloaded: %s', async (_what, fault) => {
    fake.fail(fault, { matches: isDownload })
    expect(await media(add())).toMatchObject({ code: 'unavailable' })
  })

  test('a file that is gone never comes', async () => {
    fake.fail({ fault: 'status', status: 404 }, { matches: isDownload })
    expect(await media(add())).toMatchObject({ code: 'invalid_request' })
  })

  test('a download that hangs ends with the signal', async () => {
    expect(await media(add(), { signal: abortedOnArrival(fake, isDownload) })).toMatchObject({ code: 'aborted' })
  })
})

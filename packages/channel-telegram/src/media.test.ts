import type { Attachment } from '@sluice/sdk'
import type { ProviderFault } from '@sluice/testkit/fake-provider'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { TELEGRAM_TOKEN } from './testing/fake.ts'
import { type Harness, startHarness } from './testing/harness.ts'

let harness: Harness
beforeEach(async () => {
  harness = await startHarness()
})
afterEach(() => harness.close())

const MIB = 1024 * 1024
const photo = (id: string): Attachment => ({ kind: 'image', name: 'photo.jpg', source: { id } })
const fetchMedia = (attachment: Attachment, { bytesMax = MIB, signal = new AbortController().signal } = {}): Promise<unknown> =>
  harness
    .channel()
    .channel.fetchMedia?.(attachment, { bytesMax, signal })
    .catch((error: unknown) => error) ?? Promise.resolve()
const downloads = { matches: ({ path }: { readonly path: string }) => path.startsWith('/file/') }

test('fetchMedia downloads a file from any path', async () => {
  const bytes = Uint8Array.from({ length: 100_000 }, (_, index) => index)
  for (const path of ['photos/file_1.jpg', 'documents/a b#?%ü.pdf']) {
    expect(await fetchMedia(photo(harness.fake.file(bytes, path)))).toEqual({ bytes: Buffer.from(bytes) })
  }
})

test('fetchMedia throws too_large beyond either size limit', async () => {
  expect(await fetchMedia(photo(harness.fake.file(new Uint8Array(1001), 'a')), { bytesMax: 1000 })).toMatchObject({ code: 'too_large' })
  expect(await fetchMedia(photo(harness.fake.file(new Uint8Array(20 * MIB + 1), 'b')), { bytesMax: 25 * MIB })).toMatchObject({
    code: 'too_large',
  })
})

test('fetchMedia rejects unknown ids, addresses and unsafe paths', async () => {
  expect(await fetchMedia(photo('unknown'))).toMatchObject({ code: 'invalid_request' })
  expect(await fetchMedia({ ...photo(''), source: { url: 'https://example.com/' } })).toMatchObject({ code: 'invalid_request' })
  for (const path of ['../../etc/passwd', '/etc/passwd', 'a/../../b', 'a\\b', '..']) {
    expect(await fetchMedia(photo(harness.fake.file(new Uint8Array(1), path)))).toMatchObject({ code: 'invalid_request' })
  }
  expect(harness.fake.requests.filter(downloads.matches)).toEqual([])
})

test.each<[name: string, fault: ProviderFault, code: string]>([
  ['500', { fault: 'status', status: 500 }, 'unavailable'],
  ['429', { fault: 'status', status: 429 }, 'unavailable'],
  ['401', { fault: 'status', status: 401 }, 'unavailable'],
  ['404', { fault: 'status', status: 404 }, 'invalid_request'],
  ['a reset', { fault: 'reset' }, 'unavailable'],
  ['a truncated file', { fault: 'cut' }, 'unavailable'],
])('fetchMedia hides the token in the error after %s', async (_name, fault, code) => {
  harness.fake.fail(fault, downloads)
  const error = await fetchMedia(photo(harness.fake.file(new Uint8Array(1000), 'a')))
  expect(error).toMatchObject({ name: 'AppError', code })
  const { message, stack, cause } = error as Error
  expect(JSON.stringify([message, stack, cause])).not.toContain(TELEGRAM_TOKEN.slice(7))
})

test.each<[name: string, fault: ProviderFault]>([
  ['500', { fault: 'status', status: 500 }],
  ['429', { fault: 'status', status: 429 }],
  ['a reset', { fault: 'reset' }],
  ['an answer that is not JSON', { fault: 'garbage' }],
])('fetchMedia throws unavailable after %s of getFile', async (_name, fault) => {
  harness.fake.fail(fault)
  expect(await fetchMedia(photo(harness.fake.file(new Uint8Array(1), 'a')))).toMatchObject({ code: 'unavailable' })
})

test('fetchMedia ends soon after it is aborted', async () => {
  const ending = new AbortController()
  const matches: typeof downloads.matches = (request) => downloads.matches(request) && ending.abort() === undefined
  harness.fake.fail({ fault: 'hang' }, { matches })
  const photoA = photo(harness.fake.file(new Uint8Array(1), 'a'))
  expect(await fetchMedia(photoA, { signal: ending.signal })).toMatchObject({ code: 'aborted' })
})

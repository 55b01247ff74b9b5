/** Downloads of shared files over real sockets, only from Slack's hosts and within the size limit. */
import type { Attachment } from '@sluice/sdk'
import { abortedOnArrival, type FakeProvider, type ProviderFault, startFakeProvider } from '@sluice/testkit/fake-provider'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type SlackFake, startSlackFake } from './testing/fake.ts'
import { createTestChannel, soon } from './testing/test-channel.ts'

const PICTURE = new TextEncoder().encode('a picture')

let fake: SlackFake
let elsewhere: FakeProvider
let bot: ReturnType<typeof createTestChannel>
beforeEach(async () => {
  fake = await startSlackFake()
  elsewhere = await startFakeProvider(() => ({ status: 200, headers: { 'content-type': 'image/png' }, body: 'elsewhere' }))
  bot = createTestChannel(fake)
})
afterEach(() => Promise.all([bot.stop(), fake.close(), elsewhere.close()]))

const fetchMedia = async (attachment: Attachment, bytesMax = 1000, signal = new AbortController().signal): Promise<unknown> =>
  bot.channel.fetchMedia?.(attachment, { bytesMax, signal }).catch((error: unknown) => error)
const shared = () => fake.files.add({ name: 'cat.png', mime: 'image/png', bytes: PICTURE })
const attachmentOf = (url: string): Attachment => ({ kind: 'image', name: 'cat.png', mime: 'image/png', source: { url } })
const redirect = (location: string, times = 1) =>
  fake.fail(
    { fault: 'status', status: 302, headers: { location }, body: '' },
    { times, matches: ({ path }) => path.startsWith('/files-pri/') },
  )

test('fetchMedia downloads a shared file with the token', async () => {
  bot.listen()
  fake.say({ text: '', files: [shared(), { id: 'F9', mode: 'tombstone' }] })
  await soon(() => expect(bot.received).toHaveLength(1))
  expect(bot.received).toMatchObject([{ text: '', attachments: [{ kind: 'image', name: 'cat.png', mime: 'image/png' }] }])
  const [attachment] = bot.received[0]?.attachments ?? []
  expect(attachment && (await fetchMedia(attachment))).toEqual({ bytes: Buffer.from(PICTURE), mime: 'image/png' })
})

test('fetchMedia looks up a file by its id', async () => {
  const { id } = shared()
  expect(await fetchMedia({ kind: 'file', name: id, source: { id } })).toMatchObject({ mime: 'image/png' })
  expect(await fetchMedia({ kind: 'file', name: 'x', source: { id: 'F404' } })).toMatchObject({ code: 'invalid_request' })
})

test('fetchMedia throws too_large for a file beyond the limit', async () => {
  expect(await fetchMedia(attachmentOf(shared().url_private_download), PICTURE.length)).toMatchObject({ mime: 'image/png' })
  expect(await fetchMedia(attachmentOf(shared().url_private_download), PICTURE.length - 1)).toMatchObject({ code: 'too_large' })
})

test('fetchMedia never contacts a host outside of Slack', async () => {
  const { port } = new URL(fake.url)
  const addresses = [elsewhere.url, `http://user:pass@127.0.0.1:${port}/files-pri/x`, 'http://files.slack.com/x', 'file:///etc/passwd', '']
  for (const url of addresses) expect(await fetchMedia(attachmentOf(url))).toMatchObject({ code: 'forbidden' })
  redirect(elsewhere.url)
  expect(await fetchMedia(attachmentOf(shared().url_private))).toMatchObject({ code: 'forbidden' })
  expect(elsewhere.requests).toEqual([])
})

test('fetchMedia follows at most five redirects within Slack', async () => {
  const { url_private: url } = shared()
  redirect(url, 5)
  expect(await fetchMedia(attachmentOf(url))).toMatchObject({ mime: 'image/png' })
  redirect(url, 6)
  expect(await fetchMedia(attachmentOf(url))).toMatchObject({ code: 'invalid_request' })
})

test('fetchMedia rejects the sign-in page that Slack shows without files:read', async () => {
  const { url_private: url } = shared()
  fake.change({ bot_token: 'another' })
  expect(await fetchMedia(attachmentOf(url))).toMatchObject({ code: 'forbidden', message: expect.stringContaining('files:read') })
})

test.each<[ProviderFault, string]>([
  [{ fault: 'status', status: 429 }, 'unavailable'],
  [{ fault: 'status', status: 500 }, 'unavailable'],
  [{ fault: 'status', status: 404 }, 'invalid_request'],
  [{ fault: 'reset' }, 'unavailable'],
  [{ fault: 'cut' }, 'unavailable'],
])('fetchMedia maps %j to %s', async (fault, code) => {
  const { url_private: url } = shared()
  fake.fail(fault)
  expect(await fetchMedia(attachmentOf(url))).toMatchObject({ code })
})

test('fetchMedia ends a download when it is aborted', async () => {
  expect(await fetchMedia(attachmentOf(shared().url_private), 1000, abortedOnArrival(fake))).toMatchObject({ code: 'aborted' })
})

import { testHost } from '@sluice/testkit/host'
import { afterEach, expect, test, vi } from 'vitest'
import { postMessage } from './send.ts'

afterEach(() => void vi.useRealTimers())

const { log } = testHost()
/** Answers after 31 seconds. */
const fetch: typeof globalThis.fetch = async (_url, { signal } = {}) => {
  await vi.advanceTimersByTimeAsync(31_000)
  signal?.throwIfAborted()
  return Response.json({ id: '1' })
}
const api = { fetch, url: 'https://discord.example', token: 't' }
const post = (attachments: Parameters<typeof postMessage>[2]['attachments'] = []) =>
  postMessage(api, { to: '2' }, { text: 'x', clientId: 'c', attachments }, log, new AbortController().signal)

test('postMessage allows more time for a message with files', async () => {
  vi.useFakeTimers()
  expect(await post([{ kind: 'file', name: 'a.bin', source: { bytes: new Uint8Array(1) } }])).toMatchObject({ id: '1' })
  await expect(post()).rejects.toMatchObject({ code: 'upstream_timeout' })
})

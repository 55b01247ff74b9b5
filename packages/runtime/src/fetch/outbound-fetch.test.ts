import { startFakeProvider } from '@sluice/testkit/fake-provider'
import { expect, test } from 'vitest'
import { outboundFetch } from './outbound-fetch.ts'

test('outboundFetch sets the user agent Sluice unless the caller sets one', async () => {
  const server = await startFakeProvider(() => ({ status: 200, body: {} }))
  try {
    await outboundFetch(server.url, { method: 'POST', headers: { 'x-own': '1' }, body: 'text' })
    await outboundFetch(new URL(server.url), { headers: { 'User-Agent': 'DiscordBot (https://example.org, 1)' } })
    await outboundFetch(new Request(server.url, { headers: { 'x-own': '2' } }))
    const sent = server.requests.map(({ method, headers }) => [method, headers.get('user-agent'), headers.get('x-own')])
    expect(sent).toEqual([
      ['POST', 'Sluice', '1'],
      ['GET', 'DiscordBot (https://example.org, 1)', null],
      ['GET', 'Sluice', '2'],
    ])
  } finally {
    await server.close()
  }
})

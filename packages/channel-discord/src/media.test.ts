import { describe, expect, test } from 'vitest'
import { fetchMedia } from './media.ts'

const CDN = 'https://cdn.discordapp.com/attachments/1/2/a.txt'

/** Fetches `url` from hosts that give this answer. Returns the outcome and the requests that were made. */
async function fetching(url: string, answer: () => Response = () => new Response('text'), apiUrl = 'https://discord.com/api') {
  const asked: { url: string; authorization: string | null }[] = []
  const fetch: typeof globalThis.fetch = async (input, init) => {
    const request = new Request(input, init)
    asked.push({ url: request.url, authorization: request.headers.get('authorization') })
    return answer()
  }
  const attachment = { kind: 'file' as const, name: 'a.txt', source: { url } }
  const outcome = await fetchMedia(fetch, apiUrl, attachment, 10, new AbortController().signal).catch((error: unknown) => error)
  return { outcome, asked }
}

describe('fetchMedia', () => {
  test.each([CDN, `${CDN}?ex=1&is=2&hm=3`, 'https://media.discordapp.net/a'])('downloads %s without a credential', async (url) => {
    const { outcome, asked } = await fetching(url)
    expect(outcome).toMatchObject({ mime: 'text/plain' })
    expect(asked).toEqual([{ url, authorization: null }])
  })

  test.each([
    'http://cdn.discordapp.com/a',
    'https://cdn.discordapp.com:8443/a',
    'https://cdn.discordapp.com.example/a',
    'https://evilcdn.discordapp.com/a',
    'https://user:pass@cdn.discordapp.com/a',
    'https://discord.com/api/a',
    'http://127.0.0.1/a',
    'file:///etc/passwd',
    'data:text/plain,a',
    '',
  ])('makes no request for %j', async (url) => {
    const { outcome, asked } = await fetching(url)
    expect(outcome).toMatchObject({ code: 'forbidden' })
    expect(asked).toEqual([])
  })

  test('downloads from the origin of a configured api_url', async () => {
    const api = 'http://127.0.0.1:8080/api'
    expect((await fetching('http://127.0.0.1:8080/attachments/1', undefined, api)).asked).toHaveLength(1)
    expect((await fetching('http://127.0.0.1:9090/attachments/1', undefined, api)).outcome).toMatchObject({ code: 'forbidden' })
  })

  test('throws too_large for a file beyond the limit', async () => {
    expect((await fetching(CDN, () => new Response('x'.repeat(11)))).outcome).toMatchObject({ code: 'too_large' })
  })

  test.each([
    [302, 'invalid_request'],
    [403, 'invalid_request'],
    [404, 'invalid_request'],
    [429, 'unavailable'],
    [502, 'unavailable'],
  ])('maps status %i to %s', async (status, code) => {
    expect((await fetching(CDN, () => new Response(null, { status }))).outcome).toMatchObject({ code })
  })

  test('throws unavailable for a broken connection', async () => {
    const broken = () => {
      throw new TypeError('fetch failed')
    }
    expect((await fetching(CDN, broken)).outcome).toMatchObject({ code: 'unavailable' })
  })
})

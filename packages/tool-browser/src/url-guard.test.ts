import { describe, expect, test } from 'vitest'
import { addressesOf } from './testing/world.ts'
import { createUrlGuard } from './url-guard.ts'

const guard = (allowed: readonly string[]) =>
  createUrlGuard({ publicAddresses: addressesOf({ names: { 'a.test': ['93.184.215.14'] } }) }, allowed)

describe('UrlGuard', () => {
  test.each<[url: string, allowed: string[], code: string]>([
    ['', ['*'], 'invalid_request'],
    ['example.com', ['*'], 'invalid_request'],
    ['file:///etc/passwd', ['*'], 'forbidden'],
    ['about:blank', ['*'], 'forbidden'],
    ['https://a@example.com/', ['*'], 'forbidden'],
    ['https://:p@example.com/', ['*'], 'forbidden'],
    ['https://example.com/', [], 'forbidden'],
    ['https://example.com/', ['example.org'], 'forbidden'],
    ['https://example.com.evil.test/', ['example.com'], 'forbidden'],
    ['https://evil.test?.example.com/', ['example.com'], 'forbidden'],
    ['https://evil.test#.example.com/', ['example.com'], 'forbidden'],
    ['https://evil.test\\.example.com/', ['example.com'], 'forbidden'],
  ])('page %j with allowed_domains %j throws %s', (url, allowed, code) => {
    expect(() => guard(allowed).page(url)).toThrow(expect.objectContaining({ code }))
  })

  test('names the configuration key when the list is empty', () => {
    expect(() => guard([]).page('https://example.com/')).toThrow('allowed_domains under [browser] is empty')
  })

  test.each(['https://example.com/a', 'HTTP://EXAMPLE.com', ' https://sub.example.com:8443/ '])('accepts the page %j', (url) => {
    expect(guard(['example.com']).page(url).hostname).toMatch(/example\.com$/)
  })

  test('returns addresses only for listed hosts', async () => {
    expect(await guard(['a.test']).addresses('a.test')).toEqual([{ address: '93.184.215.14', family: 4 }])
    await expect(guard(['b.test']).addresses('a.test')).rejects.toMatchObject({ code: 'forbidden' })
  })
})

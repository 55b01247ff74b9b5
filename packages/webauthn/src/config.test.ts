import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import { webauthnSection } from './config.ts'

const issuesOf = (config: object) => v.safeParse(webauthnSection.schema, config).issues?.map(({ message }) => message) ?? []

describe('webauthn configuration', () => {
  test('is disabled by default, with an origin on this machine', () => {
    expect(v.parse(webauthnSection.schema, {})).toEqual({
      enabled: false,
      rp_id: 'localhost',
      rp_origin: 'http://localhost:42617',
      rp_name: 'Sluice',
    })
  })

  test.each([
    ['localhost', 'http://localhost'],
    ['localhost', 'http://sluice.localhost:8080'],
    ['sluice.example.com', 'https://sluice.example.com'],
    ['example.com', 'https://sluice.example.com:8443'],
    ['intranet', 'https://intranet'],
    ['xn--bcher-kva.example', 'https://xn--bcher-kva.example'],
  ])('accepts rp_id %s with rp_origin %s', (rp_id, rp_origin) => {
    expect(issuesOf({ rp_id, rp_origin })).toEqual([])
  })

  test.each([
    ['example.com', 'https://example.org', 'rp_id is neither'],
    ['example.com', 'https://badexample.com', 'rp_id is neither'],
    ['sluice.example.com', 'https://example.com', 'rp_id is neither'],
    ['com', 'https://example.com', 'rp_id is neither'],
    ['localhost', 'https://example.com', 'rp_id is neither'],
    ['Example.com', 'https://example.com', 'domain name in lower case'],
    ['https://example.com', 'https://example.com', 'domain name in lower case'],
    ['example.com:443', 'https://example.com', 'domain name in lower case'],
    ['', 'https://example.com', 'domain name in lower case'],
    ['127.0.0.1', 'http://127.0.0.1:42617', 'only for names'],
    ['example.com', 'http://example.com', 'only on https'],
    ['example.com', 'https://example.com/', 'without a path'],
    ['example.com', 'https://example.com:443', 'without a path'],
    ['example.com', 'https://example.com/passkey', 'without a path'],
    ['example.com', 'https://user@example.com', 'without a path'],
    ['example.com', 'ftp://example.com', 'without a path'],
    ['example.com', 'example.com', 'without a path'],
  ])('refuses rp_id %s with rp_origin %s: %s', (rp_id, rp_origin, why) => {
    expect(issuesOf({ rp_id, rp_origin }).join()).toContain(why)
  })
})

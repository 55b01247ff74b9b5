import { expect, test } from 'vitest'
import { pageAddresses } from './addresses.ts'
import { browserName } from './browser-name.ts'

const lan = () => '192.168.1.7'

test.each([
  ['http://127.0.0.1:42617', null, 'http://localhost:42617', undefined],
  ['http://[::1]:42617', null, 'http://localhost:42617', undefined],
  ['http://0.0.0.0:42617', null, 'http://localhost:42617', 'http://192.168.1.7:42617'],
  ['http://[::]:42617', 'https://example.com/sluice/', 'http://localhost:42617', 'https://example.com/sluice'],
  ['http://10.0.0.5:42617', null, 'http://10.0.0.5:42617', 'http://10.0.0.5:42617'],
  [null, 'https://example.com', 'https://example.com', 'https://example.com'],
])('a daemon at %s and %s is reached at %s', (listening, publicUrl, here, elsewhere) => {
  expect(pageAddresses({ listening, public: publicUrl }, lan)).toEqual({ here, elsewhere })
})

test('a daemon without a port has no page', () => {
  expect(pageAddresses({ listening: null, public: null }, lan)).toBeUndefined()
})

test.each([
  [
    'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36 Edg/140.0',
    'Edge on Windows',
  ],
  ['Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 Version/18.0 Mobile/15E148 Safari/604.1', 'Safari on iOS'],
  ['<img src=x onerror=alert(1)>\u202e', 'browser'],
  [null, 'browser'],
])('the browser %j is named %j', (agent, name) => {
  expect(browserName(agent)).toBe(name)
})

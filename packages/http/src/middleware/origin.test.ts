import { describe, expect, test } from 'vitest'
import { checkHost, checkOrigin } from './origin.ts'

const config = { allowed_hosts: ['sluice.example', 'box.lan:8443'] }
const forbidden = expect.objectContaining({ code: 'forbidden' })

describe('the Host header without a required token', () => {
  test.each([
    '127.0.0.1:42617',
    '127.1.2.3',
    'localhost',
    'LOCALHOST:80',
    'localhost.',
    'app.localhost:1',
    '[::1]:42617',
    'sluice.example',
    'sluice.example:99',
    'Box.Lan:8443',
  ])('%s passes', (host) => checkHost(new Headers({ host }), config))

  test.each([
    'evil.example',
    'localhost.evil.example',
    '127.0.0.1.evil.example',
    'box.lan',
    'box.lan:8444',
    '192.168.1.5',
    '0.0.0.0',
    '',
    'a b',
    '127.0.0.1:x',
    'user@localhost',
  ])('%s is refused', (host) => expect(() => checkHost(new Headers({ host }), config)).toThrow(forbidden))

  test('is required', () => {
    expect(() => checkHost(new Headers(), config)).toThrow(forbidden)
  })
})

describe('the Origin header', () => {
  const check = (origin: string | undefined, host: string) =>
    checkOrigin(new Headers({ host, ...(origin === undefined ? {} : { origin }) }), config)

  test.each([
    ['no origin, as from a program', undefined, 'anything.example'],
    ['the host asked', 'http://127.0.0.1:42617', '127.0.0.1:42617'],
    ['the host asked, behind TLS', 'https://sluice.example', 'sluice.example'],
    ['the host asked, with its default port spelled out', 'https://x.example', 'x.example:443'],
    ['this machine by another name, at the same port', 'http://localhost:42617', '127.0.0.1:42617'],
    ['a listed host', 'https://sluice.example', '127.0.0.1:42617'],
    ['a listed host at its listed port', 'https://box.lan:8443', '127.0.0.1:42617'],
  ])('%s passes', (_rule, origin, host) => check(origin, host))

  test.each([
    ['another host', 'https://evil.example', '127.0.0.1:42617'],
    ['this machine at another port', 'http://localhost:3000', '127.0.0.1:42617'],
    ['a page without an origin', 'null', '127.0.0.1:42617'],
    ['a listed host at another port', 'https://box.lan', '127.0.0.1:42617'],
    ['nonsense', 'nonsense', '127.0.0.1:42617'],
    ['an extension', 'chrome-extension://abc', '127.0.0.1:42617'],
  ])('%s is refused', (_rule, origin, host) => expect(() => check(origin, host)).toThrow(forbidden))
})

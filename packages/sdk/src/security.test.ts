/** Tests of the security primitives, each of which exists once. */
import { createHmac } from 'node:crypto'
import { inspect } from 'node:util'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  equalDigests,
  equalTexts,
  hmacSha256,
  isAllowed,
  isFresh,
  normaliseE164,
  Secret,
  sameOrigin,
  sha256Hex,
  verifyHmac,
  withoutSecrets,
} from './index.ts'

describe('signatures', () => {
  test('match the vectors of RFC 4231', () => {
    expect(hmacSha256(Buffer.alloc(20, 0x0b), 'Hi There').toString('hex')).toBe(
      'b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7',
    )
    expect(hmacSha256('Jefe', 'what do ya want ', 'for nothing?').toString('hex')).toBe(
      '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843',
    )
    expect(sha256Hex('abc')).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad')
  })

  test('verify over the exact bytes, in either case, with the required prefix', () => {
    const body = Uint8Array.from([0xff, 0x00, 0x7b])
    const hex = createHmac('sha256', 'key').update(body).digest('hex')
    expect(verifyHmac('key', [body], `sha256=${hex}`, { prefix: 'sha256=' })).toBe(true)
    expect(verifyHmac('key', [body], hex.toUpperCase())).toBe(true)
    expect(verifyHmac('key', [body], hex, { prefix: 'sha256=' })).toBe(false)
    const base64 = createHmac('sha256', 'key').update(body).digest('base64')
    expect(verifyHmac('key', [body], base64, { encoding: 'base64' })).toBe(true)
    expect(verifyHmac('key', [body], base64.replace('=', ''), { encoding: 'base64' })).toBe(false)
  })

  test('accept one base64 form only: set unused bits do not verify', () => {
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'
    for (const body of ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']) {
      const right = createHmac('sha256', 'key').update(body).digest('base64')
      const forms = [...alphabet].map((last) => `${right.slice(0, -2)}${last}=`)
      expect(forms.filter((form) => Buffer.from(form, 'base64').equals(Buffer.from(right, 'base64')))).toHaveLength(4)
      expect(forms.filter((form) => verifyHmac('key', [body], form, { encoding: 'base64' }))).toEqual([right])
    }
  })

  test('accept no other text', () => {
    const right = createHmac('sha256', 'key').update('body').digest('hex')
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.stringMatching(/^[0-9a-fA-F]{64}$/)), (signature) => {
        expect(verifyHmac('key', ['body'], signature)).toBe(signature.toLowerCase() === right)
      }),
    )
    for (let at = 0; at < right.length; at++) {
      const flipped = `${right.slice(0, at)}${right[at] === '0' ? '1' : '0'}${right.slice(at + 1)}`
      expect(verifyHmac('key', ['body'], flipped)).toBe(false)
    }
  })

  test('compare values of any length', () => {
    fc.assert(fc.property(fc.string(), fc.string(), (a, b) => equalTexts(a, b) === Buffer.from(a).equals(Buffer.from(b))))
    expect(equalDigests(Buffer.alloc(32), Buffer.alloc(31))).toBe(false)
    expect(equalDigests(Buffer.alloc(32), Buffer.alloc(32))).toBe(true)
  })
})

describe('allowlists', () => {
  test('deny all when empty and allow all with a star', () => {
    expect(isAllowed([], 'anybody')).toBe(false)
    expect(isAllowed(['*'], 'anybody')).toBe(true)
  })

  test('match numbers in any spelling, and nothing without a digit', () => {
    expect(isAllowed(['+49 (170) 123-45'], '4917012345', normaliseE164)).toBe(true)
    expect(isAllowed(['+4917012345'], '+4917012346', normaliseE164)).toBe(false)
    expect(isAllowed(['none'], 'none', normaliseE164)).toBe(false)
  })

  test('let an entry cover other senders, but never an empty one', () => {
    const lower = (text: string) => text.toLowerCase()
    const inDomain = (entry: string, sender: string) => sender.endsWith(`@${entry}`)
    expect(isAllowed(['example.com'], 'Ada@Example.com', lower, inDomain)).toBe(true)
    expect(isAllowed(['example.org', 'bob@example.com'], 'ada@example.com', lower, inDomain)).toBe(false)
    expect(isAllowed([], 'ada@example.com', lower, inDomain)).toBe(false)
    expect(isAllowed(['example.com'], '', lower, () => true)).toBe(false)
  })
})

describe('freshness', () => {
  test.each([
    [1000, true],
    [700, true],
    [1300, true],
    [699.9, false],
    [1300.1, false],
    [Number.NaN, false],
    [Number.POSITIVE_INFINITY, false],
  ])('a timestamp of %d s at 1000 s is fresh: %s', (timestamp, fresh) => expect(isFresh(timestamp, 1_000_000, 300)).toBe(fresh))
})

describe('same origin', () => {
  test.each([
    ['https://api.example/x', 'https://api.example/media/1', true],
    ['https://api.example', 'https://API.EXAMPLE:443/m', true],
    ['https://api.example', 'http://api.example/m', false],
    ['https://api.example', 'https://api.example:8443/m', false],
    ['https://api.example', 'https://api.example.evil.test/m', false],
    ['https://api.example', 'https://evil.test/@api.example', false],
    ['https://api.example', 'https://api.example@evil.test/m', false],
    ['data:x', 'data:x', false],
    ['not a url', 'not a url', false],
  ])('%s and %s: %s', (a, b, same) => expect(sameOrigin(a, b)).toBe(same))
})

describe('secrets', () => {
  test('are masked as a whole: longer ones first, trimmed, and cut at the end of a text', () => {
    const [long, short] = ['canary-0123456789-abcdefgh', 'canary-0123456789']
    expect(withoutSecrets(`a ${long} b ${short} c`, [short, ` ${long}\n`])).toBe('a [secret] b [secret] c')
    for (let at = 16; at < long.length; at++) expect(withoutSecrets(`a ${long.slice(0, at)}`, [long])).toBe('a [secret]')
    expect(withoutSecrets('canary-0123 is none', [long])).toBe('canary-0123 is none')
    expect(withoutSecrets(`${long}${long}`, [long])).toBe('[secret][secret]')
    expect(withoutSecrets('short', ['short'])).toBe('short')
  })

  test('are shown by no way of printing', () => {
    const secret = new Secret('hunter2')
    const shown = [
      String(secret),
      JSON.stringify({ secret }),
      inspect(secret),
      inspect({ deep: [secret] }),
      `${secret}`,
      Object.values(secret).join(),
    ]
    expect(shown.join()).not.toContain('hunter2')
    expect(secret.reveal()).toBe('hunter2')
    expect(structuredClone({ ...secret })).toEqual({})
  })
})

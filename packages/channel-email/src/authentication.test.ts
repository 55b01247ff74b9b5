import { processorMs } from '@sluice/testkit/processor-time'
import { effort } from '@sluice/testkit/random'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isAuthenticated, isTrustedServer, whyUnverified } from './authentication.ts'

const ID = 'mx.example.net'
const check = (headers: string | readonly string[], address = 'ada@example.com', ids: readonly string[] = [ID]): boolean =>
  isAuthenticated(typeof headers === 'string' ? [headers] : headers, ids, address)

describe('verified', () => {
  test.each([
    ['as opendmarc writes it', `${ID}; dmarc=pass (p=reject dis=none) header.from=example.com`],
    [
      'as Gmail writes it',
      `${ID}; dkim=pass header.i=@example.com header.s=s1 header.b=abc; spf=pass (google.com: domain of ada@example.com designates 192.0.2.1 as permitted sender) smtp.mailfrom=ada@example.com; dmarc=pass (p=NONE sp=NONE dis=NONE) header.from=example.com`,
    ],
    ['with a version and upper case', `MX.Example.NET 1; DMARC = PASS header.from=Example.COM`],
    ['without a policy, by an aligned signature', `${ID}; dmarc=none header.from=example.com; dkim=pass header.d=example.com`],
    ['without DMARC, by an aligned signature', `${ID}; dkim=fail header.d=other.example; dkim=pass (2048-bit key) header.d=example.com`],
    ['without DMARC, by SPF', `${ID}; spf=pass smtp.mailfrom=bounce@example.com`],
  ])('%s', (_, header) => {
    expect(check(header)).toBe(true)
  })

  test('by the signature of the domain above', () => {
    expect(check(`${ID}; dkim=pass header.d=example.com`, 'ada@mail.example.com')).toBe(true)
  })

  test('as Microsoft 365 writes it, without a name, if an empty id is accepted', () => {
    const header =
      'spf=pass (sender IP is 192.0.2.1) smtp.mailfrom=example.com; dkim=pass (signature was verified) header.d=example.com;dmarc=pass action=none header.from=example.com;compauth=pass reason=100'
    expect(check(header, 'ada@example.com', [''])).toBe(true)
    expect(check(header)).toBe(false)
  })
})

describe('unverified', () => {
  test.each([
    ['no header', []],
    ['by another server', [`mx.evil.example; dmarc=pass header.from=example.com`]],
    ['by the right server below another', [`mx.evil.example; dmarc=pass`, `${ID}; dmarc=pass header.from=example.com`]],
    ['a failure above a forged pass', [`${ID}; dmarc=fail header.from=example.com`, `${ID}; dmarc=pass header.from=example.com`]],
    ['a result for another domain', [`${ID}; dmarc=pass header.from=evil.example`]],
    ['a result without a domain', [`${ID}; dmarc=pass`]],
    ['DMARC failed although a signature is aligned', [`${ID}; dmarc=fail header.from=example.com; dkim=pass header.d=example.com`]],
    ['a temporary error', [`${ID}; dmarc=temperror header.from=example.com; dkim=pass header.d=example.com`]],
    ['a pass together with a failure', [`${ID}; dmarc=pass header.from=example.com; dmarc=fail header.from=example.com`]],
    ['a signature of another domain', [`${ID}; dkim=pass header.d=evil.example`]],
    ['a signature of a domain below', [`${ID}; dkim=pass header.d=evil.example.com`]],
    ['a signature of a similar domain', [`${ID}; dkim=pass header.d=notexample.com`]],
    ['a signature of a top-level domain', [`${ID}; dkim=pass header.d=com`]],
    ['a failed signature', [`${ID}; dkim=fail header.d=example.com`]],
    ['SPF of another domain', [`${ID}; spf=pass smtp.mailfrom=eve@evil.example`]],
    ['the result inside a quoted string', [`${ID}; spf=pass smtp.mailfrom="x; dmarc=pass header.from=example.com"@evil.example`]],
    ['the result inside a comment', [`${ID}; spf=fail (reason; dmarc=pass header.from=example.com) smtp.mailfrom=x@evil.example`]],
    ['the result inside a nested comment', [`${ID}; none (a (b) ; dmarc=pass)`]],
    ['a comment that does not end', [`${ID}; dmarc=pass (x`]],
    ['two domains for one signature', [`${ID}; dkim=pass header.d=evil.example header.s=a header.d=example.com`]],
    ['two domains for one DMARC result', [`${ID}; dmarc=pass header.from=evil.example header.from=example.com`]],
    ['none', [`${ID}; none`]],
    ['an empty header', ['']],
    ['a name that only begins so', [`${ID}.evil.example; dmarc=pass`]],
  ])('%s', (_, headers) => {
    expect(check(headers)).toBe(false)
  })

  test('no configured server', () => {
    expect(check(`${ID}; dmarc=pass header.from=example.com`, 'ada@example.com', [])).toBe(false)
  })

  test('nothing that a sender can write below the header of the server matters', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: 'grapheme' })), (forged) => {
        expect(check([`${ID}; dmarc=fail header.from=example.com`, ...forged])).toBe(false)
      }),
    )
  })

  test('no text of one header passes without naming the server first', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom(ID, ';', ' ', 'dmarc=pass', '(', ')', '"', '\\', 'header.from=example.com', 'x') }),
        (header) => {
          if (check(header))
            expect(
              header
                .trim()
                .replace(/\([^)]*\)/g, '')
                .trim()
                .startsWith(ID),
            ).toBe(true)
        },
      ),
      { numRuns: effort(4000) },
    )
  })
})

test('says why a mail is not verified', () => {
  expect(whyUnverified([], [ID])).toBe('it has no Authentication-Results header')
  expect(whyUnverified(['mx.evil.example; dmarc=pass'], [ID])).toContain('"mx.evil.example"')
  expect(whyUnverified([`${ID}; dmarc=fail`], [ID])).toBe('its domain did not pass DMARC')
  expect(isTrustedServer(`${ID}; none`, [ID])).toBe(true)
})

// 32 times the length takes some 32 times as long, and up to five times more for its garbage. Quadratic work would take 1024 times as long.
test('a long header costs linear time', () => {
  const msOf = (count: number): number => {
    const times = Array.from({ length: 3 }, () => {
      const beforeMs = processorMs()
      for (const piece of ['(', '"', ';', 'dkim=pass ', 'header.d=', 'a.b=c ', ' ', 'x', '\\']) check(`${ID}; ${piece.repeat(count)}`)
      return processorMs() - beforeMs
    })
    return Math.min(...times)
  }
  expect(msOf(80_000)).toBeLessThan(256 * Math.max(msOf(2500), 1))
})

test('each field of a header counts, however many there are', async () => {
  const { parseHeaders } = await import('./headers.ts')
  const headers = parseHeaders(Buffer.from(`From: ada@example.com\r\n${'X:\r\n'.repeat(5000)}From: eve@evil.example\r\n`))
  expect(headers('from')).toEqual(['ada@example.com', 'eve@evil.example'])
})

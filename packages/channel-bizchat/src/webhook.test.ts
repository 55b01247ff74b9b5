import type { Raw } from '@sluice/sdk'
import { describe, expect, test } from 'vitest'
import { answerHandshake, handshakeQuery, verify as verifyRaw } from './webhook.ts'

const SECRET = 'bizchat secret+01/é'
const encoded = encodeURIComponent(SECRET)

const verify = (query: string, headers: Raw['headers'] = {}) =>
  verifyRaw({ url: new URL(`http://localhost/bizchat${query}`), headers }, { secret: SECRET })

describe('verify', () => {
  test('accepts the secret in the URL', () => {
    expect(verify(`?token=${encoded}`)).toEqual({ by: 'token in the URL' })
    expect(verify(`?a=b&token=${encoded}&c`)).toEqual({ by: 'token in the URL' })
  })

  test('accepts the secret as a bearer token, with the scheme in any case', () => {
    for (const scheme of ['Bearer', 'bearer', 'BEARER '])
      expect(verify('', { authorization: ` ${scheme} ${SECRET} ` })).toEqual({ by: 'authorization' })
    expect(verify('?token=other', { authorization: `Bearer ${SECRET}` })).toEqual({ by: 'authorization' })
  })

  test.each<[what: string, query: string, authorization: string | undefined, cause: string]>([
    ['no token', '', undefined, 'neither ?token= nor a bearer'],
    ['another key', `?secret=${encoded}`, undefined, 'neither ?token= nor a bearer'],
    ['another scheme', '', `Basic ${SECRET}`, 'neither ?token= nor a bearer'],
    ['the secret without a scheme', '', SECRET, 'neither ?token= nor a bearer'],
    ['an empty bearer', '', 'Bearer ', 'neither ?token= nor a bearer'],
    ['an empty token', '?token=', undefined, 'the token is wrong'],
    ['a wrong token', '?token=other', undefined, 'the token is wrong'],
    ['a part of the token', `?token=${encodeURIComponent(SECRET.slice(0, -1))}`, undefined, 'the token is wrong'],
    ['more than the token', `?token=${encoded}x`, undefined, 'the token is wrong'],
    ['the token twice', `?token=${encoded}&token=${encoded}`, undefined, 'the token is wrong'],
    ['the bearer twice', '', `Bearer ${SECRET}, Bearer ${SECRET}`, 'the token is wrong'],
  ])('rejects %s with one message and a cause for the log', (_what, query, authorization, cause) => {
    expect(() => verify(query, { authorization })).toThrow(
      expect.objectContaining({ code: 'unauthorized', message: 'Invalid signature', cause }),
    )
  })
})

describe('answerHandshake', () => {
  const ask = async (query: string) => {
    const response = answerHandshake(new URL(`http://localhost/bizchat${query}`))
    return [response.status, await response.text(), response.headers.get('content-type')]
  }
  const PLAIN = 'text/plain; charset=utf-8'

  test('returns any challenge as plain text', async () => {
    expect(await ask('?hub.challenge=12345')).toEqual([200, '12345', PLAIN])
    expect(await ask('?hub.challenge=%3Cb%3E%2B%3C/b%3E')).toEqual([200, '<b>+</b>', PLAIN])
  })

  test('answers 400 without a challenge', async () => {
    for (const query of ['', '?hub.challenge=', '?challenge=1']) expect(await ask(query)).toEqual([400, 'Missing hub.challenge', PLAIN])
  })

  test('answers the query of handshakeQuery', async () => {
    expect(await ask(`?${new URLSearchParams(handshakeQuery('a&b'))}`)).toEqual([200, 'a&b', PLAIN])
  })
})

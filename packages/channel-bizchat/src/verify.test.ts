import type { Raw } from '@sluice/sdk'
import { expect, test } from 'vitest'
import { verifyToken } from './verify.ts'

const SECRET = 'bizchat secret+01/é'
const encoded = encodeURIComponent(SECRET)

const verify = (query: string, headers: Raw['headers'] = {}) =>
  verifyToken({ url: new URL(`http://localhost/bizchat${query}`), headers, body: new Uint8Array(), receivedAtMs: 0 }, SECRET)

test('the secret in the URL is enough', () => {
  expect(verify(`?token=${encoded}`)).toEqual({ by: 'token in the URL' })
  expect(verify(`?a=b&token=${encoded}&c`)).toEqual({ by: 'token in the URL' })
})

test('the secret as a bearer is enough, however the scheme is spelled', () => {
  for (const scheme of ['Bearer', 'bearer', 'BEARER '])
    expect(verify('', { authorization: ` ${scheme} ${SECRET} ` })).toEqual({ by: 'authorization' })
  expect(verify('?token=other', { authorization: `Bearer ${SECRET}` })).toEqual({ by: 'authorization' })
})

test.each<[what: string, query: string, authorization: string | undefined, cause: string]>([
  ['nothing', '', undefined, 'neither ?token= nor a bearer'],
  ['another key', `?secret=${encoded}`, undefined, 'neither ?token= nor a bearer'],
  ['another scheme', '', `Basic ${SECRET}`, 'neither ?token= nor a bearer'],
  ['the secret without a scheme', '', SECRET, 'neither ?token= nor a bearer'],
  ['an empty bearer', '', 'Bearer ', 'neither ?token= nor a bearer'],
  ['an empty token', '?token=', undefined, 'the token is wrong'],
  ['a wrong token', '?token=other', undefined, 'the token is wrong'],
  ['part of it', `?token=${encodeURIComponent(SECRET.slice(0, -1))}`, undefined, 'the token is wrong'],
  ['more than it', `?token=${encoded}x`, undefined, 'the token is wrong'],
  ['the token twice', `?token=${encoded}&token=${encoded}`, undefined, 'the token is wrong'],
  ['the bearer twice', '', `Bearer ${SECRET}, Bearer ${SECRET}`, 'the token is wrong'],
])('%s is refused with the one sentence, and the log hears why', (_what, query, authorization, cause) => {
  expect(() => verify(query, { authorization })).toThrow(
    expect.objectContaining({ code: 'unauthorized', message: 'Invalid signature', cause }),
  )
})

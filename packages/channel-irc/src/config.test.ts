import * as v from 'valibot'
import { expect, test } from 'vitest'
import { ircSection } from './config.ts'

const { schema } = ircSection
const base = { server: 'irc.example.org', nickname: 'sluice' }
const problem = (section: object): string => v.safeParse(schema, { ...base, ...section }).issues?.[0].message ?? 'valid'

test('the defaults are an encrypted connection with a verified certificate', () => {
  expect(v.parse(schema, base)).toMatchObject({ port: 6697, tls: true, verify_tls: true, channels: [], allowed_users: [] })
})

test('a password is never sent unencrypted to another machine', () => {
  expect(problem({ tls: false, sasl_password: 'secret' })).toContain('unencrypted')
  expect(problem({ tls: false })).toBe('valid')
  expect(problem({ tls: false, sasl_password: 'secret', server: '127.0.0.1' })).toBe('valid')
})

test.each([
  { nickname: '1bot' },
  { nickname: 'a b' },
  { server: 'a b' },
  { channels: ['ops'] },
  { channels: ['#a,#b'] },
  { sasl_password: 'a\r\nQUIT' },
  { port: 0 },
])('%j is refused', (section) => {
  expect(problem(section)).not.toBe('valid')
})

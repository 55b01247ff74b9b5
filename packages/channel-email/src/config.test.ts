import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import { emailSection } from './config.ts'
import { settingsOf } from './settings.ts'

const SECTION = { imap_host: 'imap.example.net', smtp_host: 'smtp.example.net', username: 'bot@example.net', password: 'p' }
const settings = (changes: object = {}) => settingsOf(v.parse(emailSection.schema, { ...SECTION, ...changes }))
const problem = (changes: object): string => {
  const { issues } = v.safeParse(emailSection.schema, { ...SECTION, ...changes })
  return issues?.map(({ message }) => message).join('; ') ?? 'accepted'
}

test('TLS is the default, and the usual ports of STARTTLS mean STARTTLS', () => {
  const security = (changes: object) => {
    const { imap, smtp } = settings(changes)
    return [imap.port, imap.security, smtp.port, smtp.security]
  }
  expect(security({})).toEqual([993, 'tls', 465, 'tls'])
  expect(security({ imap_port: 143, smtp_port: 587 })).toEqual([143, 'starttls', 587, 'starttls'])
  expect(security({ imap_port: 1143, smtp_port: 2525 })).toEqual([1143, 'tls', 2525, 'starttls'])
  expect(security({ imap_security: 'starttls', smtp_security: 'starttls' })).toEqual([993, 'starttls', 465, 'starttls'])
})

describe('providers', () => {
  const bare = { imap_host: undefined, smtp_host: undefined, password: undefined, client_id: 'c', refresh_token: 'r' }
  test('fill in the servers, the token URL and the name of the verifier', () => {
    expect(settings({ ...bare, provider: 'google' })).toMatchObject({
      imap: { host: 'imap.gmail.com', port: 993, security: 'tls' },
      smtp: { host: 'smtp.gmail.com', port: 465, security: 'tls' },
      oauth: { tokenUrl: 'https://oauth2.googleapis.com/token' },
      policy: { authservIds: ['mx.google.com'] },
    })
    expect(settings({ ...bare, provider: 'microsoft' })).toMatchObject({
      imap: { host: 'outlook.office365.com' },
      smtp: { host: 'smtp.office365.com', port: 587, security: 'starttls' },
      oauth: { scope: expect.stringContaining('SMTP.Send') },
      policy: { authservIds: [''] },
    })
  })

  test('give way to keys of the section', () => {
    const changes = {
      ...bare,
      provider: 'google',
      smtp_host: 'relay.example.net',
      authserv_id: 'MX.Example.Net',
      token_url: 'https://t.example/token',
    }
    expect(settings(changes)).toMatchObject({
      smtp: { host: 'relay.example.net' },
      oauth: { tokenUrl: 'https://t.example/token' },
      policy: { authservIds: ['mx.example.net'] },
    })
  })
})

test('the SMTP server has the login of the mailbox, another one or none', () => {
  expect(settings().smtpLogin).toBe('mailbox')
  expect(settings({ smtp_auth: false }).smtpLogin).toBe('none')
  expect(settings({ smtp_username: 'relay', smtp_password: 'q' }).smtpLogin).toMatchObject({ username: 'relay' })
})

test.each([
  ['half of a login', { smtp_username: 'relay' }, /smtp_username and smtp_password belong together/],
  ['a login that is left out', { smtp_auth: false, smtp_username: 'relay', smtp_password: 'q' }, /smtp_username has no effect/],
  ['no server', { imap_host: undefined }, /imap_host and smtp_host are missing/],
  ['an unencrypted way to another machine', { imap_security: 'none' }, /imap_security = "none" would send the password/],
  ['an unencrypted SMTP server', { smtp_tls: false }, /smtp_security = "none" would send the password/],
  ['an entry without authserv_id', { allowed_senders: ['example.com'] }, /allowed_senders needs authserv_id/],
  ['an entry that is neither an address nor a domain', { allowed_senders: ['Ada <a@b.c>'], authserv_id: 'x' }, /can never match a sender/],
  [
    'an identity of an unverified sender',
    { allowed_senders: ['unverified:ada@example.com'], authserv_id: 'x' },
    /can never match a sender/,
  ],
  ['a user name without from_address', { username: 'bot' }, /from_address is missing/],
  ['a line break in the password', { password: 'a\r\nb' }, /one line/],
  ['a line break in the user name', { username: 'a\r\nA1 DELETE INBOX' }, /one line/],
  ['a line break in the folder', { imap_folder: 'a\r\nb' }, /one line/],
  ['two names of one key', { idle_timeout_secs: 60, poll_interval_secs: 60 }, /two names of one key/],
  ['more than 29 minutes', { idle_timeout_secs: 1741 }, /1740/],
  ['a refresh token without its client', { refresh_token: 'x' }, /client_id and refresh_token/],
  ['a refresh token without a URL', { refresh_token: 'x', client_id: 'c' }, /needs token_url/],
])('%s is refused', (_, changes, message) => {
  expect(problem(changes)).toMatch(message)
})

test.each([
  ['this machine without encryption', { imap_host: '127.0.0.1', imap_security: 'none', smtp_host: 'localhost', smtp_tls: false }],
  ['* without authserv_id', { allowed_senders: ['*'] }],
  ['the other name of idle_timeout_secs', { poll_interval_secs: 300 }],
])('%s is accepted', (_, changes) => {
  expect(problem(changes)).toBe('accepted')
})

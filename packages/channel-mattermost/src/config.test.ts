import * as v from 'valibot'
import { expect, test } from 'vitest'
import { accountOf, mattermostSection } from './config.ts'

const parse = (section: object) => v.safeParse(mattermostSection.schema, { url: 'https://chat.example.com', bot_token: 'x', ...section })

test('a user name in the allowlist is refused with the way to the id', () => {
  const { issues } = parse({ allowed_users: ['ada'] })
  expect(issues?.[0]?.message).toContain('user id of 26 letters and digits')
})

test.each(['ftp://chat.example.com', 'https://ada:secret@chat.example.com', 'https://chat.example.com?x=1', 'chat'])(
  'refuses the url %s',
  (url) => {
    expect(parse({ url }).success).toBe(false)
  },
)

test('the account is the server and its path', () => {
  const { output } = parse({ url: 'https://chat.example.com:8443/team/' })
  expect(accountOf(output as v.InferOutput<typeof mattermostSection.schema>)).toBe('chat.example.com:8443/team')
})

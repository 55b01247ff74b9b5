import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import { accountOf, discordSection } from './config.ts'

const parse = (section: object) => v.safeParse(discordSection.schema, { bot_token: 'token', ...section })

describe('discordSection', () => {
  test('requires a token and nothing else', () => {
    expect(v.safeParse(discordSection.schema, {}).success).toBe(false)
    expect(parse({}).output).toMatchObject({
      enabled: true,
      allowed_users: [],
      listen_to_bots: false,
      mention_only: false,
      stream_mode: 'off',
      draft_update_interval_ms: 1000,
      api_url: 'https://discord.com/api',
    })
  })

  test.each([
    { guild_id: 'my server' },
    { notification_channel_id: '#general' },
    { draft_update_interval_ms: 199 },
    { stream_mode: 'full' },
    { api_url: 'https://user:pass@discord.com' },
    { allowed_users: [''] },
    { allowed_users: ['ada'] },
    { allowed_users: [' 400000000000000001'] },
  ])('rejects %j', (section) => {
    expect(parse(section).success).toBe(false)
  })
})

describe('accountOf', () => {
  test('reads the user id from the first part of the token', () => {
    expect(accountOf('OTAwMDAwMDAwMDAwMDAwMDAx.GabcdE.secret')).toBe('900000000000000001')
  })

  test.each(['', 'x', 'bm90IGFuIGlk.a.b', '900000000000000001'])('returns bot for %j', (token) => {
    expect(accountOf(token)).toBe('bot')
  })
})

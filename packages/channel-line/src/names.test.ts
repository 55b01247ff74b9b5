import { testHost } from '@sluice/testkit/host'
import * as v from 'valibot'
import { expect, test } from 'vitest'
import { lineSection } from './config.ts'
import feature from './index.ts'
import { LINE_BOT, LINE_GROUP, LINE_TOKEN, LINE_USER, startLineFake } from './testing/fake.ts'

test('messages have the display name of their writer, which is looked up once', async () => {
  const fake = await startLineFake()
  try {
    const section = v.parse(lineSection.schema, {
      channel_access_token: LINE_TOKEN,
      allowed_users: [LINE_USER],
      group_policy: 'open',
      api_url: fake.url,
    })
    const [channel] = feature.build(testHost({ fetch }), section).channels ?? []
    const message = (id: string, source: object) => ({ type: 'message', timestamp: 1, source, message: { id, type: 'text', text: 'hi' } })
    const stranger = `U${'e'.repeat(32)}`
    const events = [
      message('1', { type: 'group', groupId: LINE_GROUP, userId: LINE_USER }),
      message('2', { type: 'user', userId: LINE_USER }),
      message('3', { type: 'user', userId: stranger }),
    ]
    const body = new TextEncoder().encode(JSON.stringify({ destination: LINE_BOT, events }))
    const parsed = await channel?.webhook?.parse({ headers: {}, url: new URL('http://localhost/line'), body, receivedAtMs: 0 })
    expect(parsed?.map(({ id, name }) => [id, name])).toEqual([
      ['1', 'Name of Ua'],
      ['2', 'Name of Ua'],
      ['3', undefined],
    ])
    expect(fake.requests.map(({ path }) => path)).toEqual([`/v2/bot/group/${LINE_GROUP}/member/${LINE_USER}`])
  } finally {
    await fake.close()
  }
})

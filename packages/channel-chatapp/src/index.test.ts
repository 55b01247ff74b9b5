import { isAllowed } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import { chatappSection } from './config.ts'
import feature from './index.ts'
import { build } from './testing/build-channel.ts'

const required = { access_token: 'sample-access-token', verify_token: 'sample-verify-token' }
const channels = (section: object) => feature.build(testHost(), v.parse(chatappSection.schema, { ...required, ...section })).channels

describe('phone_number_id activates cloud mode', () => {
  test.each([{}, { phone_number_id: '' }, { phone_number_id: ' ' }, { phone_number_id: '200000000000002', enabled: false }])(
    'builds no channel for %j',
    (section) => expect(channels(section)).toBeUndefined(),
  )

  test('builds a channel for a number id', () => {
    expect(channels({ phone_number_id: '200000000000002' })).toMatchObject([{ name: 'chatapp', allow: [] }])
  })
})

describe('chatappSection', () => {
  test('reads app_secret from the environment first', () => {
    expect(v.getMetadata(chatappSection.schema.entries.app_secret.wrapped)).toMatchObject({
      secret: true,
      env: ['SVC_CHATAPP_APP_SECRET'],
      envWins: true,
    })
  })

  test.each([
    { ...required, api_url: 'ftp://example.com' },
    { ...required, api_version: '23' },
    { ...required, allowed_numbers: [''] },
    { ...required, mode: 'private' },
  ])('rejects %j', (section) => expect(v.safeParse(chatappSection.schema, section).success).toBe(false))

  test.each([
    [{ access_token: 'a' }, ['verify_token']],
    [{ verify_token: 'v' }, ['access_token']],
    [{ phone_number_id: '1' }, ['access_token', 'verify_token']],
    [{}, []],
    [{ allowed_numbers: ['+15550002222'] }, []],
  ])('for %j names the missing keys %j', async (section, missing) => {
    const { problems } = await chatappSection.refine(v.parse(chatappSection.schema, section))
    expect(problems.map(({ path }) => path)).toEqual(missing.map((key) => [key]))
  })

  test.each(['business', 'personal'])('accepts mode = %j in cloud mode', (mode) => {
    expect(channels({ phone_number_id: '200000000000002', mode })).toHaveLength(1)
  })

  test('has no keys of web mode, which is another feature', () => {
    for (const key of ['session_path', 'pair_phone']) expect(Object.keys(chatappSection.schema.entries)).not.toContain(key)
  })
})

describe('senders', () => {
  const { channel } = build({})
  test.each([
    ['15550002222', '+15550002222'],
    ['+1 (555) 000-2222', '+15550002222'],
    ['US.90000000000001', 'US.90000000000001'],
    ['DE.ENT.4xYz', 'DE.ENT.4xYz'],
    [' ada ', 'ada'],
    ['idx15550000001', 'idx15550000001'],
  ])('%s is normalised to %j', (spelling, form) => expect(channel.normalise?.(spelling)).toBe(form))
})

describe('the allowlist', () => {
  const refine = (allowed_numbers: string[]) => chatappSection.refine(v.parse(chatappSection.schema, { ...required, allowed_numbers }))

  test.each([
    ['+5511987654321', '551187654321'],
    ['+551187654321', '5511987654321'],
    ['+525512345678', '5215512345678'],
    ['+5215512345678', '5215512345678'],
    ['+54 9 11 2345-6789', '5491123456789'],
    ['+541123456789', '5491123456789'],
    ['0044 (0)20 7946 0958', '442079460958'],
    ['US.90000000000001', 'US.90000000000001'],
  ])('with the entry %s accepts the sender with the id %s', async (entry, id) => {
    const { value, problems } = await refine([entry])
    const { channel } = build({ allowed_numbers: value.allowed_numbers })
    expect(problems).toEqual([])
    expect(isAllowed(channel.allow, id.startsWith('US') ? id : `+${id}`, channel.normalise)).toBe(true)
    expect(isAllowed(channel.allow, '+5511987654322', channel.normalise)).toBe(false)
  })

  test('names each entry that no sender can match', async () => {
    const { problems } = await refine(['+15550002222', 'Ada', '0170 1234567'])
    expect(problems.map(({ path }) => path)).toEqual([
      ['allowed_numbers', 1],
      ['allowed_numbers', 2],
    ])
  })
})

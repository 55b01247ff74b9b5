import { createEventBus, createHideSecrets } from '@sluice/runtime'
import { Secret } from '@sluice/sdk'
import { testClock } from '@sluice/testkit/clock'
import { expect, test } from 'vitest'
import { testGateways } from '../testing.ts'

const SECRET = 'dcBotTokenCanary0123456789'
const hide = createHideSecrets(() => [new Secret(SECRET)])
const gateway = testGateways()

test('masks every text in plain data and changes nothing else', () => {
  const at = new Date(0)
  const data = { a: `x ${SECRET}`, b: [SECRET, 1, null, undefined, true], c: { d: { e: SECRET } }, at }
  expect(hide(data)).toEqual({ a: 'x [secret]', b: ['[secret]', 1, null, undefined, true], c: { d: { e: '[secret]' } }, at })
  expect(createHideSecrets(() => [])(data)).toBe(data)
})

test('masks secrets in events, both live and kept, whole and as an outline', () => {
  const bus = createEventBus({ clock: testClock(), run: 'r', hide })
  const seen: string[] = []
  bus.subscribe(({ json, outline }) => void seen.push(json, outline?.json ?? ''))
  bus.emit({ type: 'channel_health', channel: 'discord', state: 'down', detail: `blocked: Bot ${SECRET}` })
  bus.emit({ type: 'x_own', deep: [{ text: SECRET }] }, 'd1', { type: 'x_own', text: SECRET })
  expect(JSON.stringify([seen, bus.recent(9), bus.since('r-0')])).not.toContain(SECRET)
  expect(seen[0]).toContain('blocked: Bot [secret]')
})

test('masks secrets in the health that channels report', async () => {
  const made = gateway({
    snapshot: {
      channels: [
        {
          name: 'discord',
          allow: [],
          limits: { text: 1, unit: 'utf16' },
          send: async () => ({ id: '' }),
          health: () => ({ state: 'down', detail: `blocked: Bot ${SECRET}` }),
        },
      ],
    },
    hide,
  })
  const { token } = await made.pair()
  const text = await (await made.request('/api/health', { headers: { authorization: `Bearer ${token}` } })).text()
  expect(text).toContain('blocked: Bot [secret]')
  expect(text).not.toContain(SECRET)
})

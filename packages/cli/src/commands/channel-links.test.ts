/** `sluice channels link` and `unlink`, with a channel whose link is scripted. */
import { scratch } from '@sluice/qa/daemons/bundle'
import { sluiceWith } from '@sluice/qa/daemons/run-command'
import { type Channel, type ChannelLink, defineFeature, type LinkStatus } from '@sluice/sdk'
import { afterEach, describe, expect, test } from 'vitest'
import { halfBlocks } from './channel-links.ts'

const cleanups: (() => void)[] = []
afterEach(() => {
  for (const clean of cleanups.splice(0)) clean()
})

/** `states` are shown one after the other; the last one stays. */
function commandsFor(...states: LinkStatus[]) {
  const { dir, dispose } = scratch()
  cleanups.push(dispose)
  const calls: unknown[] = []
  const link: ChannelLink = {
    status: async () => (states.length > 1 ? states.shift() : states[0]) ?? { state: 'unlinked' },
    async start(options) {
      calls.push(options)
      return { state: 'linking' }
    },
    unlink: async () => void calls.push('unlink'),
  }
  const channel = {
    name: 'device',
    allow: [],
    limits: { text: 1, unit: 'utf16' },
    send: async () => ({ id: '1' }),
    link,
  } as unknown as Channel
  const provider = defineFeature({
    id: 'provider-offline',
    build: () => ({ providers: [{ kinds: ['offline'], load: async () => ({}) as never }] }),
  })
  const feature = defineFeature({ id: 'x-device', build: () => ({ channels: [channel] }) })
  const sluice = sluiceWith([provider, feature])
  return { calls, sluice: (...argv: string[]) => sluice(...argv, '--data-dir', dir) }
}

const qr = { text: 'abc', rows: ['10', '01'] }

test('shows each code until the device is linked', async () => {
  const { sluice, calls } = commandsFor({ state: 'linking', qr }, { state: 'linked', account: '+15550001111' })
  const { code, out } = await sluice('channels', 'link', 'device')
  expect([code, calls]).toEqual([0, [{}]])
  expect(out).toContain(halfBlocks(qr.rows).join('\n'))
  expect(out).toContain('Linked to +15550001111.')
})

test('shows a code to type for a telephone number, and answers in JSON', async () => {
  const { sluice, calls } = commandsFor({ state: 'linking', code: 'ABCD-1234' }, { state: 'linked', account: '+15550001111' })
  expect((await sluice('channels', 'link', 'device', '--pair', '+15550001111')).out).toContain('ABCD-1234')
  expect(calls).toEqual([{ phone: '+15550001111' }])
  const linked = commandsFor({ state: 'linked', account: '+1' })
  expect(JSON.parse((await linked.sluice('channels', 'link', 'device', '--json')).out)).toMatchObject({ state: 'linked', account: '+1' })
})

test('says why linking failed, and fails', async () => {
  const { sluice } = commandsFor({ state: 'unlinked', reason: 'Nobody has confirmed the device' })
  const { code, err } = await sluice('channels', 'link', 'device')
  expect([code, err]).toEqual([1, expect.stringContaining('Nobody has confirmed the device')])
})

test('unlinks', async () => {
  const { sluice, calls } = commandsFor({ state: 'unlinked' })
  expect((await sluice('channels', 'unlink', 'device')).code).toBe(0)
  expect(calls).toEqual(['unlink'])
})

describe('halfBlocks', () => {
  test('draws two rows in a line, light modules as ink, with a margin of two light modules', () => {
    expect(halfBlocks(['10', '01'])).toEqual(['██████', '██▄▀██', '██████'])
    expect(halfBlocks(['1'])).toEqual(['█████', '██▄██', '▀▀▀▀▀'])
  })
})

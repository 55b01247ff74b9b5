import type { Channel, ChannelLink, LinkStatus } from '@sluice/sdk'
import { AppError } from '@sluice/sdk'
import { expect, test } from 'vitest'
import { testGateways } from '../testing.ts'

const gateway = testGateways()
const PATH = '/api/channels/device/link'
const NOTHING = { account: null, qr: null, code: null, reason: null }

/** A channel whose link has these states, one after the other, and notes the calls. */
async function served(...states: LinkStatus[]) {
  const calls: unknown[] = []
  const link: ChannelLink = {
    status: async () => states[0] ?? { state: 'unlinked' },
    async start(options) {
      calls.push(options)
      if (options.phone === '1') throw new AppError('invalid_request', 'The telephone number must have its country code')
      return states.shift() ?? { state: 'linking' }
    },
    async unlink() {
      calls.push('unlink')
      states.splice(0)
    },
  }
  const channels = [{ name: 'device', link }, { name: 'keys' }] as unknown as Channel[]
  const made = gateway({ snapshot: { channels } })
  const { token } = await made.pair('operator')
  const { token: client } = await made.pair('client', null, 'client')
  const call = async (method: string, path: string, body?: object, bearer = token) => {
    const headers = { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' }
    const answer = await made.request(path, { method, headers, ...(body && { body: JSON.stringify(body) }) })
    return { status: answer.status, body: await answer.json() }
  }
  return { call, calls, client }
}

test('linking begins, shows its code, and ends in the account', async () => {
  const qr = { text: 'abc', rows: ['10', '01'] }
  const { call, calls } = await served({ state: 'linking' }, { state: 'linking', qr }, { state: 'linked', account: '+1' })
  expect(await call('POST', PATH, {})).toEqual({ status: 200, body: { ...NOTHING, channel: 'device', state: 'linking' } })
  expect((await call('GET', PATH)).body).toEqual({ ...NOTHING, channel: 'device', state: 'linking', qr })
  await call('POST', PATH, { phone: '+15550001111' })
  expect((await call('GET', PATH)).body).toEqual({ ...NOTHING, channel: 'device', state: 'linked', account: '+1' })
  expect(calls).toEqual([{}, { phone: '+15550001111' }])
})

test('a code to type and the reason of a failure are shown, and a device can be removed', async () => {
  const { call, calls } = await served({ state: 'linking', code: 'ABCD-1234' })
  expect((await call('GET', PATH)).body).toMatchObject({ code: 'ABCD-1234', qr: null })
  expect((await call('DELETE', PATH)).body).toEqual({ ...NOTHING, channel: 'device', state: 'unlinked' })
  expect(calls).toEqual(['unlink'])
  const failed = await served({ state: 'unlinked', reason: 'Nobody has confirmed the device' })
  expect((await failed.call('GET', PATH)).body).toMatchObject({ state: 'unlinked', reason: 'Nobody has confirmed the device' })
})

test('only operators link, and only channels that can be linked', async () => {
  const { call, client } = await served()
  expect((await call('POST', PATH, {}, client)).status).toBe(403)
  expect((await call('GET', '/api/channels/none/link')).status).toBe(404)
  const keys = await call('POST', '/api/channels/keys/link', {})
  expect([keys.status, JSON.stringify(keys.body)]).toEqual([400, expect.stringContaining('device')])
  expect((await call('POST', PATH, { phone: '1' })).status).toBe(400)
  expect((await call('POST', PATH, { phone: '1'.repeat(41) })).status).toBe(400)
})

import { expect, test } from 'vitest'
import { Api } from './api.ts'
import { deviceNames } from './device-names.ts'

/** An API that answers each request with this status and body. */
const answering = (status: number, body: object): Api =>
  new Api('url', {
    send: async () => ({
      status,
      headers: new Headers(),
      body: (async function* () {
        yield new TextEncoder().encode(JSON.stringify(body))
      })(),
    }),
    close: async () => {},
  })

test('devices have their names', async () => {
  const named = await deviceNames(answering(200, { devices: [{ id: 'd1', name: 'phone' }] }), ['device:d1'])
  expect([named('device:d1'), named('device:d2'), named(null)]).toEqual(['device "phone"', 'device:d2', ''])
})

test('the ids stay for a client, who may not read the devices', async () => {
  const named = await deviceNames(answering(403, { error: 'This needs a token of the role operator', code: 'forbidden' }), ['device:d1'])
  expect(named('device:d1')).toBe('device:d1')
})

test('any other failure is one of the command', async () => {
  const failing = answering(503, { error: 'The store is busy', code: 'unavailable' })
  await expect(deviceNames(failing, ['device:d1'])).rejects.toMatchObject({ code: 'unavailable' })
})

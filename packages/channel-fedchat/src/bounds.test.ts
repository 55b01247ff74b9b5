import { memorySecrets } from '@sluice/testkit/memory-store'
import { expect, test } from 'vitest'
import type { Device } from './crypto/device.ts'
import { indexOf, Replays } from './crypto/replays.ts'
import { Verifications } from './crypto/verifications.ts'
import { Presses, reactionKey } from './presses.ts'
import { Vault } from './vault.ts'
import { Waiting } from './waiting.ts'

const arrange = () => {
  const secrets = memorySecrets()
  return { secrets, vault: new Vault(secrets) }
}

/** Returns a Megolm message with this index, below 16,384. */
const ciphertext = (index: number): string => Buffer.from([3, 8, (index & 127) | 128, index >> 7, 0x12, 1]).toString('base64')

test('at most 1,000 events wait for their keys, and the oldest is dropped', async () => {
  const { secrets, vault } = arrange()
  const waiting = await Waiting.load(vault)
  const add = (nr: number) =>
    waiting.add({ room: '!r', session: 's', event: { event_id: `$${nr}`, type: 'm.room.encrypted', sender: '@a:b' }, atMs: nr })
  for (let nr = 1; nr <= 1000; nr++) expect(add(nr)).toBeUndefined()
  expect(add(1001)?.event.event_id).toBe('$1')
  await vault.flush()
  const again = await Waiting.load(new Vault(secrets))
  expect(again.size).toBe(1000)
  expect(again.takeExpired(1000 + 7 * 86_400_000).map(({ event }) => event.event_id)).toEqual(
    waiting
      .all()
      .slice(0, 998)
      .map(({ event }) => event.event_id),
  )
})

test('the buttons of at most 500 messages are known', async () => {
  const { secrets, vault } = arrange()
  const presses = await Presses.load(vault)
  const button = { label: 'Yes', value: 'v', tone: 'good' } as const
  for (let nr = 1; nr <= 501; nr++) presses.show(`$${nr}`, [button], [])
  await vault.flush()
  expect((await Presses.load(new Vault(secrets))).size).toBe(500)
  expect(presses.valueOf('$1', reactionKey(button))).toBeUndefined()
  expect(presses.valueOf('$501', reactionKey(button))).toBe('v')
})

test('the indexes of at most 500 sessions are known, and of 2,000 messages each', async () => {
  const { secrets, vault } = arrange()
  const replays = await Replays.load(vault)
  for (let nr = 0; nr <= 500; nr++) expect(replays.isFirst(`session ${nr}`, ciphertext(1), `$${nr}`)).toBe(true)
  expect(replays.size).toBe(500)
  for (let index = 2; index <= 2002; index++) expect(replays.isFirst('session 9', ciphertext(index), `$i${index}`)).toBe(true)
  expect(replays.isFirst('session 9', ciphertext(2002), '$other')).toBe(false)
  expect(replays.isFirst('session 9', ciphertext(2002), '$i2002')).toBe(true)
  await vault.flush()
  const records = await secrets.list('seen/', 1000)
  expect(records).toHaveLength(500)
  expect(Math.max(...records.map(({ value }) => Object.keys(JSON.parse(value)).length))).toBe(2000)
  expect((await Replays.load(new Vault(secrets))).isFirst('session 9', ciphertext(2002), '$other')).toBe(false)
})

test('the index of a message is read from its ciphertext', () => {
  expect([0, 1, 127, 128, 300, 16_383].map((index) => indexOf(ciphertext(index)))).toEqual([0, 1, 127, 128, 300, 16_383])
  expect(indexOf('')).toBeUndefined()
  expect(indexOf('AAAA')).toBeUndefined()
})

test('at most 100 verifications of allowed users are known', () => {
  const log = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined }
  const verifications = new Verifications({} as Device, log, (user) => user === '@ada:b')
  const begin = (sender: string, nr: number) => ({ type: 'm.key.verification.request', sender, content: { transaction_id: `t${nr}` } })
  verifications.noteToDevice(Array.from({ length: 150 }, (_, nr) => begin('@ada:b', nr)))
  verifications.noteToDevice([begin('@eve:b', 1000)])
  expect(verifications.size).toBe(100)
})

test('a failed write is repeated with the next one, and newer changes win', async () => {
  const secrets = memorySecrets()
  let isBroken = true
  const vault = new Vault({ ...secrets, setAll: (changes) => (isBroken ? Promise.reject(new Error('full')) : secrets.setAll(changes)) })
  vault.set('a', '1')
  vault.set('b', '1')
  await expect(vault.flush()).rejects.toThrow('full')
  vault.set('a', '2')
  isBroken = false
  await vault.flush()
  expect(await secrets.list('', 10)).toEqual([
    { name: 'a', value: '2' },
    { name: 'b', value: '1' },
  ])
  vault.mayWrite = () => false
  vault.set('a', '3')
  await expect(vault.flush()).rejects.toMatchObject({ code: 'unavailable' })
})

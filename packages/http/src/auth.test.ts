import { sha256Hex } from '@sluice/sdk'
import { openStore } from '@sluice/store'
import { describe, expect, test } from 'vitest'
import { bearerToken } from './auth.ts'
import { type TestGateway, testGateways } from './testing.ts'

const gateway = testGateways()
const withToken = (token: string) => new Headers({ authorization: `Bearer ${token}` })
const unauthorized = { code: 'unauthorized' }

test.each([
  ['Bearer abc', 'abc'],
  ['bearer abc', 'abc'],
  ['BEARER   abc ', 'abc'],
  ['Bearer', undefined],
  ['Bearer ', undefined],
  ['Basic abc', undefined],
  ['abc', undefined],
  [`Bearer ${'a'.repeat(600)}`, undefined],
])('§5 rule 1 the token of %j is %j', (header, token) => {
  expect(bearerToken(new Headers({ authorization: header }))).toBe(token)
})

describe('a bearer token', () => {
  test('§5 rule 1 names its device until it is revoked, by this process at once', async () => {
    const { auth, pair, store } = gateway()
    const { token, device } = await pair()
    expect(await auth.bearer(withToken(token), 'a', false)).toEqual({ device, tokenHash: sha256Hex(token), role: 'operator' })
    await store.devices.revoke(device)
    await expect(async () => auth.bearer(withToken(token), 'a', false)).rejects.toMatchObject(unauthorized)
  })

  test('revoked by another process is refused as soon as that is durable', async () => {
    const { auth, pair, file, clock, runtime } = gateway()
    const { token, device } = await pair()
    await auth.bearer(withToken(token), 'a', false)
    const other = openStore({ file, clock, log: runtime.log })
    await other.devices.revoke(device)
    await other.close()
    expect(await auth.isGood(sha256Hex(token))).toBe(false)
    await expect(async () => auth.bearer(withToken(token), 'a', false)).rejects.toMatchObject(unauthorized)
  })

  test('is refused from the moment it expires', async () => {
    const { auth, pair, clock } = gateway()
    const { token } = await pair('guest', clock.nowMs() + 10)
    await auth.bearer(withToken(token), 'a', false)
    await clock.advance(10)
    await expect(async () => auth.bearer(withToken(token), 'a', false)).rejects.toMatchObject(unauthorized)
  })

  test('leaves when and from where its device was last seen, at most once a minute', async () => {
    const { auth, pair, store, clock } = gateway()
    const { token } = await pair()
    const seen = async () => (await store.devices.list()).map(({ lastSeenAtMs, lastAddress }) => [lastSeenAtMs, lastAddress])
    const firstMs = clock.nowMs()
    await auth.bearer(withToken(token), '203.0.113.9', false)
    await expect.poll(seen).toEqual([[firstMs, '203.0.113.9']])
    await clock.advance(59_999)
    await auth.bearer(withToken(token), '203.0.113.10', false)
    await clock.advance(1)
    await auth.bearer(withToken(token), '203.0.113.11', false)
    await expect.poll(seen).toEqual([[firstMs + 60_000, '203.0.113.11']])
  })

  test('is not looked at while no pairing is required', async () => {
    const { auth } = gateway({ config: { require_pairing: false } })
    expect(await auth.bearer(withToken('wrong'), 'a', false)).toEqual({ device: null, tokenHash: null, role: 'operator' })
  })
})

describe('the lockout', () => {
  const guess = async ({ auth }: TestGateway, spared = false) => {
    await expect(async () => auth.bearer(withToken('wrong'), 'a', spared)).rejects.toMatchObject(unauthorized)
  }

  test('ten wrong tokens lock an address out for 300 s; a valid token passes all the same', async () => {
    const made = gateway()
    const { token } = await made.pair()
    for (let tries = 0; tries < 10; tries++) await guess(made)
    for (const headers of [withToken('wrong'), new Headers()]) {
      await expect(async () => made.auth.bearer(headers, 'a', false)).rejects.toMatchObject({ code: 'rate_limited', retryAfterSecs: 300 })
    }
    await made.clock.advance(100)
    for (const address of ['a', 'b']) {
      expect(await made.auth.bearer(withToken(token), address, false)).toMatchObject({ device: expect.any(String) })
    }
    await made.clock.advance(300_000)
    await guess(made)
  })

  test('a missing token is no guess, and this machine is spared', async () => {
    const made = gateway()
    const { token } = await made.pair()
    for (let tries = 0; tries < 20; tries++) {
      await expect(async () => made.auth.bearer(new Headers(), 'a', false)).rejects.toMatchObject(unauthorized)
      await guess(made, true)
    }
    await made.auth.bearer(withToken(token), 'a', false)
  })
})

describe('those who wait for revocations', () => {
  const listening = async (made: TestGateway) => {
    const { token, device } = await made.pair()
    await made.auth.bearer(withToken(token), 'a', false)
    const told: string[] = []
    const stop = made.auth.onRevoked((tokenHash) => told.push(tokenHash))
    await made.clock.advance(500)
    return { device, gone: sha256Hex(token), told, stop }
  }

  test('are told of a removed device within a second, and once', async () => {
    const made = gateway()
    const { device, gone, told } = await listening(made)
    expect(told).toEqual([])
    await made.store.devices.revoke(device)
    await made.clock.advance(500)
    expect(told).toEqual([gone])
    await made.clock.advance(2000)
    expect(told).toEqual([gone])
  })

  test('are told of a replaced token', async () => {
    const made = gateway()
    const { device, gone, told } = await listening(made)
    await made.store.devices.rotate(device, 'f'.repeat(64))
    await made.clock.advance(500)
    expect(told).toEqual([gone])
  })

  test('are told when a token expires, though nothing is written', async () => {
    const made = gateway()
    const { token } = await made.pair('guest', made.clock.nowMs() + 1200)
    const gone = sha256Hex(token)
    await made.auth.bearer(withToken(token), 'a', false)
    const told: string[] = []
    made.auth.onRevoked((tokenHash) => told.push(tokenHash))
    await made.clock.advance(1000)
    expect(told).toEqual([])
    await made.clock.advance(500)
    expect(told).toEqual([gone])
  })

  test('are told nothing of devices that stay, however much is written', async () => {
    const made = gateway()
    const { told } = await listening(made)
    await made.pair('another')
    await made.clock.advance(1000)
    expect(told).toEqual([])
  })

  test('cost nothing once they have gone: nobody looks any more', async () => {
    const made = gateway()
    const { stop } = await listening(made)
    expect(made.clock.sleeping).toBe(1)
    stop()
    await made.clock.advance(0)
    expect(made.clock.sleeping).toBe(0)
  })

  test('are told of what another process did', async () => {
    const made = gateway()
    const { device, gone, told } = await listening(made)
    const other = openStore({ file: made.file, clock: made.clock, log: made.runtime.log })
    await other.devices.revoke(device)
    await other.close()
    await made.clock.advance(500)
    expect(told).toEqual([gone])
  })
})

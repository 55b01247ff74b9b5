import { sha256Hex } from '@sluice/sdk'
import { openStore } from '@sluice/store'
import { describe, expect, test, vi } from 'vitest'
import { type TestGateway, testGateways } from '../testing.ts'
import { bearerToken } from './auth.ts'

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
])('the token of %j is %j', (header, token) => {
  expect(bearerToken(new Headers({ authorization: header }))).toBe(token)
})

describe('a bearer token', () => {
  test('names its device until this process revokes it', async () => {
    const { auth, pair, store } = gateway()
    const { token, device } = await pair()
    expect(await auth.bearer(withToken(token), 'a', false)).toEqual({ device, tokenHash: sha256Hex(token), role: 'operator' })
    await store.devices.revoke(device)
    await expect(async () => auth.bearer(withToken(token), 'a', false)).rejects.toMatchObject(unauthorized)
  })

  test('is refused as soon as another process has revoked it', async () => {
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

  test('updates the last-seen time and address of its device at most once a minute', async () => {
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

  test('locks an address out for 300 s after ten wrong tokens, except valid ones', async () => {
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

  test('does not count missing tokens, nor failures of this machine', async () => {
    const made = gateway()
    const { token } = await made.pair()
    for (let tries = 0; tries < 20; tries++) {
      await expect(async () => made.auth.bearer(new Headers(), 'a', false)).rejects.toMatchObject(unauthorized)
      await guess(made, true)
    }
    await made.auth.bearer(withToken(token), 'a', false)
  })
})

describe('a listener for revocations', () => {
  const listening = async (made: TestGateway) => {
    const { token, device } = await made.pair()
    await made.auth.bearer(withToken(token), 'a', false)
    const revoked: string[] = []
    const stop = made.auth.onRevoked((tokenHash) => revoked.push(tokenHash))
    await made.clock.advance(500)
    return { device, tokenHash: sha256Hex(token), revoked, stop }
  }

  test('is called once, within a second, for a removed device', async () => {
    const made = gateway()
    const { device, tokenHash, revoked } = await listening(made)
    expect(revoked).toEqual([])
    await made.store.devices.revoke(device)
    await made.clock.advance(500)
    expect(revoked).toEqual([tokenHash])
    await made.clock.advance(2000)
    expect(revoked).toEqual([tokenHash])
  })

  test('is called for a replaced token', async () => {
    const made = gateway()
    const { device, tokenHash, revoked } = await listening(made)
    await made.store.devices.rotate(device, 'f'.repeat(64))
    await made.clock.advance(500)
    expect(revoked).toEqual([tokenHash])
  })

  test('is called when a token expires without any write', async () => {
    const made = gateway()
    const { token } = await made.pair('guest', made.clock.nowMs() + 1200)
    const tokenHash = sha256Hex(token)
    await made.auth.bearer(withToken(token), 'a', false)
    const revoked: string[] = []
    made.auth.onRevoked((tokenHash) => revoked.push(tokenHash))
    await made.clock.advance(1000)
    expect(revoked).toEqual([])
    await made.clock.advance(500)
    expect(revoked).toEqual([tokenHash])
  })

  test('is not called for devices that stay while others are written', async () => {
    const made = gateway()
    const { revoked } = await listening(made)
    await made.pair('another')
    await made.clock.advance(1000)
    expect(revoked).toEqual([])
  })

  test('stops the polling when it unsubscribes', async () => {
    const made = gateway()
    const { stop } = await listening(made)
    expect(made.clock.sleeping).toBe(1)
    stop()
    await made.clock.advance(0)
    expect(made.clock.sleeping).toBe(0)
  })

  test('is called for a device that another process removed', async () => {
    const made = gateway()
    const { device, tokenHash, revoked } = await listening(made)
    const other = openStore({ file: made.file, clock: made.clock, log: made.runtime.log })
    await other.devices.revoke(device)
    await other.close()
    await made.clock.advance(500)
    expect(revoked).toEqual([tokenHash])
  })

  test('is called with the tokens that the store has not been able to check for a second', async () => {
    const made = gateway()
    const { token } = await made.pair()
    await made.auth.bearer(withToken(token), 'a', false)
    const ended: unknown[] = []
    made.auth.onRevoked((tokenHash, why) => ended.push([tokenHash, why]))
    await made.clock.advance(500)
    const hang = vi.spyOn(made.store.devices, 'version').mockReturnValue(new Promise(() => {}))
    await made.clock.advance(500)
    await made.clock.advance(500)
    expect(ended).toEqual([])
    await made.clock.advance(500)
    await made.clock.advance(500)
    expect(ended).toEqual([[sha256Hex(token), 'unknown']])
    hang.mockRestore()
  })
})

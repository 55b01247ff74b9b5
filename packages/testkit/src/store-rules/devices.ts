/** Rules for paired devices and one-time codes. */
import { expect } from 'vitest'
import type { StoreRules } from './store-bench.ts'

const device = (id: string, part: { readonly expiresAtMs?: number; readonly tokenHash?: string } = {}) => ({
  id,
  name: `name of ${id}`,
  role: 'operator' as const,
  tokenHash: `hash of ${id}`,
  createdAtMs: 1_000,
  expiresAtMs: null,
  ...part,
})

export const deviceRules: StoreRules = {
  'a device is found only by the hash of its token': async ({ store: { devices } }) => {
    await devices.add(device('d1'))
    const row = {
      id: 'd1',
      name: 'name of d1',
      role: 'operator',
      createdAtMs: 1_000,
      lastSeenAtMs: null,
      lastAddress: null,
      expiresAtMs: null,
      issuedBy: null,
    }
    expect(await devices.findByTokenHash('hash of d1')).toEqual(row)
    expect(await devices.list()).toEqual([row])
    for (const wrong of ['', 'd1', 'hash of d', 'HASH OF D1', '%', 'hash of d1\0'])
      expect(await devices.findByTokenHash(wrong)).toBeUndefined()
  },

  'adding a known device id or token is a conflict': async ({ store: { devices } }) => {
    await devices.add(device('d1'))
    await expect(devices.add(device('d1', { tokenHash: 'other' }))).rejects.toMatchObject({ code: 'conflict' })
    await expect(devices.add(device('d2', { tokenHash: 'hash of d1' }))).rejects.toMatchObject({ code: 'conflict' })
    expect(await devices.list()).toHaveLength(1)
  },

  'each way to read a device returns the whole of it': async ({ store: { devices }, clock, otherProcess }) => {
    const expiresAtMs = clock.nowMs() + 10_000
    await devices.addCode({ hash: 'code', role: 'client', expiresAtMs }, 5)
    await devices.redeemCode('code', { ...device('d1', { expiresAtMs }), issuedBy: 'd0' })
    await devices.touch([
      { id: 'd1', atMs: 5, address: '192.0.2.1' },
      { id: 'd1', atMs: 6, address: '2001:db8::1' },
    ])
    const whole = {
      ...{ id: 'd1', name: 'name of d1', role: 'client', createdAtMs: 1_000, expiresAtMs, issuedBy: 'd0' },
      ...{ lastSeenAtMs: 6, lastAddress: '2001:db8::1' },
    }
    expect(await devices.rotate('d1', 'new hash')).toBe(true)
    for (const { devices: read } of [{ devices }, await otherProcess()]) {
      expect(await read.findByTokenHash('new hash')).toEqual(whole)
      expect(await read.find('d1')).toEqual(whole)
      expect(await read.find('D1')).toBeUndefined()
      expect(await read.list()).toEqual([whole])
    }
  },

  'a rotation to the token of another device changes nothing': async ({ store: { devices } }) => {
    await devices.add(device('d1'))
    await devices.add(device('d2'))
    expect(await devices.rotate('d1', 'hash of d2', 9_000)).toBe(false)
    expect((await devices.list()).map(({ id, expiresAtMs }) => [id, expiresAtMs])).toEqual([
      ['d1', null],
      ['d2', null],
    ])
    expect(await devices.findByTokenHash('hash of d2')).toMatchObject({ id: 'd2' })
  },

  'an expired device is not found': async ({ store: { devices }, clock }) => {
    await devices.add(device('d1', { expiresAtMs: clock.nowMs() + 1_000 }))
    expect(await devices.findByTokenHash('hash of d1')).toMatchObject({ id: 'd1' })
    await clock.advance(1_000)
    expect(await devices.findByTokenHash('hash of d1')).toBeUndefined()
  },

  'adding or redeeming a device removes expired devices': async ({ store: { devices }, clock }) => {
    const ids = async () => (await devices.list()).map(({ id }) => id)
    await devices.add(device('stays'))
    await devices.add(device('d1', { expiresAtMs: clock.nowMs() + 1_000 }))
    await clock.advance(999)
    await devices.add(device('d2', { expiresAtMs: clock.nowMs() + 1_000 }))
    expect(await ids()).toEqual(['stays', 'd1', 'd2'])
    await clock.advance(1)
    await devices.add(device('d3'))
    expect(await ids()).toEqual(['stays', 'd2', 'd3'])
    await clock.advance(1_000)
    await devices.addCode({ hash: 'code', role: 'operator', expiresAtMs: clock.nowMs() + 1_000 }, 3)
    expect(await devices.redeemCode('code', device('d4'))).toBe('operator')
    expect(await ids()).toEqual(['stays', 'd3', 'd4'])
  },

  'a device revoked by another process is refused at once': async ({ store: { devices }, otherProcess }) => {
    for (const id of ['d1', 'd2']) {
      await devices.add(device(id))
      expect(await devices.findByTokenHash(`hash of ${id}`)).toMatchObject({ id })
    }
    expect(await devices.revoke('d1')).toBe(true)
    expect(await devices.findByTokenHash('hash of d1')).toBeUndefined()
    expect(await devices.revoke('d1')).toBe(false)
    expect(await devices.findByTokenHash('hash of d2')).toMatchObject({ id: 'd2' })
    await (await otherProcess()).devices.revoke('d2')
    expect(await devices.findByTokenHash('hash of d2')).toBeUndefined()
  },

  'finds a device that another process added': async ({ store: { devices }, otherProcess }) => {
    expect(await devices.findByTokenHash('hash of d1')).toBeUndefined()
    await (await otherProcess()).devices.add(device('d1'))
    expect(await devices.findByTokenHash('hash of d1')).toMatchObject({ id: 'd1' })
  },

  'after a rotation only the new token is valid': async ({ store: { devices } }) => {
    await devices.add(device('d1'))
    expect(await devices.findByTokenHash('hash of d1')).toMatchObject({ id: 'd1' })
    expect(await devices.rotate('d1', 'new hash')).toBe(true)
    expect(await devices.findByTokenHash('hash of d1')).toBeUndefined()
    expect(await devices.findByTokenHash('new hash')).toMatchObject({ id: 'd1', name: 'name of d1' })
    expect(await devices.rotate('unknown', 'x')).toBe(false)
  },

  'a rotation changes the expiry only if it is given one': async ({ store: { devices } }) => {
    await devices.add(device('d1'))
    await devices.rotate('d1', 'renewed', 9_000_000_000_000)
    expect(await devices.findByTokenHash('renewed')).toMatchObject({ id: 'd1', expiresAtMs: 9_000_000_000_000 })
    await devices.rotate('d1', 'renewed')
    expect(await devices.findByTokenHash('renewed')).toMatchObject({ id: 'd1', expiresAtMs: 9_000_000_000_000 })
  },

  'stores when a device was last seen': async ({ store: { devices } }) => {
    await devices.add(device('d1'))
    await devices.add(device('d2'))
    await devices.findByTokenHash('hash of d1')
    await devices.touch([
      { id: 'd1', atMs: 5, address: '192.0.2.1' },
      { id: 'unknown', atMs: 6, address: '192.0.2.2' },
    ])
    expect(await devices.findByTokenHash('hash of d1')).toMatchObject({ lastSeenAtMs: 5, lastAddress: '192.0.2.1' })
    expect((await devices.list()).map(({ lastSeenAtMs }) => lastSeenAtMs)).toEqual([5, null])
  },

  'the version changes when any process removes a device or replaces a token': async ({ store, otherProcess }) => {
    const other = await otherProcess()
    await store.devices.add(device('d1'))
    await store.devices.add(device('d2'))
    const versions = [await store.devices.version()]
    await other.devices.revoke('d1')
    versions.push(await store.devices.version())
    await store.devices.rotate('d2', 'new hash')
    versions.push(await store.devices.version())
    await other.devices.rotate('d2', 'newer hash')
    versions.push(await store.devices.version())
    await store.devices.revoke('d2')
    versions.push(await store.devices.version())
    expect(new Set(versions).size).toBe(5)
    expect(await store.devices.version()).toBe(versions[4])
  },

  'a code can be redeemed once': async ({ store: { devices }, clock }) => {
    await devices.addCode({ hash: 'code', role: 'operator', expiresAtMs: clock.nowMs() + 1_000 }, 5)
    const redeemed = await Promise.all(['d1', 'd2', 'd3'].map((id) => devices.redeemCode('code', device(id))))
    expect(redeemed.filter(Boolean)).toHaveLength(1)
    expect(await devices.list()).toHaveLength(1)
    expect(await devices.redeemCode('unknown', device('d4'))).toBeUndefined()
  },

  'a redeemed device gets the role of its code': async ({ store: { devices }, clock }) => {
    await devices.addCode({ hash: 'code', role: 'client', expiresAtMs: clock.nowMs() + 1_000 }, 5)
    expect(await devices.redeemCode('code', device('d1'))).toBe('client')
    await devices.add({ ...device('d2'), role: 'client' })
    await devices.rotate('d2', 'another token')
    expect((await devices.list()).map(({ id, role }) => [id, role])).toEqual([
      ['d1', 'client'],
      ['d2', 'client'],
    ])
    expect(await devices.findByTokenHash('another token')).toMatchObject({ role: 'client' })
  },

  'revoking a device revokes those it vouches for, unless passkeys stay': async ({ store: { devices } }) => {
    for (const id of ['d1', 'd2']) {
      await devices.add(device(id))
      await devices.add({ ...device(`${id} by passkey`), issuedBy: id })
    }
    expect(await devices.revoke('d1')).toBe(true)
    expect(await devices.revoke('d1')).toBe(false)
    expect(await devices.revoke('d2', { keepPasskeys: true })).toBe(true)
    expect((await devices.list()).map(({ id, issuedBy }) => [id, issuedBy])).toEqual([['d2 by passkey', 'd2']])
    expect(await devices.revokedAmong(['d1', 'd2', 'd2 by passkey', 'unknown'])).toEqual(['d1'])
  },

  'an expired code cannot be redeemed': async ({ store: { devices }, clock }) => {
    await devices.addCode({ hash: 'code', role: 'operator', expiresAtMs: clock.nowMs() + 1_000 }, 5)
    await clock.advance(1_000)
    expect(await devices.redeemCode('code', device('d1'))).toBeUndefined()
    expect(await devices.list()).toEqual([])
  },

  'keeps at most pendingMax unexpired codes and drops the oldest': async ({ store: { devices }, clock }) => {
    await devices.addCode({ hash: 'expired', role: 'operator', expiresAtMs: clock.nowMs() }, 2)
    for (const hash of ['a', 'b', 'c']) await devices.addCode({ hash, role: 'operator', expiresAtMs: clock.nowMs() + 1_000 }, 2)
    expect(await devices.redeemCode('a', device('d1'))).toBeUndefined()
    expect(await devices.redeemCode('b', device('d2'))).toBe('operator')
    expect(await devices.redeemCode('c', device('d3'))).toBe('operator')
  },

  'drops all codes': async ({ store: { devices }, clock }) => {
    for (const hash of ['a', 'b']) await devices.addCode({ hash, role: 'operator', expiresAtMs: clock.nowMs() + 1_000 }, 5)
    expect(await devices.dropCodes()).toBe(2)
    expect(await devices.redeemCode('a', device('d1'))).toBeUndefined()
    expect(await devices.dropCodes()).toBe(0)
  },
}

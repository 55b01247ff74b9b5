import { memorySecrets } from '@sluice/testkit/memory-store'
import { describe, expect, test } from 'vitest'
import { type Passkey, PasskeyStore } from './passkeys.ts'

const passkey = (id: string): Passkey => ({
  id,
  publicKey: 'AA',
  algorithm: -7,
  counter: 0,
  label: 'key',
  transports: [],
  aaguid: '',
  mayBeBackedUp: false,
  isBackedUp: false,
  registeredAtMs: 0,
  registeredBy: null,
  role: 'operator',
  lastUsedAtMs: null,
  disabledAtMs: null,
})

describe('PasskeyStore', () => {
  test('loses no concurrent change of this or another process', async () => {
    const secrets = memorySecrets()
    const passkeys = new PasskeyStore(secrets)
    const otherProcess = new PasskeyStore(secrets)
    const ids = Array.from({ length: 20 }, (_, number) => `p${number}`)
    await Promise.all(ids.map((id, at) => (at % 2 ? passkeys : otherProcess).add('alice', 'Alice', passkey(id))))
    await Promise.all([
      otherProcess.update('alice', 'p0', (known) => ({ ...known, counter: known.counter + 1 })),
      passkeys.update('alice', 'p0', (known) => ({ ...known, counter: known.counter + 1 })),
      passkeys.remove('alice', 'p19'),
    ])
    const again = await new PasskeyStore(secrets).of('alice')
    expect(again.map(({ id }) => id).sort()).toEqual(ids.slice(0, -1).sort())
    expect(again.find(({ id }) => id === 'p0')?.counter).toBe(2)
  })

  test('accepts 20 passkeys for a user, and another after a removal', async () => {
    const passkeys = new PasskeyStore(memorySecrets())
    for (let number = 0; number < 20; number++) await passkeys.add('alice', 'Alice', passkey(`p${number}`))
    await expect(passkeys.add('alice', 'Alice', passkey('more'))).rejects.toMatchObject({ code: 'conflict' })
    await expect(passkeys.checkRoom('alice')).rejects.toMatchObject({ code: 'conflict' })
    await passkeys.remove('alice', 'p3')
    await passkeys.add('alice', 'Alice', passkey('more'))
  })

  test.each([
    [1000, 1],
    [100, 20],
  ])('refuses another passkey after %i users with %i each', async (users, each) => {
    const kept = Array.from({ length: users }, (_, number) => [
      `u${number}`,
      { name: 'x', passkeys: Array.from({ length: each }, (_, key) => passkey(`${number}.${key}`)) },
    ])
    const passkeys = new PasskeyStore(memorySecrets({ passkeys: JSON.stringify({ version: 1, users: kept }) }))
    await expect(passkeys.add('one more', 'x', passkey('more'))).rejects.toMatchObject({ code: 'conflict' })
    expect(await passkeys.count()).toEqual({ users, passkeys: users * each, disabled: 0 })
  })

  test('accepts any text as a user id', async () => {
    const passkeys = new PasskeyStore(memorySecrets())
    for (const name of ['__proto__', 'constructor', '👩‍👩‍👧', ' ']) {
      expect(await passkeys.of(name)).toEqual([])
      await passkeys.add(name, name, passkey(name))
      expect(await passkeys.of(name)).toHaveLength(1)
      expect(await passkeys.remove(name, name)).toBe(true)
    }
    expect(await passkeys.count()).toEqual({ users: 0, passkeys: 0, disabled: 0 })
  })

  test('drops passkeys that were registered in the name of a user, whom an operator cannot revoke', async () => {
    const kept = { name: 'x', passkeys: [passkey('own'), { ...passkey('of a user'), registeredBy: 'user:alice' }] }
    const passkeys = new PasskeyStore(memorySecrets({ passkeys: JSON.stringify({ version: 1, users: [['alice', kept]] }) }))
    expect((await passkeys.of('alice')).map(({ id }) => id)).toEqual(['own'])
  })

  test('does not overwrite a secret that it cannot read', async () => {
    for (const text of ['', '{}', '{"version":2,"users":[]}']) {
      const secrets = memorySecrets({ passkeys: text })
      await expect(new PasskeyStore(secrets).add('alice', 'Alice', passkey('a'))).rejects.toMatchObject({ code: 'internal' })
      expect(await secrets.get('passkeys')).toBe(text)
    }
  })
})

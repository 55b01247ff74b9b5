import { memorySecrets } from '@sluice/testkit/memory-store'
import { expect, test } from 'vitest'
import { createPasskeys, type Passkey } from './passkeys.ts'

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

test('all changes asked for at once are kept, each after the other', async () => {
  const secrets = memorySecrets()
  const passkeys = createPasskeys(secrets)
  const ids = Array.from({ length: 20 }, (_, number) => `p${number}`)
  await Promise.all(ids.map((id) => passkeys.add('alice', 'Alice', passkey(id))))
  await Promise.all([
    passkeys.update('alice', 'p0', (known) => ({ ...known, counter: known.counter + 1 })),
    passkeys.update('alice', 'p0', (known) => ({ ...known, counter: known.counter + 1 })),
    passkeys.remove('alice', 'p19'),
  ])
  const again = await createPasskeys(secrets).of('alice')
  expect(again.map(({ id }) => id)).toEqual(ids.slice(0, -1))
  expect(again[0]?.counter).toBe(2)
})

test('a user has at most 20 passkeys, and deleting one makes room', async () => {
  const passkeys = createPasskeys(memorySecrets())
  for (let number = 0; number < 20; number++) await passkeys.add('alice', 'Alice', passkey(`p${number}`))
  await expect(passkeys.add('alice', 'Alice', passkey('more'))).rejects.toMatchObject({ code: 'conflict' })
  await expect(passkeys.checkRoom('alice')).rejects.toMatchObject({ code: 'conflict' })
  await passkeys.remove('alice', 'p3')
  await passkeys.add('alice', 'Alice', passkey('more'))
})

test.each([
  [1000, 1],
  [100, 20],
])('there are at most 1,000 users and 2,000 passkeys: %i users with %i each are all', async (users, each) => {
  const kept = Array.from({ length: users }, (_, number) => [
    `u${number}`,
    { name: 'x', passkeys: Array.from({ length: each }, (_, key) => passkey(`${number}.${key}`)) },
  ])
  const passkeys = createPasskeys(memorySecrets({ passkeys: JSON.stringify({ version: 1, users: kept }) }))
  await expect(passkeys.add('one more', 'x', passkey('more'))).rejects.toMatchObject({ code: 'conflict' })
  expect(await passkeys.count()).toEqual({ users, passkeys: users * each, disabled: 0 })
})

test('a user may be called like anything', async () => {
  const passkeys = createPasskeys(memorySecrets())
  for (const name of ['__proto__', 'constructor', '👩‍👩‍👧', ' ']) {
    expect(await passkeys.of(name)).toEqual([])
    await passkeys.add(name, name, passkey(name))
    expect(await passkeys.of(name)).toHaveLength(1)
    expect(await passkeys.remove(name, name)).toBe(true)
  }
  expect(await passkeys.count()).toEqual({ users: 0, passkeys: 0, disabled: 0 })
})

test('what cannot be read is not written over', async () => {
  for (const text of ['', '{}', '{"version":2,"users":[]}']) {
    const secrets = memorySecrets({ passkeys: text })
    await expect(createPasskeys(secrets).add('alice', 'Alice', passkey('a'))).rejects.toMatchObject({ code: 'internal' })
    expect(await secrets.get('passkeys')).toBe(text)
  }
})

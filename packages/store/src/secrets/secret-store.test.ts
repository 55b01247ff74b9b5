import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { memoryKeyValue } from '@sluice/testkit/memory-store'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openSecretBox } from './secret-box.ts'
import { secretStore } from './secret-store.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'secret-store-'))
})
afterEach(() => {
  rmSync(folder, { recursive: true })
})

test('a secret is stored encrypted, replaced and deleted', async () => {
  const keyValue = memoryKeyValue()
  const secrets = secretStore(openSecretBox(folder), keyValue)
  expect(await secrets.get('token')).toBeUndefined()
  for (const value of ['hunter2', 'hunter3', '']) {
    await secrets.set('token', value)
    expect(await secrets.get('token')).toBe(value)
    expect(await keyValue.get('token')).toMatch(/^enc:1:/)
  }
  await secrets.delete('token')
  expect(await secrets.get('token')).toBeUndefined()
})

test('a secret is swapped only when it is the one that was read', async () => {
  const keyValue = memoryKeyValue()
  const secrets = secretStore(openSecretBox(folder), keyValue)
  expect(await secrets.swap('token', 'hunter1', 'hunter2')).toBe(false)
  expect(await secrets.swap('token', undefined, 'hunter1')).toBe(true)
  expect(await secrets.swap('token', undefined, 'hunter2')).toBe(false)
  const wins = await Promise.all(['one', 'two'].map((value) => secrets.swap('token', 'hunter1', value)))
  expect(wins.filter(Boolean)).toHaveLength(1)
  expect(await keyValue.get('token')).toMatch(/^enc:1:/)
  expect(await secrets.swap('token', await secrets.get('token'), undefined)).toBe(true)
  expect(await secrets.get('token')).toBeUndefined()
})

test('many secrets are written, deleted and listed at once', async () => {
  const keyValue = memoryKeyValue()
  const secrets = secretStore(openSecretBox(folder), keyValue)
  await secrets.set('old', 'hunter1')
  await secrets.setAll(
    new Map([
      ['keys/b', 'hunter3'],
      ['keys/a', 'hunter2'],
      ['old', undefined],
    ]),
  )
  expect(await secrets.get('old')).toBeUndefined()
  expect(await secrets.list('keys/', 10)).toEqual([
    { name: 'keys/a', value: 'hunter2' },
    { name: 'keys/b', value: 'hunter3' },
  ])
  expect(await secrets.list('keys/', 1)).toHaveLength(1)
  expect(await keyValue.get('keys/a')).toMatch(/^enc:1:/)
})

test('a secret copied to another name or owner does not decrypt', async () => {
  const keyValue = memoryKeyValue()
  const box = openSecretBox(folder)
  await secretStore(box, keyValue, 'secrets.one').set('a', 'hunter2')
  await keyValue.set('b', await keyValue.get('a'))
  await expect(secretStore(box, keyValue, 'secrets.one').get('b')).rejects.toMatchObject({ code: 'config_invalid' })
  await expect(secretStore(box, keyValue, 'secrets.two').get('a')).rejects.toMatchObject({ code: 'config_invalid' })
})

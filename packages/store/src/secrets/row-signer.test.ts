import { createHmac } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openRowSigner } from './row-signer.ts'
import { beginRotation, endRotation } from './secret-rotation.ts'

let dir: string
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'row-signer-'))
})
afterEach(() => rmSync(dir, { recursive: true, force: true }))

test('proves a text with the key of the data directory, which the first use creates', () => {
  const signer = openRowSigner(dir)
  const hmac = signer.sign('a row')
  expect(hmac).toMatch(new RegExp(`^${signer.keyId()}:[A-Za-z0-9_-]{43}$`))
  expect([signer.faultOf('a row', hmac), openRowSigner(dir).faultOf('a row', hmac)]).toEqual([undefined, undefined])
})

test.each([
  ['another text', (hmac: string) => hmac, 'a raw'],
  ['a changed HMAC', (hmac: string) => `${hmac.slice(0, -2)}${hmac.endsWith('AA') ? 'BA' : 'AA'}`, 'a row'],
  ['a shortened HMAC', (hmac: string) => hmac.slice(0, -1), 'a row'],
  ['an HMAC without a key', (hmac: string) => hmac.slice(9), 'a row'],
  ['nothing', () => '', 'a row'],
])('%s does not verify', (_, change, text) => {
  const signer = openRowSigner(dir)
  expect(signer.faultOf(text, change(signer.sign('a row')))).toContain('its HMAC is wrong')
})

test('the HMAC has a key of its own, which is not the key for secrets', () => {
  const signer = openRowSigner(dir)
  signer.keyId()
  const key = Buffer.from(readFileSync(join(dir, 'secret.key'), 'utf8').trim(), 'hex')
  const plain = createHmac('sha256', key).update('a row').digest('base64url')
  expect(signer.sign('a row')).not.toContain(plain)
})

test('while the key is rotated both keys prove, and afterwards only the new one', () => {
  const signer = openRowSigner(dir)
  const old = signer.sign('a row')
  const id = signer.keyId()
  beginRotation(dir)
  const fresh = signer.sign('a row')
  expect([fresh.startsWith(id), signer.faultOf('a row', old), signer.faultOf('a row', fresh)]).toEqual([false, undefined, undefined])
  endRotation(dir)
  expect(signer.keyId()).not.toBe(id)
  expect(signer.faultOf('a row', old)).toContain(`made with the key ${id}`)
  expect(signer.faultOf('a row', fresh)).toBeUndefined()
})

test('remembers what a database has shown, and never goes back', () => {
  const signer = openRowSigner(dir)
  expect(signer.remembered('db')).toBeUndefined()
  signer.remember('db', { atMs: 2, configVersion: 5 })
  signer.remember('db', { atMs: 1, configVersion: 9 })
  signer.remember('db', { atMs: 2, configVersion: 4 })
  expect(openRowSigner(dir).remembered('db')).toEqual({ atMs: 2, configVersion: 5 })
  signer.remember('db', { atMs: 3, configVersion: 1 })
  expect([signer.remembered('db'), signer.remembered('another')]).toEqual([{ atMs: 3, configVersion: 1 }, undefined])
  writeFileSync(join(dir, 'signed-rows.json'), 'no JSON')
  expect(signer.remembered('db')).toBeUndefined()
})

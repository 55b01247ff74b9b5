import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openSecretBox } from './secret-box.ts'
import { createSecretKey } from './secret-key.ts'

const PATH = 'channels_config.roomchat.webhook_secret'
const invalid = (text: string) => expect.objectContaining({ code: 'config_invalid', message: expect.stringContaining(text) })

let folder: string
let keyFile: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'secret-box-'))
  keyFile = join(folder, 'secret.key')
})
afterEach(() => {
  rmSync(folder, { recursive: true })
})

test('a value decrypts to itself and has a different form each time', () => {
  const box = openSecretBox(folder)
  for (const plain of ['', 'hunter2', 'naïve 👩‍👩‍👧 \0', 'x'.repeat(100_000)]) {
    const text = box.encrypt(plain, PATH)
    expect(text).toMatch(/^enc:1:[0-9a-f]{8}:[A-Za-z0-9_-]+$/)
    expect(box.encrypt(plain, PATH)).not.toBe(text)
    expect(openSecretBox(folder).decrypt(text, PATH)).toBe(plain)
  }
})

test('a value that was moved or changed does not decrypt', () => {
  const box = openSecretBox(folder)
  const text = box.encrypt('hunter2', PATH)
  expect(() => box.decrypt(text, 'provider.api_key')).toThrow(invalid('provider.api_key cannot be decrypted'))
  const start = text.lastIndexOf(':') + 1
  for (let at = start; at < text.length - 1; at++) {
    const changed = text.slice(0, at) + (text[at] === 'A' ? 'B' : 'A') + text.slice(at + 1)
    expect(() => box.decrypt(changed, PATH)).toThrow(invalid(PATH))
  }
  for (let end = 0; end < text.length; end++) expect(() => box.decrypt(text.slice(0, end), PATH)).toThrow(invalid(PATH))
})

test('an error reveals neither the value nor the key', () => {
  const box = openSecretBox(folder)
  const text = box.encrypt('hunter2', PATH)
  const messages: string[] = []
  for (const use of [
    () => box.decrypt(text, 'x'),
    () => box.decrypt(text.replace(/enc:1:./, 'enc:1:x'), PATH),
    () => box.decrypt('hunter2', PATH),
  ]) {
    try {
      use()
    } catch (error) {
      messages.push(String(error))
    }
  }
  expect(messages).toHaveLength(3)
  const secrets = ['hunter2', readFileSync(keyFile, 'utf8').trim(), text.slice(text.lastIndexOf(':') + 1)]
  for (const secret of secrets) expect(messages.join()).not.toContain(secret)
})

test('a different key is named in the error', () => {
  const text = openSecretBox(folder).encrypt('hunter2', PATH)
  rmSync(keyFile)
  openSecretBox(folder).encrypt('other', PATH)
  expect(() => openSecretBox(folder).decrypt(text, PATH)).toThrow(
    invalid(`was encrypted with key ${text.slice(6, 14)}, but ${keyFile} is key`),
  )
})

test('no file is accessed early, and decrypting never creates a key', () => {
  const text = openSecretBox(folder).encrypt('hunter2', PATH)
  rmSync(keyFile)
  const box = openSecretBox(folder)
  expect(box.isEncrypted(text)).toBe(true)
  expect(() => box.decrypt(text, PATH)).toThrow(invalid(`its key file ${keyFile} is missing`))
  expect(existsSync(keyFile)).toBe(false)
})

test('encrypting creates a private key file and an empty database', () => {
  openSecretBox(join(folder, 'new')).encrypt('hunter2', PATH)
  expect(readdirSync(join(folder, 'new')).toSorted()).toEqual(['secret.key', 'sluice.db'])
  expect(statSync(join(folder, 'new')).mode & 0o777).toBe(0o700)
  expect(statSync(join(folder, 'new', 'secret.key')).mode & 0o777).toBe(0o600)
})

test('a key file that is readable for others is refused with the command to fix it', () => {
  openSecretBox(folder).encrypt('hunter2', PATH)
  for (const mode of [0o640, 0o604, 0o620, 0o601]) {
    chmodSync(keyFile, mode)
    expect(() => openSecretBox(folder).encrypt('x', PATH)).toThrow(invalid(`chmod 600 ${keyFile}`))
  }
})

test('a key file without a key is refused and not replaced', () => {
  for (const text of ['', 'short', 'g'.repeat(64), 'a'.repeat(63)]) {
    writeFileSync(keyFile, text, { mode: 0o600 })
    expect(() => openSecretBox(folder).encrypt('x', PATH)).toThrow(invalid('holds no key'))
    expect(readFileSync(keyFile, 'utf8')).toBe(text)
  }
})

test('a second process gets the key of the first', () => {
  const first = createSecretKey(keyFile)
  const second = createSecretKey(keyFile)
  expect(second.id).toBe(first.id)
  expect(second.bytes.equals(first.bytes)).toBe(true)
  expect(readdirSync(folder)).toEqual(['secret.key'])
})

test('an unusable folder is reported as unavailable', () => {
  writeFileSync(join(folder, 'file'), '')
  expect(() => createSecretKey(join(folder, 'file', 'secret.key'))).toThrow(expect.objectContaining({ code: 'unavailable' }))
})

test('an encrypted form of any version is recognized', () => {
  const box = openSecretBox(folder)
  for (const text of ['enc:1:0a0b0c0d:xyz', 'enc:2:whatever']) expect(box.isEncrypted(text)).toBe(true)
  for (const text of ['', 'enc', 'enc:', 'enc:x:', 'sk-enc:1:', 'hunter2']) expect(box.isEncrypted(text)).toBe(false)
})

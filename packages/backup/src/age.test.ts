import { testRandom } from '@sluice/testkit/random'
import { Decrypter, Encrypter } from 'age-encryption'
import { describe, expect, test } from 'vitest'
import { isSealed, seal, unseal } from './age.ts'

const PASSPHRASE = 'correct horse battery staple'
/** A small one, so that a test takes milliseconds. */
const WORK_FACTOR = 10
const TIMEOUT = { timeout: 60_000 }

const randomBytes = (length: number): Buffer => Buffer.from(testRandom().bytes(length))

async function* pieces(bytes: Uint8Array, size: number): AsyncIterable<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

async function collect(source: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const parts: Uint8Array[] = []
  for await (const part of source) parts.push(part)
  return Buffer.concat(parts)
}

const sealed = (bytes: Uint8Array): Promise<Buffer> => collect(seal(pieces(bytes, 10_000), PASSPHRASE, WORK_FACTOR))
const opened = (bytes: Uint8Array, passphrase = PASSPHRASE, size = 10_000): Promise<Buffer> =>
  collect(unseal(pieces(bytes, size), passphrase))

describe('the format of age', () => {
  test.each([0, 1, 65_535, 65_536, 65_537, 200_000])('%i bytes are decrypted by the library of age', TIMEOUT, async (length) => {
    const bytes = randomBytes(length)
    const decrypter = new Decrypter()
    decrypter.addPassphrase(PASSPHRASE)
    expect(Buffer.from(await decrypter.decrypt(await sealed(bytes)))).toEqual(bytes)
  })

  test('the default work factor is decrypted', TIMEOUT, async () => {
    const bytes = randomBytes(100)
    expect(await opened(await collect(seal(pieces(bytes, 10), PASSPHRASE)))).toEqual(bytes)
  })

  test.each([0, 65_536, 200_000])('%i bytes encrypted by the library of age are decrypted', TIMEOUT, async (length) => {
    const bytes = randomBytes(length)
    const encrypter = new Encrypter()
    encrypter.setPassphrase(PASSPHRASE)
    encrypter.setScryptWorkFactor(10)
    expect(await opened(await encrypter.encrypt(bytes), PASSPHRASE, 997)).toEqual(bytes)
  })

  test('a file is recognized by its beginning', TIMEOUT, async () => {
    expect(isSealed(await sealed(new Uint8Array()))).toBe(true)
    expect(isSealed(Buffer.from('sluice.db'))).toBe(false)
  })
})

describe('an encrypted file', () => {
  test('with another passphrase is refused', TIMEOUT, async () => {
    await expect(opened(await sealed(randomBytes(10)), 'wrong')).rejects.toMatchObject({
      code: 'invalid_request',
      message: 'The passphrase is wrong.',
    })
  })

  test('that was cut off at any place is refused', TIMEOUT, async () => {
    const whole = await sealed(randomBytes(140_000))
    const cuts = [0, 10, 100, 180, whole.length - 65_536 - 16, whole.length - 9000, whole.length - 1]
    for (const length of cuts)
      await expect(opened(whole.subarray(0, length), PASSPHRASE, 70_000)).rejects.toMatchObject({ code: 'invalid_request' })
  })

  test('with a changed byte anywhere is refused', TIMEOUT, async () => {
    const whole = await sealed(randomBytes(100_000))
    for (const at of [5, 40, 100, 150, 180, 300, 66_000, whole.length - 1]) {
      const changed = Buffer.from(whole)
      changed[at] = (changed[at] ?? 0) ^ 1
      await expect(opened(changed)).rejects.toMatchObject({ code: 'invalid_request' })
    }
  })

  test('that asks for too much memory is refused', TIMEOUT, async () => {
    const whole = (await sealed(randomBytes(10))).toString('latin1').replace(/(-> scrypt \S+) 10/, '$1 24')
    await expect(opened(Buffer.from(whole, 'latin1'))).rejects.toThrow('work factor')
  })
})

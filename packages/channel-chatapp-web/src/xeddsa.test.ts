import { Curve } from '@whiskeysockets/baileys'
import { expect, test } from 'vitest'
import { isSignedBy } from './xeddsa.ts'

/** The vector of libsignal: https://github.com/signalapp/libsignal/blob/main/rust/core/src/curve/curve25519.rs, `test_signature`. */
const IDENTITY = 'ab7e717d4a163b7d9a1d8071dfe9dcf8cdcd1cea3339b6356be84d887e322c64'
const EPHEMERAL = '05edce9d9c415ca78cb7252e72c2c4a554d3eb29485a0e1d503118d1a82d99fb4a'
const SIGNATURE =
  '5de88ca9a89b4a115da79109c67c9c7464a3e4180274f1cb8c63c2984e286dfbede82deb9dcd9fae0bfbb821569b3d9001bd8130cd11d486cef047bd60b86e88'
const hex = (text: string): Buffer => Buffer.from(text, 'hex')

test('accepts the published signature, and none with a changed bit', () => {
  expect(isSignedBy(hex(IDENTITY), hex(EPHEMERAL), hex(SIGNATURE))).toBe(true)
  for (let bit = 0; bit < 512; bit += 7) {
    const changed = hex(SIGNATURE)
    changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7))
    expect(isSignedBy(hex(IDENTITY), hex(EPHEMERAL), changed)).toBe(false)
  }
})

test('accepts what the library signs, for its owner and its message only', () => {
  for (let round = 0; round < 20; round++) {
    const [own, other] = [Curve.generateKeyPair(), Curve.generateKeyPair()]
    const message = Buffer.from(`message ${round}`)
    const signature = Curve.sign(own.private, message)
    const typed = Buffer.concat([Buffer.from([5]), own.public])
    expect([isSignedBy(own.public, message, signature), isSignedBy(typed, message, signature)]).toEqual([true, true])
    expect([isSignedBy(other.public, message, signature), isSignedBy(own.public, Buffer.from('another'), signature)]).toEqual([
      false,
      false,
    ])
  }
})

test('refuses keys and signatures of another length, and a key that is not a point', () => {
  expect(isSignedBy(new Uint8Array(31), new Uint8Array(1), new Uint8Array(64))).toBe(false)
  expect(isSignedBy(hex(IDENTITY), hex(EPHEMERAL), new Uint8Array(63))).toBe(false)
  expect(isSignedBy(new Uint8Array(32).fill(0xff), new Uint8Array(1), new Uint8Array(64))).toBe(false)
  // The field has 2^255 - 19 elements; the last one, -1, is not a point of the other curve.
  for (const low of [0xec, 0xed, 0xff]) {
    const key = new Uint8Array(32).fill(0xff)
    key.set([low])
    key.set([0x7f], 31)
    expect(isSignedBy(key, new Uint8Array(1), new Uint8Array(64))).toBe(false)
  }
})

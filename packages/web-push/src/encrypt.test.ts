import { createECDH, randomBytes } from 'node:crypto'
import ece from 'http_ece'
import { expect, test } from 'vitest'
import { areBrowserKeys, encryptMessage, MESSAGE_BYTES_MAX } from './encrypt.ts'

const bytes = (text: string): Buffer => Buffer.from(text, 'base64url')

function browser() {
  const keys = createECDH('prime256v1')
  keys.generateKeys()
  return { keys, p256dh: keys.getPublicKey(), auth: randomBytes(16) }
}

test('encrypts the example of RFC 8291, section 5 and appendix A', () => {
  const body = encryptMessage(
    Buffer.from('When I grow up, I want to be a watermelon'),
    {
      p256dh: bytes('BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4'),
      auth: bytes('BTBZMqHH6r4Tts7J_aSIgg'),
    },
    { privateKey: bytes('yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw'), salt: bytes('DGv6ra1nlYgDCS1FRnbzlw') },
  )
  expect(Buffer.from(body).toString('base64url')).toBe(
    'DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN',
  )
})

test.each([0, 1, 500, MESSAGE_BYTES_MAX])('another library decrypts a message of %i bytes', (length) => {
  const { keys, p256dh, auth } = browser()
  const message = randomBytes(length)
  const body = Buffer.from(encryptMessage(message, { p256dh, auth }))
  expect(body.length).toBeLessThanOrEqual(4096)
  expect(ece.decrypt(body, { version: 'aes128gcm', privateKey: keys, authSecret: auth.toString('base64url') }).equals(message)).toBe(true)
})

test('two messages share neither salt nor key', () => {
  const keys = browser()
  const [one, two] = [1, 2].map(() => Buffer.from(encryptMessage(Buffer.from('same'), keys)))
  expect(one?.subarray(0, 16)).not.toEqual(two?.subarray(0, 16))
  expect(one?.subarray(21, 86)).not.toEqual(two?.subarray(21, 86))
})

test('a message above the limit of push services is refused', () => {
  expect(() => encryptMessage(Buffer.alloc(MESSAGE_BYTES_MAX + 1), browser())).toThrow(`at most ${MESSAGE_BYTES_MAX} bytes`)
})

test('distinguishes keys of a wrong length from keys that are not a point of the curve', () => {
  const { p256dh, auth } = browser()
  expect(areBrowserKeys({ p256dh, auth })).toBe(true)
  const off = Buffer.from(p256dh)
  off[64] = (off[64] ?? 0) ^ 1
  expect(areBrowserKeys({ p256dh: off, auth })).toBe(false)
  expect(areBrowserKeys({ p256dh: p256dh.subarray(1), auth })).toBe(false)
  expect(areBrowserKeys({ p256dh, auth: auth.subarray(1) })).toBe(false)
})

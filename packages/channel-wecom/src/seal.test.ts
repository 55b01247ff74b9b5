/** Encryption and signatures agree with WeCom's own library, and XML is read as WeCom writes it. */
import { decrypt, encrypt, getSignature } from '@wecom/crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { open, openFile, seal, signatureOf } from './seal.ts'
import { APP } from './testing/seal.ts'
import { elementsOf, xmlOf } from './xml.ts'

const keys = { token: () => APP.callback_token, aesKey: () => APP.callback_aes_key }

/** The example of https://developer.work.weixin.qq.com/document/path/90968, which publishes its keys. */
const DOCUMENTED = {
  token: 'QDG6eK',
  aesKey: 'jWmYm7qr5nMoAUwZRjGtBxmz3KA1tkAj3ykkR6q2B2C',
  corpId: 'wx5823bf96d3bd56c7',
  timestamp: '1409659813',
  nonce: '1372623149',
  signature: '477715d11cdb4164915debcba66cb864d751f3e6',
  encrypted:
    'RypEvHKD8QQKFhvQ6QleEB4J58tiPdvo+rtK1I9qca6aM/wvqnLSV5zEPeusUiX5L5X/0lWfrf0QADHHhGd3QczcdCUpj911L3vg3W/sYYvuJTs3TUUkSUXxaccAS0qhxchrRYt66wiSpGLYL42aM6A8dTT+6k4aSknmPj48kzJs8qLjvd4Xgpue06DOdnLxAUHzM6+kDZ+HMZfJYuR+LtwGc2hgf5gsijff0ekUNXZiqATP7PF5mZxZ3Izoun1s4zG4LUMnvw2r+KqCKIw+3IQH03v+BCA9nMELNqbSf6tiWSrXJB3LAVGUcallcrw8V2t9EL4EhzJWrQUax5wLVMNS0+rUPA3k22Ncx4XXZS9o0MBH27Bo6BpNelZpS+/uh9KsNlY6bHCmJU9p8g7m3fVKn28H3KDYA5Pl/T8Z1ptDAVe0lXdQ2YoyyH2uyPIGHBZZIs2pDBS8R07+qN+E7Q==',
}

describe('a sealed message', () => {
  test('of the documentation is verified and opened', () => {
    const { token, aesKey, timestamp, nonce, encrypted, signature, corpId } = DOCUMENTED
    const documented = { token: () => token, aesKey: () => aesKey }
    expect(signatureOf(documented, timestamp, nonce, encrypted)).toBe(signature)
    const { message, receiver } = open(documented, encrypted)
    expect(receiver).toBe(corpId)
    expect(elementsOf(message)?.get('Content')).toBe('hello')
  })

  test('is opened by the library, and the other way round', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.string({ unit: 'grapheme-ascii', maxLength: 40 }), (message, receiver) => {
        expect(decrypt(APP.callback_aes_key, seal(keys, message, receiver))).toMatchObject({
          message: message.toWellFormed(),
          id: receiver,
        })
        expect(open(keys, encrypt(APP.callback_aes_key, message, receiver))).toEqual({ message: message.toWellFormed(), receiver })
      }),
      { numRuns: 100 },
    )
    expect(signatureOf(keys, '1', '2', 'x')).toBe(getSignature(APP.callback_token, '1', '2', 'x'))
  })

  test('of another key, or any other text, is not opened', () => {
    const other = { ...keys, aesKey: () => 'a'.repeat(43) }
    expect(() => open(other, seal(keys, 'hello', 'x'))).toThrow()
    for (const text of ['', 'x', 'AAAA', `${seal(keys, 'hello', 'x')} `, Buffer.alloc(64).toString('base64')])
      expect(() => open(keys, text)).toThrow(RangeError)
    for (const bytes of [new Uint8Array(), new Uint8Array(15), new Uint8Array(64)])
      expect(() => openFile(Buffer.alloc(32).toString('base64'), bytes)).toThrow(RangeError)
    expect(() => openFile('short', new Uint8Array(32))).toThrow(RangeError)
  })
})

describe('XML', () => {
  test('has elements with text, CDATA or further elements', () => {
    expect(elementsOf('<xml><A>t</A >\n<B/><C ><![CDATA[a ]]]]><![CDATA[> b]]></C></xml>')).toEqual(
      new Map([
        ['A', 't'],
        ['B', ''],
        ['C', 'a ]]> b'],
      ]),
    )
    expect(elementsOf(xmlOf({ C: 'a ]]> b' }))?.get('C')).toBe('a ]]> b')
    const document = '<xml>\n<A><![CDATA[a <b> ]] c]]></A> <B>1 &lt; 2</B><C><D>1</D></C><E></E>\n</xml>'
    expect([...(elementsOf(document) ?? [])]).toEqual([
      ['A', 'a <b> ]] c'],
      ['B', '1 < 2'],
      ['E', ''],
    ])
  })

  test('that is malformed, ambiguous or too large is not read', () => {
    const many = `<xml>${Array.from({ length: 65 }, (_, index) => `<A${index}>1</A${index}>`).join('')}</xml>`
    for (const document of [
      '',
      '<xml>',
      '<xml><A>1</B></xml>',
      '<xml><A>1</A><A>2</A></xml>',
      '<xml>text</xml>',
      '<!DOCTYPE x><xml></xml>',
      '<xml><A><B>1</B></xml>',
      many,
    ])
      expect(elementsOf(document), document.slice(0, 40)).toBeUndefined()
  })

  test('is read as it was written', () => {
    expect([...(elementsOf(xmlOf({ A: 'x', B: 7 })) ?? [])]).toEqual([
      ['A', 'x'],
      ['B', '7'],
    ])
  })
})

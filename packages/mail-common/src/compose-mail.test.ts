import type { Attachment } from '@sluice/sdk'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { composeMail } from './compose-mail.ts'
import { decodeWords } from './encoded-words.ts'

const MAIL = { to: 'ada@example.com', messageId: '<1@example.net>', isReply: false, text: 'hi' }
const compose = async (changes: object) => (await composeMail({ subject: '', ...MAIL, ...changes }, 0)).toString()

test('writes a subject in short lines of ASCII that decodeWords reverses', async () => {
  await fc.assert(
    fc.asyncProperty(fc.string({ unit: 'grapheme', maxLength: 300 }), async (text) => {
      const subject = text.replace(/[\p{Cc}\s]+/gu, ' ').trim()
      const [, encoded = ''] = /^Subject: (.*(?:\r\n .*)*)/m.exec(await compose({ subject: text })) ?? []
      expect(encoded).toMatch(/^[\x20-\x7e]*(?:\r\n [\x20-\x7e]+)*$/)
      expect(decodeWords(encoded.replaceAll('\r\n', ''))).toBe(subject)
      if (encoded !== subject) for (const line of encoded.split('\r\n')) expect(line.length).toBeLessThanOrEqual(76)
    }),
    { seed: 1 },
  )
})

test('composes the same bytes for every attempt', async () => {
  const attachments: Attachment[] = [{ kind: 'file', name: 'a.txt', source: { bytes: Buffer.from('x') } }]
  expect(await compose({ attachments })).toBe(await compose({ attachments }))
  expect(await compose({ attachments })).not.toBe(await compose({ attachments, messageId: '<2@example.net>' }))
})

test('refuses an attachment that has an address instead of bytes, and reads no file', async () => {
  const attachments: Attachment[] = [{ kind: 'file', name: 'a', source: { url: 'file:///etc/passwd' } as never }]
  await expect(compose({ attachments })).rejects.toMatchObject({ code: 'invalid_request' })
})

test('has the same text as plain text and as HTML', async () => {
  const encoded = (text: string) => Buffer.from(text).toString('base64')
  const attachments: Attachment[] = [{ kind: 'file', name: 'a.txt', source: { bytes: Buffer.from('x') } }]
  for (const mail of [
    await compose({ text: 'hi', html: '<em>hi</em>' }),
    await compose({ text: 'hi', html: '<em>hi</em>', attachments }),
  ]) {
    expect(mail).toMatch(/multipart\/alternative[\s\S]*text\/plain[\s\S]*text\/html/)
    expect([mail.includes(encoded('hi')), mail.includes(encoded('<em>hi</em>'))]).toEqual([true, true])
  }
})
